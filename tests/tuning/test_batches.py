"""Which texts are members or tuned on, and how a training reads them: every sequence once an epoch, near its like in
length, at the rate of its step."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from net.api import (
    Corpus,
    Lora,
    Text,
    TrainingPlan,
    epoch_batches,
    rate,
    select,
    split_members,
    windows,
)
from net.api import batches_pieces as pieces
from tiny import opened


@given(
    lengths=st.lists(st.integers(2, 600), min_size=1, max_size=300),
    batch=st.integers(1, 9),
    epoch=st.integers(0, 3),
)
def test_every_row_comes_once_in_batches_of_the_size_asked(lengths, batch, epoch):
    made = epoch_batches(np.array(lengths), TrainingPlan(batch=batch), epoch=epoch)
    assert sorted(row for rows in made for row in rows) == list(range(len(lengths)))
    assert len(made) == -(-len(lengths) // batch)
    assert all(1 <= len(rows) <= batch for rows in made)


def test_little_is_padded_and_no_two_epochs_are_alike():
    lengths = np.random.default_rng(0).integers(10, 500, size=512)
    first = epoch_batches(lengths, TrainingPlan(batch=8), epoch=0)
    wasted = sum(int(lengths[rows].max()) * len(rows) for rows in first) / lengths.sum()
    assert wasted < 1.1
    assert first == epoch_batches(lengths, TrainingPlan(batch=8), epoch=0)
    assert first != epoch_batches(lengths, TrainingPlan(batch=8), epoch=1)
    assert first != epoch_batches(lengths, TrainingPlan(batch=8, seed=1), epoch=0)


@given(lengths=st.lists(st.integers(2, 50), min_size=1, max_size=12), at_once=st.integers(2, 120))
def test_pieces_hold_the_batch_in_order_and_keep_to_their_bound(lengths, at_once):
    rows = list(range(len(lengths)))
    made = pieces(rows, np.array(lengths), at_once=at_once)
    assert [row for piece in made for row in piece] == rows
    for piece in made:
        assert len(piece) == 1 or max(lengths[row] for row in piece) * len(piece) <= at_once


@given(tokens=st.lists(st.integers(0, 9), max_size=60), width=st.integers(2, 12))
def test_windows_predict_every_token_but_the_first_once(tokens, width):
    made = windows(tokens, width)
    assert [token for window in made for token in window[1:]] == tokens[1:]
    assert all(2 <= len(window) <= width for window in made)
    assert all(made[i + 1][0] == made[i][-1] for i in range(len(made) - 1))


def test_the_rate_rises_through_the_warm_up_and_falls_to_nothing():
    plan = TrainingPlan(learning_rate=0.1, warmup=4)
    rates = [rate(plan, step=step, steps=20) for step in range(20)]
    assert rates[:5] == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1])
    assert all(earlier > later for earlier, later in pairwise(rates[4:]))
    assert 0 < rates[-1] < 0.002
    linear = TrainingPlan(learning_rate=0.1, warmup=0, schedule="linear")
    assert [rate(linear, step=step, steps=4) for step in range(4)] == pytest.approx([0.1, 0.075, 0.05, 0.025])
    constant = TrainingPlan(learning_rate=0.1, warmup=0.25, schedule="constant")
    assert [rate(constant, step=step, steps=4) for step in range(4)] == pytest.approx([0.05, 0.1, 0.1, 0.1])
    for warmup in (0, 10, 0.5):  # a single step learns at the full rate
        assert rate(replace(plan, warmup=warmup), step=0, steps=1) == pytest.approx(0.1)


def labelled_corpus(labels):
    texts = (Text(f"t{i}", f"text number {i} of a few", label) for i, label in enumerate(labels))
    return Corpus("made", tuple(texts))


MIXED = labelled_corpus([True, False] * 10 + [None] * 5)


@pytest.fixture(scope="module")
def backend():
    return opened(start=True, max_tokens=24)


@pytest.mark.parametrize(
    ("corpus", "on", "labels"),
    [
        (MIXED, "nonmembers", [False] * 10),
        (MIXED, "members", [True] * 10),
        (MIXED, "all", [True, False] * 10 + [None] * 5),
        (labelled_corpus([None] * 7), "nonmembers", [None] * 7),  # without labels all are taken
    ],
)
def test_the_side_that_was_asked_for_is_taken(backend, corpus, on, labels):
    chosen, _ = select(corpus, backend, Lora(on=on), seed=0)
    assert Counter(text.member for text, _, _ in chosen) == Counter(labels)


def test_a_limit_draws_by_seed_and_a_larger_one_adds_whatever_the_order(backend):
    def ids(limit, seed=1):
        chosen = select(MIXED, backend, Lora(limit=limit), seed=seed)
        assert select(backwards, backend, Lora(limit=limit), seed=seed) == chosen
        return {text.id for text, _, _ in chosen[0]}

    backwards = replace(MIXED, texts=MIXED.texts[::-1])
    drawn = [ids(n) for n in (0, 3, 6, 10)]
    assert [len(found) for found in drawn] == [0, 3, 6, 10]
    assert drawn[0] < drawn[1] < drawn[2] < drawn[3] == ids(None)
    assert any(ids(3, seed) != drawn[1] for seed in range(2, 6))


def test_texts_are_read_as_the_back_end_reads_them(backend):
    texts = ("short one", "a long text " * 20, "", "x")
    chosen, left_out = select(Corpus("c", tuple(Text(t[:5], t) for t in texts)), backend, Lora(), seed=0)
    expected = [[*e.prefix, *e.tokens] for e in backend.encode(sorted(t for t in texts if t))]
    assert [list(sequence) for _, sequence, _ in chosen] == expected
    assert left_out == [""]
    whole = len(backend.tokens.rust.encode(texts[1], add_special_tokens=False).ids)
    assert sorted(cut for _, _, cut in chosen) == [0, 0, whole - 23]

    ((_, shorter, cut),), _ = select(Corpus("c", (Text("a", texts[1]),)), backend, Lora(max_tokens=8), seed=0)
    assert list(shorter) == expected[0][:8]
    assert cut == whole - 7
    copies = Corpus("c", (Text("a", "the same words"), Text("b", "the same words"), Text("c", "")))
    assert [text.id for text, _, _ in select(copies, backend, Lora(), seed=0)[0]] == ["a", "b"]


def grouped_corpus(groups, *, seed=0):
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
    corpus = grouped_corpus(groups)
    labelled = split_members(corpus, share, seed)
    sides, size = {}, {True: 0, False: 0}
    for text in labelled.texts:
        sides.setdefault(text.group, set()).add(text.member)
        size[text.member] += len(text.text)
    assert sorted({tuple(side) for side in sides.values()}) == [(False,), (True,)]
    largest = max(sum(len(t.text) for t in corpus.texts if t.group == g) for g in sides)
    assert abs(size[True] - share * sum(size.values())) <= largest


def test_the_draw_depends_on_the_seed_and_on_neither_order_nor_earlier_labels():
    corpus = grouped_corpus([[20, 30]] * 30)
    drawn = split_members(corpus, 0.5, 3).texts
    backwards = split_members(replace(corpus, texts=corpus.texts[::-1]), 0.5, 3)
    assert backwards.texts == drawn[::-1]
    known = replace(corpus, texts=tuple(replace(text, member=True) for text in corpus.texts))
    assert split_members(known, 0.5, 3).texts == drawn
    assert split_members(corpus, 0.5, 4).texts != drawn


def test_groups_that_share_a_text_are_drawn_as_one_and_empty_texts_do_not_tie():
    corpus = grouped_corpus([[30]] * 12)
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
