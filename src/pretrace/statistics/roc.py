"""How well one score tells members from non-members: AUC, true positive rate at a false positive rate,
the ROC curve, the most accurate threshold.

A text is called a member where its score is at least the threshold. Nothing here looks at more than
the order of the scores, so every figure is the same after any strictly rising transform of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.errors import ExpressionError, TextsError
from pretrace.types import Bools, Curve, Doubles

Indices = npt.NDArray[np.int32]

_CURVE_POINTS = 400
"""The most points a thinned curve keeps: finer than a plot can show."""


@dataclass(frozen=True, slots=True, eq=False)
class RankedScores:
    """One score of all texts, sorted once, so that its figures under any weights cost one pass: `members` and
    `nonmembers` are row numbers by rising score, `below[i]` and `upto[i]` count non-members that score less than, and
    not more than, the i-th member. Scores are not kept: they take 8 bytes a text and column."""

    members: Indices
    nonmembers: Indices
    below: Indices
    upto: Indices

    @classmethod
    def of(cls, scores: npt.ArrayLike, members: npt.ArrayLike) -> RankedScores:
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
        most = [total - allowance(int(total), rate) for total in passed[:, -1]]
        first = [np.searchsorted(row, one, side="left") for row, one in zip(passed, most, strict=True)]
        # The non-member before the first must stay below the threshold, and so must whoever ties with it: a member
        # scores more than it where more non-members than stand before it score less than that member.
        cut = np.searchsorted(self.below, np.array(first, dtype=np.int32) - 1, side="right")
        below = reached[np.arange(len(cut)), cut - 1]
        return reached[:, -1] - np.where(cut > 0, below, 0.0)


def allowance(nonmembers: int, rate: float) -> int:
    """The most false positives k with k / nonmembers <= rate, exact where rate * nonmembers is rounded."""
    k = int(rate * nonmembers)
    while k < nonmembers and (k + 1) / nonmembers <= rate:
        k += 1
    while k > 0 and k / nonmembers > rate:
        k -= 1
    return k


def auc(scores: npt.ArrayLike, members: npt.ArrayLike) -> float:
    """The chance that a random member scores above a random non-member, a tie counting half: the area under the ROC
    curve (Mann-Whitney). Errors as in `RankedScores.of`."""
    ranked = RankedScores.of(scores, members)
    once = np.ones((1, len(ranked.members) + len(ranked.nonmembers)), dtype=np.float32)
    return float(ranked.figures(once, ())[0, 0])


def roc_curve(scores: npt.ArrayLike, members: npt.ArrayLike) -> Curve:
    """The ROC curve from (0, 0) to (1, 1), tied scores as one step, thinned to at most 400 points. The points kept are
    points of the full curve, closest together at low false positive rates. Errors as in `RankedScores.of`."""
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
    fewest texts members. Errors as in `RankedScores.of`."""
    values, labels = _checked(scores, members)
    thresholds, true, false = _steps(values, labels)
    return float(thresholds[np.argmax(true - false)])  # accuracy is (true - false + non-members) / texts


def accuracy(scores: npt.ArrayLike, members: npt.ArrayLike, threshold: float) -> float:
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
