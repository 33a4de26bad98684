"""Which test can be made with what there is: what each needs, assumes and is worth, what is missing, and the command
to type."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pretrace.backends import count_parameters
from pretrace.backends.serving.address import served_kind, text_kind
from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.columns import FURTHER
from pretrace.corpora.opening import operand, repeated_column
from pretrace.errors import TextsError
from pretrace.registry import find_test
from pretrace.results.rounding import plural
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Corpus, Situation
from pretrace.verdicts import register
from pretrace.verdicts.wording import fill, say, sentences_of

LEVEL = 0.05
"""The level at which the fewest units are counted."""
FEWEST_CHOICES = math.ceil(math.log(LEVEL) / math.log(1 / 2))
"""Choices between two that must all come out one way before chance gives it less often than the level: 5."""
FEWEST_STRINGS = 5
"""Random strings below which no test is made: one or two that the whole world knows would decide it."""
FEWEST_RECITED = 5
"""Documents with a window, at least: with fewer no sign-flip test can reach 5%."""
PIECE = 200
"""UTF-8 bytes of the beginning and of the end of a window, about 50 tokens: bytes, so every model is asked the same."""
FEWEST_ROWS = 20
"""Rows of a set below which a lot has too few orders to tell apart."""

Kind = Literal["exact", "exact if", "conditional"]
"""How the null distribution is known: by a lot, by a lot if one assumption holds, or by assumptions tested in part."""


@dataclass(frozen=True, slots=True)
class OfferedTest:
    """A test that can be asked for: its `commands` in order, names in braces filled in, what it `reads` at least, the
    `effort` to have its material; unless it `accuses` it can end only with "nothing shown"."""

    name: str
    title: str
    needs: str
    kind: Kind
    assumes: str
    commands: tuple[str, ...]
    effort: int
    reads: Literal["text", "logprobs", "weights"] = "logprobs"
    accuses: bool = True

    @property
    def kind_words(self) -> str:
        """The kind as a reader sees it."""
        return "exact if its assumption holds" if self.kind == "exact if" else self.kind


_STRINGS = "random strings in the texts, such as hashes and UUIDs of version 4"
_AUDITS = ("controls-placebo", "controls", "placebo")
_WINDOWED = f"documents in question with {2 * PIECE} bytes that stand nowhere else"


def _find_missing(test: str, has: Situation) -> tuple[str, bool]:
    """What is missing for a test, in words ("" where nothing is), and whether a part of it is there."""
    unseen = has.unseen, FEW_DOCUMENTS, "control documents"
    texts = has.unpublished, FEWEST_CHOICES, "texts that are not yet published"
    earlier = int(has.checkpoint), 1, "an earlier checkpoint of the model, or its base"
    material = {
        "marks": [texts],
        "triggers": [texts],
        "order": [(has.unpublished, FEWEST_ROWS, "rows that are not yet published")],
        "canaries": [(has.canaries, FEWEST_STRINGS, _STRINGS)],
        "controls-placebo": [unseen, earlier],
        "controls": [unseen],
        "flag": [unseen],
        "recite": [(has.unseen, FEWEST_RECITED, "control documents")],
        "placebo": [earlier],
    }[test]
    suspect: tuple[float, int, str] = (math.inf, 0, "")  # the documents in question, where they were counted
    if test in _AUDITS or test == "recite":
        fewest = FEW_DOCUMENTS if test in _AUDITS else FEWEST_RECITED
        if 0 < has.documents < fewest:
            suspect = has.documents, fewest, "documents in question"
        elif test == "recite" and has.windowed is not None and has.windowed < fewest:
            suspect = has.windowed, fewest, _WINDOWED
    lacking: list[tuple[float, int, str]] = [one for one in material if one[0] < one[1]]
    begun = any(some > 0 for some, _, _ in material) or (
        suspect[1] > 0 < suspect[0] and (test == "recite" or not lacking)
    )
    lacking = [suspect, *lacking] if test in _AUDITS else [*lacking, suspect]
    said = (
        what if fewest == 1 else f"{math.ceil(fewest - some)} {'more ' if some else ''}{what}"
        for some, fewest, what in lacking
        if some < fewest
    )
    return " and ".join(said), begun


CHOICES = tuple(
    OfferedTest(
        name=name, **{**said, "needs": fill(said["needs"], documents=FEW_DOCUMENTS, recited=FEWEST_RECITED)}
    )
    for name, said in sentences_of("choices").items()
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
    """What a test is worth, as measured: units for power 0.8 where texts were read once and four times (None where not
    reached; `more_than_one` and `more_than_four` were tried), and how many tests of unread texts ("3/300") were
    `rejected` (p at or below 5%) and `accused` after all checks, and of the kind with the most (`worst`)."""

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
        """How many rejected, how many accused, and the kind with the most accusations, in words: "3/2000 (a kind)" as
        "3 of 2,000 (a kind)"."""

        def counted(written: str | None) -> str:
            if written is None:
                return UNMEASURED
            counts, bracket, kind = written.partition(" (")
            return f"{' of '.join(f'{int(one):,}' for one in counts.split('/'))}{bracket}{kind}"

        return counted(self.rejected), counted(self.accused), counted(self.worst)


@dataclass(frozen=True, slots=True)
class Advised:
    """A test for one case, what is `missing` or why it cannot be made, and its commands with known names filled in."""

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
    situation: Situation, corpus: str = "TEXTS.jsonl", *, model: str = "MODEL", names: Names | None = None
) -> Advice:
    """List the tests for one case, with the commands, in which `corpus`, `model` and `names` stand."""
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
    lack, begun = _find_missing(choice.name, situation)
    barred = _OFFERS.index(situation.access) < _OFFERS.index(choice.reads)
    # a server's log-probabilities do not tell which tokens are the likeliest, so that recite asks it for text
    wanted = {"asked": situation.access == "text", "written": situation.access != "weights"}
    asked = {name: " --access text" * so for name, so in wanted.items()}
    return Advised(
        choice=choice,
        state="cannot" if barred else "could" if lack else "applies",
        missing=_BARRED[choice.reads] if barred else lack,
        begun=bool(lack) and begun,
        needed=needed()[choice.name],
        commands=tuple(command.format_map({**names.quoted, **asked}) for command in choice.commands),
    )


_RANDOM = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32,128}\b", re.IGNORECASE)
"""UUIDs, and hexadecimal hashes from MD5 to SHA-512."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a file settles of the situation, in sentences too, with its texts and their columns, also as options."""

    situation: Situation
    names: Names
    said: tuple[str, ...]
    corpus: Corpus
    columns: Columns
    options: Mapping[str, Any]


def look(source: str, columns: Columns, corpus: Corpus | None = None) -> Seen:
    """Look at what stands in `source`, or in its texts, where they were read already; errors as for `open_corpus`."""
    options: Mapping[str, Any] = {}
    if corpus is None:
        try:
            corpus = open_corpus(source, columns)
        except TextsError:
            # a column called label may say something else than membership, which is no matter here
            columns = replace(columns, label="")
            corpus = open_corpus(source, columns)
        four = {name: getattr(columns, name) for name in ("text", "label", "id", "group")}
        more = {name: value for name in FURTHER if (value := getattr(columns, name)) and name != "chat_of"}
        options = {f"{name}_column": value for name, value in four.items() if value is not None} | more
    documents = len({text.document for text in corpus.texts})
    canaries = len({one.lower() for text in corpus.texts for one in _RANDOM.findall(text.text)})
    said = [f"{plural(len(corpus), 'text')} of {plural(documents, 'document')}."]
    if canaries:
        said.append(f"{plural(canaries, 'random string')} (UUIDs, hashes) in the texts.")
    grouped = any(text.group for text in corpus.texts)
    if not grouped and (name := repeated_column(Path(source), FEW_DOCUMENTS)):
        said.append(say("ask.repeat", name=name, shown=repr(name)))
    if known := register.known(text.text for text in corpus.texts):
        made = "1 test of these texts was" if len(known) == 1 else f"{len(known):,} tests of these texts were"
        number = len(known) + 1
        numbers = {"number": number, "ordinal": register.ordinal(number), "each": LEVEL / number}
        said += [say("ask.tested", made=made, level=LEVEL, **numbers), *known]
    windowed = recite.windowed(corpus) if (recite := find_test("recite")) else None
    has = Situation(documents=documents, canaries=canaries, windowed=windowed)
    return Seen(has, Names(columns=as_words(options)), tuple(said), corpus, columns, options)


def as_words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Options as they are typed: `True` is a switch, a tuple an option that is given more than once.

    >>> as_words({"text_column": "body", "power": True, "corpus": ("a", "b")})
    ('--text-column', 'body', '--power', '--corpus', 'a', '--corpus', 'b')
    """
    words: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, tuple) else (value,):
            words += [flag] if one is True else [flag, str(one)]
    return tuple(words)


def situate(has: Situation, model: str, *, unseen: int = 0, checkpoint: bool = False) -> Situation:
    """Add control documents, what the model offers, and its size, as its name and the headers of its files tell."""
    access: Any = "logprobs" if served_kind(model) else "text" if text_kind(model) else "weights"
    size = float(count_parameters(model))
    return replace(has, unseen=unseen, checkpoint=checkpoint, access=access, parameters=size)
