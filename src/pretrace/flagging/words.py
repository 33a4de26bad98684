"""The outcome in words: "flagged" and "consistent with", never more than a rate can carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pretrace.flagging.prospect import Prospect
from pretrace.types import Flagged, SetTest

_NAMES = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


@dataclass(frozen=True, slots=True)
class Said:
    """The statement, the reasons and what would help."""

    statement: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...]


def said(found: Flagged, made: Prospect) -> Said:
    """What is said of a flagging whose outcome, texts, checks and test of the set are settled."""
    failed = [check for check in found.checks if check.status == "failed"]
    unseen = [check for check in found.checks if check.status == "not run"]
    reasons = [f"{check.title}: no. {check.words}" for check in failed]
    test = found.set_test
    if found.outcome != "refused":
        reasons += [_rate(found, made), *whole(found)]
        reasons += [_missed(made, test)] * (found.outcome != "flagged" and test is not None)
        reasons += [f"{check.title}: not known. {check.words}" for check in unseen]
    elif test and not failed:
        reasons += whole(found)
        reasons += [f"{one.title}: {one.words}" for one in found.checks if one.figures.get("beyond_chance")]
    advice = [check.cure for check in (*failed, *unseen) if check.cure]
    return Said(_statement(found, made), tuple(reasons), tuple(dict.fromkeys([*advice, *_more(found, made)])))


def expected(chosen: int, fdr: float) -> str:
    """How many of the flagged documents may be false on average, in words.

    >>> expected(40, 0.05), expected(3, 0.05), expected(1, 0.1)
    ('about 2 of the 40', 'less than one of the 3', 'less than one of the 1')
    """
    number = fdr * chosen
    return f"less than one of the {chosen:,}" if number < 0.95 else f"about {number:,.0f} of the {chosen:,}"


def whole(found: Flagged) -> Iterator[str]:
    """What the test of the set says, in sentences; nothing in results of version 0.1."""
    test = found.set_test
    if test is None:
        return
    if test.p is None:
        yield f"The set as a whole: no answer, because {test.withheld}."
        return
    level = f"{100 * test.level:g}%"
    verdict = "stands out" if test.rejects else "does not stand out"
    above = "lies" if test.above == 1 else "lie"
    yield (
        f"The set as a whole {verdict} (p = {test.p:.2g}, tested at a level of {level}). {test.above:,} of its "
        f"{found.documents:,} documents {above} above the line that one in twenty lies above by chance; about "
        f"{test.expected:,.0f} would be expected there. Of sets that were not seen, at most {level} stand out."
    )


def _rate(found: Flagged, made: Prospect) -> str:
    rate = f"{100 * found.fdr:g}%"
    words = (
        f"{made.unit.capitalize()}s are flagged by {_NAMES[made.method]} at a rate of {rate}, set beforehand: of the "
        f"{made.unit}s flagged in this way, on average at most {rate} are false"
    )
    return f"{words}, here {expected(found.flagged_documents, found.fdr)}." if found.number else f"{words}."


def _missed(made: Prospect, test: SetTest | None) -> str:
    """What could have been seen, and so what could not."""
    alone = made.resolution.together
    if made.asked == 1:
        seen = (
            "it would have been flagged had it stood above all known ones"
            if alone
            else "it could not be flagged"
        )
    elif alone is None:
        seen = f"no {made.unit} could have been flagged"
    else:
        seen = f"{alone:,} {made.unit}s or more that stand above all known ones are flagged"
    least = test.least if test else None
    together = "the set as a whole could not have stood out"
    if least is not None:
        together = (
            f"from {least:,} such {made.unit}s on the set as a whole stands out" if made.asked > 1 else ""
        )
    ends = "; ".join(part for part in (seen, together) if part)
    return (
        f"What could have been seen: {ends}. Fewer, or ones that left a weaker trace, could have been missed."
    )


def _more(found: Flagged, made: Prospect) -> Iterator[str]:
    """What would help where nothing was found."""
    if found.outcome == "coarse":
        enough = made.enough(found.fdr)
        some = f"a tenth of the {made.unit}s" if made.asked > 10 else f"a {made.unit} alone"
        yield f"Take at least {enough:,} known documents: then {some} could be flagged."
    if found.outcome == "none":
        yield from made.notes[:1] if (made.resolution.together or 0) > 1 else ()
        yield "That nothing stands out does not show that nothing was seen: this score may not see it."


def _statement(found: Flagged, made: Prospect) -> str:
    return {"flagged": _flagged, "set": _set, "none": _none, "coarse": _coarse, "refused": _refusal}[
        found.outcome
    ](found, made)


def _flagged(found: Flagged, made: Prospect) -> str:
    chosen = found.flagged_documents
    which = f"{chosen:,} of the {made.asked:,} {made.unit}s" if made.asked > 1 else f"The one {made.unit}"
    are, them = ("is", "it") if chosen == 1 else ("are", "them")
    texts = f" ({found.number:,} texts)" if made.unit != "text" else ""
    return (
        f"{which} of {found.corpus} {are} flagged{texts}: what {found.model} makes of {them} is consistent "
        f"with training on {them}, or on copies."
    )


def _set(found: Flagged, made: Prospect) -> str:
    p = f"{found.set_test.p:.2g}" if found.set_test and found.set_test.p is not None else "not told"
    if made.asked == 1:
        return (
            f"The one {made.unit} of {found.corpus} stands out (p = {p}) though it is not flagged: what {found.model} "
            "makes of it is consistent with training on it, or on copies."
        )
    return (
        f"No single {made.unit} is flagged, but the {made.asked:,} {made.unit}s of {found.corpus} as a whole stand out "
        f"from the known non-members (p = {p}): what {found.model} makes of them is consistent with training on some "
        "of them, or on copies. Which ones cannot be said."
    )


def _none(found: Flagged, made: Prospect) -> str:
    unit, model = made.unit, found.model
    if made.asked == 1:
        return (
            f"The one {unit} of {found.corpus} is not flagged: what {model} makes of it does not stand out from what "
            f"it makes of the known non-members. A {unit} that was seen but left a weak trace could have been missed."
        )
    least = found.set_test.least if found.set_test else None
    fewer = made.noticed(least) or made.asked
    few = f"Fewer than {fewer:,} seen {unit}s, or any number" if fewer > 1 else f"Seen {unit}s"
    return (
        f"None of the {made.asked:,} {unit}s of {found.corpus} is flagged, and what {model} makes of them as a whole "
        f"does not stand out from what it makes of the known non-members. {few} that left a weak trace could have "
        "been missed."
    )


def _coarse(found: Flagged, made: Prospect) -> str:
    unit = made.unit
    noticed = made.noticed(found.set_test.least if found.set_test else None)
    if made.resolution.together is None or noticed is None:
        why = f"no {unit} could have been flagged"
    else:
        why = f"at least {noticed:,} {unit}s had to stand above all of them before that was noticed"
    return (
        f"Too coarse to clear: nothing stands out among the {made.asked:,} {unit}{'s' * (made.asked != 1)} of "
        f"{found.corpus}, but with {made.known:,} known documents that says little about {found.model}: {why}."
    )


def _refusal(found: Flagged, made: Prospect) -> str:
    if all(check.status != "failed" for check in found.checks):
        why = found.set_test.withheld if found.set_test else ""
        return (
            f"Refused: the {made.unit}s of {found.corpus} as a whole stand out from the known non-members, but that "
            f"need not be {found.model}'s making, since {why}."
        )
    return (
        f"Refused: the texts of {found.corpus} and the known non-members differ in a way that is not of "
        f"{found.model}'s making, so that standing out from them would not mean having been seen."
    )
