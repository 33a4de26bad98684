"""What the findings say of the baselines that never saw the model: words, and length."""

from __future__ import annotations

from collections.abc import Sequence

from pretrace.scoring.findings.figures import above, ahead, short
from pretrace.statistics.resampling import Difference
from pretrace.types import Measured

BLIND = "bag of words"
LENGTH = "text length"
"""The baselines by their names in the table: a classifier of words, and the number of characters."""
WIDE = 0.6
"""Upper end of the blind baseline's interval above which its being at chance says little."""


def blind_of(rows: Sequence[Measured]) -> Measured | None:
    """The row of the blind classifier, None where there is none."""
    return next((row for row in rows if row.kind == "blind" and row.name == BLIND), None)


def length(rows: Sequence[Measured]) -> list[str]:
    """Said only where length tells the sides apart: many scores depend on it."""
    found = next((row for row in rows if row.kind == "blind" and row.name == LENGTH), None)
    if found is None or found.auc.low <= 0.5 <= found.auc.high:
        return []
    word = "longer" if found.auc.value > 0.5 else "shorter"
    return [
        f"Members are {word} than non-members (AUC of the text length {short(found.auc)}): a score that depends "
        "on length may see no more than that. Compare texts of similar length."
    ]


def blind(blind: Measured, best: Measured | None, lead: Difference | None) -> list[str]:
    """What a classifier of words reaches, and what that leaves of the best score's success."""
    known = f"AUC {short(blind.auc)}"
    if blind.auc.high < 0.5:
        return [
            f"The blind classifier, bag of words, falls below chance ({known}), which happens when documents are "
            "few or each unlike the rest; it speaks neither for nor against the scores."
        ]
    succeeds = best is not None and above(best) and lead is not None
    if not above(blind):
        return [blind_at_chance(blind, lead if succeeds else None)]
    opening = "A bag-of-words classifier that never saw the model"
    if not succeeds or lead is None:
        return [
            f"{opening} does tell the two sets apart ({known}): members and non-members differ as texts, "
            "whatever the model was trained on."
        ]
    if lead.estimate.low > 0:
        return [
            f"{opening} tells the two sets apart too ({known}): they differ as texts, and some of the scores' "
            f"success may come from that. The best score is ahead of it by {ahead(lead.estimate)}."
        ]
    verb = "better" if lead.estimate.high < 0 else "as well" if lead.estimate.value <= 0 else "about as well"
    return [
        f"{opening} does {verb} ({known}): on these texts a high score says that members and non-members "
        "differ as texts, not that the model was trained on the members."
    ]


def blind_at_chance(blind: Measured, lead: Difference | None) -> str:
    opening = f"The blind classifier, bag of words, is at chance (AUC {short(blind.auc)}): "
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
        f"(by {ahead(lead.estimate)}); more documents are needed to rule out that words explain it."
    )
