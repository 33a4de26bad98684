"""From a run to what it is worth: every score and the blind controls, measured on the same texts.

AUC and true positive rates are measured on all texts. Accuracy needs a threshold: it is chosen on a
validation split of whole documents, and the accuracy is measured on the others. Where documents are too
few for both parts to hold members and non-members, thresholds are chosen and accuracies measured on all
texts; `validation` is then 0 and a finding says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import require
from pretrace.statistics import blind as baseline
from pretrace.statistics.findings import BLIND, LENGTH, Circumstances, best_of, blind_of, sentences
from pretrace.statistics.resampling import Bootstrap, Calls, Difference, group_bootstrap, paired_difference
from pretrace.statistics.roc import Bools, best_threshold, roc_curve
from pretrace.statistics.splits import MEMBERS, NONMEMBERS, Grouping, grouped_split
from pretrace.types import Doubles, Evaluation, Measured, Run


def evaluate(
    run: Run,
    texts: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = 1000,
    validation: float = 0.2,
    blind: bool = True,
) -> Evaluation:
    """How well each score of a run told members from non-members, with the blind baseline beside them.

    `texts[i]` is the text of row i. `validation` is the share of texts thresholds are chosen on, 0 for
    all of them. Intervals are 95%, from resampling documents. TextsError when labels are missing or of
    one class, ExpressionError when a score is not a finite number for every text.
    """
    require(0 <= validation < 1, f"the validation share lies between 0 and 1, found {validation}.")
    members = _checked(run, texts)
    groups = [group or name for group, name in zip(run.groups, run.ids, strict=True)]
    judged = baseline.bag_of_words(texts, members, groups, seed=seed) if blind else None
    matrix, names = _beside_controls(run, texts, judged)
    calls, chosen_on = _calls(matrix, members, groups, share=validation, seed=seed)
    bootstrap = group_bootstrap(matrix, members, groups=groups, calls=calls, seed=seed, resamples=resamples)
    if BLIND in names[len(run.scores) :]:
        # A cross-fitted classifier varies more than its fixed predictions do: see blind.WIDENING.
        bootstrap = bootstrap.widened(len(run.scores), baseline.WIDENING)
    grouping = Grouping.of(groups, members)
    evaluation = Evaluation(
        rows=_rows(_kinds(names, run), matrix, members, calls=calls, bootstrap=bootstrap),
        members=int(np.count_nonzero(members)),
        nonmembers=int(np.count_nonzero(~members)),
        groups=len(grouping),
        resamples=bootstrap.resamples,
        validation=chosen_on,
    )
    circumstances = Circumstances(
        lead=_lead(evaluation, bootstrap),
        member_groups=grouping.holding(MEMBERS),
        nonmember_groups=grouping.holding(NONMEMBERS),
        asked=resamples,
        blind_note=_note(judged),
    )
    return replace(evaluation, findings=sentences(evaluation, circumstances))


def _beside_controls(
    run: Run, texts: Sequence[str], judged: baseline.Blind | None
) -> tuple[Doubles, list[str]]:
    """The run's scores and then the controls that were wanted: columns [texts, scores + controls], names."""
    controls: dict[str, Doubles] = {}
    if judged is not None:
        if judged.scores is not None:
            controls[BLIND] = judged.scores
        controls[LENGTH] = np.array([len(text) for text in texts], dtype=np.float64)
    return np.column_stack((run.matrix, *controls.values())), [*run.scores, *controls]


def _lead(evaluation: Evaluation, bootstrap: Bootstrap) -> Difference | None:
    """How far the best score is ahead of the blind baseline; rows and columns are in the same order."""
    best, blind = best_of(evaluation.rows), blind_of(evaluation.rows)
    if best is None or blind is None:
        return None
    return paired_difference(bootstrap.auc, evaluation.rows.index(best), evaluation.rows.index(blind))


def _checked(run: Run, texts: Sequence[str]) -> Bools:
    """The labels, once everything an evaluation rests on is seen to be there."""
    if len(texts) != len(run.ids):
        raise TextsError(
            f"wanted the text of each of the {len(run.ids):,} rows of the run, found {len(texts):,}; "
            "pass the texts the run was made from, without the skipped ones."
        )
    unknown = sum(member is None for member in run.members)
    if unknown or not run.members:
        raise TextsError(
            "an evaluation compares known members with known non-members, and "
            f"{unknown:,} of {len(run.members):,} texts have no label; add a label to each or leave them out."
        )
    members = np.array(run.members, dtype=bool)
    if members.all() or not members.any():
        has, lacks = ("members", "non-members") if members.any() else ("non-members", "members")
        raise TextsError(
            f"an evaluation needs members and non-members, and all {len(members):,} texts are {has}; "
            f"add known {lacks} of the same kind and date."
        )
    wrong = np.argwhere(~np.isfinite(run.matrix))
    if len(wrong):
        row, column = wrong[0]
        raise ExpressionError(
            f"{run.scores[column]} gave {run.matrix[row, column]} for the text {run.ids[row]!r} "
            f"({len(wrong):,} such values in all); a score must be a finite number for every text: "
            "mend the score or leave it out."
        )
    return members


def _note(judged: baseline.Blind | None) -> str:
    if judged is None:
        return (
            "The blind baseline was left out: without it nobody can tell whether the scores see what the "
            "model was trained on, or only that the two sets differ as texts."
        )
    return judged.note if judged.scores is not None else f"There is no blind baseline: {judged.note}"


def _calls(
    matrix: Doubles, members: Bools, groups: Sequence[str], *, share: float, seed: int
) -> tuple[Calls, int]:
    """A threshold a column, the texts to measure accuracy on, and how many the thresholds were chosen on."""
    chosen = (
        grouped_split(groups, share, seed, labels=members) if share else np.zeros(len(members), dtype=bool)
    )
    apart = all(len(np.unique(members[part])) == 2 for part in (chosen, ~chosen))
    if not apart:
        chosen = np.ones(len(members), dtype=bool)
    thresholds = np.array([best_threshold(column, members[chosen]) for column in matrix[chosen].T])
    tested = ~chosen if apart else chosen
    return Calls(thresholds, tested), int(np.count_nonzero(chosen)) if apart else 0


def _kinds(names: Sequence[str], run: Run) -> list[tuple[str, str]]:
    """Each column's name with its kind: the run's scores, then the controls."""
    return [(name, "score" if k < len(run.scores) else "blind") for k, name in enumerate(names)]


def _rows(
    names: Sequence[tuple[str, str]],
    matrix: Doubles,
    members: Bools,
    *,
    calls: Calls,
    bootstrap: Bootstrap,
) -> tuple[Measured, ...]:
    assert bootstrap.accuracy is not None  # thresholds were given
    return tuple(
        Measured(
            name=name,
            kind=kind,
            auc=bootstrap.auc.estimate(k),
            tpr=bootstrap.tpr.estimate(k),
            accuracy=bootstrap.accuracy.estimate(k),
            threshold=float(calls.thresholds[k]),
            curve=roc_curve(matrix[:, k], members),
            tpr_low=bootstrap.low_tpr.estimate(k) if bootstrap.low_tpr else None,
        )
        for k, (name, kind) in enumerate(names)
    )
