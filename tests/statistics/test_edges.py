"""Edges where a changed number would stay unseen: the smallest p, a tie, a drift below one, a part without a class."""

import numpy as np
import pytest

from pretrace.statistics.controls import ThresholdDivision
from pretrace.statistics.permutation import own_group, two_sample_test
from pretrace.statistics.shift import set_shift
from pretrace.verdicts.outcome import null_of


def likeness(sizes):
    """Documents that are alike within groups of these sizes, and nothing across."""
    names = np.repeat(np.arange(len(sizes)), sizes)
    return (names[:, None] == names).astype(float)


def test_the_smallest_p_of_a_group_is_one_of_all_deals():
    p, group = own_group(likeness([12, 12]), np.repeat([True, False], 12), permutations=99)
    assert p == 1 / 100
    assert group.sum() == 12


def test_a_deal_that_surprises_as_much_counts():
    """Of 3 + 3 documents, one group is drawn whole in 1 of 10 deals, or the other, which is as surprising."""
    side = np.array([True] * 3 + [False] * 3)
    p, _ = own_group(likeness([3, 3]), side, permutations=2_000)
    assert p == pytest.approx(0.1, abs=0.03)


def test_a_drift_below_one_is_found():
    rng = np.random.default_rng(5)
    found = set_shift(rng.normal(0.5, 1, 60), rng.normal(0, 1, 60))
    assert found.p <= found.level
    assert 0 < found.explained < 1
    assert found.p_after(found.explained) <= found.level < found.p_after(found.explained + 0.01)


@pytest.mark.parametrize(("kept", "divided"), [([0, 1, 2, 3], True), ([0, 1, 2], False), ([0, 2, 3], False)])
def test_a_division_keeps_its_parts_while_both_have_both_classes(kept, divided):
    chosen, members = np.array([True, True, False, False]), np.array([True, False, True, False])
    texts = np.isin(np.arange(5), kept)
    division = ThresholdDivision(np.append(chosen, True), np.append(~chosen, False), True)
    found = division.within(texts, np.append(members, True))
    assert found.apart is divided
    assert found.held_out == (2 if divided else 0)
    assert found.tested.sum() == (2 if divided else len(kept))


def test_a_null_of_one_value_has_a_bar_of_width_one_around_it():
    shown = null_of(two_sample_test([1.0, 1.0], [1.0, 1.0], permutations=50), 0.05, "difference")
    assert (shown.edges[0], shown.edges[-1]) == (-0.5, 0.5)
    assert sum(shown.counts) == len(two_sample_test([1.0, 1.0], [1.0, 1.0], permutations=50).null)
