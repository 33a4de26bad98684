"""The verdict of a flagging: its two tables, its counts and figures, in the form that every verdict has.

The table "flags" has a row a text in question, "known" one a known non-member; p, q and flagged are those of the text's
document (q is the least rate at which it would be flagged), and `drawn` are the texts they rest on: a document's value
is the mean score of these. Where the answer is refused p, q and flagged are empty: nothing may be read off them.

The flagging of more texts than a shard holds some of them in these tables. The figure "whole" then says which (the
first `sampled` rows are drawn at random, each text alike; those behind them were not drawn and are there for their
scores: the highest of all, and the highest of the flagged ones; `known_sampled` says the same of the table "known"),
holds the histograms of all, the lowest score of a flagged text (`least`) and how many documents have a p-value of at
most 5% (`low_p`), and names the files with all rows, `parts` and `known_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.results.rounding import p_value, times
from pretrace.results.verdicts import figure
from pretrace.statistics.conformal import needed
from pretrace.types import Check, Outcome, Power, SetTest, Verdict
from pretrace.verdicts.flag.concluding import ACCUSING, BEYOND, DRIFT, CheckedScores
from pretrace.verdicts.frame import TestWording
from pretrace.verdicts.outcome import ENOUGH, Conclusion, exposure
from pretrace.verdicts.wording import say

_NAMES = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


Told = Callable[..., str]
"""Says a sentence of `flag.said` by its name, with the numbers of a flagging and further ones."""


def word_flagging(end: CheckedScores, **names: str) -> Conclusion:
    """The outcome of a flagging in a sentence, what leads to it, and what would help; `names` are corpus and model."""
    made, power = end.limits, end.power
    numbers: dict[str, Any] = {"unit": made.unit, "asked": made.asked, "known": made.known, **names}
    numbers |= {"rate": f"{100 * made.fdr:g}%", "least": end.set_test.least}
    if power is not None:
        numbers |= {"times": times(power.epochs), "chance": power.probability.value}

    def told(name: str, **more: Any) -> str:
        return say(f"flag.said.{name}", **numbers, **more)

    failed = [check for check in end.checks if check.status == "failed"]
    unmade = [check for check in end.checks if check.status == "not run" and check.name != DRIFT]
    reasons = [f"{check.title}: no. {check.words}" for check in failed]
    if end.outcome == "refused":
        beyond = [one for one in end.checks if one.figures.get(BEYOND) and one not in failed]
        statement = _refusal(end, failed, told)
        reasons += whole(end.set_test, end.sides.number)
        reasons += [f"{one.title}: {one.words}" for one in beyond]
    else:
        statement = _statement(end, told)
        reasons += _answered(end, told)
        reasons += [f"{check.title}: not known. {check.words}" for check in unmade]
    cures = (check.cure for check in (*failed, *unmade) if check.cure)
    return Conclusion(end.outcome, statement, tuple(reasons), (*_missing(end, told), *cures))


def _refusal(end: CheckedScores, failed: Sequence[Check], told: Told) -> str:
    if not all(check.name in ACCUSING for check in failed):
        return told("differ")
    withheld = end.set_test.withheld
    odd = "; ".join(f"“{check.title}” is not so" for check in failed if check.name != DRIFT)
    why = odd or withheld or "differences that nobody could have seen explain it"
    return told("refused_whole" if withheld else "refused", why=why)


def _statement(end: CheckedScores, told: Told) -> str:
    made, power, least, p = end.limits, end.power, end.set_test.least, end.set_test.p
    unit, asked, chosen = made.unit, made.asked, int(end.chosen.sum())
    if end.outcome == "flagged":
        which = f"The one {unit}" if asked == 1 else f"{chosen:,} of the {asked:,} {unit}s"
        texts = f" ({end.counts['flagged']:,} texts)" if unit != "text" else ""
        are, them = ("is" if chosen == 1 else "are"), ("it" if asked == 1 else "them")
        return told("flagged", which=which, are=are, them=them, texts=texts)
    if end.outcome == "set":
        return told("set_of_one" if asked == 1 else "set", p="not told" if p is None else p_value(p))
    if end.outcome == "none" and power is not None:
        return told("none")
    if power is not None:
        rest = told("weakly" if power.probability.value >= ENOUGH else "found_in")
    elif (noticed := made.noticed(least)) is None:
        rest = told("blind")
    elif noticed > made.tenth:  # it could not have been noticed, however much it stood out
        rest = told("coarse", noticed=noticed)
    else:
        rest = told("unmeasured", why=f" ({_small(end.unmeasured)[:-1]})" if end.unmeasured else "")
    return told("open", many=f"the {asked:,} {unit}s" if asked != 1 else f"the one {unit}", rest=rest)


def _answered(end: CheckedScores, told: Told) -> Iterator[str]:
    """What leads to an outcome that is no refusal."""
    made, least, together = end.limits, end.set_test.least, end.limits.resolution.together
    chosen = int(end.chosen.sum())
    here = f", here {expected(chosen, made.fdr)}" if chosen else ""
    yield told("rate", capital=made.unit.capitalize(), method=_NAMES[made.method], here=here)
    yield from whole(end.set_test, end.sides.number)
    if end.outcome not in ("flagged", "none"):
        seen = ("able" if together else "unable") if made.asked == 1 else "several" if together else "nobody"
        several = "no_set" if least is None else "whole_set" if made.asked > 1 else ""
        ends = [told(one, alone=together) for one in (seen, several) if one]
        yield told("missed", ends="; ".join(ends))
    yield from tried(end.outcome, end.power, end.unmeasured)


def _missing(end: CheckedScores, told: Told) -> Iterator[str]:
    """What would help where something could have been missed."""
    made, power = end.limits, end.power
    if end.outcome == "missed" and power is None:
        yield told("measure")
        if (made.resolution.together or made.asked + 1) > made.tenth:
            some = f"a tenth of the {made.unit}s" if made.asked > 10 else f"a {made.unit} alone"
            yield told("take", enough=needed(made.tenth, made.asked, made.fdr, made.method), some=some)
    elif end.outcome == "missed" and power is not None and power.probability.value < ENOUGH:
        many = told("out_of_reach")
        if power.needed is not None:
            many = told("needs", needed=power.needed, known_needed=power.facts["known_needed"])
        yield told("green", many=many)


def tried(outcome: Outcome, power: Power | None, why: str = "") -> Iterator[str]:
    """Say what the flagging would have seen of training; nothing where something stands out."""
    if outcome in ("flagged", "set"):
        return
    if power is None:
        yield say("flag.said.untried", why=f": {_small(why)}" if why else ".")
        return
    exposed = exposure(power, "document")
    yield say("flag.said.tried", exposure=exposed, chance=power.probability, enough=ENOUGH)


def expected(chosen: int, fdr: float) -> str:
    """How many of the flagged documents may be false on average, in words.

    >>> expected(40, 0.05), expected(3, 0.05), expected(1, 0.1)
    ('about 2 of the 40', 'less than one of the 3', 'less than one of the 1')
    """
    number = fdr * chosen
    return f"less than one of the {chosen:,}" if number < 0.95 else f"about {number:,.0f} of the {chosen:,}"


def whole(test: SetTest | None, documents: int) -> Iterator[str]:
    """Say what the test of the set of so many documents gave."""
    if test is None:
        return
    if test.p is None:
        yield f"The set as a whole: no answer, because {test.withheld}."
        return
    yield say(
        "flag.said.whole",
        verdict="stands out" if test.rejects else "does not stand out",
        lie="lies" if test.above == 1 else "lie",
        level=f"{100 * test.level:g}%",
        documents=documents,
        test=test,
    )
    if test.explained is not None and test.unseen is not None and test.rejects:
        yield say(
            "flag.said.explained", test=test, which="less" if test.explained > test.unseen else "not less"
        )


def _small(why: str) -> str:
    return why[:1].lower() + why[1:]


FLAGS, KNOWN = "flags", "known"
"""The names of the tables."""


def flag_words(figures: Mapping[str, Any], *, corpus: str, model: str, unit: str) -> TestWording:
    """The sentences that every flagging has in common."""
    names = {"corpus": corpus, "nonmembers": figures["nonmembers"], "model": called(model)}
    return TestWording.of_kind("flag.verdict", unit=unit, score=figures["score"], **names)


def check_flagging(made: Verdict) -> None:
    """Raise ValueError for a score that is not finite, or an outcome that the tables or the test of the set deny."""
    counts = made.figures["counts"]
    for name in ("p", "q"):
        if not (np.isnan if made.outcome == "refused" else np.isfinite)(made.table(FLAGS)[name]).all():
            raise ValueError(f"a flagging with the outcome {made.outcome} holds wrong values of {name}")
    if not all(np.isfinite(table["score"]).all() for table in made.tables):
        raise ValueError("a score of a flagging is NaN or infinite")
    if (made.outcome == "flagged") != (counts["flagged"] > 0):
        raise ValueError(f"{counts['flagged']} texts are flagged where the outcome is {made.outcome}")
    if made.outcome == "set" and (made.p is None or made.p > made.level):
        raise ValueError("a flagging says that the set stands out, and its test of the set does not")


def set_test(found: Verdict) -> SetTest | None:
    """The test of the set."""
    return figure(found, "set_test", SetTest)


def flagged_rows(found: Verdict) -> list[int]:
    """The rows of flagged texts, the highest scores first."""
    texts = found.table(FLAGS)
    return sorted(
        (i for i, yes in enumerate(texts["flagged"].tolist()) if yes), key=lambda i: -texts["score"][i]
    )
