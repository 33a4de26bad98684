"""From hidden states to what is read of the vocabulary: slices, and the buffer of a plain output layer."""

import pytest
import torch
from torch import nn

from pretrace.backends.huggingface import Sweep

WIDTH, VOCABULARY, POSITIONS = 24, 700, 45
SLICE = 16  # so that the last one is shorter


class Doubling(nn.Linear):
    """A layer that is more than its weights."""

    def forward(self, x):
        return 2 * super().forward(x)


def hooked():
    layer = nn.Linear(WIDTH, VOCABULARY, bias=False)
    layer.register_forward_hook(lambda module, given, made: 2 * made)
    return layer


def replaced():
    layer = nn.Linear(WIDTH, VOCABULARY, bias=False)
    own = layer.forward
    layer.forward = lambda x: 2 * own(x)
    return layer


LAYERS = {
    "plain": lambda: nn.Linear(WIDTH, VOCABULARY, bias=False),
    "biased": lambda: nn.Linear(WIDTH, VOCABULARY),
    "hooked": hooked,
    "replaced": replaced,
    "of another class": lambda: Doubling(WIDTH, VOCABULARY, bias=False),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", LAYERS)
def test_what_is_read_is_that_of_the_layers_own_logits(kind, dtype):
    torch.manual_seed(3)
    layer = LAYERS[kind]().to(dtype)
    hidden = torch.randn(POSITIONS, WIDTH).to(dtype)
    targets = torch.randint(0, VOCABULARY, (POSITIONS,))
    sweep = Sweep(VOCABULARY, torch.device("cpu"), moments=True)
    sweep.slice, sweep.rows = SLICE, 3  # blocks end ragged
    for _ in range(2):  # the buffer is used again
        found = sweep.read(hidden, targets, layer)
        with torch.inference_mode():
            logits = torch.cat([layer(hidden[a : a + SLICE]) for a in range(0, POSITIONS, SLICE)])
        log_p = logits.float().log_softmax(dim=-1)
        torch.testing.assert_close(found.logp, log_p.gather(1, targets[:, None])[:, 0], rtol=0, atol=2e-6)
        torch.testing.assert_close(found.peak, log_p.amax(dim=-1), rtol=0, atol=2e-6)
        mean = (log_p.exp() * log_p).sum(dim=-1)
        assert found.mean is not None
        torch.testing.assert_close(found.mean, mean, rtol=0, atol=1e-5)
    called = sweep.read(hidden, targets, lambda x: layer(x))
    assert torch.equal(called.logp, found.logp)
