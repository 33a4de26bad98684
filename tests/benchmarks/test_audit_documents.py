"""How the texts of the audits' experiments are divided: by whole documents, cut and unique."""

from __future__ import annotations

from pathlib import Path

import pytest
from audited_domains import DOMAINS, made_up, small, write_domains

from benchmarks.audits import documents as audit_documents
from benchmarks.audits.documents import all_divided, divide, halved, opened
from pretrace import open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.errors import TextsError
from pretrace.types import Corpus, Text


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_domains(tmp_path_factory.mktemp("data"))


@pytest.fixture
def model(model_folder: Path) -> HuggingFace:
    found = open_model(str(model_folder))
    assert isinstance(found, HuggingFace)
    return found


def test_every_domain_is_divided_into_unique_texts(
    data: Path, model_folder: Path, model: HuggingFace
) -> None:
    found = all_divided(small(model_folder), data, DOMAINS)
    assert tuple(found) == DOMAINS
    for domain, parts in found.items():
        names = [text.id for part in parts for text in part.texts]
        assert len(names) == len(set(names)) == len({t.text for part in parts for t in part.texts}) == 36
        assert all(text.text.startswith(f"{domain} ") for part in parts for text in part.texts)
        assert all(text.member is None for part in parts for text in part.texts)
        lengths = [len(model.spans(text.text)) for text in parts.evaluation.texts]
        assert min(lengths) >= 128
        assert max(lengths) <= 141  # a cut may be spelled in a token more
        assert max(len(model.spans(text.text)) for text in parts.background.texts) > 141
    assert [len(part) for part in found["hackernews"]] == [16, 5, 15]


def test_a_document_is_in_one_part_and_of_one_half(
    data: Path, model_folder: Path, model: HuggingFace
) -> None:
    parts = divide(small(model_folder), data, "arxiv", model.spans)
    assert [len(part) for part in parts] == [18, 3, 15]  # the first wholes of three from 16 and from 21 on
    groups = [{text.group for text in part.texts} for part in parts]
    assert [len(some) for some in groups] == [6, 1, 5]
    assert len(set.union(*groups)) == 12
    for seed in range(5):
        labelled = halved(parts.evaluation, seed)
        assert [text.id for text in labelled.texts] == [text.id for text in parts.evaluation.texts]
        sides = {text.group: set[bool | None]() for text in labelled.texts}
        for text in labelled.texts:
            sides[text.group].add(text.member)
        assert sorted(map(sorted, sides.values())) == [[False]] * 3 + [[True]] * 3


def test_halves_differ_by_seed_and_stay_with_it() -> None:
    corpus = Corpus("made up", tuple(Text(str(i), str(i)) for i in range(40)))
    one, again, other = ([text.member for text in halved(corpus, seed).texts] for seed in (0, 0, 1))
    assert one.count(True) == one.count(False) == other.count(True) == 20
    assert one == again != other


def test_the_label_of_an_abstract_is_its_period(data: Path) -> None:
    texts = opened(data, "arxiv").texts
    assert all(text.member is None for text in texts)
    periods = {int(text.text.split()[1]): text.meta["period"] for text in texts if text.text[:5] == "arxiv"}
    assert periods == {i: "earlier" if i < 18 else "later" for i in range(36)}


def test_the_period_stays_with_the_text(data: Path, model_folder: Path, model: HuggingFace) -> None:
    parts = divide(small(model_folder), data, "arxiv", model.spans)
    for text in (text for part in parts for text in part.texts):
        assert text.meta["period"] == ("earlier" if int(text.text.split()[1]) < 18 else "later")


def test_docstrings_may_be_half_as_long(
    model_folder: Path, model: HuggingFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = [Text(str(i), text) for i, text in enumerate(made_up("brief", 36, words=36))]
    assert all(64 <= len(model.spans(text.text)) < 128 for text in short)
    monkeypatch.setattr(audit_documents, "opened", lambda data, domain: Corpus(domain, tuple(short)))
    assert len(divide(small(model_folder), Path(), "stdlib", model.spans).evaluation) == 16
    with pytest.raises(TextsError, match="github has 0 texts of 128 tokens or more"):
        divide(small(model_folder), Path(), "github", model.spans)
