"""The format of a training: float32 unless bfloat16 is clearly faster, and weights put back to the last bit."""

import pytest
import torch
from tiny import SENTENCES, make_model, opened

from pretrace.cache.location import cache_folder
from pretrace.tuning import training, tune
from pretrace.tuning.training import computing, fastest_format, settled
from pretrace.types import Corpus, Text

CORPUS = Corpus("sentences", tuple(Text(str(i), text, False) for i, text in enumerate(SENTENCES)))


def test_auto_takes_bfloat16_only_where_the_processor_has_units_for_it(monkeypatch):
    monkeypatch.setattr(training, "fastest_format", fastest_format)
    cpu = torch.device("cpu")
    for units in (True, False):
        fastest_format.cache_clear()
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda units=units: units, raising=False)
        assert settled("auto", cpu) == ("bfloat16" if units else "float32")
        assert settled("float32", cpu) == "float32"
        assert settled("auto", torch.device("mps")) == "float32"
    fastest_format.cache_clear()


def converted(*dtypes):
    """A tiny model, its weights taken to one type after another."""
    model = make_model("llama")
    for dtype in dtypes:
        model = model.to(dtype)
    return opened(model)


def test_adapters_of_two_formats_are_two_and_each_card_says_which(monkeypatch):
    seen = []
    for chosen in ("float32", "bfloat16", "float32"):
        monkeypatch.setattr(training, "fastest_format", lambda device, chosen=chosen: chosen)
        tuned = tune(converted(torch.float32), CORPUS, "lora(epochs=1)")
        assert tuned.card["precision"] == chosen
        seen.append(tuned.backend.fingerprint)
    assert seen[0] == seen[2] != seen[1]
    assert len(list((cache_folder() / "adapters").glob("*/adapter_card.json"))) == 2


def test_a_narrow_model_really_computes_in_float32_and_is_as_before_afterwards(monkeypatch):
    """The adapter of a bfloat16 model is the one of the same weights opened in float32."""
    monkeypatch.setattr(training, "fastest_format", lambda device: "float32")
    narrow = converted(torch.bfloat16)
    wide = converted(torch.bfloat16, torch.float32)
    before = [weight.clone() for weight in narrow.model.parameters()]
    losses = [tune(model, CORPUS, "lora(epochs=2)").card["losses"] for model in (narrow, wide)]
    assert narrow.fingerprint != wide.fingerprint  # or the second would be the first from the cache
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert {weight.dtype for weight in narrow.model.parameters()} == {torch.bfloat16}
    assert all(torch.equal(a, b) for a, b in zip(before, narrow.model.parameters(), strict=True))


def test_weights_are_narrow_again_after_an_error_and_bfloat16_leaves_them_alone():
    model = torch.nn.Linear(3, 2).to(torch.bfloat16).requires_grad_(False)
    with computing(model, "bfloat16"):
        assert model.weight.dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="shapes"), computing(model, "float32"):
        model(torch.zeros(1, 4, dtype=torch.float32))  # four inputs where three are wanted
    assert model.weight.dtype == torch.bfloat16
