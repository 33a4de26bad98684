"""Controls beside the scores: the placebo, and reference texts whose labels were shuffled.

A placebo is a model that never saw the members. What a score reaches there it reaches without
membership, so only its lead on the target over the placebo can come from training on the members.
A score fitted on shuffled labels shows what fitting alone reaches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrace.registry import require
from pretrace.statistics.resampling import FPR, LOW_FPR, LOW_FPR_NONMEMBERS
from pretrace.statistics.roc import RankedScores, accuracy, best_threshold, roc_curve
from pretrace.types import Bools, Control, Doubles, Estimate, Measured, Run, Survival

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


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdDivision:
    """Texts that thresholds are chosen on, and accuracy is measured on; not `apart` where both are all texts."""

    chosen: Bools
    tested: Bools
    apart: bool

    @property
    def held_out(self) -> int:
        """How many texts thresholds are chosen on and accuracy is not measured on; 0 where both are all texts."""
        return int(np.count_nonzero(self.chosen)) if self.apart else 0

    def within(self, texts: Bools, members: Bools) -> ThresholdDivision:
        """The division of these texts alone; all of them for both where a part would lack one of the classes."""
        if texts.all():
            return self
        parts = (self.chosen[texts], self.tested[texts])
        if all(len(np.unique(members[texts][part])) == 2 for part in parts):
            return ThresholdDivision(*parts, self.apart)
        whole = np.ones(int(np.count_nonzero(texts)), dtype=bool)
        return ThresholdDivision(whole, whole, False)


def check_controls(run: Run) -> None:
    """ExpressionError unless every control is a finite number a text of one of the scores."""
    for control in run.controls:
        what, shape = f"the {control.kind} control of {control.score}", control.values.shape
        known = control.kind in (PLACEBO, SHUFFLED) and control.score in run.scores
        fits = len(shape) == 2 and shape[0] == len(run.ids) and (shape[1] == 1 or control.kind == SHUFFLED)
        require(
            known and fits,
            f"wanted a {PLACEBO} or {SHUFFLED} control of one of the run's scores, with a row a text "
            f"({len(run.ids):,}) and a column a repeat (a placebo a single one), found {what}, an array of {shape}; "
            "make the run again.",
        )
        finite = bool((np.isfinite(control.values) | run.lacks(control.score)[:, None]).all())
        require(finite, f"{what} is not a finite number for every text: mend the score or leave it out.")
    pairs = [(control.score, control.kind) for control in run.controls]
    twice = len(set(pairs)) != len(pairs)
    require(not twice, "wanted one control of a kind a score, found two; leave one of them out.")


def placebos(run: Run) -> dict[str, Doubles]:
    """What each score gave on the placebo, [texts], by its name, in the scores' order."""
    return {control.score: control.values[:, 0] for control in _of_kind(run, PLACEBO)}


def shuffles(run: Run) -> dict[str, int]:
    """How often each fitted score was fitted on shuffled labels, by its name."""
    return {control.score: control.values.shape[1] for control in _of_kind(run, SHUFFLED)}


def shuffled_rows(run: Run, members: Bools, division: ThresholdDivision) -> tuple[Measured, ...]:
    """One row a score fitted on shuffled labels: median and range of the repeats, curve of the middle one."""
    found = []
    for control in _of_kind(run, SHUFFLED):
        texts = np.asarray(np.isfinite(control.values).all(axis=1))
        if control.values.shape[1] and len(np.unique(members[texts])) == 2:
            part = division.within(texts, members)
            found.append(_shuffled(control.score, control.values[texts], members[texts], part))
    return tuple(found)


def _of_kind(run: Run, kind: str) -> list[Control]:
    found = [control for control in run.controls if control.kind == kind]
    return sorted(found, key=lambda control: run.scores.index(control.score))


def _shuffled(name: str, values: Doubles, members: Bools, division: ThresholdDivision) -> Measured:
    rates = (FPR, LOW_FPR) if np.count_nonzero(~members) >= LOW_FPR_NONMEMBERS else (FPR,)
    once = np.ones((1, len(members)), dtype=np.float32)
    figures = np.concatenate([RankedScores.of(column, members).figures(once, rates) for column in values.T])
    chosen, tested = division.chosen, division.tested
    thresholds = [best_threshold(column[chosen], members[chosen]) for column in values.T]
    calls = [
        accuracy(column[tested], members[tested], threshold)
        for column, threshold in zip(values.T, thresholds, strict=True)
    ]
    middle = int(np.argsort(figures[:, 0], kind="stable")[(len(figures) - 1) // 2])
    return Measured(
        name=name,
        kind=SHUFFLED,
        auc=_range(figures[:, 0]),
        tpr=_range(figures[:, 1]),
        accuracy=_range(np.array(calls)),
        threshold=thresholds[middle],
        curve=roc_curve(values[:, middle], members),
        tpr_low=_range(figures[:, 2]) if len(rates) > 1 else None,
        texts=len(members),
    )


def _range(repeats: Doubles) -> Estimate:
    return Estimate(float(np.median(repeats)), float(repeats.min()), float(repeats.max()))
