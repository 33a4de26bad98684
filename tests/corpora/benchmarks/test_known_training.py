"""Hubble, whose labels and copies are known from the training, on small files in the form it is published in."""

import json

import pytest
from made import written as write

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks import hubble
from pretrace.errors import ExpressionError, TextsError


def facts(corpus):
    return [(text.text, text.member, text.copies) for text in corpus.texts]


def test_hubble_has_copies_and_articles(tmp_path):
    folder = tmp_path / "passages_wikipedia"
    write(
        folder / "train-00000-of-00001.jsonl",
        [
            {"text": "twice seen", "meta": json.dumps({"title": "One"}), "duplicates": 4},
            {"text": "the same article", "meta": json.dumps({"title": "One"}), "duplicates": 1},
            {"text": "without a title", "meta": "{}", "duplicates": 256},
        ],
    )
    write(folder / "test-00000-of-00001.jsonl", [{"text": "never", "meta": "not JSON", "duplicates": 0}])
    for place in (folder, tmp_path):
        corpus = open_corpus(f"hubble('passages_wikipedia', path={str(place)!r})")
        seen = [("twice seen", True, 4), ("the same article", True, 1), ("without a title", True, 256)]
        assert facts(corpus) == [*seen, ("never", False, 0)]
        assert [text.meta["duplicates"] for text in corpus.texts] == ["4", "1", "256", "0"]
    one, two, three, _ = corpus.texts
    assert one.document == two.document != three.document
    assert corpus.card["title"] == "Hubble, passages_wikipedia"
    kept = hubble("passages_wikipedia", copies=4, path=str(folder))
    assert facts(kept) == [("twice seen", True, 4), ("never", False, 0)]
    assert kept.notes[-1] == "2 of 4 texts taken: those with 4 copies, or none."
    with pytest.raises(ExpressionError, match=r"copies must be one of 1, 4, 256, found 16"):
        hubble("passages_wikipedia", copies=16, path=str(folder))
    with pytest.raises(ExpressionError, match="hubble: kind must be one of passages_gutenberg_popular"):
        hubble("wikipedia", path=str(folder))
    write(folder / "train-00001.jsonl", [{"text": "none", "duplicates": 0}])
    with pytest.raises(TextsError, match="do not fit the name of its file"):
        hubble("passages_wikipedia", path=str(folder))


def test_hubble_as_one_file(tmp_path):
    rows = [{"text": "a", "duplicates": 0}, {"text": "b", "duplicates": 16}]
    path = write(tmp_path / "all.jsonl.gz", rows)
    assert facts(hubble("testset_piqa", path=str(path))) == [("a", False, 0), ("b", True, 16)]
    for wrong in (-1, 1.5, "many", None, True):
        path = write(tmp_path / "odd.jsonl", [*rows, {"text": "c", "duplicates": wrong}])
        with pytest.raises(TextsError, match=r"row 2.*duplicates should hold a whole number"):
            hubble("testset_piqa", path=str(path))
    with pytest.raises(TextsError, match=r"lacks 'duplicates': Hubble is published with the columns"):
        hubble("testset_piqa", path=str(write(tmp_path / "none.jsonl", [{"text": "c"}])))
