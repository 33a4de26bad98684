"""The outcome in words: "flagged" and "consistent with", never more than a rate can carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pretrace.results.rounding import p_value
from pretrace.types import Power, SetTest, Verdict
from pretrace.verdicts.audit.checks import times
from pretrace.verdicts.flag.built import set_test
from pretrace.verdicts.flag.concluding import ACCUSING, DRIFT
from pretrace.verdicts.flag.planning import Prospect
from pretrace.verdicts.outcome import ENOUGH, exposure

_NAMES = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


@dataclass(frozen=True, slots=True)
class Said:
    """The statement, the reasons and what would help."""

    statement: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...]


def said(found: Verdict, made: Prospect, why: str) -> Said:
    """What is said of a flagging whose outcome, texts, checks, test of the set and power are settled; `why` says why
    the power was not measured."""
    failed = [check for check in found.checks if check.status == "failed"]
    unseen = [check for check in found.checks if check.status == "not run" and check.name != DRIFT]
    reasons = [f"{check.title}: no. {check.words}" for check in failed]
    test = set_test(found)
    if found.outcome != "refused":
        reasons += [_rate(found, made), *whole(found)]
        reasons += [_missed(made, test)] * (found.outcome not in ("flagged", "none") and test is not None)
        reasons += list(tried(found, why))
        reasons += [f"{check.title}: not known. {check.words}" for check in unseen]
    elif test:
        reasons += whole(found)
        told = [one for one in found.checks if one.figures.get("beyond_chance") and one not in failed]
        reasons += [f"{one.title}: {one.words}" for one in told]
    reasons += found.register
    advice = [*_more(found, made), *(check.cure for check in (*failed, *unseen) if check.cure)]
    return Said(_statement(found, made, why), tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(advice)))


def tried(found: Verdict, why: str = "") -> Iterator[str]:
    """What the flagging would have seen of training, in sentences; nothing where something stands out."""
    if found.outcome in ("flagged", "set"):
        return
    power = found.planted
    if power is None:
        yield (
            f"What this flagging could have missed was not measured{f': {_small(why)}' if why else '.'} That nothing "
            "stands out does not show that no text was seen."
        )
        return
    chance, often = power.probability, f"{exposure(power, 'document')}"
    yield (
        f"Training was tried: {often}. Of flaggings like this one in which a tenth of the documents were read like "
        f"that, {chance.value:.0%} [{chance.low:.0%}, {chance.high:.0%}] would have ended with an accusation; an "
        f"all-clear takes {ENOUGH:.0%}."
    )


def expected(chosen: int, fdr: float) -> str:
    """How many of the flagged documents may be false on average, in words.

    >>> expected(40, 0.05), expected(3, 0.05), expected(1, 0.1)
    ('about 2 of the 40', 'less than one of the 3', 'less than one of the 1')
    """
    number = fdr * chosen
    return f"less than one of the {chosen:,}" if number < 0.95 else f"about {number:,.0f} of the {chosen:,}"


def whole(found: Verdict) -> Iterator[str]:
    """What the test of the set says, in sentences; nothing in results of version 0.1."""
    test = set_test(found)
    if test is None:
        return
    if test.p is None:
        yield f"The set as a whole: no answer, because {test.withheld}."
        return
    level = f"{100 * test.level:g}%"
    verdict = "stands out" if test.rejects else "does not stand out"
    above = "lies" if test.above == 1 else "lie"
    yield (
        f"The set as a whole {verdict} (p = {p_value(test.p)}, tested at a level of {level}). {test.above:,} of its "
        f"{found.units:,} documents {above} above the line that one in twenty lies above by chance; about "
        f"{test.expected:,.0f} would be expected there. Of sets that were not seen, at most {level} stand out."
    )
    yield from sensitive(test)


def sensitive(test: SetTest) -> Iterator[str]:
    """Which drift would explain that the set stands out, and which the checks could not have excluded."""
    if test.explained is None or test.unseen is None or not test.rejects:
        return
    yield (
        f"Were all texts in question easier for any model by more than {test.explained:.2f} standard deviations of the "
        f"score, that alone would explain it. The checks could not have excluded a drift of {test.unseen:.2f}, which "
        f"is {'less' if test.explained > test.unseen else 'not less'}."
    )


def _small(why: str) -> str:
    """A sentence inside another one."""
    return why[:1].lower() + why[1:]


def _rate(found: Verdict, made: Prospect) -> str:
    rate = f"{100 * found.figures['fdr']:g}%"
    words = (
        f"{made.unit.capitalize()}s are flagged by {_NAMES[made.method]} at a rate of {rate}, set beforehand: of the "
        f"{made.unit}s flagged in this way, on average at most {rate} are false"
    )
    return (
        f"{words}, here {expected(found.figures['counts']['flagged_documents'], found.figures['fdr'])}."
        if found.figures["counts"]["flagged"]
        else f"{words}."
    )


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


def _more(found: Verdict, made: Prospect) -> Iterator[str]:
    """What would help where nothing was found."""
    if found.outcome == "missed" and found.planted is None:
        yield (
            "Measure what the flagging would have seen: a copy of the model is trained on a tenth of the texts. "
            "[--power]"
        )
    if (
        found.outcome == "missed"
        and found.planted is None
        and (made.resolution.together or made.asked + 1) > made.tenth
    ):
        enough = made.enough(found.figures["fdr"])
        some = f"a tenth of the {made.unit}s" if made.asked > 10 else f"a {made.unit} alone"
        yield f"Take at least {enough:,} known documents: then {some} could be flagged."
    if found.outcome == "missed" and found.planted is not None and found.planted.probability.value < ENOUGH:
        yield _green(found.planted, made)


def _green(power: Power, made: Prospect) -> str:
    """What an all-clear takes where too little would have been seen."""
    stronger = "a stronger score (--score ref with --reference-model, an earlier checkpoint), or a --placebo"
    if power.needed is None:
        return f"Green (exit code 0) is out of reach with this score, with more {made.unit}s, too: take {stronger}."
    return (
        f"Green (exit code 0) needs about {power.needed:,} {made.unit}s and {power.facts['known_needed']:,} known; "
        f"{made.asked:,} and {made.known:,} are there. Or take {stronger}."
    )


def _statement(found: Verdict, made: Prospect, why: str) -> str:
    if found.outcome == "missed":
        return _open(found, made, why)
    return {"flagged": _flagged, "set": _set, "none": _none, "refused": _refusal}[found.outcome](found, made)


def _flagged(found: Verdict, made: Prospect) -> str:
    chosen = found.figures["counts"]["flagged_documents"]
    which = f"{chosen:,} of the {made.asked:,} {made.unit}s" if made.asked > 1 else f"The one {made.unit}"
    are, them = ("is", "it") if chosen == 1 else ("are", "them")
    texts = f" ({found.figures['counts']['flagged']:,} texts)" if made.unit != "text" else ""
    return (
        f"{which} of “{found.corpus}” {are} flagged{texts}: what {found.model} makes of {them} is consistent "
        f"with training on {them}, or on copies."
    )


def _set(found: Verdict, made: Prospect) -> str:
    p = "not told" if found.p is None else f"{p_value(found.p)}"
    if made.asked == 1:
        return (
            f"The one {made.unit} of “{found.corpus}” stands out (p = {p}) though it is not flagged: what "
            f"{found.model} makes of it is consistent with training on it, or on copies."
        )
    return (
        f"No single {made.unit} is flagged, but the {made.asked:,} {made.unit}s of “{found.corpus}” as a whole stand "
        f"out from the known non-members (p = {p}): what {found.model} makes of them is consistent with training on "
        "some of them, or on copies. Which ones cannot be said."
    )


def _none(found: Verdict, made: Prospect) -> str:
    unit, power = made.unit, found.planted
    assert power is not None
    return (
        f"Nothing stands out: none of the {made.asked:,} {unit}s of “{found.corpus}” is flagged, and what "
        f"{found.model} makes of them as a whole does not stand out from what it makes of the known non-members. "
        "This excludes training like the one that was tried: a tenth of the documents, read "
        f"{times(power.epochs)} by a copy of the model; {power.probability.value:.0%} of such flaggings find it. "
        "It does not exclude weaker training: fewer "
        "documents, other versions of them, or texts that were read long before the training ended."
    )


def _open(found: Verdict, made: Prospect, why: str) -> str:
    unit, test = made.unit, set_test(found)
    many = f"the {made.asked:,} {unit}s" if made.asked != 1 else f"the one {unit}"
    if found.planted is not None:
        chance = found.planted.probability.value
        rest = f"a tenth of them, read {times(found.planted.epochs)}, would be found in {chance:.0%} of such flaggings"
        if chance >= ENOUGH:
            rest = "the texts stand out a little, as they would if fewer than a tenth of them had been read"
    elif made.coarse(test.least if test else None):
        noticed = made.noticed(test.least if test else None)
        rest = f"with {made.known:,} known documents " + (
            f"at least {noticed:,} {unit}s had to stand above all of them before that was noticed"
            if noticed is not None
            else f"no {unit} could have been flagged"
        )
    else:
        rest = f"what this flagging would have seen was not measured{f' ({_small(why)[:-1]})' if why else ''}"
    return f"Could have been missed: nothing stands out among {many} of “{found.corpus}”, but {rest}."


def _refusal(found: Verdict, made: Prospect) -> str:
    if all(check.status != "failed" or check.name in ACCUSING for check in found.checks):
        odd = [check.title for check in found.checks if check.status == "failed" and check.name != DRIFT]
        test = set_test(found)
        why = test.withheld if test else ""
        why = (
            "; ".join(f"“{one}” is not so" for one in odd)
            or why
            or "differences that nobody could have seen explain it"
        )
        if test is None or not test.withheld:
            return (
                f"Refused: {made.unit}s of “{found.corpus}” stand out from the known non-members, but that need not be "
                f"{found.model}'s making, since {why}."
            )
        return (
            f"Refused: the {made.unit}s of “{found.corpus}” as a whole stand out from the known non-members, but that "
            f"need not be {found.model}'s making, since {why}."
        )
    return (
        f"Refused: the texts of “{found.corpus}” and the known non-members differ in a way that is not of "
        f"{found.model}'s making, so that standing out from them would not mean having been seen."
    )
