"""The test of a draw by lot: its statistic by a naive loop, its level for values of any kind, and its refusals."""

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from pretrace.statistics.permutation import (
    _surprises,
    own_group,
    randomisation_test,
    realised_effects,
    two_sample_test,
)
from pretrace.verdicts.outcome import null_of


def naive(values, draws):
    """p by plain loops: every unit's alternative is drawn anew, the sum of centred values compared."""
    rng = np.random.default_rng(5)
    observed = sum(row[0] - sum(row) / len(row) for row in values)
    reached = 0
    for _ in range(draws):
        total = 0.0
        for row in values:
            total += row[rng.integers(len(row))] - sum(row) / len(row)
        reached += total >= observed - 1e-9
    return (1 + reached) / (1 + draws)


def test_p_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    values = [rng.normal(size=size) for size in (2, 3, 2, 5, 4, 2)]
    assert randomisation_test(values, draws=20_000).p == pytest.approx(naive(values, 4000), abs=0.03)


def test_effects_are_against_those_not_drawn():
    assert realised_effects([[3.0, 1.0, 2.0], [0.0, 4.0]]).tolist() == [1.5, -4.0]


def test_level_holds_for_any_values_that_lots_were_drawn_among():
    """300 nulls: skewed values, one huge, units of different sizes; p <= 5% within the binomial interval."""
    rng = np.random.default_rng(1)
    fixed = [rng.exponential(size=size) ** 3 for size in (2, 2, 2, 5, 20, 3, 2, 2, 4, 2)]
    fixed[0][0] += 1000
    found = []
    for draw in range(300):
        lots = [np.roll(row, -int(rng.integers(len(row)))) for row in fixed]
        found.append(randomisation_test(lots, draws=499, seed=draw).p)
    rejected = sum(p <= 0.05 for p in found)
    assert binom.ppf(0.001, 300, 0.05) <= rejected <= binom.ppf(0.999, 300, 0.05)
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)


def test_the_surprise_of_a_group_is_that_of_a_plain_count():
    rng = np.random.default_rng(0)
    groups = rng.random((5, 30)) < 0.3
    sides = np.array([rng.permutation(np.arange(30) < 12) for _ in range(4)])
    found = _surprises(groups, sides)
    for draw, side in enumerate(sides):
        for number, group in enumerate(groups):
            inside = sum(1 for a, b in zip(side, group, strict=True) if a and b)
            chance = sum(hypergeom.pmf(k, 30, 12, int(group.sum())) for k in range(inside, 31))
            assert found[draw, number] == pytest.approx(-np.log(chance))


def test_few_documents_make_no_group():
    p, group = own_group(np.eye(4), np.array([True, True, False, False]))
    assert (p, group.any()) == (1.0, False)


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


def test_a_null_of_one_value_has_a_bar_of_width_one_around_it():
    shown = null_of(two_sample_test([1.0, 1.0], [1.0, 1.0], permutations=50), 0.05, "difference")
    assert (shown.edges[0], shown.edges[-1]) == (-0.5, 0.5)
    assert sum(shown.counts) == len(two_sample_test([1.0, 1.0], [1.0, 1.0], permutations=50).null)
