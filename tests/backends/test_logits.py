"""From hidden states to what is read of the vocabulary: in slices."""

import pytest
import torch
from torch import nn

from pretrace.backends._logits import Sweep, read

WIDTH, VOCABULARY, POSITIONS = 24, 700, 45
SLICE = 16  # so that the last one is shorter


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [False, True])
def test_what_is_read_is_that_of_the_layers_own_logits(bias, dtype):
    torch.manual_seed(3)
    layer = nn.Linear(WIDTH, VOCABULARY, bias=bias).to(dtype)
    hidden = torch.randn(POSITIONS, WIDTH).to(dtype)
    targets = torch.randint(0, VOCABULARY, (POSITIONS,))
    sweep = Sweep(VOCABULARY, torch.device("cpu"), moments=True)
    sweep.slice, sweep.rows = SLICE, 3  # blocks end ragged
    for _ in range(2):  # the buffer is used again
        found = read(hidden, targets, layer, sweep)
        with torch.inference_mode():
            logits = torch.cat([layer(hidden[a : a + SLICE]) for a in range(0, POSITIONS, SLICE)])
        log_p = logits.float().log_softmax(dim=-1)
        torch.testing.assert_close(found.logp, log_p.gather(1, targets[:, None])[:, 0], rtol=0, atol=2e-6)
        torch.testing.assert_close(found.peak, log_p.amax(dim=-1), rtol=0, atol=2e-6)
        mean = (log_p.exp() * log_p).sum(dim=-1)
        assert found.mean is not None
        torch.testing.assert_close(found.mean, mean, rtol=0, atol=1e-5)
    called = read(hidden, targets, lambda x: layer(x), sweep)
    assert torch.equal(called.logp, found.logp)
