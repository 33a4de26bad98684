"""What the findings say of the controls: words, length, the placebo, and shuffled labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pretrace.scoring.figures import above, ahead, listed, short, shown
from pretrace.statistics.controls import ENOUGH_SHUFFLES, PLACEBO, SHUFFLED, survives
from pretrace.statistics.resampling import Difference
from pretrace.types import Estimate, Measured

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


MOST = 5
"""Scores that a sentence names; the table has all."""
_MEANING = "A detector that does as well on the placebo as on the target detects the domain, not membership."

Pair = tuple[Measured, Measured]
"""A score's row, and its control's."""


def survival(rows: Sequence[Measured], name: str) -> list[str]:
    """Which scores above chance keep a lead over the placebo, called `name`, and which do not.

    Nothing without a placebo, or where no score is above chance.
    """
    pairs = [(row, other) for row, other in _paired(rows, PLACEBO) if above(row) and other.lead]
    if not pairs:
        return []
    kept, lost, unsure = (
        [pair for pair in pairs if survives(*pair) == found] for found in ("yes", "no", "not shown")
    )
    where = f"On {name or 'the placebo'}, a model that never saw the members,"
    if not kept:
        return [" ".join([_denied(pairs, rows, sure=not unsure), *_fallen(lost, unsure, where)])]
    found = [
        f"{_share(kept, pairs)} the placebo. {where} {_falls(kept)}. As far as the two models are otherwise "
        "alike, the domain of the texts does not explain that difference."
    ]
    if lost or unsure:
        found.append(" ".join(_fallen(lost, unsure, "On the placebo")))
    return found


def labels(rows: Sequence[Measured], shuffles: Mapping[str, int]) -> list[str]:
    """Whether the scores that were fitted on labelled texts needed those labels; `shuffles` is how often
    each was fitted on shuffled ones."""
    pairs = _paired(rows, SHUFFLED)
    without = [(row, other) for row, other in pairs if row.auc.value <= other.auc.high]
    needing = [(row, other) for row, other in pairs if row.auc.value > other.auc.high and above(row)]
    found = []
    opening = "Fitted again on reference texts whose labels were shuffled,"
    if without:
        does, it = ("does", "it") if len(without) == 1 else ("do", "them")
        found.append(
            f"{opening} {_ranges(without, shuffles)} {does} as well at least once: "
            f"there is no sign that the labels of the reference mattered to {it}."
        )
    if needing:
        does = "does" if len(needing) == 1 else "do"
        few = min(shuffles.get(row.name, 0) for row, _ in needing) < ENOUGH_SHUFFLES
        ending = "with so few repeats that may be chance" if few else "the labels of the reference matter"
        found.append(f"{opening} {_ranges(needing, shuffles)} never {does} as well: {ending}.")
    return found


def _paired(rows: Sequence[Measured], kind: str) -> list[Pair]:
    """Each score that has a control of the kind, with that control, in the scores' order."""
    controls = {row.name: row for row in rows if row.kind == kind}
    return [(row, controls[row.name]) for row in rows if row.kind == "score" and row.name in controls]


def _denied(pairs: Sequence[Pair], rows: Sequence[Measured], *, sure: bool) -> str:
    """That none survives: the only score by its name, else all that were tried."""
    scores = [row for row in rows if row.kind == "score"]
    if len(scores) == 1:
        return f"{scores[0].name} {'does not' if sure else 'is not shown to'} survive the placebo."
    tried = len(pairs) == sum(above(row) for row in scores)
    subject = "No score" if tried else "No score that was tried on it"
    return f"{subject} {'survives' if sure else 'is shown to survive'} the placebo."


def _share(kept: Sequence[Pair], pairs: Sequence[Pair]) -> str:
    if len(pairs) == 1:
        return f"{kept[0][0].name} survives"
    if len(kept) == len(pairs):
        return f"All {len(pairs)} scores above chance survive"
    return f"{len(kept)} of {len(pairs)} scores above chance survive{'s' if len(kept) == 1 else ''}"


def _fallen(lost: Sequence[Pair], unsure: Sequence[Pair], where: str) -> list[str]:
    """What the scores that are not shown to survive reach, beginning with `where`, and what that means."""
    found = []
    if lost:
        named = [
            f"{row.name} (AUC {_figure(other)} there, {_figure(row)} on the target)" for row, other in lost
        ]
        does = "does" if len(lost) == 1 else "do"
        found.append(f"{where} {_with_rest(named[:MOST], len(lost) - MOST)} {does} as well. {_MEANING}")
        where = "On the placebo"
    if unsure:
        found.append(f"{where} {_falls(unsure)}, which may be chance; more documents would tell.")
    return found


def _falls(pairs: Sequence[Pair]) -> str:
    """By how much the AUCs fall from the target to the placebo, the largest fall first."""
    leads = sorted(((_lead(pair), pair[0].name) for pair in pairs), key=lambda one: -one[0].value)
    falls: list[str] = []
    for lead, name in leads[:MOST]:
        value, low, high = shown(lead, edges=(0.0,))
        what, interval = ("that of", "") if falls else ("the AUC of", "95% interval ")
        falls.append(f"{what} {name}{'' if falls else ' falls'} by {value} ({interval}{low} to {high})")
    more = len(leads) - MOST
    return listed(
        [*falls, *([f"{'that' if more == 1 else 'those'} of {_others(more)} too"] if more > 0 else [])]
    )


def _ranges(pairs: Sequence[Pair], shuffles: Mapping[str, int]) -> str:
    named = []
    for row, other in pairs[:MOST]:
        repeats = shuffles.get(row.name, 0)
        low, high = (shown(Estimate(v, v, v), edges=(0.5, 1.0))[0] for v in (other.auc.low, other.auc.high))
        times = f" in {repeats:,} repeats" if repeats > 1 else ""
        reached = f"{low} to {high}{times}" if low != high else f"{high}{times}"
        named.append(f"{row.name} (AUC {_figure(row)} with the true labels, {reached})")
    return _with_rest(named, len(pairs) - MOST)


def _with_rest(named: Sequence[str], more: int) -> str:
    return listed([*named, _others(more)] if more > 0 else named)


def _others(more: int) -> str:
    return f"{more} other{'' if more == 1 else 's'}"


def _figure(row: Measured) -> str:
    return shown(row.auc, edges=(0.5, 1.0))[0]


def _lead(pair: Pair) -> Estimate:
    lead = pair[1].lead
    assert lead is not None  # those without were left out
    return lead
