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

from collections.abc import Iterator, Mapping
from typing import Any

from pretrace.backends.serving.address import called
from pretrace.results.rounding import plural, times
from pretrace.results.verdicts import figure
from pretrace.results.wording import say
from pretrace.statistics.conformal import needed
from pretrace.types import Outcome, Power, SetTest, Verdict
from pretrace.verdicts.flag.concluding import BEYOND, DRIFT, CheckedScores
from pretrace.verdicts.flag.planning import so_many
from pretrace.verdicts.frame import TestWording
from pretrace.verdicts.outcome import ENOUGH, POWER, Conclusion, exposure

_NAMES = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


def word_flagging(end: CheckedScores, **names: str) -> Conclusion:
    """Say the outcome in a sentence, what leads to it, and what would help; `names` are corpus and model."""
    made, power, counts, outcome = end.limits, end.power, end.counts, end.outcome
    fdr, method = made.settings.rate
    together, least = map(so_many, (made.together, end.set_test.least))
    numbers: dict[str, Any] = {
        "unit": made.unit,
        "asked": made.asked,
        "rate": f"{100 * fdr:g}%",
        **names,
    }
    numbers |= {"chosen": counts["flagged_documents"], "texts": plural(counts["flagged"], "text")}
    numbers |= {"together": together, "least": least, "p": end.set_test.p, "method": _NAMES[method]}
    if power is not None:
        numbers |= {"times": times(power.epochs), "chance": power.probability.value}
    failed = [check for check in end.checks if check.status == "failed"]
    unmade = [check for check in end.checks if check.status == "not run" and check.name != DRIFT]
    reasons = [f"{check.title}: no. {check.words}" for check in failed]
    reasons += [say("flag.said.rate", **numbers)] * (outcome != "refused")
    reasons += whole(end.set_test, end.sides.number)
    if outcome == "refused":
        beyond = [one for one in end.checks if one.figures.get(BEYOND) and one not in failed]
        reasons += [f"{one.title}: {one.words}" for one in beyond]
    else:
        reasons += [say("flag.said.seen", **numbers)] * (outcome == "missed")
        reasons += [*tried(outcome, power), *([end.unmeasured] if end.unmeasured else ())]
        reasons += [f"{check.title}: not known. {check.words}" for check in unmade]
    cures = (check.cure for check in (*failed, *unmade) if check.cure)
    advice = (*(_missing(end) if outcome == "missed" else ()), *cures)
    return Conclusion(outcome, say(f"flag.said.{outcome}", **numbers), tuple(reasons), advice)


def _missing(end: CheckedScores) -> Iterator[str]:
    """Say what would help where something could have been missed."""
    made, power = end.limits, end.power
    if power is None:
        yield POWER.format("flagging")
        if (made.together or made.asked + 1) > made.tenth:
            enough = needed(made.tenth, made.asked, *made.settings.rate)
            yield say("flag.said.take", enough=enough, tenth=made.tenth, asked=made.asked, unit=made.unit)
    elif power.probability.value < ENOUGH:
        if power.needed is not None:
            yield say(
                "flag.said.needs", needed=power.needed, known=power.facts["known_needed"], unit=made.unit
            )
        yield say("flag.said.stronger", unit=made.unit)


def tried(outcome: Outcome, power: Power | None) -> Iterator[str]:
    """Say what the flagging would have seen of training; nothing where something stands out."""
    if power is None and outcome not in ("flagged", "set"):
        yield say("flag.said.untried")
    elif power is not None and outcome not in ("flagged", "set"):
        exposed = exposure(power, "document")
        yield say("flag.said.tried", exposure=exposed, chance=power.probability, enough=ENOUGH)
        if outcome == "missed" and power.probability.value >= ENOUGH:
            yield say("outcome.unbounded")


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
    verdict, level = "stands out" if test.rejects else "does not stand out", f"{100 * test.level:g}%"
    yield say("flag.said.whole", verdict=verdict, level=level, documents=documents, test=test)
    if test.explained is not None and test.rejects:
        yield say("flag.said.explained", test=test)


FLAGS, KNOWN = "flags", "known"
"""The names of the tables."""


def flag_words(figures: Mapping[str, Any], *, corpus: str, model: str, unit: str) -> TestWording:
    """The sentences that every flagging has in common."""
    names = {"corpus": corpus, "nonmembers": figures["nonmembers"], "model": called(model)}
    return TestWording.of_kind("flag.verdict", unit=unit, score=figures["score"], **names)


def set_test(found: Verdict) -> SetTest | None:
    """The test of the set."""
    return figure(found, "set_test", SetTest)


def flagged_rows(found: Verdict) -> list[int]:
    """The rows of flagged texts, the highest scores first."""
    texts = found.table(FLAGS)
    return sorted(
        (i for i, yes in enumerate(texts["flagged"].tolist()) if yes), key=lambda i: -texts["score"][i]
    )
