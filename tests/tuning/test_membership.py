"""Members are whole groups, drawn by seed, about the share asked for."""

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


def members_of(corpus):
    return {text.id for text in corpus.texts if text.member}


@given(
    groups=st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=5), min_size=2, max_size=25),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 5),
)
def test_groups_stay_whole_and_the_share_is_as_near_as_the_order_allows(groups, share, seed):
    corpus = corpus_of(groups)
    labelled = split_members(corpus, share, seed)
    sides = {}
    for text in labelled.texts:
        sides.setdefault(text.group, set()).add(text.member)
    assert all(len(side) == 1 for side in sides.values())
    assert {member for side in sides.values() for member in side} == {True, False}
    size = {True: 0, False: 0}
    for text in labelled.texts:
        size[text.member] += len(text.text)
    largest = max(sum(len(t.text) for t in corpus.texts if t.group == g) for g in sides)
    assert abs(size[True] - share * sum(size.values())) <= largest


def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_the_texts():
    corpus = corpus_of([[20, 30]] * 30)
    drawn = members_of(split_members(corpus, 0.5, 3))
    backwards = split_members(replace(corpus, texts=corpus.texts[::-1]), 0.5, 3)
    assert members_of(backwards) == drawn
    assert [text.id for text in backwards.texts] == [text.id for text in corpus.texts[::-1]]
    assert members_of(split_members(corpus, 0.5, 4)) != drawn


def test_each_group_is_a_member_about_as_often_as_another():
    corpus = corpus_of([[5], [50], [5], [50], [20], [30], [5], [5], [10], [15]])
    often = dict.fromkeys((text.id for text in corpus.texts), 0)
    for seed in range(400):
        for name in members_of(split_members(corpus, 0.5, seed)):
            often[name] += 1
    assert all(120 < count < 280 for count in often.values()), often


def test_texts_without_a_group_are_their_own():
    texts = tuple(Text(str(i), f"text number {i}") for i in range(10))
    assert len(members_of(split_members(Corpus("loose", texts), 0.5, 0))) == 5


def test_groups_that_share_a_text_are_drawn_as_one():
    corpus = corpus_of([[30]] * 12)
    shared = [Text(f"copy{g}", "the very same words" + " " * g, None, f"group{g}") for g in (1, 4, 7)]
    corpus = replace(corpus, texts=corpus.texts + tuple(shared))
    together = []
    for seed in range(20):
        labelled = split_members(corpus, 0.5, seed)
        sides = {t.member for t in labelled.texts if t.group in ("group1", "group4", "group7")}
        assert len(sides) == 1
        together += sides
    assert set(together) == {True, False}


def test_empty_texts_do_not_tie_groups_together():
    corpus = corpus_of([[30]] * 4)
    empty = tuple(Text(f"empty{g}", " " * g, None, f"group{g}") for g in range(4))
    labelled = split_members(replace(corpus, texts=corpus.texts + empty))
    assert {text.member for text in labelled.texts} == {True, False}


def test_labels_that_were_there_are_replaced():
    corpus = corpus_of([[10]] * 6)
    known = replace(corpus, texts=tuple(replace(text, member=True) for text in corpus.texts))
    assert split_members(known, 0.5, 1) == split_members(corpus, 0.5, 1)


@pytest.mark.parametrize(
    ("groups", "found"), [([], "no texts"), ([[10, 12]], "1 group with 2 texts")], ids=["none", "one"]
)
def test_fewer_than_two_groups_cannot_be_divided(groups, found):
    with pytest.raises(TextsError, match=found):
        split_members(corpus_of(groups))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan")])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ExpressionError, match="between 0 and 1"):
        split_members(corpus_of([[5], [5]]), share)
