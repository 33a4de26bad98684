"""Whole audits: members found, non-members not, and every way to be wrong.

Generator and base are real tiny models; the target is the base with what it remembers added, so that exposure is all
they differ in (benchmarks/audit_errors.py audits models that were really trained).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import MORE_WORDS

from pretrace.backends import open_model
from pretrace.errors import ExpressionError, ModelError, TextsError
from pretrace.fitting import Models
from pretrace.inference.audit import audit
from pretrace.inference.settings import AuditSettings
from pretrace.inference.snippets import SnippetSettings
from pretrace.runs import load_audit, save_audit
from pretrace.tuning.architectures import Architecture
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.types import Audit, Backend, Corpus, Encoded, Quantity, Sampling, States, Text, Trace

TINY = Architecture(layers=2, width=64, heads=4, vocabulary=300, max_tokens=128)
HOW = AuditSettings(
    snippets=SnippetSettings(tokens=24, most=4),
    method="lora(rank=4, epochs=1, learning_rate=0.0003, on='all')",
)


def made_up(name: str, number: int, *, seed: int) -> Corpus:
    """Documents of words drawn one by one: a model soon writes them as well as anybody."""
    rng = np.random.default_rng(seed)
    return Corpus(
        name, tuple(Text(f"{name}{i}", " ".join(rng.choice(MORE_WORDS, 60))) for i in range(number))
    )


class Remembers:
    """A model that gives every token a little more than `base` does where it stands in the texts it remembers,
    and everywhere else some more or less by lot: exposure and nothing else."""

    def __init__(self, base: Backend, name: str, texts: Corpus, *, gain: float = 0.3) -> None:
        self.base, self.name, self.gain = base, name, gain
        self.offers, self.tokenizer_hash = base.offers, base.tokenizer_hash
        self.vocabulary, self.max_tokens = base.vocabulary, base.max_tokens
        self.fingerprint = f"{base.fingerprint} {name}"
        self.facts = {**base.facts, "name": name, "weights": name}
        encoded = base.encode([text.text for text in texts.texts])
        self.known = {run for one in encoded for run in runs(one.tokens.tolist())}

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        return self.base.encode(texts)

    def spans(self, text: str, /) -> Any:
        return self.base.spans(text)

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        return self.base.pack(encoded)

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        traces = []
        for one, trace in zip(batch, self.base.run(batch, want, states), strict=True):
            ids = one.tokens.tolist()
            met = np.array([run in self.known for run in runs(ids)][-len(trace) :])
            noise = np.random.default_rng([len(self.name), *ids]).normal(0, 0.5, len(trace))
            logp = (trace.logp + noise + self.gain * met).astype(np.float32)
            traces.append(dataclasses.replace(trace, logp=logp))
        return traces


def runs(ids: list[int]) -> list[tuple[int, ...]]:
    """Each token with the seven before it."""
    return [tuple(ids[max(0, i - 7) : i + 1]) for i in range(len(ids))]


@dataclasses.dataclass(frozen=True)
class Trained:
    """A base, a target that remembers the members, and the two halves of what it might remember."""

    base: Backend
    target: Backend
    members: Corpus
    others: Corpus


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("audit")
    new = PlantSettings(share=0.9, epochs=9, batch=16, learning_rate=5e-3, threads=1, architecture=TINY)
    plant(made_up("background", 120, seed=1), settings=new, folder=folder / "base")
    base = open_model(str(folder / "base"))
    members, others = (made_up(name, 40, seed=seed) for name, seed in (("mine", 2), ("others", 3)))
    return Trained(base, Remembers(base, "target", members), members, others)


def against_base(trained: Trained, corpus: Corpus, settings: AuditSettings = HOW, **more: Corpus) -> Audit:
    models = Models(trained.target, placebo=Models(trained.base))
    return audit(corpus, models, generator=trained.base, settings=settings, **more)


def test_members_are_consistent_with_training_and_others_show_nothing(
    trained: Trained, tmp_path: Path
) -> None:
    found = against_base(trained, trained.members)
    assert found.outcome == "consistent", found.reasons
    assert found.answer.p < 0.01
    assert found.answer.effect is not None
    assert found.answer.effect.low > 0
    assert found.placebo is not None
    assert found.placebo.grade == "sibling"
    assert found.documents == tuple(sorted(text.id for text in trained.members.texts))
    assert found.answer.effect.value == pytest.approx(found.values.mean())
    null = against_base(trained, trained.others)
    assert null.outcome == "nothing", null.reasons
    assert null.answer.p > 0.05
    assert null.settings["models"]["target"]["weights"] == trained.target.facts["weights"]
    save_audit(found, tmp_path / "AUDIT")
    again = load_audit(tmp_path / "AUDIT")
    assert again.answer == found.answer
    assert np.array_equal(again.values, found.values)
    assert again.pairs == found.pairs
    assert "consistent with training" in (tmp_path / "AUDIT" / "report.html").read_text()


def test_the_same_audit_twice_gives_the_same_numbers_and_is_told_of_the_first(trained: Trained) -> None:
    first, second = (against_base(trained, trained.others) for _ in range(2))
    assert first.answer == second.answer
    assert np.array_equal(first.values, second.values)
    assert first.settings["earlier"] == []
    assert [entry["p"] for entry in second.settings["earlier"]] == [first.answer.p]


def test_what_is_judged_was_never_learnt_from(trained: Trained) -> None:
    found = against_base(trained, trained.others)
    snippets = found.settings["snippets"]
    assert snippets["judged"] == len(found.pairs)
    assert snippets["generator_learnt_from"] + snippets["judged"] == snippets["cut"]


def test_real_heldout_texts_take_the_generator_s_place(trained: Trained) -> None:
    found = against_base(trained, trained.members, heldout=trained.others)
    assert found.design == "heldout"
    assert found.outcome == "consistent", found.reasons
    assert set(found.heldout_documents) == {text.id for text in trained.others.texts}
    assert not found.pairs
    fresh = made_up("fresh", 40, seed=9)
    null = against_base(trained, trained.others, heldout=fresh)
    assert null.outcome == "nothing", null.reasons


def test_without_a_placebo_no_rejection_is_believed(trained: Trained) -> None:
    found = audit(trained.members, trained.target, generator=trained.base, settings=HOW)
    assert found.answer.procedure == "calibrated"
    status = {check.name: check.status for check in found.checks}
    assert status["placebo"] == "failed"
    assert "stand-in" in status
    assert found.outcome == ("inconclusive" if found.answer.p <= 0.05 else "nothing")


def test_other_procedures_are_shown_and_decide_nothing(trained: Trained) -> None:
    settings = dataclasses.replace(HOW, also=("paper", "original", "calibrated"))
    found = against_base(trained, trained.others, settings)
    assert [one.procedure for one in found.variants] == ["paper", "original", "calibrated"]
    assert all(0 <= one.p <= 1 for one in found.variants)
    assert found.outcome == "nothing"


def test_power_is_measured_by_planting(model_folder: Path) -> None:
    line = "The {0} train left platform {1} at {2} and reached the valley on time. "
    texts = ["".join(line.format(i, j + i, 17 * i % 59 + j) for j in range(8)) for i in range(30)]
    corpus = Corpus("timetables", tuple(Text(f"d{i}", text) for i, text in enumerate(texts)))
    target = open_model(str(model_folder))
    models = Models(target, placebo=Models(Remembers(target, "placebo", Corpus("nothing", ()))))
    found = {}
    for rate in (1e-7, 1e-4):
        power = PlantSettings(epochs=1, learning_rate=rate, threads=1)
        settings = dataclasses.replace(HOW, snippets=SnippetSettings(tokens=16), power=power)
        found[rate] = audit(corpus, models, generator=target, settings=settings)
    weak, strong = (found[rate].power for rate in (1e-7, 1e-4))
    assert weak is not None
    assert strong is not None
    assert weak.planted == strong.planted == 15
    assert weak.probability.value < 0.2 < strong.probability.value
    assert weak.effect.value < 0 < strong.effect.value
    assert found[1e-7].outcome == "inconclusive"
    assert next(c for c in found[1e-7].checks if c.name == "power").status == "failed"


def test_texts_from_elsewhere_are_noticed(trained: Trained) -> None:
    rng = np.random.default_rng(5)
    words = ["Zug", "Straße", "über", "Öl", "nächste", "Woche", "fährt", "grün"]
    texts = tuple(Text(f"z{i}", " ".join(rng.choice(words, 40))) for i in range(40))
    found = against_base(trained, trained.others, heldout=Corpus("German", texts))
    assert found.outcome == "inconclusive"
    assert next(check for check in found.checks if check.name == "gap").status == "failed"


def test_wrong_uses_are_refused_before_anything_is_asked(trained: Trained) -> None:
    members, others = trained.members, trained.others
    few = Corpus("few", members.texts[:1])
    with pytest.raises(TextsError, match="at least 20 snippets"):
        against_base(trained, few)
    with pytest.raises(TextsError, match=r"40 of 40 held-out texts are among the suspect ones"):
        against_base(trained, members, heldout=members)
    with pytest.raises(TextsError, match="holds no texts"):
        against_base(trained, Corpus("empty", ()))
    with pytest.raises(TextsError, match="holds none"):
        against_base(trained, members, heldout=Corpus("empty", ()))
    with pytest.raises(ModelError, match="has the very weights of the target"):
        audit(
            members,
            Models(trained.target, placebo=Models(trained.target)),
            generator=trained.base,
            settings=HOW,
        )
    with pytest.raises(ModelError, match="needs a generator"):
        audit(members, trained.target, settings=HOW)
    with pytest.raises(ExpressionError, match="no procedure is called 'magic'"):
        dataclasses.replace(HOW, procedure="magic")
    alone = dataclasses.replace(HOW, procedure="paper", also=("pretrace",))
    with pytest.raises(ExpressionError, match="pretrace in --also holds the target against a placebo"):
        audit(members, trained.target, generator=trained.base, settings=alone)
    with pytest.raises(ExpressionError, match="temperature must be 0 or more, found -1"):
        dataclasses.replace(HOW, sampling=Sampling(temperature=-1))
    with pytest.raises(ExpressionError, match="power is measured for tests on documents"):
        against_base(trained, others, dataclasses.replace(HOW, procedure="paper", power=PlantSettings()))


def test_a_snippet_on_both_sides_is_refused(trained: Trained) -> None:
    text = trained.members.texts[0]
    held = Corpus("held", (*trained.others.texts, Text("copy", text.text + " And a word more.")))
    with pytest.raises(TextsError, match="stand in the held-out ones word for word"):
        against_base(trained, trained.members, heldout=held)
