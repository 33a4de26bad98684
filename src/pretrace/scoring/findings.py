"""What an evaluation found, in sentences that a lawyer and a researcher can both rely on.

Every sentence says only what the figures carry. "At chance" means that a 95% interval holds 0.5; "does
as well" that the interval of a paired difference does not lie above 0, and "survives the placebo" that it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pretrace.results.rounding import plural
from pretrace.statistics.controls import ENOUGH_SHUFFLES, PLACEBO, SHUFFLED, survives
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.statistics.resampling import PairedDifference
from pretrace.types import Estimate, Evaluation, Measured


def best_of(rows: Sequence[Measured]) -> Measured | None:
    """The score with the highest AUC, the first of them in a tie; None without scores."""
    return max((row for row in rows if row.kind == "score"), key=lambda row: row.auc.value, default=None)


def above(row: Measured) -> bool:
    """Whether the AUC is shown to be better than chance."""
    return row.auc.low > 0.5


def long(figure: Estimate) -> str:
    """An AUC in a sentence that explains its interval."""
    value, low, high = shown(figure, edges=(0.5, 1.0))
    return f"{value} (95% interval {low} to {high})"


def short(figure: Estimate, *edges: float) -> str:
    """Write an AUC, or a difference whose edge is 0, with its interval."""
    return "{}, {} to {}".format(*shown(figure, edges=edges or (0.5, 1.0)))


def shown(figure: Estimate, *, edges: Sequence[float]) -> list[str]:
    """Two decimals, and up to two more where rounding would put a number on an edge it only comes near."""
    shown = []
    for number in (figure.value, figure.low, figure.high):
        places = 2
        while places < 4 and any(round(number, places) == edge != number for edge in edges):
            places += 1
        shown.append(f"{round(number, places) + 0.0:.{places}f}".replace("-", "−"))  # + 0.0: no minus zero
    return shown


def percent(figure: Estimate) -> str:
    """A rate with its interval, in whole percent."""
    return f"{figure.value:.0%} ({figure.low:.0%} to {figure.high:.0%})"


def listed(names: Sequence[str]) -> str:
    """Names as an enumeration; at least one."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


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


def blind(blind: Measured, best: Measured | None, lead: PairedDifference | None) -> list[str]:
    """What a classifier of words reaches, and what that leaves of the best score's success."""
    known = f"AUC {short(blind.auc)}"
    if blind.auc.high < 0.5:
        return [
            f"The blind classifier, bag of words, falls below chance ({known}), which happens when documents are "
            "few or each unlike the rest; it speaks neither for nor against the scores."
        ]
    succeeds = best is not None and above(best) and lead is not None
    if not above(blind):
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
            f"success may come from that. The best score is ahead of it by {short(lead.estimate, 0.0)}."
        ]
    verb = "better" if lead.estimate.high < 0 else "as well" if lead.estimate.value <= 0 else "about as well"
    return [
        f"{opening} does {verb} ({known}): on these texts a high score says that members and non-members "
        "differ as texts, not that the model was trained on the members."
    ]


def _blind_at_chance(blind: Measured, lead: PairedDifference | None) -> str:
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
        f"(by {short(lead.estimate, 0.0)}); more documents are needed to rule out that words explain it."
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
    blind = [
        row for row in rows if row.kind == "blind"
    ]  # do words or the length tell members from non-members?
    differ = any(row.auc.low > 0.5 or (row.name == LENGTH and row.auc.high < 0.5) for row in blind)
    if not kept:
        return [" ".join([_denied(pairs, rows, sure=not unsure), *_fallen(lost, unsure, where)])]
    found = [
        f"{_share(kept, pairs)} the placebo. {where} {_falls(kept)}. "
        + (
            "The two sets differ as texts, though, and two models that read neither can differ as much in how well "
            "they know them: this alone shows no training."
            if differ
            else "As far as the two models are otherwise alike, the domain of the texts does not explain that "
            "difference."
        )
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
    controls = {row.name: row for row in rows if row.kind == kind}
    return [(row, controls[row.name]) for row in rows if row.kind == "score" and row.name in controls]


def _denied(pairs: Sequence[Pair], rows: Sequence[Measured], *, sure: bool) -> str:
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
    leads = [(other.lead, row.name) for row, other in pairs if other.lead]
    leads.sort(key=lambda one: -one[0].value)
    falls: list[str] = []
    for lead, name in leads[:MOST]:
        value, low, high = shown(lead, edges=(0.0,))
        what, interval = ("that of", "") if falls else ("the AUC of", "95% interval ")
        falls.append(f"{what} {name}{'' if falls else ' falls'} by {value} ({interval}{low} to {high})")
    more = len(leads) - MOST
    return listed(
        [
            *falls,
            *([f"{'that' if more == 1 else 'those'} of {plural(more, 'other')} too"] if more > 0 else []),
        ]
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
    return listed([*named, plural(more, "other")] if more > 0 else named)


def _figure(row: Measured) -> str:
    return shown(row.auc, edges=(0.5, 1.0))[0]


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


_FEW_NONMEMBERS = 20
"""Non-members below which 5% of them is less than one."""
_FEW_FOR_RATES = 60
"""Documents of non-members below which the interval of a true positive rate at 5% false positives is too narrow."""
_LOPSIDED = 0.6
"""Share of one class from which on an accuracy needs to be read against it."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the sentences need beside the figures.

    `lead` is the AUC of the best score less that of the blind baseline, None without either; the groups
    are those that hold members and those that hold non-members; `asked` is the number of resamples
    asked for; `blind_note` is what the blind baseline had to say of itself; `placebo` is the name of the
    placebo model; `shuffles` says how often each fitted score was fitted on shuffled labels. `partial` are sentences on
    scores that lack values for some texts.
    """

    lead: PairedDifference | None
    member_groups: int
    nonmember_groups: int
    asked: int
    blind_note: str = ""
    placebo: str = ""
    shuffles: Mapping[str, int] = field(default_factory=dict)
    partial: tuple[str, ...] = ()


def documents(evaluation: Evaluation, circumstances: Circumstances) -> list[str]:
    """Documents, non-members or resamples that are too few."""
    found = []
    members, nonmembers = circumstances.member_groups, circumstances.nonmember_groups
    fewest = min(members, nonmembers)
    theirs, others = plural(members, "document"), plural(nonmembers, "document")
    held = f"The members come from {theirs}, the non-members from {others}"
    if fewest == 1:
        found.append(
            f"{held}: a result on a single document does not hold for others, "
            "and the 95% intervals must not be relied on."
        )
    elif fewest < FEW_DOCUMENTS:
        found.append(f"{held}: with fewer than {FEW_DOCUMENTS} of either the 95% intervals are rough.")
    if evaluation.nonmembers < _FEW_NONMEMBERS:
        found.append(
            f"With {evaluation.nonmembers} non-members, 5% of them is less than one: "
            "the true positive rate at 5% false positives allows no false positive at all."
        )
    elif 1 < nonmembers < _FEW_FOR_RATES:
        found.append(
            f"With {others} of non-members, where the threshold for 5% false positives lies is hardly known: new "
            "non-members may pass it more often than 5%, and the 95% interval of the true positive rate is too narrow. "
            f"{_FEW_FOR_RATES} documents or more would mend that."
        )
    if evaluation.resamples < circumstances.asked:
        found.append(
            f"The 95% intervals rest on {evaluation.resamples:,} resamples instead of "
            f"{circumstances.asked:,}, for there are many texts."
        )
    return found


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
    if larger >= _LOPSIDED:
        kind = "members" if evaluation.members > evaluation.nonmembers else "non-members"
        found.append(
            f"{larger:.0%} of the texts are {kind}: an accuracy means something only above {larger:.2f}, "
            f"which calling every text one of the {kind} would reach."
        )
    return found


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
