"""The test of a draw by lot: its statistic by a naive loop, its level for values of any kind, and its refusals."""

import numpy as np
import pytest
from scipy.stats import binom

from pretrace.statistics.permutation import lot_effects, lot_test


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
    assert lot_test(values, draws=20_000).p == pytest.approx(naive(values, 4000), abs=0.03)


def test_effects_are_against_those_not_drawn():
    assert lot_effects([[3.0, 1.0, 2.0], [0.0, 4.0]]).tolist() == [1.5, -4.0]


def test_level_holds_for_any_values_that_lots_were_drawn_among():
    """300 nulls: skewed values, one huge, units of different sizes; p <= 5% within the binomial interval."""
    rng = np.random.default_rng(1)
    fixed = [rng.exponential(size=size) ** 3 for size in (2, 2, 2, 5, 20, 3, 2, 2, 4, 2)]
    fixed[0][0] += 1000
    found = []
    for draw in range(300):
        lots = [np.roll(row, -int(rng.integers(len(row)))) for row in fixed]
        found.append(lot_test(lots, draws=499, seed=draw).p)
    rejected = sum(p <= 0.05 for p in found)
    assert binom.ppf(0.001, 300, 0.05) <= rejected <= binom.ppf(0.999, 300, 0.05)
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)


def test_equal_values_say_nothing():
    test = lot_test([[1.0, 1.0]] * 5, draws=100)
    assert test.p == 1.0
    assert len(test.null) == 100
