"""Student's t-test as the literature of dataset inference uses it, and how it joins repeated splits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pretrace.types import Doubles, Estimate


def t_test(higher: Doubles, lower: Doubles, *, paired: bool = False) -> tuple[float, Estimate]:
    """One-sided p-value for mean(higher) > mean(lower), and the difference of means with its 95% interval.

    Unpaired it is Student's test with one variance for both sides. Without any spread nothing can be told
    and p is 1. Each side needs two values.
    """
    from scipy.special import stdtr, stdtrit

    apart = float(higher.mean() - lower.mean())
    if paired:
        freedom = len(higher) - 1
        error = float(np.std(higher - lower, ddof=1)) / math.sqrt(len(higher))
    else:
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
    return Estimate(
        float(np.mean([one.value for one in estimates])),
        float(np.mean([one.low for one in estimates])),
        float(np.mean([one.high for one in estimates])),
    )
