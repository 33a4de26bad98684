"""What comes out: estimates, evaluations, runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pretrace.types.arrays import Doubles, Ints


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95% interval; without an interval `low` and `high` equal `value`. Never NaN."""

    value: float
    low: float
    high: float

    @property
    def excludes(self) -> float:
        """Distance of the interval from 0.5: positive where it excludes chance for an AUC."""
        return max(self.low - 0.5, 0.5 - self.high)


@dataclass(frozen=True, slots=True)
class Curve:
    """A ROC curve, thinned to at most a few hundred points: false and true positive rates, both rising."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """One row of an evaluation: a score, or a control that stands beside the scores.

    `kind` is "score", "blind" (a classifier that never saw the model), "placebo" (the score of that name
    on a model that never saw the members) or "shuffled" (the score of that name fitted on reference texts
    whose labels were shuffled: its AUC is the median of the repeats, from the lowest to the highest).
    `tpr_low` is the true positive rate at 0.1% false positives, None below 10,000 non-members. `lead`, of a
    placebo's row, is how far the score's AUC on the target exceeds this one, from the same resamples.
    """

    name: str
    kind: str
    auc: Estimate
    tpr: Estimate
    accuracy: Estimate
    threshold: float
    curve: Curve
    tpr_low: Estimate | None = None
    lead: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well each score told members from non-members, beside the controls."""

    rows: tuple[Measured, ...]
    members: int
    nonmembers: int
    groups: int
    resamples: int
    validation: int
    """Texts the accuracy thresholds were chosen on; accuracy is measured on the others."""
    findings: tuple[str, ...] = ()
    """Plain sentences a report prints first."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A text without a score, and why."""

    id: str
    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Heat:
    """One text as coloured tokens: `pieces` concatenate to the part that was read, `logp[i]` belongs to
    `pieces[i]` and is None where the model predicted nothing (the first token without a start token)."""

    id: str
    pieces: tuple[str, ...]
    logp: tuple[float | None, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """What a detector says without the thing it claims to see: `kind` "placebo" is the score on a model
    that never saw the members, "shuffled" the score fitted on reference texts with shuffled labels.
    `values` is float64 [texts, repeats], row i is the run's text i."""

    score: str
    kind: str
    values: Doubles


@dataclass(frozen=True, slots=True)
class Run:
    """What `detect` returns and `report` reads: row i of every array is text i.

    `matrix` is float64 [texts, scores] and finite everywhere; texts that could not be scored are in
    `skipped` and have no row. `settings` is what run.json records.
    """

    corpus: str
    ids: tuple[str, ...]
    groups: tuple[str, ...]
    members: tuple[bool | None, ...]
    tokens: Ints
    cut: Ints
    scores: tuple[str, ...]
    matrix: Doubles
    skipped: tuple[Skipped, ...] = ()
    heat: tuple[Heat, ...] = ()
    evaluation: Evaluation | None = None
    controls: tuple[Control, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def column(self, score: str) -> Doubles:
        """One score of every text, in row order, shape [texts]."""
        return np.asarray(self.matrix[:, self.scores.index(score)])

    @property
    def labelled(self) -> bool:
        """Whether every row is a known member or a known non-member."""
        return bool(self.members) and all(member is not None for member in self.members)
