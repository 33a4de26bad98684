"""What an evaluation found, in sentences that a lawyer and a researcher can both lean on.

Every sentence says only what the figures carry. "At chance" means that a 95% interval holds 0.5; "does
as well" that the interval of a paired difference does not lie above 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrace.statistics.resampling import Difference
from pretrace.types import Estimate, Evaluation, Measured

BLIND = "bag of words"
LENGTH = "text length"
"""The controls by their names in the table: a classifier of words, and the number of characters."""
FEW_GROUPS = 20
"""Documents of a class below which a 95% interval is rough."""
FEW_NONMEMBERS = 20
"""Non-members below which 5% of them is less than one."""
WIDE = 0.6
"""Upper end of the blind baseline's interval above which its being at chance says little."""
LOPSIDED = 0.6
"""Share of one class from which on an accuracy needs to be read against it."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the sentences need beside the figures.

    `lead` is the AUC of the best score less that of the blind baseline, None without either; the groups
    are those that hold members and those that hold non-members; `asked` is the number of resamples
    asked for; `blind_note` is what the blind baseline had to say of itself.
    """

    lead: Difference | None
    member_groups: int
    nonmember_groups: int
    asked: int
    blind_note: str = ""


def sentences(evaluation: Evaluation, circumstances: Circumstances) -> tuple[str, ...]:
    """The findings of an evaluation, the most important first."""
    scores = [row for row in evaluation.rows if row.kind == "score"]
    blind = blind_of(evaluation.rows)
    found = [
        *_best(scores),
        *(_blind(blind, best_of(scores), circumstances.lead) if blind else ()),
        circumstances.blind_note,
        *_length(evaluation.rows),
        *_others(scores),
        *_looks(scores),
        *_documents(evaluation, circumstances),
        *_accuracies(evaluation),
    ]
    return tuple(sentence for sentence in found if sentence)


def best_of(rows: Sequence[Measured]) -> Measured | None:
    """The score with the highest AUC, the first of them in a tie; None without scores."""
    return max((row for row in rows if row.kind == "score"), key=lambda row: row.auc.value, default=None)


def _best(scores: Sequence[Measured]) -> list[str]:
    best = best_of(scores)
    if best is None:
        return []
    one = len(scores) == 1
    subject = f"The score {best.name}" if one else f"The best score, {best.name},"
    found = [
        f"{subject} has an AUC of {_long(best.auc)}: that is how often it ranks a random member above "
        "a random non-member, 0.50 being chance."
    ]
    if _above(best):
        found.append(
            "At a threshold that takes at most 5% of the non-members for members, "
            f"it finds {_percent(best.tpr)} of the members."
        )
        if best.auc.low == best.auc.high:
            found.append(
                "Every resample of the documents gives it the same AUC; that interval has no width because "
                "resampling cannot see beyond these texts, and not because the figure is certain."
            )
    elif one:
        found.append("That is not shown to be better than chance.")
    elif not any(_above(row) for row in scores):
        found.insert(0, "No score is shown to do better than chance on these texts.")
    return found


def blind_of(rows: Sequence[Measured]) -> Measured | None:
    """The row of the blind classifier, None where there is none."""
    return next((row for row in rows if row.kind == "blind" and row.name == BLIND), None)


def _length(rows: Sequence[Measured]) -> list[str]:
    """Said only where length tells the sides apart: many scores depend on it."""
    found = next((row for row in rows if row.kind == "blind" and row.name == LENGTH), None)
    if found is None or found.auc.low <= 0.5 <= found.auc.high:
        return []
    word = "longer" if found.auc.value > 0.5 else "shorter"
    return [
        f"Members are {word} than non-members (AUC of the text length {_short(found.auc)}): a score that depends "
        "on length may see no more than that. Compare texts of similar length."
    ]


def _blind(blind: Measured, best: Measured | None, lead: Difference | None) -> list[str]:
    known = f"AUC {_short(blind.auc)}"
    if blind.auc.high < 0.5:
        return [
            f"The blind classifier, bag of words, falls below chance ({known}), which happens when documents are "
            "few or each unlike the rest; it speaks neither for nor against the scores."
        ]
    succeeds = best is not None and _above(best) and lead is not None
    if not _above(blind):
        return [_blind_at_chance(blind, lead if succeeds else None)]
    opening = "A bag-of-words classifier that never saw the model"
    if not succeeds or lead is None:
        return [
            f"{opening} does tell the two sets apart ({known}): members and non-members differ as texts, "
            "whatever the model was trained on."
        ]
    if lead.estimate.low > 0:
        return [
            f"{opening} tells the two sets apart too ({known}): they differ as texts, and some of the scores' "
            f"success may come from that. The best score is ahead of it by {_ahead(lead.estimate)}."
        ]
    verb = "better" if lead.estimate.high < 0 else "as well" if lead.estimate.value <= 0 else "about as well"
    return [
        f"{opening} does {verb} ({known}): on these texts a high score says that members and non-members "
        "differ as texts, not that the model was trained on the members."
    ]


def _blind_at_chance(blind: Measured, lead: Difference | None) -> str:
    opening = f"The blind classifier, bag of words, is at chance (AUC {_short(blind.auc)}): "
    if lead is None:
        found = opening + "no difference in words was found between the two sets"
        return found + (", though these texts are too few to rule one out." if blind.auc.high > WIDE else ".")
    if lead.estimate.low > 0:
        return (
            opening + "no difference in words was found between the two sets, so the scores' success is "
            "not explained by their words."
        )
    return (
        opening + "but the best score is not surely ahead of it "
        f"(by {_ahead(lead.estimate)}); more documents are needed to rule out that words explain it."
    )


def _others(scores: Sequence[Measured]) -> list[str]:
    best = best_of(scores)
    wrong = [row for row in scores if row.auc.high < 0.5]
    chance = [row.name for row in scores if row.auc.low <= 0.5 <= row.auc.high]
    found = []
    if wrong:
        names = _listed([f"{row.name} (AUC {_short(row.auc)})" for row in wrong])
        verb = "points" if len(wrong) == 1 else "point"
        found.append(
            f"{names} {verb} the wrong way on these texts: non-members score higher than members. Check that "
            "the labels are not swapped; if they are right, the two sets differ in more than membership."
        )
    if chance and best is not None and any(_above(row) for row in scores):
        verb = "is" if len(chance) == 1 else "are"
        found.append(f"{_listed(chance)} {verb} at chance on these texts (95% interval around 0.50).")
    return found


def _looks(scores: Sequence[Measured]) -> list[str]:
    if len(scores) < 2 or not any(_above(row) for row in scores):
        return []
    return [
        f"The best of {len(scores)} scores was picked on the very texts it is measured on, so its figures "
        "lean upwards: confirm it on texts that had no part in the choice."
    ]


def _documents(evaluation: Evaluation, circumstances: Circumstances) -> list[str]:
    found = []
    members, nonmembers = circumstances.member_groups, circumstances.nonmember_groups
    fewest = min(members, nonmembers)
    held = f"The members come from {_counted(members)}, the non-members from {_counted(nonmembers)}"
    if fewest == 1:
        found.append(
            f"{held}: what a single document shows cannot be carried over to others, "
            "and the 95% intervals must not be relied on."
        )
    elif fewest < FEW_GROUPS:
        found.append(f"{held}: with fewer than {FEW_GROUPS} of either the 95% intervals are rough.")
    if evaluation.nonmembers < FEW_NONMEMBERS:
        found.append(
            f"With {evaluation.nonmembers} non-members, 5% of them is less than one: "
            "the true positive rate at 5% false positives allows no false positive at all."
        )
    if evaluation.resamples < circumstances.asked:
        found.append(
            f"The 95% intervals rest on {evaluation.resamples:,} resamples instead of "
            f"{circumstances.asked:,}, for there are many texts."
        )
    return found


def _accuracies(evaluation: Evaluation) -> list[str]:
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


def _above(row: Measured) -> bool:
    return row.auc.low > 0.5


def _long(figure: Estimate) -> str:
    value, low, high = _shown(figure, edges=(0.5, 1.0))
    return f"{value} (95% interval {low} to {high})"


def _short(figure: Estimate) -> str:
    return "{}, {} to {}".format(*_shown(figure, edges=(0.5, 1.0)))


def _ahead(figure: Estimate) -> str:
    return "{}, {} to {}".format(*_shown(figure, edges=(0.0,)))


def _shown(figure: Estimate, *, edges: Sequence[float]) -> list[str]:
    """Two decimals, and up to two more where rounding would put a number on an edge it only comes near."""
    shown = []
    for number in (figure.value, figure.low, figure.high):
        places = 2
        while places < 4 and any(round(number, places) == edge != number for edge in edges):
            places += 1
        shown.append(f"{round(number, places) + 0.0:.{places}f}".replace("-", "−"))  # + 0.0: no minus zero
    return shown


def _percent(figure: Estimate) -> str:
    return f"{figure.value:.0%} ({figure.low:.0%} to {figure.high:.0%})"


def _counted(documents: int) -> str:
    return "1 document" if documents == 1 else f"{documents:,} documents"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
