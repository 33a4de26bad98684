"""The outcome in words: "flagged" and "consistent with", never more than a rate can carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pretrace.results.rounding import p_value, times
from pretrace.types import Outcome, Power, SetTest
from pretrace.verdicts.flag.concluding import ACCUSING, DRIFT, FlagConclusion
from pretrace.verdicts.flag.planning import DetectionLimits
from pretrace.verdicts.outcome import ENOUGH, exposure

_NAMES = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


@dataclass(frozen=True, slots=True, eq=False)
class FlagWording:
    """The sentences of a flagging, from its conclusion; `why` says why the power was not measured."""

    end: FlagConclusion
    made: DetectionLimits
    counts: Mapping[str, int]
    fdr: float
    corpus: str
    model: str
    why: str = ""

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
            reasons += tried(end.outcome, end.power, self.why)
            reasons += [f"{check.title}: not known. {check.words}" for check in end.unseen]
        return tuple(dict.fromkeys((*reasons, *register)))

    def advice(self) -> tuple[str, ...]:
        """What would help."""
        failed = [check for check in self.end.checks if check.status == "failed"]
        cures = (check.cure for check in (*failed, *self.end.unseen) if check.cure)
        return tuple(dict.fromkeys((*self._more(), *cures)))

    def statement(self) -> str:
        """The outcome in a sentence."""
        made, model, outcome = self.made, self.model, self.end.outcome
        unit, many, of = made.unit, f"{made.asked:,} {made.unit}s", f"“{self.corpus}”"
        if outcome == "flagged":
            chosen = self.counts["flagged_documents"]
            which = f"{chosen:,} of the {many}" if made.asked > 1 else f"The one {unit}"
            are, them = ("is", "it") if chosen == 1 else ("are", "them")
            texts = f" ({self.counts['flagged']:,} texts)" if unit != "text" else ""
            return (
                f"{which} of {of} {are} flagged{texts}: what {model} makes of {them} is consistent with training on "
                f"{them}, or on copies."
            )
        if outcome == "set":
            p = self.end.set_test.p
            told = "not told" if p is None else p_value(p)
            if made.asked == 1:
                return (
                    f"The one {unit} of {of} stands out (p = {told}) though it is not flagged: what {model} makes of "
                    "it is consistent with training on it, or on copies."
                )
            return (
                f"No single {unit} is flagged, but the {many} of {of} as a whole stand out from the known non-members "
                f"(p = {told}): what {model} makes of them is consistent with training on some of them, or on copies. "
                "Which ones cannot be said."
            )
        if outcome == "none" and (power := self.end.power) is not None:
            return (
                f"Nothing stands out: none of the {many} of {of} is flagged, and what {model} makes of them as a whole "
                "does not stand out from what it makes of the known non-members. This excludes training like the one "
                f"that was tried: a tenth of the documents, read {times(power.epochs)} by a copy of the model; "
                f"{power.probability.value:.0%} of such flaggings find it. It does not exclude weaker training: fewer "
                "documents, other versions of them, or texts that were read long before the training ended."
            )
        return self._refusal() if outcome == "refused" else self._open()

    def _rate(self) -> str:
        rate, unit = f"{100 * self.fdr:g}%", self.made.unit
        words = (
            f"{unit.capitalize()}s are flagged by {_NAMES[self.made.method]} at a rate of {rate}, set beforehand: of "
            f"the {unit}s flagged in this way, on average at most {rate} are false"
        )
        chosen = self.counts["flagged_documents"]
        return f"{words}, here {expected(chosen, self.fdr)}." if self.counts["flagged"] else f"{words}."

    def _missed(self) -> str:
        made, least, alone = self.made, self.end.set_test.least, self.made.resolution.together
        if made.asked == 1:
            able = "it would have been flagged had it stood above all known ones"
            seen = able if alone else "it could not be flagged"
        elif alone is None:
            seen = f"no {made.unit} could have been flagged"
        else:
            seen = f"{alone:,} {made.unit}s or more that stand above all known ones are flagged"
        together = "the set as a whole could not have stood out"
        if least is not None:
            together = f"from {least:,} such {made.unit}s on the set as a whole stands out" * (made.asked > 1)
        ends = "; ".join(part for part in (seen, together) if part)
        return f"What could have been seen: {ends}. Fewer, or ones that left a weaker trace, could have been missed."

    def _more(self) -> Iterator[str]:
        made, power = self.made, self.end.power
        if self.end.outcome != "missed":
            return
        if power is None:
            yield (
                "Measure what the flagging would have seen: a copy of the model is trained on a tenth of the texts. "
                "[--power]"
            )
            if (made.resolution.together or made.asked + 1) > made.tenth:
                some = f"a tenth of the {made.unit}s" if made.asked > 10 else f"a {made.unit} alone"
                yield f"Take at least {made.enough(self.fdr):,} known documents: then {some} could be flagged."
        elif power.probability.value < ENOUGH:
            many = (
                f"is out of reach with this score, with more {made.unit}s, too"
                if power.needed is None
                else f"needs about {power.needed:,} {made.unit}s and {power.facts['known_needed']:,} known; "
                f"{made.asked:,} and {made.known:,} are there"
            )
            yield (
                f"Green (exit code 0) {many}. Take a stronger score (--score ref with --reference-model, an earlier "
                f"checkpoint), or a --placebo, or exclude only {made.unit}s that were read often (--power-epochs 8)."
            )

    def _open(self) -> str:
        made, power, least = self.made, self.end.power, self.end.set_test.least
        many = f"the {made.asked:,} {made.unit}s" if made.asked != 1 else f"the one {made.unit}"
        if power is not None:
            chance = power.probability.value
            rest = f"a tenth of them, read {times(power.epochs)}, would be found in {chance:.0%} of such flaggings"
            if chance >= ENOUGH:
                rest = (
                    "the texts stand out a little, as they would if fewer than a tenth of them had been read"
                )
        elif made.coarse(least):
            noticed = made.noticed(least)
            rest = f"with {made.known:,} known documents " + (
                f"at least {noticed:,} {made.unit}s had to stand above all of them before that was noticed"
                if noticed is not None
                else f"no {made.unit} could have been flagged"
            )
        else:
            why = f" ({_small(self.why)[:-1]})" if self.why else ""
            rest = f"what this flagging would have seen was not measured{why}"
        return f"Could have been missed: nothing stands out among {many} of “{self.corpus}”, but {rest}."

    def _refusal(self) -> str:
        unit, failed = self.made.unit, [check for check in self.end.checks if check.status == "failed"]
        if not all(check.name in ACCUSING for check in failed):
            return (
                f"Refused: the texts of “{self.corpus}” and the known non-members differ in a way that is not of "
                f"{self.model}'s making, so that standing out from them would not mean having been seen."
            )
        withheld = self.end.set_test.withheld
        odd = "; ".join(f"“{check.title}” is not so" for check in failed if check.name != DRIFT)
        why = odd or withheld or "differences that nobody could have seen explain it"
        who = f"the {unit}s of “{self.corpus}” as a whole" if withheld else f"{unit}s of “{self.corpus}”"
        return (
            f"Refused: {who} stand out from the known non-members, but that need not be {self.model}'s making, since "
            f"{why}."
        )


def tried(outcome: Outcome, power: Power | None, why: str = "") -> Iterator[str]:
    """What the flagging would have seen of training, in sentences; nothing where something stands out."""
    if outcome in ("flagged", "set"):
        return
    if power is None:
        yield (
            f"What this flagging could have missed was not measured{f': {_small(why)}' if why else '.'} That nothing "
            "stands out does not show that no text was seen."
        )
        return
    chance = power.probability
    yield (
        f"Training was tried: {exposure(power, 'document')}. Of flaggings like this one in which a tenth of the "
        f"documents were read like that, {chance.value:.0%} [{chance.low:.0%}, {chance.high:.0%}] would have ended "
        f"with an accusation; an all-clear takes {ENOUGH:.0%}."
    )


def expected(chosen: int, fdr: float) -> str:
    """How many of the flagged documents may be false on average, in words.

    >>> expected(40, 0.05), expected(3, 0.05), expected(1, 0.1)
    ('about 2 of the 40', 'less than one of the 3', 'less than one of the 1')
    """
    number = fdr * chosen
    return f"less than one of the {chosen:,}" if number < 0.95 else f"about {number:,.0f} of the {chosen:,}"


def whole(test: SetTest | None, documents: int) -> Iterator[str]:
    """What the test of the set of so many documents says, in sentences."""
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
        f"{documents:,} documents {above} above the line that one in twenty lies above by chance; about "
        f"{test.expected:,.0f} would be expected there. Of sets that were not seen, at most {level} stand out."
    )
    if test.explained is not None and test.unseen is not None and test.rejects:
        yield (
            f"Were all texts in question easier for any model by more than {test.explained:.2f} standard deviations of "
            "the score, that alone would explain it. The checks could not have excluded a drift of "
            f"{test.unseen:.2f}, which is {'less' if test.explained > test.unseen else 'not less'}."
        )


def _small(why: str) -> str:
    return why[:1].lower() + why[1:]
