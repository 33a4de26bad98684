"""What the ablations audit: documents divided, targets with known members, and the default statistic."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import SENTENCES

from benchmarks.audits.ablation_documents import DOMAINS, Setup, all_divided, halved
from benchmarks.audits.ablation_models import home
from benchmarks.audits.ablation_trials import Trials, default_answer
from pretrace import Models, open_model
from pretrace.errors import TextsError
from pretrace.scoring.evidence import open_store, trace
from pretrace.types import Corpus, Quantity, Text
from pretrace.verdicts.audit.data import AuditData
from pretrace.verdicts.audit.settings import PRETRACE, AuditSettings
from pretrace.verdicts.audit.snippets import Sample, Samples

POOL = " ".join(SENTENCES).split()


def small(folder: Path, model: Path, **more: Any) -> Setup:
    """A file a domain, of texts of about 200 tokens, some too short, and one text twice; everything else as small
    as it can be."""
    for place, domain in enumerate(DOMAINS):
        draw = random.Random(place)
        texts = [f"{domain} {i} " + " ".join(draw.choices(POOL, k=80)) for i in range(30)]
        with gzip.open(folder / f"{domain}.jsonl.gz", "wt", encoding="utf-8") as file:
            for text in (*texts, texts[0], "too short"):
                file.write(json.dumps({"text": text}) + "\n")
    sizes: dict[str, Any] = {"documents": 20, "learning": 4, "tokens": 150, "layers": 1, "width": 16}
    sizes |= {"vocabulary": 300, "precision": "float32", "rate": 5e-3, "epochs": 1, **more}
    return Setup(data=folder, work=folder, model=str(model), **sizes)


@pytest.fixture
def setup(tmp_path: Path, model_folder: Path) -> Setup:
    return small(tmp_path, model_folder)


def labels(corpus: Corpus) -> list[bool | None]:
    return [text.member for text in corpus.texts]


def test_documents_are_divided(setup: Setup) -> None:
    model = open_model(setup.model)
    for domain, parts in all_divided(setup).items():
        assert [len(part) for part in parts] == [20, 4, 6]
        names = [text.id for part in parts for text in part.texts]
        assert len(set(names)) == len({text.text for part in parts for text in part.texts}) == 30
        lengths = [len(model.spans(text.text)) for text in parts.evaluation.texts]
        assert min(lengths) >= 128
        assert max(lengths) <= 151  # a cut may be spelled in a token more
        assert all(text.text.startswith(domain) for part in parts for text in part.texts)
        assert max(len(model.spans(text.text)) for text in parts.background.texts) > 151


def test_too_few_documents_are_refused(tmp_path: Path, model_folder: Path) -> None:
    with pytest.raises(TextsError, match="30 documents of 128 tokens or more"):
        all_divided(small(tmp_path, model_folder, documents=27))


def test_members_are_exactly_half() -> None:
    corpus = Corpus("made up", tuple(Text(str(i), str(i)) for i in range(40)))
    one, again, other = halved(corpus, 0), halved(corpus, 0), halved(corpus, 1)
    assert sum(map(bool, labels(one))) == sum(map(bool, labels(other))) == 20
    assert labels(one) == labels(again) != labels(other)


def test_a_target_is_trained_on_its_members_once(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    from pretrace.tuning import training

    real, learnt = training.train, list[list[list[int]]]()

    def noted(model: Any, sequences: Any, *given: Any, **named: Any) -> Any:
        learnt.append([list(one) for one in sequences])
        return real(model, sequences, *given, **named)

    monkeypatch.setattr(training, "train", noted)
    assert [home(domain) for domain in DOMAINS] == [0, 1, 0, 1]
    target, base, labelled = Trials(setup).target("hackernews", 1)
    members = [text.text for text in labelled.texts if text.member]
    parts = all_divided(setup)
    background = [text.text for one in parts.values() for text in one.background.texts]
    tokenizer = open_model(target).tokenizer  # type: ignore[attr-defined]
    assert len(members) == 10
    for sequences, texts, every in (
        (learnt[0], background, background + [text.text for text in labelled.texts]),
        (learnt[1], members, [text.text for text in labelled.texts] + background),
    ):
        read = "".join(tokenizer.decode(one, skip_special_tokens=True) for one in sequences)
        assert [text for text in every if text[:60] in read] == texts
    losses = [json.loads((Path(folder) / "card.json").read_text())["losses"] for folder in (base, target)]
    assert losses[1][0] < losses[0][0]  # the target begins where the base ended
    assert Trials(setup).target("hackernews", 1)[0] == target
    assert len(learnt) == 2
    with pytest.raises(TextsError, match="other texts or settings"):
        Trials(replace(setup, batch=4)).target("hackernews", 1)


@pytest.fixture
def sides() -> Samples:
    """Twelve documents of two pieces each."""
    draw = random.Random(3)

    def piece(i: int) -> Sample:
        return Sample(f"d{i // 2:02}", " ".join(draw.choices(POOL, k=9)), "before ")

    return Samples(tuple(map(piece, range(24))), tuple(map(piece, range(24))), paired=True)


def test_the_default_statistic_is_that_of_an_audit_with_this_margin(
    sides: Samples, model_folder: Path, tmp_path: Path
) -> None:
    from tiny import make_model, make_tokenizer

    make_model("llama").save_pretrained(tmp_path / "other")
    make_tokenizer().save_pretrained(tmp_path / "other")
    target, placebo = open_model(str(model_folder)), open_model(str(tmp_path / "other"))
    found = default_answer(sides, target, placebo, seed=5, margin=0.02)
    case = AuditData(sides, Models(target, placebo=Models(placebo)), AuditSettings(), margin=0.02, seed=5)
    audited = case.answer(PRETRACE)
    assert found.effect is not None
    assert (found.p, found.effect, found.pieces) == (audited.p, audited.effect, audited.pieces)
    assert found.documents == 12
    plain = default_answer(sides, target, placebo, seed=5, margin=0.0)
    assert plain.effect is not None
    assert plain.effect.value - found.effect.value == pytest.approx(0.02)


def test_without_a_placebo_it_is_the_mean_log_probability_a_token(sides: Samples, model_folder: Path) -> None:
    target = open_model(str(model_folder))
    found = default_answer(sides, target, seed=0, margin=0.5)
    means = []
    for side in (sides.suspect, sides.heldout):
        traces = trace(
            target, [piece.prefix + piece.text for piece in side], Quantity.LOGP, store=open_store(None)
        )
        ends = [target.spans(piece.prefix + piece.text)[:, 1] for piece in side]
        means.append(
            np.mean(
                [t.logp[e[-len(t) :] > 7].mean(dtype=np.float64) for t, e in zip(traces, ends, strict=True)]
            )
        )
    assert found.effect is not None
    assert found.effect.value == pytest.approx(means[0] - means[1] - 0.5)
