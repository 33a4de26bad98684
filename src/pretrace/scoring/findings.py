"""What an evaluation found, in sentences that a lawyer and a researcher can both rely on (`words.toml`).

Every sentence says only what the figures carry. "At chance" means that a 95% interval holds 0.5; "survives the
placebo" that the interval of a paired difference lies above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pretrace.results.wording import plural, say
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.statistics.roc import ENOUGH_SHUFFLES, PLACEBO, SHUFFLED, survives
from pretrace.types import Estimate, Evaluation, Measured

BLIND = "bag of words"
LENGTH = "text length"
"""The baselines by their names in the table: a classifier of words, and the number of characters."""
MOST = 5
"""Scores that a sentence names; the table has all."""
_FEW_FOR_RATES = 60
"""Documents of non-members below which the interval of a true positive rate at 5% false positives is too narrow."""
_LOPSIDED = 0.6
"""Share of one class from which on an accuracy needs to be read against it."""


def _best_of(rows: Sequence[Measured]) -> Measured | None:
    """The score with the highest AUC, the first of them in a tie; None without scores."""
    return max((row for row in rows if row.kind == "score"), key=lambda row: row.auc.value, default=None)


def _blind_of(rows: Sequence[Measured], name: str = BLIND) -> Measured | None:
    """The row of a baseline that sees no model, None where there is none."""
    return next((row for row in rows if row.kind == "blind" and row.name == name), None)


def _above(row: Measured) -> bool:
    """Whether the AUC is shown to be better than chance."""
    return row.auc.low > 0.5


def _rounded(number: float, edges: Sequence[float] = (0.5, 1.0)) -> str:
    """Two decimals, and up to two more where rounding would put a number on an edge it only comes near."""
    places = 2
    while places < 4 and any(round(number, places) == edge != number for edge in edges):
        places += 1
    return f"{round(number, places) + 0.0:.{places}f}".replace("-", "−")  # + 0.0: no minus zero


def _short(figure: Estimate, *edges: float) -> str:
    """Write an AUC, or a difference whose edge is 0, with its interval."""
    value, low, high = (_rounded(one, edges or (0.5, 1.0)) for one in (figure.value, figure.low, figure.high))
    return f"{value}, {low} to {high}"


def _listed(names: Sequence[str]) -> str:
    """Names as an enumeration, the first of them where there are many; at least one."""
    if more := len(names[MOST:]):
        names = [*names[:MOST], plural(more, "other")]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def sentences(
    evaluation: Evaluation,
    groups: tuple[int, int],
    *,
    lead: Callable[[Measured, Measured], Estimate | None],
    notes: Sequence[str] = (),
    placebo: str = "",
    shuffles: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """Yield the findings of an evaluation, the most important first; "" for what is not said.

    `groups` are the numbers of documents with members and with non-members, `lead` gives the AUC of a score less
    that of a blind baseline, `notes` are sentences that are known already, `placebo` names the placebo model, and
    `shuffles` says how often each fitted score was fitted on shuffled labels.
    """
    rows = evaluation.rows
    scores = [row for row in rows if row.kind == "score"]
    best, some = _best_of(rows), any(map(_above, scores))
    if best:
        yield "" if some else say("evaluation.all_chance")
        value, low, high = map(_rounded, (best.auc.value, best.auc.low, best.auc.high))
        yield say("evaluation.best", name=best.name, value=value, low=low, high=high)
    yield from _survival(rows, placebo)
    if best and _above(best):
        tpr = f"{best.tpr.value:.0%} ({best.tpr.low:.0%} to {best.tpr.high:.0%})"
        yield say("evaluation.reach", name=best.name, tpr=tpr)
        yield say("evaluation.no_width") if best.auc.low == best.auc.high else ""
    if blind := _blind_of(rows):
        which = "below" if blind.auc.high < 0.5 else "apart" if _above(blind) else "chance"
        yield say(f"evaluation.blind.{which}", auc=_short(blind.auc))
        if best and _above(best) and which != "below" and (ahead := lead(best, blind)):
            yield say("evaluation.blind.lead", lead=_short(ahead, 0.0))
    length = _blind_of(rows, LENGTH)
    if length and not length.auc.low <= 0.5 <= length.auc.high:  # many scores depend on it
        word = "longer" if length.auc.value > 0.5 else "shorter"
        yield say("evaluation.length", word=word, auc=_short(length.auc))
    yield from _labels(rows, shuffles or {})
    wrong = [f"{row.name} (AUC {_short(row.auc)})" for row in scores if row.auc.high < 0.5]
    chance = [row.name for row in scores if row.auc.low <= 0.5 <= row.auc.high]
    if wrong:
        yield say("evaluation.wrong", names=_listed(wrong))
    if chance and some:
        yield say("evaluation.chance", names=_listed(chance))
    if len(scores) > 1 and some:
        yield say("evaluation.looks", number=len(scores))
    yield from notes
    yield from _documents(evaluation, *groups)


def _survival(rows: Sequence[Measured], placebo: str) -> Iterator[str]:
    """Which scores above chance keep a lead over the placebo, and which do not, the largest lead first."""
    blind = [row for row in rows if row.kind == "blind"]  # do words or the length tell the two sets apart?
    differ = any(_above(row) or (row.name == LENGTH and row.auc.high < 0.5) for row in blind)
    meaning = say(f"evaluation.placebo.{'differ' if differ else 'alike'}")
    leads = [(row, other, other.lead) for row, other in _paired(rows, PLACEBO) if other.lead]
    named: dict[str, list[str]] = {"yes": [], "no": [], "not shown": [], "not above chance": []}
    for row, other, lead in sorted(leads, key=lambda one: -one[2].value):
        here, there = _rounded(row.auc.value), _rounded(other.auc.value)
        auc = {"here": here, "there": there, "lead": _short(lead, 0.0)}
        named[survives(row, other)].append(say("evaluation.placebo.named", name=row.name, **auc))
    del named["not above chance"]
    for state, names in named.items():
        if names:
            numbers = {"placebo": placebo or "without a name", "names": _listed(names), "meaning": meaning}
            yield say(f"evaluation.placebo.{state}", **numbers)


def _paired(rows: Sequence[Measured], kind: str) -> list[tuple[Measured, Measured]]:
    """The row of each score that has a control of this kind, and the control's."""
    controls = {row.name: row for row in rows if row.kind == kind}
    return [(row, controls[row.name]) for row in rows if row.kind == "score" and row.name in controls]


def _labels(rows: Sequence[Measured], shuffles: Mapping[str, int]) -> Iterator[str]:
    """Whether the scores that were fitted on labelled texts needed those labels; `shuffles` is how often
    each was fitted on shuffled ones."""
    named: dict[str, list[str]] = {"without": [], "with": []}
    for row, other in _paired(rows, SHUFFLED):
        auc, low, high = map(_rounded, (row.auc.value, other.auc.low, other.auc.high))
        repeats = {"low": low, "high": high, "repeats": shuffles.get(row.name, 0)}
        if row.auc.value <= other.auc.high or _above(row):
            which = "without" if row.auc.value <= other.auc.high else "with"
            named[which].append(say("evaluation.labels.range", name=row.name, auc=auc, **repeats))
    for which, names in named.items():
        if names:
            yield say(f"evaluation.labels.{which}", names=_listed(names), enough=ENOUGH_SHUFFLES)


def _documents(evaluation: Evaluation, members: int, nonmembers: int) -> Iterator[str]:
    """Documents or non-members that are too few, and what an accuracy has to be read against."""
    if min(members, nonmembers) < FEW_DOCUMENTS:
        yield say("evaluation.documents.few", members=members, others=nonmembers, fewest=FEW_DOCUMENTS)
    if nonmembers < _FEW_FOR_RATES:
        yield say("evaluation.documents.rates", others=nonmembers, enough=_FEW_FOR_RATES)
    if not evaluation.validation:
        yield say("evaluation.documents.validation")
    larger, side = max((evaluation.members, "members"), (evaluation.nonmembers, "non-members"))
    share = larger / (evaluation.members + evaluation.nonmembers)
    if share >= _LOPSIDED:
        yield say("evaluation.documents.lopsided", larger=share, side=side)
