"""Every sequence once an epoch, near its like in length, and the learning rate's course."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from net.api import ExpressionError, TrainingPlan, epoch_batches, padded, rate, windows
from net.api import batches_pieces as pieces


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


def test_a_plan_that_does_not_shuffle_keeps_the_order_given():
    plan = TrainingPlan(batch=2, shuffled=False, seed=5)
    assert epoch_batches(np.array([9, 2, 7, 3, 5]), plan, epoch=1) == [[0, 1], [2, 3], [4]]


@given(lengths=st.lists(st.integers(2, 50), min_size=1, max_size=12), at_once=st.integers(2, 120))
def test_pieces_hold_the_batch_in_order_and_keep_to_their_bound(lengths, at_once):
    rows = list(range(len(lengths)))
    made = pieces(rows, np.array(lengths), at_once=at_once)
    assert [row for piece in made for row in piece] == rows
    for piece in made:
        assert len(piece) == 1 or max(lengths[row] for row in piece) * len(piece) <= at_once


def test_padding_stands_on_the_right_under_a_zero_mask():
    tokens, mask = padded([[5, 6, 7], [8]])
    assert tokens.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


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


@pytest.mark.parametrize("warmup", [0, 10, 0.5])
def test_a_single_step_learns_at_the_full_rate(warmup):
    assert rate(TrainingPlan(learning_rate=0.1, warmup=warmup), step=0, steps=1) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0}, {"batch": 0}, {"learning_rate": 0.0}, {"learning_rate": float("nan")},
        {"schedule": "cosin"}, {"warmup": -1}, {"weight_decay": -0.1}, {"betas": (0.9, 1.0)},
        {"clip": -1.0}, {"precision": "float16"}, {"at_once": 1}, {"seed": -1}, {"save_minutes": -1.0},
    ],
)  # fmt: skip
def test_a_plan_out_of_range_names_the_setting_and_what_was_found(wrong):
    with pytest.raises(ExpressionError) as caught:
        TrainingPlan(**wrong)
    name, value = next(iter(wrong.items()))
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)
