"""Ranks among units: against loops, and with the level that they promise."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student

from pretrace.errors import ExpressionError, TextsError
from pretrace.statistics.ranks import (
    fewest_others,
    joint_extremeness,
    rank_p,
    stands_out,
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


def test_standing_out_is_students_prediction_of_one_more():
    rng = np.random.default_rng(3)
    some = rng.normal(size=8)
    t = (2.5 - some.mean()) / (some.std(ddof=1) * np.sqrt(1 + 1 / 8))
    assert stands_out(2.5, some, [some]) == pytest.approx(student.sf(t, 7))
    other = 100 + rng.normal(size=5)  # a mean of its own: only its spread is pooled
    spread = np.sqrt((((some - some.mean()) ** 2).sum() + ((other - other.mean()) ** 2).sum()) / 11)
    t = (2.5 - some.mean()) / (spread * np.sqrt(1 + 1 / 8))
    assert stands_out(2.5, some, [some, other]) == pytest.approx(student.sf(t, 11))


def test_standing_out_keeps_its_level_and_says_nothing_of_too_few():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(2000, 12))
    found = [stands_out(row[0], row[1:5], [row[1:5], row[5:]]) for row in rows]
    assert within(sum(p <= 0.05 for p in found), 2000, 0.05)
    assert stands_out(9.0, rows[0, :2], [rows[0]]) == 1.0
    assert stands_out(9.0, rows[0, :3], [rows[0, :3]]) == 1.0
    assert stands_out(9.0, np.zeros(5), [np.zeros(5)]) == 0.0
    assert stands_out(-9.0, np.zeros(5), [np.zeros(5)]) == 1.0
