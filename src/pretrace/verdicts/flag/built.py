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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.results.rounding import p_value, times
from pretrace.results.serialization import to_plain
from pretrace.results.verdicts import figure, truth
from pretrace.statistics.documents import Numbers
from pretrace.types import Outcome, Power, SetTest, Situation, Skipped, Table, Verdict
from pretrace.verdicts.flag.concluding import ACCUSING, DRIFT, FlagConclusion
from pretrace.verdicts.flag.planning import KNOWN as OF_KNOWN
from pretrace.verdicts.flag.planning import TEXTS as OF_TEXTS
from pretrace.verdicts.flag.planning import FlagPlan
from pretrace.verdicts.outcome import ENOUGH, exposure
from pretrace.verdicts.register import RegisterEntry, enter
from pretrace.verdicts.wording import say

_NAMES = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


@dataclass(frozen=True, slots=True, eq=False)
class FlagWording:
    """The sentences of a flagging, from its conclusion."""

    end: FlagConclusion
    counts: Mapping[str, int]
    corpus: str
    model: str

    def reasons(self, register: Sequence[str]) -> tuple[str, ...]:
        """What leads to the outcome, with what the `register` of this machine says."""
        end, test = self.end, self.end.set_test
        failed = [check for check in end.checks if check.status == "failed"]
        reasons = [f"{check.title}: no. {check.words}" for check in failed]
        if end.outcome == "refused":
            reasons += whole(test, self.counts["documents"])
            told = [one for one in end.checks if one.figures.get("beyond_chance") and one not in failed]
            reasons += [f"{one.title}: {one.words}" for one in told]
        else:
            reasons += [self._rate(), *whole(test, self.counts["documents"])]
            reasons += [self._missed()] * (end.outcome not in ("flagged", "none"))
            reasons += tried(end.outcome, end.power, self.end.why)
            reasons += [f"{check.title}: not known. {check.words}" for check in end.unseen]
        return tuple(dict.fromkeys((*reasons, *register)))

    def advice(self) -> tuple[str, ...]:
        """What would help."""
        failed = [check for check in self.end.checks if check.status == "failed"]
        cures = (check.cure for check in (*failed, *self.end.unseen) if check.cure)
        return tuple(dict.fromkeys((*self._more(), *cures)))

    def statement(self) -> str:
        """The outcome in a sentence."""
        made, outcome, power = self.end.limits, self.end.outcome, self.end.power
        alone = made.asked == 1
        if outcome == "flagged":
            chosen = self.counts["flagged_documents"]
            return self._say(
                "flagged",
                which=f"The one {made.unit}" if alone else f"{chosen:,} of the {made.asked:,} {made.unit}s",
                are="is" if chosen == 1 else "are",
                them="it" if chosen == 1 else "them",
                texts=f" ({self.counts['flagged']:,} texts)" if made.unit != "text" else "",
            )
        if outcome == "set":
            p = self.end.set_test.p
            return self._say("set_of_one" if alone else "set", p="not told" if p is None else p_value(p))
        if outcome == "none" and power is not None:
            return self._say("none", times=times(power.epochs), chance=power.probability.value)
        return self._refusal() if outcome == "refused" else self._open()

    def _say(self, name: str, **numbers: Any) -> str:
        made, least = self.end.limits, self.end.set_test.least
        known = {"unit": made.unit, "asked": made.asked, "known": made.known, "rate": f"{100 * made.fdr:g}%"}
        known |= {"corpus": self.corpus, "model": self.model, "least": least}
        return say(f"flag.said.{name}", **known, **numbers)

    def _rate(self) -> str:
        chosen, unit = self.counts["flagged_documents"], self.end.limits.unit.capitalize()
        here = f", here {expected(chosen, self.end.limits.fdr)}" if self.counts["flagged"] else ""
        return self._say("rate", capital=unit, method=_NAMES[self.end.limits.method], here=here)

    def _missed(self) -> str:
        made, least, alone = self.end.limits, self.end.set_test.least, self.end.limits.resolution.together
        if made.asked == 1:
            seen = self._say("able" if alone else "unable")
        else:
            seen = self._say("nobody") if alone is None else self._say("several", alone=alone)
        together = self._say("no_set")
        if least is not None:
            together = self._say("whole_set") * (made.asked > 1)
        return self._say("missed", ends="; ".join(part for part in (seen, together) if part))

    def _more(self) -> Iterator[str]:
        made, power = self.end.limits, self.end.power
        if self.end.outcome != "missed":
            return
        if power is None:
            yield self._say("measure")
            if (made.resolution.together or made.asked + 1) > made.tenth:
                some = f"a tenth of the {made.unit}s" if made.asked > 10 else f"a {made.unit} alone"
                yield self._say("take", enough=made.enough, some=some)
        elif power.probability.value < ENOUGH:
            many = self._say("out_of_reach")
            if power.needed is not None:
                many = self._say("needs", needed=power.needed, known_needed=power.facts["known_needed"])
            yield self._say("green", many=many)

    def _open(self) -> str:
        made, power, least = self.end.limits, self.end.power, self.end.set_test.least
        many = f"the {made.asked:,} {made.unit}s" if made.asked != 1 else f"the one {made.unit}"
        if power is not None:
            chance = power.probability.value
            rest = self._say(
                "weakly" if chance >= ENOUGH else "found_in", times=times(power.epochs), chance=chance
            )
        elif made.coarse(least):
            noticed = made.noticed(least)
            rest = self._say("blind") if noticed is None else self._say("coarse", noticed=noticed)
        else:
            rest = self._say("unmeasured", why=f" ({_small(self.end.why)[:-1]})" if self.end.why else "")
        return self._say("open", many=many, rest=rest)

    def _refusal(self) -> str:
        unit, failed = self.end.limits.unit, [check for check in self.end.checks if check.status == "failed"]
        if not all(check.name in ACCUSING for check in failed):
            return self._say("differ")
        withheld = self.end.set_test.withheld
        odd = "; ".join(f"“{check.title}” is not so" for check in failed if check.name != DRIFT)
        why = odd or withheld or "differences that nobody could have seen explain it"
        who = f"the {unit}s of “{self.corpus}” as a whole" if withheld else f"{unit}s of “{self.corpus}”"
        return self._say("refused", who=who, why=why)


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


def rows_table(
    end: FlagConclusion,
    rows: Numbers,
    names: tuple[Sequence[str], Sequence[str], Sequence[str]],
    *,
    known: bool,
) -> Table:
    """The table of some rows of one set; `names` are the ids, groups and documents of these as both sets have them. p
    and q are empty where the answer is refused."""
    ids, groups, documents = (
        tuple(one.removeprefix(OF_KNOWN if known else OF_TEXTS) for one in some) for some in names
    )
    sides, drawn = end.sides, end.sides.drawn[rows]
    columns: dict[str, Any] = {"id": ids, "group": groups, "score": sides.rows.scores[rows]}
    if known:
        return Table(KNOWN, {**columns, "drawn": drawn, "document": documents})
    place, told = sides.place[rows], end.outcome != "refused"
    for name, values in (("p", end.p), ("q", end.q)):
        columns[name] = values[place] if told else np.full(len(rows), np.nan)
    columns["flagged"] = truth(end.chosen[place].tolist() if told else [None] * len(rows))
    return Table(FLAGS, {**columns, "document": documents, "drawn": drawn})


def build_flagging(  # noqa: PLR0913 (a verdict is made of many parts)
    end: FlagConclusion,
    plan: FlagPlan,
    *,
    model: str,
    score: str,
    tables: tuple[Table, Table],
    skipped: tuple[Skipped, ...],
    left: int,
    recorded: Mapping[str, Any],
    whole: Mapping[str, Any] | None = None,
) -> Verdict:
    """Build the verdict and note it in the register: `left` texts have no score, of which `skipped` are listed."""
    settings, made, sides, corpus = plan.settings, end.limits, end.sides, plan.both.asked.name
    counts = {
        "texts": int(sides.rows.asked.sum()),
        "documents": sides.number,
        "flagged": int(end.chosen[sides.place].sum()),
        "flagged_documents": int(end.chosen.sum()),
        "known": int((~sides.rows.asked).sum()),
        "known_documents": sides.known,
        "skipped": left,
    }
    figures = {
        "counts": counts,
        "nonmembers": plan.both.known.name,
        "score": score,
        "fdr": settings.fdr,
        "method": made.method,
        "set_test": end.set_test,
        **({"whole": whole} if whole else {}),
    }
    words = FlagWording(end, counts, corpus, model)
    weights = {role: str(one.get("weights")) for role, one in recorded.get("models", {}).items()}
    target = weights.pop("target", model)
    matters = {**settings.matters, "known": plan.draws.known, "models": weights}
    entry = RegisterEntry("flag", plan.draws.sketch, target, matters, model)
    register = enter(entry, settings.level, end.set_test.p, end.outcome, keep=settings.cache)
    return flag_verdict(
        corpus=corpus,
        model=model,
        outcome=end.outcome,
        statement=words.statement(),
        reasons=words.reasons(register),
        advice=words.advice(),
        register=register,
        level=settings.level,
        p=end.set_test.p,
        unit=made.unit,
        figures=to_plain(figures, "figures"),
        tables=tables,
        checks=end.checks,
        notes=made.notes,
        skipped=skipped,
        planted=end.power,
        settings=recorded,
    )


def flag_verdict(*, corpus: str, model: str, figures: Mapping[str, Any], unit: str, **fields: Any) -> Verdict:
    """A flagging from its figures, with the words that every flagging has in common. ValueError where a score is not
    finite, or the outcome is not that of the texts and of the test of the set."""
    counts = figures["counts"]
    names = {"corpus": corpus, "nonmembers": figures["nonmembers"], "model": called(model)}
    made = Verdict(
        test="flag",
        corpus=corpus,
        model=model,
        exact=False,
        assumption=say("flag.verdict.assumption"),
        hypothesis=say("flag.verdict.hypothesis", unit=unit),
        statistic=f"the mean {figures['score']} of a document",
        units=counts["documents"],
        unit=unit,
        question=say("flag.verdict.question", **names),
        compared=(say("flag.verdict.compared", **names),),
        figures=figures,
        situation=Situation(documents=counts["documents"], unseen=counts["known_documents"]),
        **fields,
    )
    for name in ("p", "q"):
        if not (np.isnan if made.outcome == "refused" else np.isfinite)(made.table(FLAGS)[name]).all():
            raise ValueError(f"a flagging with the outcome {made.outcome} holds wrong values of {name}")
    if not all(np.isfinite(table["score"]).all() for table in made.tables):
        raise ValueError("a score of a flagging is NaN or infinite")
    if (made.outcome == "flagged") != (counts["flagged"] > 0):
        raise ValueError(f"{counts['flagged']} texts are flagged where the outcome is {made.outcome}")
    if made.outcome == "set" and (made.p is None or made.p > made.level):
        raise ValueError("a flagging says that the set stands out, and its test of the set does not")
    return made


def set_test(found: Verdict) -> SetTest | None:
    """The test of the set."""
    return figure(found, "set_test", SetTest)


def flagged_rows(found: Verdict) -> list[int]:
    """The rows of flagged texts, the highest scores first."""
    texts = found.table(FLAGS)
    return sorted(
        (i for i, yes in enumerate(texts["flagged"].tolist()) if yes), key=lambda i: -texts["score"][i]
    )
