"""How well a score tells members from non-members: AUC, true positive rate at a false positive rate, the ROC curve and
the most accurate threshold, with intervals, beside another score's, and beside its controls'.

A text is called a member where its score is at least the threshold. No figure looks at more than the order of the
scores, so each is the same after any strictly rising transform of them.

**Intervals** come from resampling documents, the same resamples for every score. Pieces of one document are not
independent, so whole groups are drawn with replacement and every text counts as often as its group was drawn. The draw
is stratified by what a group holds: among groups of members alone, of non-members alone and of both, each keeps its
number of groups. How many documents of either kind there are was decided by whoever made the corpus and is no finding;
and so every resample has members and non-members, and none has to be thrown away. They are percentile intervals,
expanded for few groups (Hesterberg 2015, "What teachers should know about the bootstrap", section 4.4): plain
percentiles of n groups are too narrow by the factor that separates a normal interval from Student's, so for n groups of
the scarcer class the outer share left off on each side is not 2.5% but what gives that width back. Below about 20
groups they stay rough.

**Is one score better than another on the same texts?** The asterisks of DC-PDD's tables 2 and 3, by documents. Both
scores are measured on the same resamples. What makes a resample easy or hard is easy or hard for both, so their
difference is known far more closely than either figure: two intervals that overlap can belong to scores of which one is
better beyond doubt. The paper's t-tests take texts one by one.

**Controls.** A placebo is a model that never saw the members. What a score reaches there it reaches without
membership, so only its lead on the target over the placebo can come from training on the members. A score fitted on
shuffled labels shows what fitting alone reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import require
from pretrace.statistics.documents import Grouping, Groups, Numbers
from pretrace.types import Bools, Comparison, Curve, Doubles, Estimate, Measured, Run, Survival

Indices = npt.NDArray[np.int32]

_CURVE_POINTS = 400
"""The most points a thinned curve keeps: finer than a plot can show."""


@dataclass(frozen=True, slots=True, eq=False)
class _RankedScores:
    """One score of all texts, sorted once, so that its figures under any weights cost one pass: `members` and
    `nonmembers` are row numbers by rising score, `below[i]` and `upto[i]` count non-members that score less than, and
    not more than, the i-th member. Scores are not kept: they take 8 bytes a text and column."""

    members: Indices
    nonmembers: Indices
    below: Indices
    upto: Indices

    @classmethod
    def of(cls, scores: npt.ArrayLike, members: npt.ArrayLike) -> _RankedScores:
        """The ranks of one score; TextsError when a class is missing, ExpressionError on a NaN."""
        values, labels = _checked(scores, members)
        up = np.argsort(values, kind="stable").astype(np.int32)
        positive, negative = up[labels[up]], up[~labels[up]]
        high, low = values[positive], values[negative]
        below = np.searchsorted(low, high, side="left").astype(np.int32)
        upto = np.searchsorted(low, high, side="right").astype(np.int32)
        if np.array_equal(below, upto):
            upto = below  # no member ties with a non-member: `figures` then looks things up once
        return cls(positive, negative, below, upto)

    def figures(self, weights: npt.NDArray[np.float32], rates: Sequence[float]) -> Doubles:
        """AUC, then the true positive rate at each false positive rate, [resamples, 1 + rates]; every text counts
        `weights` times, [resamples, texts], whole numbers, so that the order of sums changes nothing."""
        gained = np.take(weights, self.members, axis=1).astype(np.float64)
        passed = np.zeros((len(weights), len(self.nonmembers) + 1))
        np.cumsum(np.take(weights, self.nonmembers, axis=1), axis=1, dtype=np.float64, out=passed[:, 1:])
        won = np.einsum("rm,rm->r", gained, np.take(passed, self.below, axis=1))
        if self.upto is not self.below:
            won = (won + np.einsum("rm,rm->r", gained, np.take(passed, self.upto, axis=1))) / 2
        reached = np.cumsum(gained, axis=1, out=gained)
        total, found = passed[:, -1], reached[:, -1]
        called = [self._called(passed, reached, rate) for rate in rates]
        return np.stack([won / (found * total), *(some / found for some in called)], axis=1)

    def _called(self, passed: Doubles, reached: Doubles, rate: float) -> Doubles:
        """The weight of members above the lowest threshold that keeps to `rate`, [resamples], from weights below."""
        most = [total - _allowance(int(total), rate) for total in passed[:, -1]]
        first = [np.searchsorted(row, one, side="left") for row, one in zip(passed, most, strict=True)]
        # The non-member before the first must stay below the threshold, and so must whoever ties with it: a member
        # scores more than it where more non-members than stand before it score less than that member.
        cut = np.searchsorted(self.below, np.array(first, dtype=np.int32) - 1, side="right")
        below = reached[np.arange(len(cut)), cut - 1]
        return reached[:, -1] - np.where(cut > 0, below, 0.0)


def _allowance(nonmembers: int, rate: float) -> int:
    """The most false positives k with k / nonmembers <= rate, exact where rate * nonmembers is rounded."""
    k = int(rate * nonmembers)
    while k < nonmembers and (k + 1) / nonmembers <= rate:
        k += 1
    while k > 0 and k / nonmembers > rate:
        k -= 1
    return k


def auc(scores: npt.ArrayLike, members: npt.ArrayLike) -> float:
    """The chance that a random member scores above a random non-member, a tie counting half: the area under the ROC
    curve (Mann-Whitney). Errors as in `_RankedScores.of`."""
    ranked = _RankedScores.of(scores, members)
    once = np.ones((1, len(ranked.members) + len(ranked.nonmembers)), dtype=np.float32)
    return float(ranked.figures(once, ())[0, 0])


def roc_curve(scores: npt.ArrayLike, members: npt.ArrayLike) -> Curve:
    """The ROC curve from (0, 0) to (1, 1), tied scores as one step, thinned to at most 400 points. The points kept are
    points of the full curve, closest together at low false positive rates. Errors as in `_RankedScores.of`."""
    true, false = _steps(*_checked(scores, members))[1:]
    corners = np.ones(len(true), dtype=bool)
    # A point on the straight line between its neighbours adds nothing.
    up, across = np.diff(true), np.diff(false)
    flat, steep = ((up[:-1], across[1:]), (up[1:], across[:-1]))
    corners[1:-1] = np.multiply(*flat, dtype=np.int64) != np.multiply(*steep, dtype=np.int64)
    fpr, tpr = false[corners] / false[-1], true[corners] / true[-1]
    keep = _thinned(fpr, tpr) if len(fpr) > _CURVE_POINTS else slice(None)
    return Curve(tuple(fpr[keep].tolist()), tuple(tpr[keep].tolist()))


def best_threshold(scores: npt.ArrayLike, members: npt.ArrayLike) -> float:
    """The threshold of highest accuracy: one of the scores, or just above all; the highest of equals, which calls the
    fewest texts members. Errors as in `_RankedScores.of`."""
    values, labels = _checked(scores, members)
    thresholds, true, false = _steps(values, labels)
    return float(thresholds[np.argmax(true - false)])  # accuracy is (true - false + non-members) / texts


def _accuracy(scores: npt.ArrayLike, members: npt.ArrayLike, threshold: float) -> float:
    """The share of texts called rightly when scores of at least `threshold` are called members."""
    return float(np.mean((np.asarray(scores) >= threshold) == np.asarray(members, dtype=bool)))


def _checked(scores: npt.ArrayLike, members: npt.ArrayLike) -> tuple[Doubles, Bools]:
    values, found = np.asarray(scores, dtype=np.float64), np.asarray(members)
    # None and NaN would both turn into a bool without complaint.
    if found.dtype != np.bool_ and not (found.dtype.kind in "iu" and np.isin(found, (0, 1)).all()):
        raise TextsError("wanted every text labelled True or False; leave the others out.")
    labels = found.astype(np.bool_)
    if values.shape != labels.shape or values.ndim != 1:
        raise TextsError(f"wanted one score and one label a text, found {values.shape} and {labels.shape}.")
    if labels.all() or not labels.any():
        has, lacks = ("members", "non-members") if labels.any() else ("non-members", "members")
        raise TextsError(f"wanted both classes, found {len(labels):,} {has} alone; add known {lacks}.")
    if odd := int(np.isnan(values).sum()):
        said = f"wanted a number for every text, found NaN for {odd:,} of {len(values):,}"
        raise ExpressionError(f"{said}; mend the score or leave those texts out.")
    return values, labels


def _steps(values: Doubles, labels: Bools) -> tuple[Doubles, Indices, Indices]:
    """A threshold above all scores, then the distinct ones from high to low, and how many members and non-members score
    at least that. Counts are of 4 bytes, and what is needed no more is let go: there may be very many texts."""
    down = np.argsort(-values, kind="stable")
    ordered, hits = values[down], labels[down]
    del down
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1).astype(np.int32)
    true, false = np.zeros((2, len(last) + 1), np.int32)
    true[1:] = np.cumsum(hits, dtype=np.int32)[last]
    false[1:] = last + 1 - true[1:]
    return np.concatenate(([np.nextafter(ordered[0], np.inf)], ordered[last])), true, false


def _thinned(fpr: Doubles, tpr: Doubles) -> npt.NDArray[np.int64]:
    """Indices of the points to keep: even steps along both axes and of log FPR, and the usual low rates."""
    # At a false positive rate, the highest point; at a true positive rate, the first that reaches it.
    low_end = np.geomspace(max(fpr[fpr > 0][0], 1e-6), 1, 140)
    rates = np.concatenate((low_end, (0.001, 0.01, 0.05), np.linspace(0, 1, 120)))
    across = np.searchsorted(fpr, rates, side="right") - 1
    upward = np.searchsorted(tpr, np.linspace(0, 1, 120), side="left")
    return np.unique(np.concatenate(([0], across, upward, [len(fpr) - 1])))


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
class _Spread:
    """One figure of every score: `value` [scores] on the texts themselves, `drawn` [resamples, scores]. `tail` is the
    share of resamples that a 95% interval leaves off on each side."""

    value: Doubles
    drawn: Doubles
    tail: float = 0.025

    def estimate(self, score: int) -> Estimate:
        """The figure with its 95% percentile interval, which always holds the figure itself."""
        return _interval(float(self.value[score]), self.drawn[:, score], self.tail)

    def difference(self, first: int, second: int) -> _Spread:
        """How much one score's figure exceeds another's on the same resamples, as the only score."""
        apart = self.drawn[:, first] - self.drawn[:, second]
        return _Spread(self.value[[first]] - self.value[[second]], apart[:, None], self.tail)

    def widened(self, score: int, factor: float) -> _Spread:
        """The same with one score's resamples moved away from its value by a factor, within 0 and 1."""
        drawn = self.drawn.copy()
        away = self.value[score] + factor * (drawn[:, score] - self.value[score])
        drawn[:, score] = np.clip(away, 0, 1)
        return _Spread(self.value, drawn, self.tail)


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """All figures of all scores under the same `resamples`: `tpr` at 5% false positives, `low_tpr` at 0.1% (None below
    10,000 non-members), `accuracy` None where no thresholds were given."""

    auc: _Spread
    tpr: _Spread
    low_tpr: _Spread | None
    accuracy: _Spread | None
    resamples: int

    def widened(self, score: int, factor: float) -> Bootstrap:
        """The same with every figure of one score spread wider: see `_Spread.widened`."""
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
    codes, ranked = grouping.codes[tested], list[_RankedScores]()
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
        ranked.append(_RankedScores.of(column, members))
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
    spreads = [_Spread(value[:, k], drawn[:, :, k], tail) for k in range(1 + len(rates))]
    return Bootstrap(
        auc=spreads[0],
        tpr=spreads[1],
        low_tpr=spreads[2] if len(rates) > 1 else None,
        accuracy=_Spread(accuracy(whole)[0], judged, tail) if calls else None,
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


def compare(
    score: str, baseline: str, spread: _Spread, columns: tuple[int, int], documents: int
) -> Comparison:
    """Compare a score with the baseline, by their `columns` of the resamples of texts that both have, with so many
    `documents` of the scarcer class (`_for_few`). The two-sided p is twice the smaller share of resamples on either
    side of zero (zero counts to both), the sample included: at least 2 / (resamples + 1)."""
    ahead = spread.difference(*columns)
    apart = ahead.drawn
    tail = min(np.count_nonzero(apart <= 0), np.count_nonzero(apart >= 0))
    p = _for_few(min(1.0, 2 * (1 + int(tail)) / (1 + len(apart))), documents)
    least = _for_few(2 / (1 + len(apart)), documents)
    return Comparison(score, baseline, "auc", ahead.estimate(0), p, p, least)


def adjusted(found: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Correct comparisons that were made together (Holm)."""
    p = _holm([one.p for one in found])
    return tuple(
        replace(one, adjusted=corrected, least=min(1.0, len(found) * one.least))
        for one, corrected in zip(found, p, strict=True)
    )


def _holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given (Holm 1979): rejecting those at or below a level
    keeps the chance of any false rejection to that level, however the tests depend on each other.

    >>> _holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, reached = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        reached = max(reached, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = reached
    return adjusted


def _for_few(p: float, groups: int) -> float:
    """The p-value that belongs to the expanded interval of few documents. A percentile interval of n groups is too
    narrow, and `tail_share` widens it; so a percentile's p is too small by as much. This is the same step
    for p: 0.05 here is where that interval ends at 0."""
    from scipy.stats import t

    if groups < 2 or p >= 1:
        return 1.0
    z = NormalDist().inv_cdf(p / 2) * float(np.sqrt((groups - 1) / groups))
    return min(1.0, 2 * float(t.cdf(z, groups - 1)))


ReadColumn = Callable[[], Doubles]
"""Reads one column, [texts]: of very many texts not all columns are in memory at once."""
PLACEBO, SHUFFLED = "placebo", "shuffled"
ENOUGH_SHUFFLES = 19
"""Shuffles that the true labels must all beat before that happens by chance less than once in twenty."""


def survives(target: Measured, placebo: Measured) -> Survival:
    """Whether a score keeps a lead on the target over the placebo: "yes" where the interval of the paired
    difference lies above 0, "no" where the placebo does as well or better, "not shown" in between, and
    "not above chance" where there is no success on the target that could survive."""
    if target.auc.low <= 0.5:
        return "not above chance"
    lead = placebo.lead
    if lead is None:
        return "not shown"
    if lead.low > 0:
        return "yes"
    return "no" if lead.value <= 0 else "not shown"


def divide_texts(chosen: Bools, members: Bools) -> tuple[Bools, Bools]:
    """The texts that thresholds are chosen on, and those that accuracy is measured on: the others, or all for both
    where a part would lack one of the classes."""
    if all(len(np.unique(members[part])) == 2 for part in (chosen, ~chosen)):
        return chosen, ~chosen
    whole = np.ones(len(members), dtype=bool)
    return whole, whole


def check_controls(run: Run) -> None:
    """ExpressionError unless every control is a finite number a text of one of the scores."""
    for control in run.controls:
        what, shape = f"the {control.kind} control of {control.score}", control.values.shape
        known = control.kind in (PLACEBO, SHUFFLED) and control.score in run.scores
        fits = len(shape) == 2 and shape[0] == len(run.ids) and (shape[1] == 1 or control.kind == SHUFFLED)
        wanted = f"with a row a text ({len(run.ids):,}) and a column a repeat (a placebo a single one)"
        said = f"wanted a control of one of the run's scores, {wanted}, found {what}, an array of {shape}"
        require(known and fits, f"{said}; make the run again.")
        finite = bool((np.isfinite(control.values) | run.lacks(control.score)[:, None]).all())
        require(finite, f"{what} is not a finite number for every text: mend the score or leave it out.")
    pairs = [(control.score, control.kind) for control in run.controls]
    twice = len(set(pairs)) != len(pairs)
    require(not twice, "wanted one control of a kind a score, found two; leave one of them out.")


def shuffled_row(name: str, columns: Sequence[ReadColumn], members: Bools, chosen: Bools) -> Measured | None:
    """The row of a score fitted on shuffled labels, with a column a repeat: median and range of the repeats, curve of
    the middle one; None without a repeat, or where its texts are of one class. Thresholds are `chosen` on [texts]."""
    texts = np.logical_and.reduce([np.isfinite(read()) for read in columns])
    if not columns or len(np.unique(members[texts])) < 2:
        return None
    members = members[texts]
    chosen, tested = divide_texts(chosen[texts], members)
    rates = (FPR, LOW_FPR) if np.count_nonzero(~members) >= LOW_FPR_NONMEMBERS else (FPR,)
    once = np.ones((1, len(members)), dtype=np.float32)
    repeats = []
    for read in columns:
        column = read()[texts]
        threshold = best_threshold(column[chosen], members[chosen])
        called = _accuracy(column[tested], members[tested], threshold)
        repeats.append((threshold, called, *_RankedScores.of(column, members).figures(once, rates)[0]))
    thresholds, calls, aucs, *reached = np.array(repeats).T
    middle = int(np.argsort(aucs, kind="stable")[(len(aucs) - 1) // 2])
    return Measured(
        name=name,
        kind=SHUFFLED,
        auc=_range(aucs),
        tpr=_range(reached[0]),
        accuracy=_range(calls),
        threshold=float(thresholds[middle]),
        curve=roc_curve(columns[middle]()[texts], members),
        tpr_low=_range(reached[1]) if len(rates) > 1 else None,
        texts=len(members),
    )


def _range(repeats: Doubles) -> Estimate:
    return Estimate(float(np.median(repeats)), float(repeats.min()), float(repeats.max()))
