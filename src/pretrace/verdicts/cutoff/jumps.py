"""The jump of what is left of a model's scores at every cut-off, its rank, and its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.statistics.permutation import chunks
from pretrace.statistics.ranks import rank_p
from pretrace.statistics.ridge import FEWEST, Ridge
from pretrace.types import Doubles, Estimate
from pretrace.verdicts.cutoff.windows import Window, Windows

WEEK = 7
RESAMPLES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Jumps:
    """The jump at the stated cut-off, `own`, and those at the placebo cut-offs, `others`; `p` is the rank of the first
    among all, None with too few placebo cut-offs."""

    own: float
    others: Doubles
    p: float | None

    @property
    def breakdown(self) -> float | None:
        """M*: the size of the jump over that of the largest at a placebo cut-off; None without one."""
        largest = float(np.abs(self.others).max()) if len(self.others) else 0.0
        return abs(self.own) / largest if largest > 0 else None


def left(scores: Doubles, predictors: Doubles, window: Window) -> Doubles:
    """`scores` [documents] less what a ridge regression on the documents outside the window predicts of them.

    It is fitted for each cut-off anew, so the stated one is treated as all others are. Nothing is taken off where fewer
    than 3 documents lie outside; such a series has no placebo cut-offs, and no test is made of it.
    """
    outside = ~window.inside
    if outside.sum() < FEWEST:
        return scores
    return scores - Ridge.fitted(scores[outside], predictors[outside]).predict(predictors)


def jumps(scores: Doubles, predictors: Doubles, found: Windows, wanted: int) -> Jumps:
    """The jump at every cut-off and the rank, which takes `wanted` placebo cut-offs."""
    values = [float(one.jump(left(scores, predictors, one))) for one in found.all]
    others = np.array(values[1:])
    return Jumps(values[0], others, rank_p(values[0], others) if len(others) >= wanted else None)


def interval(values: Doubles, days: npt.NDArray[np.int64], window: Window, *, seed: int) -> Estimate:
    """The jump of `values` [documents] with a 95% interval from weeks drawn with replacement within each half.

    Documents of a week are drawn together, since news and moods come by the week.
    """
    rng = np.random.default_rng(seed)
    first, second = (_resampled(values[side], days[side], rng) for side in (window.before, window.after))
    low, high = np.quantile(first - second, (0.025, 0.975))
    return Estimate(float(window.jump(values)), float(low), float(high))


def _resampled(values: Doubles, days: npt.NDArray[np.int64], rng: np.random.Generator) -> Doubles:
    """Means of resampled weeks, [RESAMPLES]."""
    _, codes = np.unique(days // WEEK, return_inverse=True)
    sums, sizes = np.bincount(codes, weights=values), np.bincount(codes)
    parts = []
    for rows in chunks(RESAMPLES, len(sums)):
        drawn = rng.integers(len(sums), size=(rows, len(sums)))
        parts.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    return np.concatenate(parts)


def trend(windows: Windows, others: Doubles) -> tuple[float, float]:
    """The slope of the jumps at the placebo cut-offs by their place in time, and its two-sided p by Student's t.

    Neighbouring jumps share a half and so correlate negatively, which makes this p too large rather than too small.
    (0, 1) with fewer than three, or where they do not vary.
    """
    from scipy.special import stdtr

    places = np.array([one.k for one in windows.placebos], dtype=np.float64)
    if len(others) < 3 or not np.ptp(others) > 0:
        return 0.0, 1.0
    x, y = places - places.mean(), others - others.mean()
    slope = float(x @ y / (x @ x))
    error = float(np.sqrt(((y - slope * x) ** 2).sum() / (len(x) - 2) / (x @ x)))
    if error == 0:
        return slope, 0.0
    return slope, float(2 * stdtr(len(x) - 2, -abs(slope) / error))
