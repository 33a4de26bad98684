"""From texts to what models said of them, on tiny models: every stage, that a second call does nothing, and what is
read back for the audits."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from audited_domains import DOMAINS, small, write_domains

from benchmarks.audits import readings as audit_readings
from benchmarks.audits.documents import KEPT_APART, all_divided, halved
from benchmarks.audits.models import Target
from benchmarks.audits.readings import ALONE, EARLIER, OWN, STREAM, TUNED, Store, run, targets
from benchmarks.audits.samples import Domain, Said, alone, leads, scale_of
from pretrace import Models, detect, open_model
from pretrace.scoring.detect import Options
from pretrace.types import Pair
from pretrace.verdicts.audit.data import sample_logprobs
from pretrace.verdicts.audit.snippets import Samples

STAGES = ("prepare", "bases", "pairs", "train", "read")
READ = ("hackernews", "arxiv")


def call(store: Store, stage: str, data: Path) -> None:
    """One stage, of the domains that are read where that can be chosen."""
    domains = DOMAINS if stage == "pairs" else READ
    run(store, argparse.Namespace(stage=stage, domains=domains, targets=1, data=data))


@pytest.fixture(scope="module")
def patched() -> Iterator[pytest.MonkeyPatch]:
    """The experiment on three domains and with the quickest of generators."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_readings, "all_divided", lambda setup, data: all_divided(setup, data, DOMAINS))
        patch.setattr(audit_readings, "MEASURED", READ)
        patch.setattr(audit_readings, "LONGER", ("arxiv",))
        patch.setattr(audit_readings, "METHOD", "lora(epochs=1, precision='float32')")
        patch.setattr(audit_readings, "CROSS", 5)
        yield patch


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_domains(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def store(
    tmp_path_factory: pytest.TempPathFactory, model_folder: Path, data: Path, patched: pytest.MonkeyPatch
) -> Store:
    """The experiment's folder when all stages are done."""
    patched.setenv("PRETRACE_CACHE", str(tmp_path_factory.mktemp("cache")))
    made = Store(tmp_path_factory.mktemp("work"), small(model_folder))
    for stage in STAGES:
        call(made, stage, data)
    return made


@pytest.fixture
def domain(store: Store) -> Domain:
    return Domain(store.work, "arxiv")


def test_documents_are_kept_as_they_were_divided(store: Store, data: Path) -> None:
    assert store.divided == all_divided(store.setup, data, DOMAINS)
    assert Store(store.work, store.setup).divided == store.divided


def test_all_that_was_asked_for_is_there(store: Store) -> None:
    files = {str(path.relative_to(store.work)) for path in store.work.rglob("*")}
    assert {"base-0", "base-0-earlier"} <= files
    names = {name: {target.name for target in targets(name, 1)} for name in READ}
    assert len(names["hackernews"]) == 2
    assert len(names["arxiv"]) == 4
    for name in READ:
        assert {*Domain(store.work, name).names} == names[name]
        assert f"beside-{name}.npz" in files
    assert [path for path in files if path.startswith("targets/all-") and path.count("/") == 1] == [
        f"targets/all-{STREAM.name}"
    ]
    assert STREAM not in targets(KEPT_APART, 2)


def test_a_second_call_does_nothing(store: Store, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.stat().st_mtime_ns for path in store.work.rglob("*") if path.is_file()}
    monkeypatch.setattr(Store, "generator", lambda self: None)
    monkeypatch.setattr(audit_readings, "open_model", None)  # nothing is left to be asked
    again = Store(store.work, store.setup)
    for stage in STAGES[1:]:
        call(again, stage, data)
    assert {path: path.stat().st_mtime_ns for path in store.work.rglob("*") if path.is_file()} == before
    documents = store.work / "documents.json.gz"
    content = documents.read_bytes()
    call(again, "prepare", data)
    assert documents.read_bytes() == content


def test_a_reading_that_was_lost_is_made_again_and_the_same(store: Store, domain: Domain, data: Path) -> None:
    lost = store.work / f"target-arxiv-{Target(0).name}.npz"
    before = domain.target(Target(0).name)
    lost.unlink()
    call(Store(store.work, store.setup), "read", data)
    after = domain.target(Target(0).name)
    assert before.keys() == after.keys()
    for name, values in before.items():
        np.testing.assert_array_equal(values, after[name])


def test_a_pair_is_a_snippet_of_its_text_and_the_first_one_its_beginning(
    store: Store, domain: Domain
) -> None:
    for kind, pairs in domain.pairs.items():
        assert len(pairs) == len({pair.document for pair in pairs}) == len(domain.texts) == 18
        for pair in pairs:
            text = domain.texts[pair.document]["text"]
            assert pair.prefix + pair.true in text
            assert text.startswith(pair.prefix) or kind == "drawn"
    assert sum(bool(pair.generated) for pair in domain.pairs["drawn"]) > 9
    assert not any(pair.generated for pair in domain.pairs["first"])
    assert store.material("arxiv").drawn == tuple(domain.pairs["drawn"])


def test_a_pair_counts_for_its_document(store: Store, domain: Domain) -> None:
    groups = {text.id: text.group for text in store.divided["arxiv"].evaluation.texts}
    pairs = domain.pairs["drawn"]
    assert domain.documents(pairs).tolist() == [groups[pair.document] for pair in pairs]
    assert len(set(domain.documents(pairs).tolist())) == 6
    assert {row["meta"]["period"] for row in domain.texts.values()} <= {"earlier", "later"}
    bare = Domain(store.work, "hackernews")
    assert bare.documents(bare.pairs["drawn"]).tolist() == [p.document for p in bare.pairs["drawn"]]


@pytest.mark.parametrize("which", ["target", OWN, EARLIER, TUNED])
def test_what_was_said_is_what_an_audit_reads(store: Store, domain: Domain, which: str) -> None:
    folders = {
        "target": store.folder("arxiv", Target(0)),
        OWN: store.work / "base-0",
        EARLIER: store.work / "base-0-earlier",
        TUNED: store.work / "targets" / "arxiv-tuned",
    }
    pairs = domain.pairs["drawn"]
    arrays = domain.target(Target(0).name) if which == "target" else domain.beside
    said = Said.of(arrays, "drawn" if which == "target" else which, pairs)
    assert said.generated is not None
    read = sample_logprobs(open_model(str(folders[which])), Samples.of_pairs(pairs), cache=False)
    for mine, theirs in ((said.true, read.suspect), (said.generated, read.heldout)):
        assert mine.tokens.tolist() == theirs.tokens.tolist()
        assert mine.bytes.tolist() == theirs.bytes.tolist()
        for one, other in zip(mine.logp, theirs.logp, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)  # kept in half precision
    for one, part in zip(said.whole.logp, said.true.logp, strict=True):
        assert len(one) > len(part) > 0
        np.testing.assert_array_equal(one[-len(part) :], part)


def test_a_target_knows_who_is_a_member_and_reads_other_domains(store: Store, domain: Domain) -> None:
    found, corpus = domain.target(Target(0).name), store.divided["arxiv"].evaluation
    assert found["member"].tolist() == [bool(text.member) for text in halved(corpus, 0).texts]
    away = Domain(store.work, "hackernews").pairs["drawn"][:5]
    assert len(Said.of(found, "hackernews", away).whole.logp) == 5
    first = Said.of(found, "first", domain.pairs["first"])
    assert first.generated is None
    assert found["features"].shape[:2] == (2, 18)
    assert np.isfinite(found["features"]).all()
    stream = domain.target(STREAM.name)
    assert stream["member"].tolist() == found["member"].tolist()
    assert "features" not in stream


def test_a_pair_without_a_generated_text_has_no_tokens_there(model_folder: Path) -> None:
    model = open_model(str(model_folder))
    pairs = [
        Pair("a", "a", "The cat sat", " on the mat", ""),
        Pair("b", "b", "one two three", " four", " five six"),
    ]
    found = Said.of(dict(audit_readings.said(model, pairs, "some")), "some", pairs)
    assert found.generated is not None
    ends = model.spans("one two three five six")[:, 1]
    assert found.generated.tokens.tolist() == [0, int((ends > len("one two three")).sum())]


def test_scores_of_whole_texts(store: Store, domain: Domain) -> None:
    model = open_model(str(store.work / "base-0"))
    run = detect(store.divided["arxiv"].evaluation, Models(model), ALONE, Options(cache=False))
    for column, score in enumerate(ALONE):
        np.testing.assert_allclose(alone(domain.beside, OWN, score), run.matrix[:, column], rtol=1e-5)


def test_leads_are_bounded_at_the_scale_or_plain(domain: Domain) -> None:
    pairs = domain.pairs["drawn"]
    target = Said.of(domain.target(Target(0).name), "drawn", pairs)
    placebo = Said.of(domain.beside, OWN, pairs)
    every = np.concatenate(
        [
            one - other
            for mine, theirs in ((target.true, placebo.true), (target.generated, placebo.generated))
            if mine is not None and theirs is not None
            for one, other in zip(mine.logp, theirs.logp, strict=True)
        ]
    )
    scale = scale_of(target, placebo)
    assert scale == pytest.approx(np.median(np.abs(every)))
    assert scale > 0
    by_hand = [
        np.clip((one - other) / scale, -1, 1).mean()
        for one, other in zip(target.true.logp, placebo.true.logp, strict=True)
    ]
    np.testing.assert_allclose(leads(target.true, placebo.true, scale), by_hand)
    plain = target.true.per_token - placebo.true.per_token
    np.testing.assert_allclose(leads(target.true, placebo.true), plain)
