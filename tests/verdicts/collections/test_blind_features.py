"""Text features of collections, and the one gate that they share."""

from __future__ import annotations

import math
import zlib
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from scipy.stats import binom
from verdicts.collections.made import made

from pretrace.baselines.classifiers import Words
from pretrace.errors import TextsError
from pretrace.types import Corpus, Text
from pretrace.verdicts.collections import (
    alike_check,
    blind_features,
    gathered,
    likeness,
    spreads,
    word_distances,
)

EASY = 0.25


def test_features_are_means_over_documents():
    found = gathered(made(4), EASY)
    columns = blind_features(found)
    mine = [one.whole for one in found.documents if one.collection == 2]
    assert columns["mean log length"][2] == pytest.approx(np.mean([math.log(len(text)) for text in mine]))
    ratios = [len(zlib.compress(text.encode())) / len(text.encode()) for text in mine]
    assert columns["zlib ratio"][2] == pytest.approx(np.mean(ratios))
    assert "mean date" not in columns


def test_word_distances_are_the_formula():
    found = gathered(made(4), EASY)
    texts = [one.whole for one in found.documents]
    rows = Words(texts).learnt.toarray()
    centres = [rows[found.codes == unit].mean(axis=0) for unit in range(4)]
    for unit, distance in enumerate(word_distances(texts, found.codes, 4)):
        others = np.mean([centres[k] for k in range(4) if k != unit], axis=0)
        cosine = centres[unit] @ others / np.linalg.norm(centres[unit]) / np.linalg.norm(others)
        assert distance == pytest.approx(1 - cosine)
    assert word_distances(["one", "two"], np.array([0, 1]), 2).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text[: len(text) // 3], "the length"),
        (lambda text: " ".join(f"{word}x" for word in text.split()), "the words"),
    ],
)
def test_a_collection_that_stands_apart_is_seen(change, why):
    corpora = made(20, words=60)
    corpora[0] = replace(
        corpora[0], texts=tuple(replace(text, text=change(text.text)) for text in corpora[0].texts)
    )
    check = alike_check(blind_features(gathered(corpora, 0.05)), 0.05)
    assert check.status == "failed"
    assert check.figures["p"] == 0.05
    if why == "the words":
        assert why in check.words


def test_spread_and_likeness_are_the_formulas():
    found = gathered(made(4), EASY)
    texts = [one.whole for one in found.documents]
    lengths = np.log([len(text) for text in texts])
    for unit, spread in enumerate(spreads(lengths, found.codes, 4)):
        assert spread == pytest.approx(math.log(lengths[found.codes == unit].std()))
    rows = Words(texts).learnt.toarray()
    for unit, near in enumerate(likeness(texts, found.codes, 4)):
        mine = rows[found.codes == unit]
        mine = mine / np.linalg.norm(mine, axis=1)[:, None]
        cosines = mine @ mine.T - 2 * np.eye(len(mine))
        assert near == pytest.approx(cosines.max(axis=1).mean())
    assert spreads(np.full(4, 2.0), np.array([0, 0, 1, 1]), 2) == pytest.approx(math.log(2e-6))


@pytest.mark.parametrize(
    ("change", "feature"),
    [
        (lambda text, i: text[: len(text) // 2] if i % 2 else f"{text} {text[::-1]}", "spread of lengths"),
        (
            lambda text, i: f"a text of five words {i // 3} and no other beside it {i}",
            "likeness of documents",
        ),
    ],
)
def test_a_collection_of_other_spread_or_of_near_copies_is_seen(change, feature):
    corpora = made(20, words=60)
    texts = tuple(replace(text, text=change(text.text, i)) for i, text in enumerate(corpora[0].texts))
    corpora[0] = replace(corpora[0], texts=texts)
    check = alike_check(blind_features(gathered(corpora, 0.05)), 0.05)
    assert check.status == "failed"
    assert check.figures[feature] is None or check.figures[feature] > 5


def test_dates_are_a_feature_where_they_are_read():
    corpora = [
        replace(one, texts=tuple(replace(text, meta={"date": day}) for text in one.texts))
        for one, day in zip(
            made(20), ["2020-03-01", *["2010-03-02", "2010-03-04"] * 9, "2010-03-03"], strict=True
        )
    ]
    found = gathered(corpora, 0.05, date_column="date")
    columns = blind_features(found)
    assert columns["mean date"][1] == pytest.approx(date(2010, 3, 2).toordinal())
    check = alike_check(columns, 0.05)
    assert check.status == "failed"
    assert "its dates" in check.words
    odd = replace(corpora[3], texts=(replace(corpora[3].texts[0], meta={}), *corpora[3].texts[1:]))
    with pytest.raises(TextsError, match="author 3 has no date"):
        blind_features(gathered([*corpora[:3], odd, *corpora[4:]], 0.05, date_column="date"))


def numbers(rng):
    return " ".join(map(str, rng.integers(0, 30, rng.integers(5, 20))))


def test_the_gate_withholds_no_more_often_than_its_level():
    """60 sets of 20 exchangeable collections."""
    failed = 0
    for seed in range(60):
        rng = np.random.default_rng([9, seed])
        corpora = [Corpus(f"{i}", tuple(Text(f"{j}", numbers(rng)) for j in range(5))) for i in range(20)]
        found = gathered(corpora, 0.05)
        failed += alike_check(blind_features(found), 0.05).status == "failed"
    assert failed <= binom.ppf(0.999, 60, 0.05)
