"""Intervals by resampling documents: a bootstrap over groups, the same resamples for every score.

Pieces of one document are not independent, so whole groups are drawn with replacement and every text
counts as often as its group was drawn. The draw is stratified by what a group holds: among groups of
members alone, of non-members alone and of both, each keeps its number of groups. How many documents of
either kind there are was decided by whoever made the corpus and is no finding; and so every resample
has members and non-members, and none has to be thrown away.

Intervals are percentile intervals, expanded for few groups (Hesterberg 2015, "What teachers should know
about the bootstrap", section 4.4): plain percentiles of n groups are too narrow by the factor that
separates a normal interval from Student's, so for n groups of the scarcer class the outer share left
off on each side is not 2.5% but what gives that width back. Below about 20 groups they stay rough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import ExpressionError
from pretrace.registry import require
from pretrace.statistics.documents import Grouping, Groups, Numbers
from pretrace.statistics.roc import RankedScores
from pretrace.types import Bools, Comparison, Doubles, Estimate

FPR = 0.05
LOW_FPR = 0.001
LOW_FPR_NONMEMBERS = 10_000
"""Non-members from which on the true positive rate at 0.1% false positives is given: ten of them may pass."""

WORK = 2_000_000_000
"""Look-ups (texts x scores x resamples) a bootstrap may take: well under a minute on one core."""
_BLOCK = 1 << 16
"""Weights of texts in the resamples that are counted at once: they stay in a processor's cache."""
_FEWEST_RESAMPLES = 200
"""A 95% interval from fewer would hang on the four outermost resamples."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """One figure of every score: `value` [scores] on the texts themselves, `drawn` [resamples, scores]. `tail` is the
    share of resamples that a 95% interval leaves off on each side."""

    value: Doubles
    drawn: Doubles
    tail: float = 0.025

    def estimate(self, score: int) -> Estimate:
        """The figure with its 95% percentile interval, which always holds the figure itself."""
        return _interval(float(self.value[score]), self.drawn[:, score], self.tail)

    def difference(self, first: int, second: int) -> Spread:
        """How much one score's figure exceeds another's on the same resamples, as the only score."""
        apart = self.drawn[:, first] - self.drawn[:, second]
        return Spread(self.value[[first]] - self.value[[second]], apart[:, None], self.tail)

    def widened(self, score: int, factor: float) -> Spread:
        """The same with one score's resamples moved away from its value by a factor, within 0 and 1."""
        drawn = self.drawn.copy()
        away = self.value[score] + factor * (drawn[:, score] - self.value[score])
        drawn[:, score] = np.clip(away, 0, 1)
        return Spread(self.value, drawn, self.tail)


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """All figures of all scores under the same `resamples`: `tpr` at 5% false positives, `low_tpr` at 0.1% (None below
    10,000 non-members), `accuracy` None where no thresholds were given."""

    auc: Spread
    tpr: Spread
    low_tpr: Spread | None
    accuracy: Spread | None
    resamples: int

    def widened(self, score: int, factor: float) -> Bootstrap:
        """The same with every figure of one score spread wider: see `Spread.widened`."""
        figures = {name: getattr(self, name) for name in ("auc", "tpr", "low_tpr", "accuracy")}
        return replace(self, **{name: one and one.widened(score, factor) for name, one in figures.items()})


def group_bootstrap(
    columns: Iterable[Doubles],
    members: Bools,
    *,
    groups: Groups,
    calls: tuple[Doubles, Bools] | None = None,
    seed: int = 0,
    resamples: int = 1000,
) -> Bootstrap:
    """AUC, true positive rates and accuracy of each of the `columns` [scores][texts] with resamples, at least 200,
    fewer above WORK look-ups. Columns are taken one after the other, and not kept. `calls` are thresholds [scores]
    chosen beforehand, and which texts [texts] their accuracy is measured on. ExpressionError when a column has a NaN,
    TextsError when a class is missing."""
    require(resamples > 0, f"a bootstrap takes at least one resample, found {resamples}.")
    grouping = Grouping.of(groups, members)
    thresholds, tested = calls or (np.empty(0), np.zeros(len(members), dtype=bool))
    codes, ranked = grouping.codes[tested], list[RankedScores]()
    counts = np.bincount(codes, minlength=len(grouping))
    # 32 bits where these hold every sum of any resample
    kind: Any = np.float32 if len(counts) * int(counts.max()) < 1 << 24 else np.float64
    counted, right = counts.astype(kind), np.zeros((len(counts), len(thresholds)), kind)
    for column in columns:
        if column.shape != members.shape:
            raise ExpressionError(f"wanted scores for {len(members)} texts, found {column.shape}.")
        if calls:
            hits = (column >= thresholds[len(ranked)]) == members
            right[:, len(ranked)] = np.bincount(codes, weights=hits[tested], minlength=len(counts))
        ranked.append(RankedScores.of(column, members))
    rates = (FPR, LOW_FPR) if np.count_nonzero(~members) >= LOW_FPR_NONMEMBERS else (FPR,)
    made = min(resamples, max(_FEWEST_RESAMPLES, WORK // max(1, len(members) * len(ranked))))

    def figures(times: npt.NDArray[np.float32]) -> Doubles:
        """AUC and true positive rates where each group counts so many `times`, [resamples, scores, 1 + rates]."""
        weights = np.take(times, grouping.codes, axis=1)
        return np.stack([one.figures(weights, rates) for one in ranked], axis=1)

    def accuracy(times: npt.NDArray[np.float32]) -> Doubles:
        """Of each score where each group counts so many `times`, [resamples, scores], from counts a group."""
        weights = times.astype(kind, copy=False)
        return np.asarray((weights @ right).astype(float) / (weights @ counted).astype(float)[:, None])

    whole = np.ones((1, len(grouping)), dtype=np.float32)
    value = figures(whole)[0]
    drawn = np.empty((made, *value.shape))
    judged = np.empty((made, len(thresholds)))
    draws = _group_draws(grouping, made, seed, counts if calls else None)
    wide = max(1, _BLOCK // len(members))
    for first in range(0, made, wide):
        block = slice(first, first + wide)
        times = np.stack(list(islice(draws, wide)))
        drawn[block] = figures(times)
        if calls:
            judged[block] = accuracy(times)
    tail = tail_share(grouping.fewest)
    spreads = [Spread(value[:, k], drawn[:, :, k], tail) for k in range(1 + len(rates))]
    return Bootstrap(
        auc=spreads[0],
        tpr=spreads[1],
        low_tpr=spreads[2] if len(rates) > 1 else None,
        accuracy=Spread(accuracy(whole)[0], judged, tail) if calls else None,
        resamples=made,
    )


def tail_share(groups: int) -> float:
    """The share of resamples a 95% percentile interval leaves off on each side, 0.025 for many groups. Phi(-sqrt(n / (n
    - 1)) t), with t the 97.5% quantile of Student's distribution for n - 1 degrees of freedom, by its expansion in 1 /
    (n - 1) (Abramowitz and Stegun 26.7.5); 0 for a single group."""
    if groups < 2:
        return 0.0
    normal, v = NormalDist(), groups - 1
    z = normal.inv_cdf(0.975)
    t = z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    return normal.cdf(-math.sqrt(groups / v) * t)


def _group_draws(
    grouping: Grouping, count: int, seed: int, tested: Numbers | None = None
) -> Iterator[npt.NDArray[np.float32]]:
    """How often each group is drawn, [groups], one resample after the other."""
    rng = np.random.default_rng(seed)
    strata = grouping.strata
    while count:
        times = np.zeros(len(grouping), dtype=np.float32)
        for stratum in strata:
            number = len(stratum)
            times[stratum] = np.bincount(rng.integers(0, number, number), minlength=number)
        # Among very few groups a draw can miss every text that accuracy is measured on.
        if tested is None or times @ tested > 0:
            count -= 1
            yield times


def _interval(value: float, drawn: Doubles, tail: float) -> Estimate:
    low, high = np.quantile(drawn, (tail, 1 - tail))
    # A rate at a fixed false positive rate is a step function, and its resamples can all miss the value.
    return Estimate(value, min(float(low), value), max(float(high), value))


# Is one score better than another on the same texts? The asterisks of DC-PDD's tables 2 and 3, by documents.
#
# Both scores are measured on the same resamples of the documents, the very draws that the intervals of an evaluation
# come from. What makes a resample easy or hard is easy or hard for both, so their difference is known far more closely
# than either figure: two intervals that overlap can belong to scores of which one is better beyond doubt. The paper's
# t-tests take texts one by one.


def compare(
    score: str, baseline: str, spread: Spread, columns: tuple[int, int], documents: int
) -> Comparison:
    """Compare a score with the baseline, by their `columns` of the resamples of texts that both have, with so many
    `documents` of the scarcer class (`for_few`). The two-sided p is twice the smaller share of resamples on either side
    of zero (zero counts to both), the sample included: at least 2 / (resamples + 1)."""
    ahead = spread.difference(*columns)
    apart = ahead.drawn
    tail = min(np.count_nonzero(apart <= 0), np.count_nonzero(apart >= 0))
    p = for_few(min(1.0, 2 * (1 + int(tail)) / (1 + len(apart))), documents)
    least = for_few(2 / (1 + len(apart)), documents)
    return Comparison(score, baseline, "auc", ahead.estimate(0), p, p, least)


def adjusted(found: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Correct comparisons that were made together (Holm)."""
    p = holm([one.p for one in found])
    return tuple(
        replace(one, adjusted=corrected, least=min(1.0, len(found) * one.least))
        for one, corrected in zip(found, p, strict=True)
    )


def usual_baseline(scores: Sequence[str]) -> str:
    """The score that others are compared with unless one is named: `loss`, or the first where it is missing."""
    return "loss" if "loss" in scores else scores[0]


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given (Holm 1979): rejecting those at or below a level
    keeps the chance of any false rejection to that level, however the tests depend on each other.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, reached = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        reached = max(reached, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = reached
    return adjusted


def for_few(p: float, groups: int) -> float:
    """The p-value that belongs to the expanded interval of few documents. A percentile interval of n groups is too
    narrow, and `tail_share` widens it; so a percentile's p is too small by as much. This is the same step
    for p: 0.05 here is where that interval ends at 0."""
    from scipy.stats import t

    if groups < 2 or p >= 1:
        return 1.0
    z = NormalDist().inv_cdf(p / 2) * float(np.sqrt((groups - 1) / groups))
    return min(1.0, 2 * float(t.cdf(z, groups - 1)))
