"""Do two sets of documents vary alike? Equal means say nothing of that, and tails decide what stands out.

Two tests, one value a document. `spread_p` asks in both directions and is for what a model has no part in: lengths, the
log-odds of a classifier of words, the score of a placebo. It is Fligner and Killeen's test (1976, with medians): normal
scores of the ranks of the distances from each side's median, which holds its level under heavy
tails. Of seven such tests it was among the most robust in Conover, Johnson and Johnson 1981.

`below` is for the score of the target. Training can only raise a score, and where some of the asked documents were seen
the spread of all of them rises for that very reason. So only what lies below the median of the known documents is
compared: documents that were seen leave it, and those that stay are spread there as the known ones are. Asked documents
that lie farther below than known ones differ by something else than training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.statistics.documents import checked

FEWEST = 5
"""Documents below the median, on either side, from which on anything is said of how far below they lie."""
UNKNOWN = 1.5
"""The spread that is allowed for where it cannot be seen."""


@dataclass(frozen=True, slots=True)
class Below:
    """How far the asked documents lie below the median of the known ones: `ratio` times as far on average as the known
    ones there, with the standard error of its logarithm; `p` is one-sided, of a rank test (Mann and Whitney).

    Where a side has fewer than `FEWEST` documents there, `p` is None and nothing is known.
    """

    ratio: float
    error: float
    p: float | None

    def allowed(self, wide: float) -> float:
        """The spread that has to be allowed for: 1 where the ratio is not above 1 by `wide` standard errors, else the
        ratio with so many added; `UNKNOWN` where too few documents lie below to tell."""
        if self.p is None:
            return UNKNOWN
        if self.ratio <= 1 or math.log(self.ratio) <= wide * self.error:
            return 1.0
        return self.ratio * math.exp(wide * self.error)


def below(asked: npt.ArrayLike, known: npt.ArrayLike) -> Below:
    """How the lower halves compare; errors as in `set_shift`."""
    from scipy.stats import mannwhitneyu

    first, second = (checked(side, "a comparison of spreads") for side in (asked, known))
    middle = np.median(second)
    mine, others = middle - first[first < middle], middle - second[second < middle]
    if min(len(mine), len(others)) < FEWEST:
        return Below(1.0, math.inf, None)
    ratio = float(mine.mean() / others.mean())
    error = math.sqrt(sum(side.var(ddof=1) / len(side) / side.mean() ** 2 for side in (mine, others)))
    return Below(ratio, error, float(mannwhitneyu(mine, others, alternative="greater").pvalue))


def spread_p(asked: npt.ArrayLike, known: npt.ArrayLike) -> float:
    """The two-sided p-value that both sides vary alike; 1 where neither varies. Errors as in `set_shift`."""
    from scipy.stats import fligner

    first, second = (checked(side, "a comparison of spreads", fewest=2) for side in (asked, known))
    if not (np.ptp(first) or np.ptp(second)):
        return 1.0
    p = float(fligner(first, second, center="median").pvalue)
    return p if math.isfinite(p) else 1.0


def serial_p(values: npt.ArrayLike) -> float:
    """The one-sided p-value that documents which stand side by side are no more alike than others, in their order.

    The rank version of von Neumann's ratio (Bartels 1982), normal for 20 documents or more. 1 for fewer, or where the
    values do not vary.
    """
    from scipy.special import ndtr
    from scipy.stats import rankdata

    found = checked(values, "a comparison of neighbours")
    number = len(found)
    ranks = rankdata(found)
    total = float(((ranks - ranks.mean()) ** 2).sum())
    if number < 20 or total == 0:
        return 1.0
    ratio = float((np.diff(ranks) ** 2).sum()) / total
    variance = (
        4 * (number - 2) * (5 * number**2 - 2 * number - 9) / (5 * number * (number + 1) * (number - 1) ** 2)
    )
    return float(ndtr((ratio - 2) / math.sqrt(variance)))
