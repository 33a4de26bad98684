"""Intervals of shares and of their differences, against figures of Newcombe (1998)."""

import numpy as np
import pytest

from pretrace.statistics.intervals import score_difference, score_interval


def hits(number, trials):
    return np.arange(trials) < number


@pytest.mark.parametrize(
    ("number", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_score_intervals(number, trials, low, high):
    found = score_interval(hits(number, trials))
    assert (found.value, found.low, found.high) == pytest.approx((number / trials, low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_differences(first, second, low, high):
    found = score_difference(hits(*first), hits(*second))
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
