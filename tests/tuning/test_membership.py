"""Members are whole groups, drawn by seed, about the share asked for."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pretrace.errors import ExpressionError, TextsError
from pretrace.tuning.batches import split_members
from pretrace.types import Corpus, Text


def corpus_of(groups, *, seed=0):
    """A corpus of distinct texts: `groups` says for each group how long its texts are."""
    rng = np.random.default_rng(seed)
    texts = [
        Text(f"{g}/{i}", f"{g}-{i}-" + "".join(rng.choice(list("abcdef"), size=length)), None, f"group{g}")
        for g, lengths in enumerate(groups)
        for i, length in enumerate(lengths)
    ]
    return Corpus("made", tuple(texts))


@given(
    groups=st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=5), min_size=2, max_size=25),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 5),
)
def test_groups_stay_whole_and_the_share_is_as_near_as_the_order_allows(groups, share, seed):
    corpus = corpus_of(groups)
    labelled = split_members(corpus, share, seed)
    sides, size = {}, {True: 0, False: 0}
    for text in labelled.texts:
        sides.setdefault(text.group, set()).add(text.member)
        size[text.member] += len(text.text)
    assert sorted({tuple(side) for side in sides.values()}) == [(False,), (True,)]
    largest = max(sum(len(t.text) for t in corpus.texts if t.group == g) for g in sides)
    assert abs(size[True] - share * sum(size.values())) <= largest


def test_the_draw_depends_on_the_seed_and_on_neither_order_nor_earlier_labels():
    corpus = corpus_of([[20, 30]] * 30)
    drawn = split_members(corpus, 0.5, 3).texts
    backwards = split_members(replace(corpus, texts=corpus.texts[::-1]), 0.5, 3)
    assert backwards.texts == drawn[::-1]
    known = replace(corpus, texts=tuple(replace(text, member=True) for text in corpus.texts))
    assert split_members(known, 0.5, 3).texts == drawn
    assert split_members(corpus, 0.5, 4).texts != drawn


def test_each_group_is_a_member_about_as_often_as_another():
    corpus = corpus_of([[5], [50], [5], [50], [20], [30], [5], [5], [10], [15]])
    often = Counter(t.id for seed in range(400) for t in split_members(corpus, 0.5, seed).texts if t.member)
    assert len(often) == 10
    assert all(120 < count < 280 for count in often.values()), often


def test_groups_that_share_a_text_are_drawn_as_one_and_empty_texts_do_not_tie():
    corpus = corpus_of([[30]] * 12)
    shared = [Text(f"copy{g}", "the very same words" + " " * g, None, f"group{g}") for g in (1, 4, 7)]
    empty = [Text(f"empty{g}", " " * g, None, f"group{g}") for g in range(4)]
    corpus = replace(corpus, texts=(*corpus.texts, *shared, *empty))
    together = []
    for seed in range(20):
        labelled = split_members(corpus, 0.5, seed).texts
        assert {t.member for t in labelled} == {True, False}
        sides = {t.member for t in labelled if t.group in ("group1", "group4", "group7")}
        assert len(sides) == 1
        together += sides
    assert set(together) == {True, False}


@pytest.mark.parametrize(
    ("groups", "share", "error", "found"),
    [
        ([], 0.5, TextsError, "no texts"),
        ([[10, 12]], 0.5, TextsError, "1 group with 2 texts"),
        *(([[5], [5]], share, ExpressionError, "between 0 and 1") for share in (0.0, 1.0, -0.5, math.nan)),
    ],
)
def test_what_cannot_be_divided_is_refused(groups, share, error, found):
    with pytest.raises(error, match=found):
        split_members(corpus_of(groups), share)
