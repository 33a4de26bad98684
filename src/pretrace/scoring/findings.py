"""What an evaluation found, in sentences that a lawyer and a researcher can both rely on.

Every sentence says only what the figures carry. "At chance" means that a 95% interval holds 0.5; "does
as well" that the interval of a paired difference does not lie above 0, and "survives the placebo" that it does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pretrace.scoring.control_findings import BLIND, LENGTH, blind, blind_of, labels, length, survival
from pretrace.scoring.figures import above, best_of, counted, listed, long, percent, short
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.statistics.resampling import Difference
from pretrace.types import Evaluation, Measured


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


FEW_NONMEMBERS = 20
"""Non-members below which 5% of them is less than one."""
FEW_FOR_RATES = 60
"""Documents of non-members below which the interval of a true positive rate at 5% false positives is too narrow."""
LOPSIDED = 0.6
"""Share of one class from which on an accuracy needs to be read against it."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the sentences need beside the figures.

    `lead` is the AUC of the best score less that of the blind baseline, None without either; the groups
    are those that hold members and those that hold non-members; `asked` is the number of resamples
    asked for; `blind_note` is what the blind baseline had to say of itself; `placebo` is the name of the
    placebo model; `shuffles` says how often each fitted score was fitted on shuffled labels. `member_weight` and
    `nonmember_weight` say how many documents of equal size the documents of a class are worth
    (`effective_documents`). `partial` are sentences on scores that lack values for some texts.
    """

    lead: Difference | None
    member_groups: int
    nonmember_groups: int
    asked: int
    blind_note: str = ""
    placebo: str = ""
    shuffles: Mapping[str, int] = field(default_factory=dict)
    member_weight: float = math.inf
    nonmember_weight: float = math.inf
    partial: tuple[str, ...] = ()


def effective_documents(
    documents: npt.NDArray[np.int64], members: npt.NDArray[np.bool_]
) -> tuple[float, float]:
    """How many documents of equal size those of the members are worth, and those of the non-members.

    `documents` [texts] numbers the document of each text from 0 on. With n texts in each, (sum of n)² / (sum of
    n²) (Kish 1965, *Survey Sampling*, section 11.7), 0.0 for a class without texts.
    """
    weights = []
    for side in (members, ~members):
        sizes = np.bincount(documents[side]).astype(np.float64)
        weights.append(float(sizes.sum() ** 2 / max(1.0, float(sizes @ sizes))))
    return weights[0], weights[1]


def documents(evaluation: Evaluation, circumstances: Circumstances) -> list[str]:
    """Documents, non-members or resamples that are too few."""
    found = []
    members, nonmembers = circumstances.member_groups, circumstances.nonmember_groups
    fewest = min(members, nonmembers)
    held = f"The members come from {counted(members)}, the non-members from {counted(nonmembers)}"
    if fewest == 1:
        found.append(
            f"{held}: a result on a single document does not hold for others, "
            "and the 95% intervals must not be relied on."
        )
    elif fewest < FEW_DOCUMENTS:
        found.append(f"{held}: with fewer than {FEW_DOCUMENTS} of either the 95% intervals are rough.")
    else:
        found += _giants(circumstances)
    if evaluation.nonmembers < FEW_NONMEMBERS:
        found.append(
            f"With {evaluation.nonmembers} non-members, 5% of them is less than one: "
            "the true positive rate at 5% false positives allows no false positive at all."
        )
    elif 1 < nonmembers < FEW_FOR_RATES:
        found.append(
            f"With {counted(nonmembers)} of non-members, where the threshold for 5% false positives lies is hardly "
            "known: new non-members may pass it more often than 5%, and the 95% interval of the true positive "
            f"rate is too narrow. {FEW_FOR_RATES} documents or more would mend that."
        )
    if evaluation.resamples < circumstances.asked:
        found.append(
            f"The 95% intervals rest on {evaluation.resamples:,} resamples instead of "
            f"{circumstances.asked:,}, for there are many texts."
        )
    return found


def _giants(circumstances: Circumstances) -> list[str]:
    """Classes whose documents are many, but of which a few hold most of the texts."""
    sides = (
        ("members", circumstances.member_groups, circumstances.member_weight),
        ("non-members", circumstances.nonmember_groups, circumstances.nonmember_weight),
    )
    return [
        f"A few large documents dominate the {name}: by the number of their texts, the {counted(groups)} are worth "
        f"about {max(1, round(weight))} of equal size. The 95% intervals are then too narrow; use fewer texts of "
        "each large document."
        for name, groups, weight in sides
        if weight < FEW_DOCUMENTS
    ]


def accuracies(evaluation: Evaluation) -> list[str]:
    """What an accuracy has to be read against."""
    found = []
    texts = evaluation.members + evaluation.nonmembers
    if not evaluation.validation:
        found.append(
            "No documents were set aside for choosing thresholds: each accuracy is measured on the texts its "
            "threshold was chosen on, and leans upwards."
        )
    larger = max(evaluation.members, evaluation.nonmembers) / texts
    if larger >= LOPSIDED:
        kind = "members" if evaluation.members > evaluation.nonmembers else "non-members"
        found.append(
            f"{larger:.0%} of the texts are {kind}: an accuracy means something only above {larger:.2f}, "
            f"which calling every text one of the {kind} would reach."
        )
    return found


__all__ = ["BLIND", "LENGTH", "Circumstances", "best_of", "blind_of", "sentences"]


def sentences(evaluation: Evaluation, circumstances: Circumstances) -> tuple[str, ...]:
    """The findings of an evaluation, the most important first."""
    rows = evaluation.rows
    scores = [row for row in rows if row.kind == "score"]
    bag = blind_of(rows)
    survived = survival(rows, circumstances.placebo)
    found = [
        *headline(scores),
        *survived,
        *reach(scores, named=bool(survived)),
        *(blind(bag, best_of(scores), circumstances.lead) if bag else ()),
        circumstances.blind_note,
        *length(rows),
        *labels(rows, circumstances.shuffles),
        *others(scores),
        *looks(scores),
        *circumstances.partial,
        *documents(evaluation, circumstances),
        *accuracies(evaluation),
    ]
    return tuple(sentence for sentence in found if sentence)
