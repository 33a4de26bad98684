"""What the findings say of the scores themselves."""

from __future__ import annotations

from collections.abc import Sequence

from pretrace.scoring.findings.figures import above, best_of, listed, long, percent, short
from pretrace.types import Measured


def headline(scores: Sequence[Measured]) -> list[str]:
    """The best score and what its AUC means."""
    best = best_of(scores)
    if best is None:
        return []
    one = len(scores) == 1
    subject = f"The score {best.name}" if one else f"The best score, {best.name},"
    found = [
        f"{subject} has an AUC of {long(best.auc)}: that is how often it ranks a random member above "
        "a random non-member, 0.50 being chance."
    ]
    if not any(above(row) for row in scores):
        if one:
            found.append("That is not shown to be better than chance.")
        else:
            found.insert(0, "No score is shown to do better than chance on these texts.")
    return found


def reach(scores: Sequence[Measured], *, named: bool) -> list[str]:
    """What the best score finds at few false accusations; with its name where other sentences came between."""
    best = best_of(scores)
    if best is None or not above(best):
        return []
    found = [
        "At a threshold that takes at most 5% of the non-members for members, "
        f"{best.name if named else 'it'} finds {percent(best.tpr)} of the members."
    ]
    if best.auc.low == best.auc.high:
        found.append(
            "Every resample of the documents gives it the same AUC; that interval has no width because "
            "resampling cannot see beyond these texts, and not because the figure is certain."
        )
    return found


def others(scores: Sequence[Measured]) -> list[str]:
    """Scores that point the wrong way and, beside better ones, scores at chance."""
    wrong = [row for row in scores if row.auc.high < 0.5]
    chance = [row.name for row in scores if row.auc.low <= 0.5 <= row.auc.high]
    found = []
    if wrong:
        names = listed([f"{row.name} (AUC {short(row.auc)})" for row in wrong])
        verb = "points" if len(wrong) == 1 else "point"
        found.append(
            f"{names} {verb} the wrong way on these texts: non-members score higher than members. Check that "
            "the labels are not swapped; if they are right, the two sets differ in more than membership."
        )
    if chance and any(above(row) for row in scores):
        verb = "is" if len(chance) == 1 else "are"
        found.append(f"{listed(chance)} {verb} at chance on these texts (95% interval around 0.50).")
    return found


def looks(scores: Sequence[Measured]) -> list[str]:
    """That the best of several was picked by looking."""
    if len(scores) < 2 or not any(above(row) for row in scores):
        return []
    return [
        f"The best of {len(scores)} scores was picked on the very texts it is measured on, so its figures "
        "lean upwards: confirm it on texts that had no part in the choice."
    ]
