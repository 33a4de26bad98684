"""How documents in question compare with known non-members: which stand out, with a promise on how many of those are
false, whether all of them score higher as a whole, and whether both vary alike.

The conformal p-value of a document with value s, against n known non-members, is

    p = (1 + #{non-members that score at least s}) / (n + 1)

If the document is one more like them, its rank among them is anything equally likely, so P(p <= a) <= a, whatever
the law of the score: nothing is assumed but that it could have stood among them (exchangeability). Documents
whose p-values pass the step-up procedure of Benjamini and Hochberg (1995) at a rate q are flagged; of the
flagged, a share of at most q is false, on average over repetitions.

**One value a document, by one rule on both sides.** Fifty pieces of two books are two books. Of every document,
asked or known, the same number of pieces is drawn (`drawn_pieces`), as many as the document with the fewest has,
and their mean is the document's value. Where documents are exchangeable (hierarchical exchangeability: Dunn,
Wasserman and Ramdas 2023; Lee, Barber and Willett 2023), so are these values, however many pieces each document
has and even where that number goes with its score. Flags are of documents.

Were every piece of the asked documents counted, documents of 80 pieces that score higher, 3% of all, and nothing seen,
would make Benjamini and Yekutieli's procedure at a rate of 20% flag something in 19 to 38% of sets; one value a
document with Benjamini and Hochberg's in 4 to 18% (2,000 sets of each of four sizes, evidence/flagging_sets.csv).

**p-values that share their known documents are dependent**, positively (PRDS), for which the procedure keeps its
promise: Bates, Candès, Lei, Romano and Sesia 2023, "Testing for outliers with conformal p-values", theorems 2
and 3. That theorem wants independent documents to be judged. Where documents depend on each other, the procedure
of Benjamini and Yekutieli (2001) keeps the rate as long as each p-value by itself is valid, at the price of a
factor 1 + 1/2 + … + 1/m on the rate.

**Whether the set scores higher** is one p-value, from permutation. The null hypothesis is that the asked and the known
documents are exchangeable: which of them are the asked ones says nothing about their values. There is one value a
document. Permuting which documents are the asked ones is then exact for any statistic, whatever the law.

The statistic is the larger of two sums over the asked documents, each less its mean under the null and over its
standard deviation there (known exactly for sums of scores of a rank). With u the share of all documents that
score at least as high:

    1 - u          Wilcoxon's rank sum: sees that many documents score a little higher
    (log u)^2      sees that a few documents are among the very highest

One alone misses the other case. Eight statistics were compared before one was taken.
At 200 asked and 200 known documents, normal values and a level of 5%, sets found in 100:

    what was seen of the asked           rank sum  log squared  both  Fisher  higher criticism  Berk-Jones
    10%, at an AUC of 0.93                     45           94    89      84                85          84
    all, 0.25 standard deviations higher       80           57    77      74                48          58

**Whether both vary alike**: equal means say nothing of that, and tails decide what stands out. There are two tests.
`spread_p` asks in both directions and is for what a model has no part in: lengths, the log-odds of a classifier of
words, the score of a placebo. It is Fligner and Killeen's test (1976, with medians): normal scores of the ranks of the
distances from each side's median, which holds its level under heavy tails. Of seven such tests it was among the most
robust in Conover, Johnson and Johnson 1981. `compare_below` is for the score of the target. Training can only raise a
score, and where some of the asked documents were seen the spread of all of them rises for that very reason. So only
what lies below the median of the known documents is compared: documents that were seen leave it, and those that stay
are spread there as the known ones are. Asked documents that lie farther below than known ones differ by something else
than training.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.statistics.documents import Grouping, Groups, check_values
from pretrace.statistics.permutation import TIE, last_rejected, permuted
from pretrace.types import Bools, Doubles

Method = Literal["bh", "by"]
METHODS: tuple[Method, ...] = ("bh", "by")

_ROUNDING = 1e-12
"""A rate that is met exactly is met, in whatever order its factors were multiplied."""


def p_values(
    scores: npt.ArrayLike, known: npt.ArrayLike, *, randomised: bool = False, seed: int = 0
) -> Doubles:
    """The conformal p-value of each score, one an asked document, against those of known non-members, one a document.

    A tie counts as if the known text scored higher, which is conservative. With `randomised` all ties are
    broken at random, one draw a text, so that p is uniform on 1/(n + 1), …, 1 and the texts' joint law is that of
    scores without ties. TextsError without known texts, and for a score that is not finite.
    """
    values = check_values(scores, "the scores of the texts", fewest=0)
    calibration = check_values(known, "the scores of known non-members")
    if randomised:  # ranks by score, then at random: as if no two texts had scored the same
        order = np.random.default_rng(seed).random(len(values) + len(calibration))
        rank = np.empty(len(order))
        rank[np.lexsort((order, np.concatenate((values, calibration))))] = np.arange(len(order))
        values, calibration = rank[: len(values)], rank[len(values) :]
    ordered = np.sort(calibration)
    reached = len(ordered) - np.searchsorted(ordered, values, side="left")
    return np.asarray((1.0 + reached) / (len(ordered) + 1))


def drawn_pieces(groups: Groups, seed: int) -> Bools:
    """Which texts are drawn, of every document as many as the one with the fewest has, all pieces with the same chance;
    bool [texts]. Depends on the seed, the documents and their sizes alone."""
    drawn = np.zeros(len(groups), dtype=bool)
    if not len(groups):
        return drawn
    grouping = Grouping.of(groups)
    rows, sizes = np.argsort(grouping.codes, kind="stable"), grouping.sizes
    first = np.cumsum(sizes) - sizes
    number = int(sizes.min())
    if number == sizes.max():
        return np.ones(len(groups), dtype=bool)
    rng = np.random.default_rng(seed)
    drawn[rows[first[sizes == 1]]] = True  # one piece alone is not drawn
    several = sizes > 1
    for start, size in zip(first[several].tolist(), sizes[several].tolist(), strict=True):
        drawn[rng.permutation(rows[start : start + size])[:number]] = True
    return drawn


def adjusted(p: npt.ArrayLike, method: Method = "bh") -> Doubles:
    """The least false discovery rate at which each text would be flagged ("q-value"), float64 [texts]. "bh" is
    Benjamini and Hochberg's, "by" Benjamini and Yekutieli's (`scipy.stats.false_discovery_control`)."""
    from scipy.stats import false_discovery_control

    require(method in METHODS, f"false discoveries are controlled by 'bh' or 'by', found {method!r}.")
    values = np.asarray(p, dtype=np.float64)
    if not len(values):
        return values
    return np.asarray(false_discovery_control(values, method=method), dtype=np.float64)


def flagged(q: npt.ArrayLike, fdr: float) -> Bools:
    """Which texts are flagged at a false discovery rate, bool [texts]."""
    return np.asarray(np.asarray(q, dtype=np.float64) <= fdr * (1 + _ROUNDING))


def least_together(known: int, asked: int, fdr: float, method: Method = "bh") -> int | None:
    """The asked documents that have to stand above all known ones before any of them is flagged at a rate: with k
    above all n, all k are where 1 / (n + 1) <= k · rate / asked. None where not even all would be enough."""
    together = _ceil(asked / (_rate(asked, fdr, method) * (known + 1)))
    return together if together <= asked else None


def needed(together: int, asked: int, fdr: float, method: Method = "bh") -> int:
    """The known documents with which so many of the asked documents, above all of these, are flagged."""
    return _ceil(max(1, asked) / (_rate(asked, fdr, method) * max(1, together))) - 1


def _rate(asked: int, fdr: float, method: Method) -> float:
    return fdr if method == "bh" else fdr / (math.fsum(1 / i for i in range(1, asked + 1)) or 1.0)


def _ceil(value: float) -> int:
    """The next whole number, a hair above one taken for rounding."""
    return max(1, math.ceil(value * (1 - _ROUNDING)))


PERMUTATIONS = 9_999
"""Drawn at random; where the asked documents can be chosen in no more ways, every one of these is gone through."""
LARGE = 20_000
"""Documents above which a fifth of the permutations is drawn, to keep the time in bounds, and in another way."""
STEPS, FARTHEST = 12, 64.0
"""Halvings of the interval in which a drift is sought, and the drift above which none is sought."""


@dataclass(frozen=True, eq=False)
class SetShift:
    """A test of the set: `p`, and `least`, the documents above all known ones, the others evenly among them, from which
    on it would have rejected (None for never). `p_after` and `explained` say what it leaves of a difference."""

    p: float
    least: int | None
    permutations: int
    asked: Doubles
    known: Doubles
    level: float
    dealt: Doubles
    exact: bool

    def p_after(self, drift: float = 0.0, spread: float = 1.0) -> float:
        """p were all asked documents `drift` standard deviations (of the known) lower, `spread` times nearer them."""
        moved = remove_drift(self.asked, self.known, drift, spread)
        scores, number = _rank_scores(np.concatenate((moved, self.known))), len(moved)
        reached = _larger(scores[:, :number].sum(axis=1)[:, None], scores, number)[0]
        return _share_reached(self.dealt, reached, self.exact)

    @cached_property
    def explained(self) -> float:
        """The largest drift, in standard deviations of the known documents, with which the test still rejects, or 0."""
        if self.p > self.level:
            return 0.0
        low, high = 0.0, 1.0
        while self.p_after(high) <= self.level:
            low, high = high, 2 * high
            if high > FARTHEST:
                return FARTHEST
        return last_rejected(lambda drift: self.p_after(drift) <= self.level, low, high, STEPS)


def remove_drift(asked: npt.ArrayLike, known: npt.ArrayLike, drift: float, spread: float) -> Doubles:
    """The asked values less a drift, in standard deviations of the known ones, and a `spread` around their median."""
    values, others = np.asarray(asked, dtype=np.float64), np.asarray(known, dtype=np.float64)
    middle = float(np.median(others))
    return np.asarray(middle + (values - drift * float(others.std()) - middle) / spread)


def set_shift(
    asked: npt.ArrayLike,
    known: npt.ArrayLike,
    *,
    level: float = 0.05,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
) -> SetShift:
    """The one-sided test that the asked documents score higher than the known ones, one value each: p is the share of
    permutations that reach the statistic, that found among them; `level` is for `least` and `explained`. TextsError for
    a side without finite values."""
    first, second = (check_values(side, "a test of the set") for side in (asked, known))
    both = np.concatenate((first, second))
    number = len(first)
    scores = _rank_scores(both)
    observed = _larger(scores[:, :number].sum(axis=1)[:, None], scores, number)[0]
    exact = math.comb(len(both), number) <= permutations
    if exact:
        choices = np.array(list(combinations(range(len(both)), number)), dtype=np.int64)
        dealt = _larger(np.stack([score[choices].sum(axis=1) for score in scores]), scores, number)
    else:
        rng, few = np.random.default_rng(seed), min(number, len(second))
        if len(both) > LARGE:
            sums = _sums_of_many(scores, few, max(1, permutations // 5), rng)
        else:
            taken = permuted(np.arange(len(both), dtype=np.int32), permutations, few, rng)
            drawn = [np.stack([score[some].sum(axis=1) for score in scores]) for some in taken]
            sums = np.concatenate(drawn, axis=1)
        # The smaller side alone is summed; what is left is the other.
        dealt = _larger(sums if few == number else scores.sum(axis=1)[:, None] - sums, scores, number)
    every = dealt if exact else np.append(dealt, observed)
    least = _least(number, len(second), every, level)
    p = _share_reached(dealt, observed, exact)
    return SetShift(p, least, len(every), first, second, level, dealt, exact)


def _share_reached(dealt: Doubles, observed: float, exact: bool) -> float:
    """p; the choice that was made counts as one of the draws, unless all choices were."""
    reached = int(np.count_nonzero(dealt >= observed - TIE))
    return max(1, reached) / len(dealt) if exact else (1 + reached) / (1 + len(dealt))


def _rank_scores(values: Doubles) -> Doubles:
    """Both scores of each value's rank, [2, values], the values that tie sharing a rank."""
    from scipy.stats import rankdata

    share = rankdata(-values) / (len(values) + 1)
    return np.stack((1 - share, np.log(share) ** 2))


def _sums_of_many(scores: Doubles, few: int, draws: int, rng: np.random.Generator) -> Doubles:
    """Sums over so few documents, chosen at random, [2, draws]: of many, the others are not shuffled for that."""
    chosen = (rng.choice(scores.shape[1], few, replace=False, shuffle=False) for _ in range(draws))
    return np.stack([scores[:, some].sum(axis=1) for some in chosen], axis=1)


def _larger(sums: Doubles, scores: Doubles, number: int) -> Doubles:
    """The larger standardised sum, from sums [2, n] over `number` of the documents."""
    total = scores.shape[1]
    variance = scores.var(axis=1) * number * (total - number) / max(1, total - 1)
    spread = np.sqrt(np.maximum(variance, TIE))[:, None]  # no spread where all values tie: then all is 0
    return np.asarray(((sums - number * scores.mean(axis=1)[:, None]) / spread).max(axis=0))


def _least(number: int, known: int, dealt: Doubles, level: float) -> int | None:
    """The least number of asked documents above all known ones, the others evenly among them, that is rejected."""

    def rejects(above: int) -> bool:
        among = (np.arange(number - above) + 0.5) / max(1, number - above)
        values = np.concatenate((2.0 + np.arange(above), among, (np.arange(known) + 0.5) / known))
        scores = _rank_scores(values)
        standing = float(_larger(scores[:, :number].sum(axis=1)[:, None], scores, number)[0])
        reached = int(np.count_nonzero(dealt >= standing - TIE))
        return max(1, reached) <= level * len(dealt) * (1 + TIE)

    return 1 + bisect_left(range(1, number), True, key=rejects) if rejects(number) else None


FEWEST = 5
"""Documents below the median, on either side, from which on anything is said of how far below they lie."""
_UNKNOWN = 1.5
"""The spread that is allowed for where it cannot be seen."""


@dataclass(frozen=True, slots=True)
class Below:
    """How far the asked documents lie below the median of the known ones: `ratio` times as far on average as these, the
    standard `error` of its logarithm, a one-sided `p` (Mann and Whitney), None for fewer than `FEWEST`."""

    ratio: float
    error: float
    p: float | None

    def allowed(self, wide: float) -> float:
        """The spread to allow for: the ratio with `wide` standard errors added, 1 where it is not above 1 by that."""
        if self.p is None:
            return _UNKNOWN
        if self.ratio <= 1 or math.log(self.ratio) <= wide * self.error:
            return 1.0
        return self.ratio * math.exp(wide * self.error)


def compare_below(asked: npt.ArrayLike, known: npt.ArrayLike) -> Below:
    """How the lower halves compare; errors as in `set_shift`."""
    from scipy.stats import mannwhitneyu

    first, second = (check_values(side, "a comparison of spreads") for side in (asked, known))
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

    first, second = (check_values(side, "a comparison of spreads", fewest=2) for side in (asked, known))
    if not (np.ptp(first) or np.ptp(second)):
        return 1.0
    p = float(fligner(first, second, center="median").pvalue)
    return p if math.isfinite(p) else 1.0


def serial_p(values: npt.ArrayLike) -> float:
    """The one-sided p-value that documents side by side are no more alike than others: the rank version of von
    Neumann's ratio (Bartels 1982), normal for 20 or more. 1 for fewer, or where values do not vary."""
    from scipy.special import ndtr
    from scipy.stats import rankdata

    found = check_values(values, "a comparison of neighbours")
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
