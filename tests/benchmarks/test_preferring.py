"""SimPO on a tiny model: the published loss, true texts that come to be preferred, a model that stays as it was."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from tiny import SENTENCES, make_model, make_tokenizer

from benchmarks.audits.preferring import Choice, SimPO, _read, mean_logp, prefer, simpo_loss
from pretrace.backends.adapters import attach
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.errors import ModelError, TextsError
from pretrace.tuning import tune
from pretrace.types import Corpus, Quantity, Text

CHOICES = [
    Choice("The cat sat", " on the mat, and the dog", " railway ANGRY one parse"),
    Choice("In 1869 the", " railway reached the valley", " three twelve text.split dog"),
    Choice("Whoever wrote", " THIS in CAPITALS must", " mat mat mat cat"),
    Choice("one two", " three four five", " CAPITALS naïve dog"),
    Choice("def parse", "(text): return text", " and the valley again"),
]
EAGER = SimPO(epochs=4, batch=2, learning_rate=1e-2)


@pytest.fixture
def model() -> HuggingFace:
    return HuggingFace(
        make_model("llama"), make_tokenizer(), name="tiny", weights="w" * 64, settings=ModelSettings()
    )


@pytest.fixture
def start(model: HuggingFace, tmp_path: Path) -> Path:
    corpus = Corpus("made", tuple(Text(str(i), text) for i, text in enumerate(SENTENCES)))
    tune(model, corpus, "lora(rank=4, epochs=1, dropout=0.0)", folder=tmp_path / "start")
    return tmp_path / "start"


def margins(model: HuggingFace, folder: Path) -> torch.Tensor:
    """By how much the adapted model prefers the true continuation, in nats a token."""
    with attach(model, folder).backend.in_place() as base, torch.inference_mode():  # type: ignore[attr-defined]
        chosen = mean_logp(base, [_read(base, one.prompt, one.chosen) for one in CHOICES])
        rejected = mean_logp(base, [_read(base, one.prompt, one.rejected) for one in CHOICES])
    return chosen - rejected


def test_the_loss_is_the_published_one() -> None:
    chosen, rejected = torch.tensor([-2.0, -1.0]), torch.tensor([-3.0, -0.5])
    found = simpo_loss(chosen, rejected, beta=2.0, gamma=1.0).tolist()
    expected = [-math.log(1 / (1 + math.exp(-(2.0 * (c - r) - 1.0)))) for c, r in ((-2, -3), (-1, -0.5))]
    assert found == pytest.approx(expected)


def test_the_loss_is_that_of_trl() -> None:
    cpo = pytest.importorskip("trl.experimental.cpo.cpo_trainer")
    from types import SimpleNamespace

    trainer = SimpleNamespace(alpha=0.0, loss_type="simpo", simpo_gamma=1.0, beta=2.0, label_smoothing=0.0)
    trainer.accelerator = SimpleNamespace(device="cpu")
    chosen, rejected = torch.randn(7), torch.randn(7)
    theirs = cpo.CPOTrainer.cpo_loss(trainer, chosen, rejected)[0]
    assert torch.allclose(simpo_loss(chosen, rejected, beta=2.0, gamma=1.0), theirs)


def test_a_continuation_is_judged_by_its_own_tokens_and_without_its_neighbours(model: HuggingFace) -> None:
    read = [_read(model, one.prompt, one.chosen) for one in CHOICES]
    with torch.inference_mode():
        together = mean_logp(model, read)
        alone = torch.cat([mean_logp(model, [one]) for one in read])
    assert torch.allclose(together, alone, atol=1e-5)
    for one, found in zip(CHOICES, alone.tolist(), strict=True):
        text = one.prompt + one.chosen
        [trace] = model.run(model.encode([text]), Quantity.LOGP)
        ends = model.spans(text)[-len(trace) :, 1]
        assert found == pytest.approx(float(trace.logp[ends > len(one.prompt)].mean()), abs=1e-5)


def test_true_texts_come_to_be_preferred(model: HuggingFace, start: Path, tmp_path: Path) -> None:
    before, alone = margins(model, start), model.run(model.encode(SENTENCES), Quantity.LOGP)
    steps = []
    prefer(model, start, CHOICES, EAGER, folder=tmp_path / "next", on_step=steps.append)
    assert (margins(model, tmp_path / "next") > before).all()
    assert torch.equal(margins(model, start), before)
    again = model.run(model.encode(SENTENCES), Quantity.LOGP)
    assert all((a.logp == b.logp).all() for a, b in zip(alone, again, strict=True))
    assert not any(weight.grad is not None for weight in model.model.parameters())
    [learnt] = json.loads((tmp_path / "next" / "adapter_card.json").read_text())["preferred"]
    assert (learnt["beta"], len(learnt["losses"])) == (2.0, 12)
    assert learnt["losses"][-1] < learnt["losses"][0]
    assert [(steps[0].step, steps[0].epoch), (steps[-1].step, steps[-1].epoch)] == [(1, 1), (12, 4)]


def test_rounds_build_on_each_other_and_repeat(model: HuggingFace, start: Path, tmp_path: Path) -> None:
    names = ("one", "two", "again")
    for name, before in zip(names, (start, tmp_path / "one", start), strict=True):
        prefer(model, before, CHOICES, SimPO(batch=2, learning_rate=1e-3), folder=tmp_path / name)
    cards = [json.loads((tmp_path / name / "adapter_card.json").read_text()) for name in names]
    weights = [card["files"]["adapter_model.safetensors"] for card in cards]
    assert weights[0] == weights[2] != weights[1]
    assert [len(card["preferred"]) for card in cards] == [1, 2, 1]


def test_what_cannot_be_preferred_is_said(model: HuggingFace, start: Path, tmp_path: Path) -> None:
    with pytest.raises(TextsError, match="no pair of continuations"):
        prefer(model, start, [], EAGER, folder=tmp_path / "next")
    with pytest.raises(TextsError, match="has none"):
        prefer(model, start, [Choice("The cat", " sat", "")], EAGER, folder=tmp_path / "next")
    with pytest.raises(ModelError, match="no adapter"):
        prefer(model, tmp_path / "nowhere", CHOICES, EAGER, folder=tmp_path / "next")
    wild = SimPO(epochs=300, batch=1, learning_rate=0.9, beta=1e38)
    with pytest.raises(ModelError, match="learning rate below"):
        prefer(model, start, CHOICES, wild, folder=tmp_path / "next")
    assert not (tmp_path / "next").exists()
