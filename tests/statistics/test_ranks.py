"""Ranks among units: against loops, and with the level that they promise."""

from __future__ import annotations

from itertools import combinations
from math import ceil

import numpy as np
import pytest
from scipy.stats import binom

from pretrace.errors import ExpressionError, TextsError
from pretrace.statistics.ranks import (
    fewest_others,
    guaranteed,
    joint_extremeness,
    leave_two_out,
    rank_p,
)


def within(rejections, trials, level):
    """Whether so many rejections of nulls are compatible with the level, once in 10,000 not."""
    return rejections <= binom.ppf(0.9999, trials, level)


def test_a_rank_counts_ties_against_a_rejection():
    assert rank_p(3.0, [1.0, 2.0, 2.5]) == 0.25
    assert rank_p(3.0, [1.0, 3.0, 2.5]) == 0.5
    assert rank_p(0.0, [1.0, 3.0, 2.5]) == 1.0
    with pytest.raises(TextsError, match="finite"):
        rank_p(float("nan"), [1.0])
    with pytest.raises(TextsError, match="found 0"):
        rank_p(1.0, [])


@pytest.mark.parametrize("level", [0.5, 0.2, 0.1, 0.05, 0.03, 0.01, 0.001])
def test_the_fewest_others_just_reach_the_level(level):
    few = fewest_others(level)
    assert few == ceil(round(1 / level, 9)) - 1
    assert 1 / (few + 1) <= level + 1e-12 < 1 / few if few else True
    with pytest.raises(ExpressionError):
        fewest_others(0.0)


def test_a_rank_among_exchangeable_units_is_uniform():
    """On its discrete law, and below it with ties; 19 others."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 20)) + rng.normal(size=(2000, 1))
    p = np.array([rank_p(row[0], row[1:]) for row in values])
    counts = np.bincount(np.rint(p * 20).astype(int) - 1, minlength=20)
    assert np.abs(counts.cumsum() / 2000 - np.arange(1, 21) / 20).max() < 1.95 / np.sqrt(2000)  # KS at 0.001
    ties = np.array([rank_p(row[0], row[1:]) for row in np.round(values)])
    for level in (0.05, 0.1, 0.5):
        assert within((ties <= level + 1e-12).sum(), 2000, level)


def test_joint_extremeness_is_the_formula():
    features = np.array([[0.0, 9.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [10.0, 2.0]])
    # medians 2 and 2; absolute deviations 2 1 0 1 8 and 7 1 0 1 0, their medians 1 and 1
    found = joint_extremeness(features)
    assert found.deviations.tolist() == [2.0, 7.0]
    assert (found.p, found.which) == (2 / 5, 1)
    assert joint_extremeness(features, unit=4).p == 1 / 5
    assert joint_extremeness(features, unit=2).p == 1.0


def test_a_feature_that_hardly_varies_counts_where_it_does():
    features = np.zeros((7, 1))
    features[0] = 1e-3
    assert joint_extremeness(features).p == 1 / 7
    assert joint_extremeness(features, unit=1).p == 1.0
    with pytest.raises(TextsError, match="finite"):
        joint_extremeness([[np.nan], [1.0]])


def test_the_joint_gate_withholds_as_often_as_its_level():
    rng = np.random.default_rng(1)
    p = []
    for _ in range(1000):
        features = np.column_stack([rng.normal(size=20), rng.exponential(size=20), rng.integers(0, 3, 20)])
        p.append(joint_extremeness(features).p)
    hits = int((np.array(p) <= 0.05 + 1e-12).sum())
    assert binom.ppf(0.0001, 1000, 0.03) <= hits <= binom.ppf(0.9999, 1000, 0.05)


def shares(values):
    """The share of lost pairs of every unit, by the definition."""
    units = len(values)
    lost = np.zeros(units)
    for triple in combinations(range(units), 3):
        for one in triple:
            lost[one] += not all(values[one] > values[other] for other in triple if other != one)
    return lost / ((units - 1) * (units - 2) / 2)


def test_leave_two_out_counts_lost_pairs():
    rng = np.random.default_rng(2)
    for values in (rng.normal(size=9), np.round(rng.normal(size=9)), np.zeros(9)):
        found = leave_two_out(lambda triple, known=values: known[list(triple)], 9)
        assert found.share == pytest.approx(shares(values)[0])
    with pytest.raises(TextsError, match="three units"):
        leave_two_out(lambda triple: [0.0, 0.0, 0.0], 2)


@pytest.mark.parametrize("units", [3, 4, 7, 20])
def test_the_guarantee_is_the_largest_number_that_the_count_allows(units):
    for lost in range((units - 1) * (units - 2) // 2 + 1):
        fit = [
            s for s in range(1, units + 1) if (s - 1) * (s - 2) / 3 + (s - 1) * (units - s) / 2 <= lost + 1e-9
        ]
        assert guaranteed(lost, units) == max(fit) / units


def test_no_more_units_than_guaranteed_lose_so_few_pairs():
    """The combinatorial claim itself, for any values at all: triples whose values do not even agree with each other."""
    rng = np.random.default_rng(3)
    units = 8
    for _ in range(60):
        strong = rng.normal(size=units) * rng.choice([0.0, 1.0, 5.0])
        lost = np.zeros(units, dtype=int)
        for triple in combinations(range(units), 3):
            drawn = strong[list(triple)] + np.round(rng.normal(size=3), rng.integers(0, 3))
            for place, one in enumerate(triple):
                lost[one] += not drawn[place] > np.delete(drawn, place).max()
        for few in np.unique(lost).tolist():
            assert (lost <= few).sum() <= units * guaranteed(few, units) + 1e-9


@pytest.mark.parametrize("digits", [8, 0])
def test_leave_two_out_keeps_its_level_on_exchangeable_units(digits):
    """400 nulls with refitting: a unit's value is less the mean of all units outside the triple."""
    rng = np.random.default_rng(4)
    rejected = {0.05: 0, 0.2: 0, 0.5: 0}
    for _ in range(400):
        values = np.round(rng.standard_t(3, size=12), digits)

        def left(triple, known=values):
            rest = np.delete(known, triple)
            return known[list(triple)] - rest.mean() - 0.5 * known[list(triple)] * rest.std()

        found = leave_two_out(left, 12)
        for level in rejected:
            rejected[level] += found.p <= level + 1e-12
    assert all(within(hits, 400, level) for level, hits in rejected.items())


def test_the_largest_of_all_wins_every_pair():
    values = np.array([5.0, 1.0, 2.0, 3.0])
    assert leave_two_out(lambda triple: values[list(triple)], 4).p == 1 / 4
