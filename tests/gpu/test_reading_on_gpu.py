"""Traces and states read on a GPU are those of the same model asked directly, and those of the processor."""

import numpy as np
import pytest
import torch
from tiny import SENTENCES, make_model, make_tokenizer

from pretrace import open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.naming import ModelSettings
from pretrace.types import Firing, Hidden, Quantity

ALL = Quantity.LOGP | Quantity.MOMENTS
TEXTS = [*SENTENCES, SENTENCES[1] * 5, SENTENCES[0] * 3, "a b"]
# Per token. The scores in nats are about 6, and the rounding of a type goes through two layers.
TOLERANCE = {torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.4}


def opened(family, device, dtype=torch.float32):
    model = make_model(family).to(device=device, dtype=dtype)
    return HuggingFace(model, make_tokenizer(), name=family, weights="w", settings=ModelSettings())


def read(model, want=ALL, states=frozenset()):
    """The trace of each text, in the order of the texts."""
    encoded = model.encode(TEXTS)
    found = {}
    for batch in model.pack(encoded):
        found.update(zip(batch, model.run([encoded[i] for i in batch], want, states), strict=True))
    return [found[i] for i in range(len(TEXTS))]


@torch.inference_mode()
def directly(model: HuggingFace, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-probabilities, their means and standard deviations from the whole model's logits, one text alone."""
    ids = torch.from_numpy(model.encode([text])[0].tokens.astype(np.int64))[None].to(model.device)
    log_p = model.model(input_ids=ids).logits[0, :-1].double().log_softmax(-1)
    mean = (log_p.exp() * log_p).sum(-1)
    std = ((log_p.exp() * log_p.square()).sum(-1) - mean.square()).clamp_min(0).sqrt()
    token = log_p.gather(1, ids[0, 1:, None])[:, 0]
    return token.cpu().numpy(), mean.cpu().numpy(), std.cpu().numpy()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("family", ["gpt_neox", "llama", "gemma2"])
def test_traces_are_those_of_the_whole_logits(family, dtype, device):
    model = opened(family, device, dtype)
    assert model.facts["device"].startswith(device.type)
    for text, made in zip(TEXTS, read(model), strict=True):
        token, mean, std = directly(model, text)
        for found, expected in ((made.logp, token), (made.mean, mean), (made.std, std)):
            np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype])
            assert abs(found.mean() - expected.mean()) < TOLERANCE[dtype] / 2


def test_a_wide_vocabulary_with_certain_and_impossible_tokens(device):
    """Several blocks of the sweep, several stretches of the vocabulary, logits up to 60."""
    from pretrace.backends.huggingface import Sweep

    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(3000, 16, generator=generator)
    weight = torch.randn(50_021, 16, generator=generator) * 4
    targets = torch.randint(0, len(weight), (len(hidden),), generator=generator)
    log_p = (hidden[:400] @ weight.T).double().log_softmax(-1)
    mean = (log_p.exp() * log_p).sum(-1)
    std = ((log_p.exp() * (log_p - mean[:, None]).square()).sum(-1)).sqrt()
    weight, hidden, on = weight.to(device), hidden.to(device), targets.to(device)
    made = Sweep(50_021, device, moments=True).read(hidden, on, lambda h: h @ weight.T)
    alone = Sweep(50_021, device, moments=False).read(hidden, on, lambda h: h @ weight.T)
    wanted = log_p.gather(1, targets[:400, None])[:, 0]
    np.testing.assert_allclose(made.logp[:400], wanted, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(made.mean[:400], mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(made.std[:400], std, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(alone.logp, made.logp, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("device_map", ["auto", "balanced"])
def test_a_device_map(device_map, model_folder, device):
    pytest.importorskip("accelerate")
    if device.type == "cpu":
        pytest.skip("accelerate spreads a model over GPUs")
    spread = open_model(str(model_folder), device_map=device_map, dtype="float32")
    whole = open_model(str(model_folder), device="cuda", dtype="float32")
    assert isinstance(spread, HuggingFace)
    assert isinstance(whole, HuggingFace)
    states = frozenset({Hidden(), Firing("any", 0.5)})
    for here, there in zip(read(spread, states=states), read(whole, states=states), strict=True):
        np.testing.assert_allclose(here.logp, there.logp, atol=1e-4)
        assert np.mean(here.states[Firing("any", 0.5)] != there.states[Firing("any", 0.5)]) < 0.02


@pytest.mark.parametrize("family", ["gpt_neox", "llama"])
@pytest.mark.parametrize("gated", [False, True])
def test_neurons_and_hidden_states_are_those_of_the_processor(family, gated, device):
    thresholds = (-0.1, 0.05, 0.3)
    firing = {Firing(pool, t, gated) for pool in ("any", "mean", "count") for t in thresholds}
    states = frozenset({*firing, Hidden()})
    here = read(opened(family, device), Quantity.LOGP, states)
    there = read(opened(family, torch.device("cpu")), Quantity.LOGP, states)
    for state in sorted(firing, key=repr):
        found, expected = (np.stack([one.states[state] for one in some]) for some in (here, there))
        assert found.dtype == expected.dtype
        assert expected.mean() > 0
        # an activation at a threshold may fall to the other side, no more
        assert np.mean(found != expected) < 0.01, state
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(one.states[Hidden()], other.states[Hidden()], rtol=1e-3, atol=1e-3)
