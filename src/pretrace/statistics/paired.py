"""Is one score better than another on the same texts? The asterisks of DC-PDD's tables 2 and 3, by documents.

Both scores are measured on the same resamples of the documents, the very draws that the intervals of an
evaluation come from (`resampling.group_bootstrap` with the same seed). What makes a resample easy or hard is
easy or hard for both, so their difference is known far more closely than either figure: two intervals that
overlap can belong to scores of which one is better beyond doubt. The paper's t-tests take texts one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from pretrace.registry import require
from pretrace.statistics.documents import Grouping
from pretrace.statistics.resampling import Spread, group_bootstrap, paired_difference
from pretrace.types import Bools, Comparison, Estimate, Measure, Run

_USUAL_BASELINE = "loss"


def compare(
    run: Run,
    baseline: str = "",
    *,
    scores: Sequence[str] | None = None,
    measure: Measure = "auc",
    seed: int = 0,
    resamples: int = 1000,
) -> tuple[Comparison, ...]:
    """Each score of a labelled run against the baseline, in the run's order.

    The baseline is `loss` unless named, or the first score where `loss` was not asked for: never the best, which would
    be chosen by the same texts that it is then judged on. Two scores are compared on the texts that both have. With the
    seed and resamples of an evaluation the draws are the same. `measure` is "auc" or "tpr" (at 5% false positives).
    ExpressionError for a score that the run does not have, TextsError where labels are missing or of one class.
    """
    require(measure in ("auc", "tpr"), f"scores are compared by 'auc' or 'tpr', found {measure!r}.")
    require(bool(run.scores), "the run holds no scores to compare.")
    members: Any = np.array(run.members)
    first = baseline or usual_baseline(run.scores)
    others = [name for name in (run.scores if scores is None else scores) if name != first]
    for name in (first, *others):
        had = ", ".join(run.scores)
        require(name in run.scores, f"the run has no score {name!r} to compare; it has {had}.")
    if not others:
        return ()
    groups = np.array([group or name for group, name in zip(run.groups, run.ids, strict=True)])
    found = []
    for texts, names in _alike(run, first, others):
        columns = [run.column(name)[texts] for name in (first, *names)]
        here, of = members[texts], groups[texts].tolist()
        bootstrap = group_bootstrap(columns, here, groups=of, seed=seed, resamples=resamples)
        spread = bootstrap.tpr if measure == "tpr" else bootstrap.auc
        fewest = Grouping.of(of, here).fewest
        found += [ScorePair.of(name, spread, (k, 0), fewest) for k, name in enumerate(names, start=1)]
    return adjusted(sorted(found, key=lambda one: others.index(one.score)), first, measure=measure)


def _alike(run: Run, first: str, others: Sequence[str]) -> list[tuple[Bools, list[str]]]:
    """Scores that stand beside the baseline on the same texts, those that both have, with these texts."""
    known = np.isfinite(run.column(first))
    parts: dict[bytes, tuple[Bools, list[str]]] = {}
    for name in others:
        texts = known & np.isfinite(run.column(name))
        parts.setdefault(texts.tobytes(), (texts, []))[1].append(name)
    return list(parts.values())


@dataclass(frozen=True, slots=True)
class ScorePair:
    """A score beside the baseline on texts that both have: how far ahead, p for so many documents, and the least p."""

    score: str
    ahead: Estimate
    p: float
    least: float

    @classmethod
    def of(cls, score: str, spread: Spread, columns: tuple[int, int], documents: int) -> ScorePair:
        """The pair from resamples: `columns` of score and baseline, `documents` of the scarcer class (`for_few`)."""
        found = paired_difference(spread, *columns)
        least = for_few(2 / (1 + len(spread.drawn)), documents)
        return cls(score, found.estimate, for_few(found.p, documents), least)


def adjusted(pairs: Sequence[ScorePair], baseline: str, *, measure: Measure) -> tuple[Comparison, ...]:
    """The comparisons of all these pairs, with Holm's correction over them."""
    p = holm([one.p for one in pairs])
    return tuple(
        Comparison(
            one.score, baseline, measure, one.ahead, one.p, corrected, min(1.0, len(pairs) * one.least)
        )
        for one, corrected in zip(pairs, p, strict=True)
    )


def usual_baseline(scores: Sequence[str]) -> str:
    """The score that others are compared with unless one is named: `loss`, or the first where it is missing."""
    return _USUAL_BASELINE if _USUAL_BASELINE in scores else scores[0]


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
