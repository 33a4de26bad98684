"""Groups stay whole, shares are met, and neither the row order nor chance outside the seed plays a part."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from net.api import MEMBERS, NONMEMBERS, Grouping, grouped_folds, grouped_split

grouped = st.lists(st.tuples(st.sampled_from("abcdefghij"), st.sampled_from([True, False, None])), min_size=1)


@given(grouped, st.floats(0.05, 0.95), st.integers(0, 5))
def test_groups_stay_whole_and_neither_side_is_empty(rows, share, seed):
    groups = [group for group, _ in rows]
    taken = grouped_split(groups, share, seed)
    assert taken.shape == (len(groups),)
    sides = {group: {bool(t) for g, t in zip(groups, taken, strict=True) if g == group} for group in groups}
    assert all(len(side) == 1 for side in sides.values())
    if len(sides) > 1:
        assert taken.any()
        assert not taken.all()
    else:
        assert not taken.any()


@given(grouped, st.integers(0, 5), st.randoms(use_true_random=False))
def test_the_order_of_rows_plays_no_part(rows, seed, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    groups, labels = [g for g, _ in rows], [label for _, label in rows]
    straight = grouped_split(groups, 0.4, seed, labels=labels)
    mixed = grouped_split([groups[i] for i in order], 0.4, seed, labels=[labels[i] for i in order])
    assert mixed.tolist() == straight[order].tolist()


def test_the_share_is_met_in_each_class():
    groups = [f"m{i // 3}" for i in range(300)] + [f"n{i // 2}" for i in range(100)]
    labels = np.arange(400) < 300
    taken = grouped_split(groups, 0.2, 0, labels=labels)
    assert abs(taken[labels].mean() - 0.2) < 0.011
    assert abs(taken[~labels].mean() - 0.2) < 0.021


def test_the_seed_decides():
    groups = [str(i) for i in range(100)]
    assert grouped_split(groups, 0.3, 7).tolist() == grouped_split(groups, 0.3, 7).tolist()
    assert grouped_split(groups, 0.3, 7).tolist() != grouped_split(groups, 0.3, 8).tolist()
    often = np.mean([grouped_split(groups, 0.3, seed) for seed in range(200)], axis=0)
    assert often.min() > 0.1, "every group can be drawn"
    assert often.max() < 0.5


def test_the_only_group_of_a_kind_is_left():
    taken = grouped_split(["a", "a", "b", "c"], 0.5, 0, labels=[True, True, False, False])
    assert taken[:2].tolist() == [False, False]
    assert taken[2:].sum() == 1


def test_a_group_is_counted_for_every_label_it_holds():
    grouping = Grouping.of(["a", "b", "a", "c"], [True, True, False, False])
    assert grouping.sizes.tolist() == [2, 1, 1]
    assert grouping.kinds.tolist() == [MEMBERS | NONMEMBERS, MEMBERS, NONMEMBERS]
    assert (grouping.holding(MEMBERS), grouping.holding(NONMEMBERS)) == (2, 2)
    assert [stratum.tolist() for stratum in grouping.strata] == [[1], [2], [0]]


@pytest.mark.parametrize("numbers", [[4, 1, 4, 0, 9], [40, 10, 40, 0, 10**12], [-3, 1, 1, 7, 2]])
def test_numbers_that_leave_some_out_are_numbered_in_order(numbers):
    found = Grouping.of(np.array(numbers))
    assert found.codes.tolist() == [sorted(set(numbers)).index(number) for number in numbers]
    assert found.sizes.tolist() == [numbers.count(number) for number in sorted(set(numbers))]


@given(grouped, st.integers(2, 5), st.integers(0, 3))
def test_folds_keep_groups_whole(rows, folds, seed):
    groups = [group for group, _ in rows]
    fold = grouped_folds(Grouping.of(groups, [label for _, label in rows]), folds, seed)
    assert set(fold.tolist()) <= set(range(folds))
    for group in set(groups):
        assert len({k for g, k in zip(groups, fold.tolist(), strict=True) if g == group}) == 1


def test_folds_are_even_in_size_and_class():
    rng = np.random.default_rng(0)
    groups = [f"g{rng.integers(0, 80)}" for _ in range(1000)]
    labels = [int(group[1:]) < 30 for group in groups]
    fold = grouped_folds(Grouping.of(groups, labels), 5, 0)
    for wanted in (True, False):
        counts = np.bincount(fold[np.array(labels) == wanted], minlength=5)
        assert counts.max() - counts.min() <= 12
    single = grouped_folds(Grouping.of([str(i) for i in range(103)], [i < 52 for i in range(103)]), 5, 0)
    assert np.ptp(np.bincount(single)) <= 1
