"""Which test can be made with what there is: what each needs, assumes and is worth, what is missing, and the command
to type."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

from pretrace.corpora.opening import operand
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Situation
from pretrace.verdicts.recite import FEWEST as FEWEST_RECITED
from pretrace.verdicts.recite import PIECE

LEVEL = 0.05
"""The level at which the fewest units are counted."""
FEWEST_CHOICES = math.ceil(math.log(LEVEL) / math.log(1 / 2))
"""Choices between two that must all come out one way before chance gives it less often than the level: 5."""
FEWEST_STRINGS = 5
"""Random strings below which no test is made: one or two that the whole world knows would decide it."""
FEWEST_ROWS = 20
"""Rows of a set below which a lot has too few orders to tell apart."""

Kind = Literal["exact", "exact if", "conditional"]
"""The null distribution is known because a lot was drawn for the test ("exact"); it is known if the one assumption
about the texts holds ("exact if"); or it rests on an assumption that can be tested in part only ("conditional")."""


@dataclass(frozen=True, slots=True)
class _Lack:
    """What is missing before a test can be made; `begun` says that a part of it is there."""

    words: str
    begun: bool = False


@dataclass(frozen=True, slots=True)
class OfferedTest:
    """A test that can be asked for. `needs` and `assumes` are sentences for everybody.

    `lack` says what is missing, None where nothing is. `commands` are to be typed in this order; names in braces are
    filled in. `reads` is the least that the model must offer. `effort` orders tests by how easily their material is
    had, the easiest first. `accuses` is False for a test that can end only with "nothing shown".
    """

    name: str
    title: str
    needs: str
    kind: Kind
    assumes: str
    lack: Callable[[Situation], _Lack | None]
    commands: tuple[str, ...]
    effort: int
    reads: Literal["text", "logprobs", "weights"] = "logprobs"
    accuses: bool = True

    @property
    def kind_words(self) -> str:
        """The kind as a reader sees it."""
        return "exact if its assumption holds" if self.kind == "exact if" else self.kind


def fewer(has: float, fewest: int, things: str) -> _Lack | None:
    """What is missing of so many things; None where there are enough."""
    if has >= fewest:
        return None
    missing = math.ceil(fewest - has)
    return _Lack(f"{missing} more {things}" if has else f"{fewest} {things}", has > 0)


def _of_both(one: _Lack | None, other: _Lack | None) -> _Lack | None:
    """What is missing of two things that are both needed; None where nothing is."""
    if one is None or other is None:
        found = one or other
        return None if found is None else _Lack(found.words, begun=True)
    return _Lack(f"{one.words} and {other.words}", one.begun or other.begun)


def _unpublished(has: Situation) -> _Lack | None:
    return fewer(has.unpublished, FEWEST_CHOICES, "texts that are not yet published")


def _unseen(has: Situation) -> _Lack | None:
    return fewer(has.unseen, FEW_DOCUMENTS, "control documents")


def _recited(has: Situation) -> _Lack | None:
    known = fewer(has.unseen, FEWEST_RECITED, "control documents")
    if has.documents and has.documents < FEWEST_RECITED:
        return _of_both(known, fewer(has.documents, FEWEST_RECITED, "documents in question"))
    if has.windowed is not None and has.windowed < FEWEST_RECITED:
        long = f"documents in question with {2 * PIECE} bytes that stand nowhere else"
        return _of_both(known, fewer(has.windowed, FEWEST_RECITED, long))
    return known


def _checkpoint(has: Situation) -> _Lack | None:
    return None if has.checkpoint else _Lack("an earlier checkpoint of the model, or its base")


def _audited(lack: _Lack | None, has: Situation) -> _Lack | None:
    """The same, and documents in question where too few were counted; to have these is no beginning."""
    suspect = fewer(has.documents, FEW_DOCUMENTS, "documents in question") if has.documents else None
    if suspect is None or lack is None:
        return suspect or lack
    return _Lack(f"{suspect.words} and {lack.words}", lack.begun)


CHOICES: tuple[OfferedTest, ...] = (
    OfferedTest(
        "marks",
        "Marking before publication",
        "texts that are not yet published, and another wording of each",
        "exact",
        "A lot decided which wording was published, and the other wordings stayed secret.",
        _unpublished,
        (
            "pretrace mark texts {unpublished} --variant-texts OTHER_WORDING.jsonl --out MARKED --sealed SEALED",
            "pretrace mark check SEALED --commitment HASH --model {model} --out CHECKED",
        ),
        5,
    ),
    OfferedTest(
        "triggers",
        "Trigger sentences",
        "texts that are not yet published; it works with a model that gives only text",
        "exact",
        "A lot decided how each trigger sentence ends, and the ends stand nowhere else.",
        _unpublished,
        (
            "pretrace mark texts {unpublished} --canary --out MARKED --sealed SEALED",
            "pretrace mark check SEALED --prompts PROMPTS.jsonl",
            "pretrace mark check SEALED --commitment HASH --answers ANSWERS.jsonl --out ANSWERED",
        ),
        6,
        reads="text",
    ),
    OfferedTest(
        "order",
        "Order of rows, drawn before publication",
        "a set of rows that is not yet published, or one of items with answer options",
        "exact",
        "A lot decided in which order the rows were published, and the other orders stayed secret.",
        lambda has: fewer(has.unpublished, FEWEST_ROWS, "rows that are not yet published"),
        (
            "pretrace mark order {unpublished} --out MARKED --sealed SEALED",
            "pretrace mark check SEALED --commitment HASH --model {model} --out CHECKED",
        ),
        8,
    ),
    OfferedTest(
        "canaries",
        "Random strings in the texts",
        "random strings that stand in the texts, such as hashes and UUIDs",
        "exact if",
        "The strings were made at random and were published nowhere else.",
        lambda has: fewer(
            has.canaries, FEWEST_STRINGS, "random strings in the texts, such as hashes and UUIDs of version 4"
        ),
        ("pretrace mark canaries {texts} --model {model}{asked} --out CANARIES",),
        7,
        reads="text",
    ),
    OfferedTest(
        "controls-placebo",
        "Control documents and an earlier checkpoint",
        f"{FEW_DOCUMENTS} or more texts of the same kind that are known to be unseen (letters, unpublished or later "
        "pieces), and an earlier checkpoint of the model or its base",
        "conditional",
        "Control documents differ from the texts in training alone; classifiers of words and form test a part of this.",
        lambda has: _audited(_of_both(_unseen(has), _checkpoint(has)), has),
        ("pretrace audit {texts} --heldout {controls} --model {model} --placebo {earlier} --out AUDIT",),
        4,
    ),
    OfferedTest(
        "controls",
        "Control documents",
        f"{FEW_DOCUMENTS} or more texts of the same kind that are known to be unseen (letters, unpublished or later "
        "pieces)",
        "conditional",
        "Control documents differ from the texts in training alone; classifiers of words and form test a part of this.",
        lambda has: _audited(_unseen(has), has),
        ("pretrace audit {texts} --heldout {controls} --model {model} --out AUDIT",),
        1,
        reads="weights",
    ),
    OfferedTest(
        "flag",
        "Which single texts",
        f"{FEW_DOCUMENTS} or more texts of the same kind that are known to be unseen (better some hundreds), to ask of "
        "every single text",
        "conditional",
        "Known non-members differ from the texts in training alone; classifiers of words and form test a part of this.",
        _unseen,
        ("pretrace flag {texts} --nonmembers {controls} --model {model} --out FLAGS",),
        3,
    ),
    OfferedTest(
        "recite",
        "Recitation",
        f"{FEWEST_RECITED} or more texts of the same kind that are known to be unseen; a model that gives only text "
        "can be asked, too",
        "conditional",
        "Texts and controls are of one kind: apart from training, a model prints as much of either.",
        _recited,
        ("pretrace recite {texts} --heldout {controls} --model {model}{written} --out RECITED",),
        12,
        reads="text",
    ),
    OfferedTest(
        "placebo",
        "An earlier checkpoint alone",
        "an earlier checkpoint of the model, or its base",
        "conditional",
        "It accuses nobody: without control documents it can end with “nothing shown” or “inconclusive”.",
        lambda has: _audited(_checkpoint(has), has),
        ("pretrace audit {texts} --model {model} --placebo {earlier} --power --out AUDIT",),
        11,
        reads="weights",
        accuses=False,
    ),
)
"""Every test, the strongest first: exact ones, then those that are exact under one assumption, then the others."""

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

    choice: OfferedTest
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


def _advised(choice: OfferedTest, situation: Situation, names: Names) -> Advised:
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
