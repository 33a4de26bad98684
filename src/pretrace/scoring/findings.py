"""What an evaluation found, in sentences that a lawyer and a researcher can both rely on (`words.toml`).

Every sentence says only what the figures carry. "At chance" means that a 95% interval holds 0.5; "does
as well" that the interval of a paired difference does not lie above 0, and "survives the placebo" that it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pretrace.results.rounding import plural
from pretrace.results.wording import say
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


def listed(names: Sequence[str]) -> str:
    """Names as an enumeration; at least one."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


BLIND = "bag of words"
LENGTH = "text length"
"""The baselines by their names in the table: a classifier of words, and the number of characters."""
WIDE = 0.6
"""Upper end of the blind baseline's interval above which its being at chance says little."""
MOST = 5
"""Scores that a sentence names; the table has all."""
_FEW_NONMEMBERS = 20
"""Non-members below which 5% of them is less than one."""
_FEW_FOR_RATES = 60
"""Documents of non-members below which the interval of a true positive rate at 5% false positives is too narrow."""
_LOPSIDED = 0.6
"""Share of one class from which on an accuracy needs to be read against it."""

Pair = tuple[Measured, Measured]
"""A score's row, and its control's."""


def blind_of(rows: Sequence[Measured]) -> Measured | None:
    """The row of the blind classifier, None where there is none."""
    return next((row for row in rows if row.kind == "blind" and row.name == BLIND), None)


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


def sentences(evaluation: Evaluation, circumstances: Circumstances) -> tuple[str, ...]:
    """The findings of an evaluation, the most important first."""
    rows = evaluation.rows
    scores = [row for row in rows if row.kind == "score"]
    bag = blind_of(rows)
    survived, reach, best = survival(rows, circumstances.placebo), [], best_of(scores)
    if best is not None and above(best):  # with its name where other sentences came between
        tpr = f"{best.tpr.value:.0%} ({best.tpr.low:.0%} to {best.tpr.high:.0%})"
        reach = [say("evaluation.reach", name=best.name if survived else "it", tpr=tpr)]
        reach += [say("evaluation.no_width")] if best.auc.low == best.auc.high else []
    found = [
        *_headline(scores),
        *survived,
        *reach,
        *([_blind(bag, best, circumstances.lead)] if bag else ()),
        circumstances.blind_note,
        *_length(rows),
        *_labels(rows, circumstances.shuffles),
        *others(scores),
        say("evaluation.looks", number=len(scores)) if len(scores) > 1 and any(map(above, scores)) else "",
        *circumstances.partial,
        *_documents(evaluation, circumstances),
        *_accuracies(evaluation),
    ]
    return tuple(sentence for sentence in found if sentence)


def _headline(scores: Sequence[Measured]) -> Iterator[str]:
    """The best score and what its AUC means."""
    best, one = best_of(scores), len(scores) == 1
    if best is None:
        return
    chance = not any(above(row) for row in scores)
    if chance and not one:
        yield say("evaluation.all_chance")
    auc = "{} (95% interval {} to {})".format(*shown(best.auc, edges=(0.5, 1.0)))
    yield say("evaluation.only" if one else "evaluation.best", name=best.name, auc=auc)
    if chance and one:
        yield say("evaluation.only_chance")


def _blind(blind: Measured, best: Measured | None, lead: PairedDifference | None) -> str:
    """What a classifier of words reaches, and what that leaves of the best score's success."""
    told = partial(say, auc=short(blind.auc), lead=short(lead.estimate, 0.0) if lead else "")
    if blind.auc.high < 0.5:
        return told("evaluation.blind.below")
    ahead = lead.estimate if best is not None and above(best) and lead is not None else None
    if above(blind):
        if ahead is None:
            return told("evaluation.blind.alone")
        if ahead.low > 0:
            return told("evaluation.blind.behind")
        verb = "better" if ahead.high < 0 else "as well" if ahead.value <= 0 else "about as well"
        return told("evaluation.blind.equal", verb=verb)
    if ahead is None:
        rest = "nothing_few" if blind.auc.high > WIDE else "nothing"
    else:
        rest = "unexplained" if ahead.low > 0 else "unsure"
    return told("evaluation.blind.chance", rest=told(f"evaluation.blind.{rest}"))


def _length(rows: Sequence[Measured]) -> Iterator[str]:
    """Said only where length tells the sides apart: many scores depend on it."""
    found = next((row for row in rows if row.kind == "blind" and row.name == LENGTH), None)
    if found is not None and not found.auc.low <= 0.5 <= found.auc.high:
        word = "longer" if found.auc.value > 0.5 else "shorter"
        yield say("evaluation.length", word=word, auc=short(found.auc))


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
    where = say("evaluation.placebo.on", name=name or "the placebo")
    if not kept:
        scores, which = [row for row in rows if row.kind == "score"], "unsure" if unsure else "denied"
        subject = "No score" if len(pairs) == sum(map(above, scores)) else "No score that was tried on it"
        denied = say(f"evaluation.placebo.{which}", subject=subject)
        if len(scores) == 1:
            denied = say(f"evaluation.placebo.only_{which}", name=scores[0].name)
        return [" ".join([denied, *_fallen(lost, unsure, where)])]
    blind = [row for row in rows if row.kind == "blind"]  # do words or the length tell the two sets apart?
    differ = any(row.auc.low > 0.5 or (row.name == LENGTH and row.auc.high < 0.5) for row in blind)
    meaning = say(f"evaluation.placebo.{'differ' if differ else 'alike'}")
    which = "one" if len(pairs) == 1 else "all" if len(kept) == len(pairs) else "some"
    numbers = {"name": kept[0][0].name, "kept": len(kept), "number": len(pairs)}
    survive = "survives" if len(kept) == 1 else "survive"
    share = say(f"evaluation.placebo.{which}_kept", survive=survive, **numbers)
    found = [say("evaluation.placebo.kept", share=share, where=where, falls=_falls(kept), meaning=meaning)]
    if lost or unsure:
        found.append(" ".join(_fallen(lost, unsure, "On the placebo")))
    return found


def _paired(rows: Sequence[Measured], kind: str) -> list[Pair]:
    controls = {row.name: row for row in rows if row.kind == kind}
    return [(row, controls[row.name]) for row in rows if row.kind == "score" and row.name in controls]


def _fallen(lost: Sequence[Pair], unsure: Sequence[Pair], where: str) -> Iterator[str]:
    """What the scores that are not shown to survive reach, beginning with `where`, and what that means."""
    if lost:
        named = [
            say("evaluation.placebo.as_well", name=row.name, there=_figure(other), here=_figure(row))
            for row, other in lost
        ]
        yield say("evaluation.placebo.lost", where=where, names=_with_rest(named), do=_do(lost))
        where = "On the placebo"
    if unsure:
        yield say("evaluation.placebo.may", where=where, falls=_falls(unsure))


def _falls(pairs: Sequence[Pair]) -> str:
    """By how much the AUCs fall from the target to the placebo, the largest fall first."""
    leads = [(other.lead, row.name) for row, other in pairs if other.lead]
    leads.sort(key=lambda one: -one[0].value)
    falls: list[str] = []
    for lead, name in leads[:MOST]:
        value, low, high = shown(lead, edges=(0.0,))
        what, interval = ("that of", "") if falls else ("the AUC of", "95% interval ")
        falls.append(f"{what} {name}{'' if falls else ' falls'} by {value} ({interval}{low} to {high})")
    if more := len(leads[MOST:]):
        falls.append(f"{'that' if more == 1 else 'those'} of {plural(more, 'other')} too")
    return listed(falls)


def _labels(rows: Sequence[Measured], shuffles: Mapping[str, int]) -> Iterator[str]:
    """Whether the scores that were fitted on labelled texts needed those labels; `shuffles` is how often
    each was fitted on shuffled ones."""
    pairs = _paired(rows, SHUFFLED)
    without = [(row, other) for row, other in pairs if row.auc.value <= other.auc.high]
    needing = [(row, other) for row, other in pairs if row.auc.value > other.auc.high and above(row)]
    if without:
        it = "it" if len(without) == 1 else "them"
        names = _with_rest([_range(*pair, shuffles) for pair in without])
        yield say("evaluation.labels.without", names=names, do=_do(without), it=it)
    if needing:
        few = min(shuffles.get(row.name, 0) for row, _ in needing) < ENOUGH_SHUFFLES
        ending = say(f"evaluation.labels.{'few' if few else 'enough'}")
        names = _with_rest([_range(*pair, shuffles) for pair in needing])
        yield say("evaluation.labels.needing", names=names, do=_do(needing), ending=ending)


def _range(row: Measured, other: Measured, shuffles: Mapping[str, int]) -> str:
    repeats = shuffles.get(row.name, 0)
    low, high = (shown(Estimate(v, v, v), edges=(0.5, 1.0))[0] for v in (other.auc.low, other.auc.high))
    times = f" in {repeats:,} repeats" if repeats > 1 else ""
    reached = f"{low} to {high}{times}" if low != high else f"{high}{times}"
    return say("evaluation.labels.range", name=row.name, auc=_figure(row), reached=reached)


def _with_rest(named: Sequence[str]) -> str:
    more = len(named[MOST:])
    return listed([*named[:MOST], plural(more, "other")] if more else named)


def _do(some: Sequence[object]) -> str:
    return "does" if len(some) == 1 else "do"


def _figure(row: Measured) -> str:
    return shown(row.auc, edges=(0.5, 1.0))[0]


def others(scores: Sequence[Measured]) -> list[str]:
    """Scores that point the wrong way and, beside better ones, scores at chance."""
    wrong = [f"{row.name} (AUC {short(row.auc)})" for row in scores if row.auc.high < 0.5]
    chance = [row.name for row in scores if row.auc.low <= 0.5 <= row.auc.high]
    found = []
    if wrong:
        point = "points" if len(wrong) == 1 else "point"
        found.append(say("evaluation.wrong", names=listed(wrong), point=point))
    if chance and any(above(row) for row in scores):
        are = "is" if len(chance) == 1 else "are"
        found.append(say("evaluation.chance", names=listed(chance), are=are))
    return found


def _documents(evaluation: Evaluation, circumstances: Circumstances) -> Iterator[str]:
    """Documents, non-members or resamples that are too few."""
    members, nonmembers = circumstances.member_groups, circumstances.nonmember_groups
    fewest, others = min(members, nonmembers), plural(nonmembers, "document")
    if fewest < FEW_DOCUMENTS:
        numbers = {"members": plural(members, "document"), "others": others, "fewest": FEW_DOCUMENTS}
        yield say(f"evaluation.documents.{'one' if fewest == 1 else 'few'}", **numbers)
    if evaluation.nonmembers < _FEW_NONMEMBERS:
        yield say("evaluation.documents.nonmembers", number=evaluation.nonmembers)
    elif 1 < nonmembers < _FEW_FOR_RATES:
        yield say("evaluation.documents.rates", others=others, enough=_FEW_FOR_RATES)
    if evaluation.resamples < circumstances.asked:
        made, asked = evaluation.resamples, circumstances.asked
        yield say("evaluation.documents.resamples", made=made, asked=asked)


def _accuracies(evaluation: Evaluation) -> Iterator[str]:
    """What an accuracy has to be read against."""
    if not evaluation.validation:
        yield say("evaluation.documents.validation")
    larger, side = max((evaluation.members, "members"), (evaluation.nonmembers, "non-members"))
    share = larger / (evaluation.members + evaluation.nonmembers)
    if share >= _LOPSIDED:
        yield say("evaluation.documents.lopsided", larger=share, side=side)
