"""Is one score better than another on the same texts? The asterisks of DC-PDD's tables 2 and 3, by documents.

Both scores are measured on the same resamples of the documents, the very draws that the intervals of an
evaluation come from (`resampling.group_bootstrap` with the same seed). What makes a resample easy or hard is
easy or hard for both, so their difference is known far more closely than either figure: two intervals that
overlap can belong to scores of which one is better beyond doubt. The paper's t-tests take texts one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from pretrace.statistics.resampling import Spread
from pretrace.types import Comparison


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
    narrow, and `resampling.tail_share` widens it; so a percentile's p is too small by as much. This is the same step
    for p: 0.05 here is where that interval ends at 0."""
    from scipy.stats import t

    if groups < 2 or p >= 1:
        return 1.0
    z = NormalDist().inv_cdf(p / 2) * float(np.sqrt((groups - 1) / groups))
    return min(1.0, 2 * float(t.cdf(z, groups - 1)))
