"""Intervals for means, differences and shares, effects in standard deviations, and Student's t-test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.statistics.documents import check_values
from pretrace.types import Doubles, Estimate


def mean_interval(values: npt.ArrayLike) -> Estimate:
    """The mean of one value a document with Student's 95% interval; TextsError for fewer than two."""
    found = check_values(values, "an interval", fewest=2)
    error = math.sqrt(float(found.var(ddof=1)) / len(found))
    return _student(float(found.mean()), error, len(found) - 1)


def difference_interval(suspect: npt.ArrayLike, heldout: npt.ArrayLike) -> Estimate:
    """How far the mean of `suspect` is above that of `heldout`, with Welch's 95% interval. One value a document
    on either side; TextsError where a side has fewer than two."""
    first, second = (check_values(side, "an interval", fewest=2) for side in (suspect, heldout))
    shares = [np.float64(side.var(ddof=1) / len(side)) for side in (first, second)]
    error = math.sqrt(float(sum(shares)))
    freedom = satterthwaite(shares[0], shares[1], (len(first), len(second)))
    return _student(float(first.mean() - second.mean()), error, float(freedom))


def satterthwaite(first: npt.ArrayLike, second: npt.ArrayLike, sizes: tuple[int, int]) -> Doubles:
    """Degrees of freedom of Welch's t, from the variances of both means, any shape, and the numbers behind them."""
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    share = one / np.maximum(one + other, 1e-200)
    parts = share**2 / max(1, sizes[0] - 1) + (1 - share) ** 2 / max(1, sizes[1] - 1)
    return np.asarray(1 / parts)


def share_interval(hits: int, trials: int) -> Estimate:
    """The share of hits with its exact 95% interval (Clopper and Pearson 1934); ExpressionError without trials."""
    from scipy.special import betaincinv

    require(
        0 <= hits <= trials > 0,
        f"a share takes trials and no more hits than those, found {hits} of {trials}.",
    )
    low = float(betaincinv(hits, trials - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 0.975)) if hits < trials else 1.0
    return Estimate(hits / trials, low, high)


def score_interval(values: npt.ArrayLike) -> Estimate:
    """The mean of one value from 0 to 1 a document with Wilson's 95% score interval (1927). It is never empty,
    also where all documents are right. For values between 0 and 1 it is wider than need be, since those vary less than
    right and wrong. TextsError without a value."""
    found = check_values(values, "an interval", fewest=1)
    z2 = NormalDist().inv_cdf(0.975) ** 2
    number, share = len(found), float(np.clip(found.mean(), 0, 1))
    middle = (share + z2 / (2 * number)) / (1 + z2 / number)
    half = math.sqrt(z2 * share * (1 - share) / number + z2**2 / (4 * number**2)) / (1 + z2 / number)
    return Estimate(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def score_difference(first: npt.ArrayLike, second: npt.ArrayLike) -> Estimate:
    """How far the first mean is above the second, one value from 0 to 1 a document, with Newcombe's 95% interval.

    Method 10 of Newcombe (1998, Statistics in Medicine 17): the score intervals of both, put together. In 4,000 draws
    of right and wrong each, with 5 to 200 documents a side, 95.0 to 97.5% of the intervals held the truth. TextsError
    where a side is empty.
    """
    one, other = (score_interval(side) for side in (first, second))
    value = one.value - other.value
    below = math.hypot(one.value - one.low, other.high - other.value)
    above = math.hypot(one.high - one.value, other.value - other.low)
    return Estimate(value, value - below, value + above)


def standardised(values: npt.ArrayLike, heldout: npt.ArrayLike | None = None) -> float | None:
    """The mean, or its distance from the mean of `heldout`, over the standard deviation between documents. With two
    sides the deviation is the root of the mean of both variances. None where it has no meaning: fewer than two
    documents on a side, or values that do not vary."""
    sides = [check_values(side, "a standardised effect") for side in (values, heldout) if side is not None]
    if min(map(len, sides)) < 2:
        return None
    deviation = math.sqrt(sum(float(side.var(ddof=1)) for side in sides) / len(sides))
    effect = float(sides[0].mean()) - (float(sides[1].mean()) if len(sides) == 2 else 0.0)
    largest = max(float(np.abs(side).max()) for side in sides)
    return effect / deviation if deviation > largest * 1e-12 else None


def t_test(higher: Doubles, lower: Doubles) -> tuple[float, Estimate]:
    """One-sided p-value for mean(higher) > mean(lower), and the difference of means with its 95% interval. The test of
    the literature of dataset inference: Student's, with one variance for both sides. Without any spread nothing can be
    told and p is 1. Each side needs two values."""
    from scipy.special import stdtr, stdtrit

    apart = float(higher.mean() - lower.mean())
    n, m = len(higher), len(lower)
    freedom = n + m - 2
    pooled = (n * float(np.var(higher)) + m * float(np.var(lower))) / freedom
    error = math.sqrt(pooled * (1 / n + 1 / m))
    if error == 0:
        return 1.0, Estimate(apart, apart, apart)
    reach = float(stdtrit(freedom, 0.975)) * error
    return float(stdtr(freedom, -apart / error)), Estimate(apart, apart - reach, apart + reach)


def any_of(ps: Sequence[float]) -> float:
    """1 − Π(1 − p), the p-values of repeated splits joined as the paper's release joins them.

    It is never below the largest of them, and keeps its digits where all are tiny.

    >>> round(any_of([0.01, 0.02]), 12)
    0.0298
    """
    return 1.0 if max(ps) >= 1 else -math.expm1(sum(math.log1p(-p) for p in ps))


def averaged(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of the values and of the ends of the intervals."""
    ends = [(one.value, one.low, one.high) for one in estimates]
    return Estimate(*(float(np.mean(some)) for some in zip(*ends, strict=True)))


def _student(value: float, error: float, freedom: float) -> Estimate:
    from scipy.special import stdtrit  # heavy, and only needed once there is something to report

    half = float(stdtrit(freedom, 0.975)) * error
    return Estimate(value, value - half, value + half)
