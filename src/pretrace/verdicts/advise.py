"""Which test can be made with what there is: what applies, what is missing, and the command to type."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

from pretrace.corpora.opening import operand
from pretrace.types import Situation
from pretrace.verdicts.choices import CHOICES, Choice

UNMEASURED = "not measured"
_OFFERS = ("text", "logprobs", "weights")
_BARRED = {
    "logprobs": "it reads the log-probabilities of a text, and this model gives only text",
    "weights": "it needs the weights, which this model does not offer",
}

State = Literal["applies", "could", "cannot"]


@dataclass(frozen=True, slots=True)
class Names:
    """Names to put into the commands: files, the model, and columns of the file."""

    texts: str = "TEXTS.jsonl"
    model: str = "MODEL"
    controls: str = "CONTROLS.jsonl"
    unpublished: str = "UNPUBLISHED.jsonl"
    earlier: str = "EARLIER"
    columns: tuple[str, ...] = ()
    """Options that say where in the file things stand; they follow its name."""
    options: str = "options"

    @property
    def quoted(self) -> Mapping[str, str]:
        """Each as a shell reads it."""
        plain = [name for name in self.__slots__ if name != "columns"]
        found = {name: shlex.quote(getattr(self, name)) for name in plain}
        return {**found, "texts": shlex.join([operand(self.texts), *self.columns])}


@dataclass(frozen=True, slots=True)
class Needed:
    """What a test is worth, as measured: units for power 0.8 where the model read the texts once and four times (None
    where that was not reached; `more_than_one` and `more_than_four` are then the most units that were tried, None where
    none were). Of tests of texts that the model did not read, "3/300" each: how many `rejected` (p at or below 5%),
    how many `accused` after all checks, and how many of the kind with the most (`worst`, with that kind in brackets);
    None where that was not measured."""

    unit: str
    one: int | None
    four: int | None
    rejected: str | None
    accused: str | None
    worst: str | None = None
    measured_on: str = ""
    more_than_one: int | None = None
    more_than_four: int | None = None

    def documents(self, copies: Literal[1, 4]) -> str:
        """The units for power 0.8 in words."""
        number, most = (self.one, self.more_than_one) if copies == 1 else (self.four, self.more_than_four)
        if number is None and most is None:
            return UNMEASURED
        shown = number if number is not None else most
        units = f"{shown:,} {self.unit}{'' if shown == 1 else 's'}"
        return units if number is not None else f"more than {units}"

    @property
    def power(self) -> str:
        """The units for power 0.8 in words, for texts that were read once and four times."""
        if self.documents(1) == self.documents(4) == UNMEASURED:
            return UNMEASURED
        return f"{self.documents(1)} where the model read them once, {self.documents(4)} where four times"

    @property
    def alarms(self) -> tuple[str, str, str]:
        """How many rejected, how many accused, and the kind with the most accusations, in words."""
        return tuple(_counted(one) for one in (self.rejected, self.accused, self.worst))  # type: ignore[return-value]


def _counted(written: str | None) -> str:
    """ "3/2000 (a kind)" in words: "3 of 2,000 (a kind)"."""
    if written is None:
        return UNMEASURED
    counts, bracket, kind = written.partition(" (")
    some, every = (f"{int(one):,}" for one in counts.split("/"))
    return f"{some} of {every}{bracket}{kind}"


@dataclass(frozen=True, slots=True)
class Advised:
    """A test for one case: whether it applies, could be made once what is `missing` is there, or cannot be made with
    this model (then `missing` says why); and the commands with what is known filled in."""

    choice: Choice
    state: State
    missing: str
    begun: bool
    needed: Needed
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """All tests for one case, those that apply first, each group in the order of strength."""

    situation: Situation
    rows: tuple[Advised, ...]

    @property
    def possible(self) -> bool:
        """Whether a verdict is possible with what there is."""
        return any(row.state == "applies" for row in self.rows)

    @property
    def easiest(self) -> Advised | None:
        """The test whose missing material is had most easily: one that is begun, else that of the least effort."""
        could = [row for row in self.rows if row.state == "could" and row.choice.accuses]
        return min(could, key=lambda row: (not row.begun, row.choice.effort), default=None)


def advise(
    situation: Situation,
    corpus: str = "TEXTS.jsonl",
    *,
    model: str = "MODEL",
    names: Names | None = None,
) -> Advice:
    """The tests for one case, with what each needs and the command to type, in which `corpus` and `model` stand, and
    what else is named in `names`."""
    known = replace(names or Names(), texts=corpus, model=model)
    found = [_advised(choice, situation, known) for choice in CHOICES]
    order: tuple[State, ...] = ("applies", "could", "cannot")
    return Advice(situation, tuple(sorted(found, key=lambda row: order.index(row.state))))


@cache
def needed() -> Mapping[str, Needed]:
    """What was measured of each test, by its name (`needed.json`, written by `benchmarks.designs.table`)."""
    text = files("pretrace.verdicts").joinpath("needed.json").read_text(encoding="utf-8")
    return {name: Needed(**one) for name, one in json.loads(text).items()}


def _advised(choice: Choice, situation: Situation, names: Names) -> Advised:
    lack = choice.lack(situation)
    barred = _OFFERS.index(situation.access) < _OFFERS.index(choice.reads)
    missing = _BARRED[choice.reads] if barred else lack.words if lack else ""
    text = " --access text"
    # a server's log-probabilities do not tell which tokens are the likeliest, so that recite asks it for text
    asked = {
        "asked": text if situation.access == "text" else "",
        "written": text if situation.access != "weights" else "",
    }
    return Advised(
        choice=choice,
        state="cannot" if barred else "could" if lack else "applies",
        missing=missing,
        begun=lack is not None and lack.begun,
        needed=needed()[choice.name],
        commands=tuple(command.format_map({**names.quoted, **asked}) for command in choice.commands),
    )
