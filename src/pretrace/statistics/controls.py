"""Controls beside the scores: the placebo, and reference texts whose labels were shuffled.

A placebo is a model that never saw the members. What a score reaches there it reaches without
membership, so only its lead on the target over the placebo can come from training on the members.
A score fitted on shuffled labels shows what fitting alone reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pretrace.registry import require
from pretrace.statistics.resampling import FPR, LOW_FPR, LOW_FPR_NONMEMBERS
from pretrace.statistics.roc import RankedScores, accuracy, best_threshold, roc_curve
from pretrace.types import Bools, Doubles, Estimate, Measured, Run, Survival

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
        called = accuracy(column[tested], members[tested], threshold)
        repeats.append((threshold, called, *RankedScores.of(column, members).figures(once, rates)[0]))
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
