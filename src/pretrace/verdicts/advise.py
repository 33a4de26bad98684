"""Which test can be made with what there is: what each needs, assumes and is worth, what is missing, and the command
to type.

And how likely a test finds what a model read, before anything runs: from measured figures, each with its source.
`measured.json` holds published AUCs of single documents by copies, for models whose training data are known;
`measured_here.json` those that a law of ours foresees for small models, each with a range whose cover was measured on
cells that were left out (`python -m benchmarks.audits.dilution` writes it). Between two sizes of one study the effect
is read off a straight line in the logarithm of the parameters; outside of them another size stands, and the words say
so. From an AUC to the power of the test: `statistics.power.auc_power`.

`chance` makes the sentence and `picture` the picture, for plans, `ask`, the page and an inconclusive report.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from pretrace.backends import count_parameters
from pretrace.backends.naming import served_kind, text_kind
from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.opening import operand, repeated_column
from pretrace.corpora.reading import FURTHER
from pretrace.errors import TextsError
from pretrace.registry import find_test
from pretrace.results.wording import fill, plural, say, sentences_of
from pretrace.settings import join_keys
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.statistics.permutation import auc_documents, auc_power
from pretrace.types import Corpus, Estimate, Situation
from pretrace.verdicts import register

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
"""Rows of a set below which a draw has too few orders to tell apart."""


@dataclass(frozen=True, slots=True)
class OfferedTest:
    """A test that can be asked for: its `commands` in order, names in braces filled in, what it `reads` at least, the
    `effort` to have its material; unless it `accuses` it can end only with "nothing shown". `kind_words` says how the
    null distribution is known: by a random draw, by one with an assumption, or by assumptions tested in part."""

    name: str
    title: str
    needs: str
    kind_words: Literal["exact", "exact if its assumption holds", "conditional"]
    assumes: str
    commands: tuple[str, ...]
    effort: int
    reads: Literal["text", "logprobs", "weights"] = "logprobs"
    accuses: bool = True


_STRINGS = "random strings in the texts, such as hashes and UUIDs of version 4"
_AUDITS = ("controls-placebo", "controls", "placebo")
_WINDOWED = f"documents in question with {2 * PIECE} bytes that stand nowhere else"


def _find_missing(test: str, has: Situation) -> tuple[str, bool]:
    """What is missing for a test, in words ("" where nothing is), and whether a part of its material is there."""
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
    recites, takes = test == "recite", list(material)
    least = FEWEST_RECITED if recites else FEW_DOCUMENTS if test in _AUDITS else 0
    if 0 < has.documents < least:  # the documents in question, where they were counted
        takes.insert(len(takes) if recites else 0, (has.documents, least, "documents in question"))
    elif recites and has.windowed is not None:
        takes.append((has.windowed, least, _WINDOWED))
    lacking = [(some, fewest, what) for some, fewest, what in takes if some < fewest]
    said = (
        what if fewest == 1 else f"{fewest - some} {'more ' if some else ''}{what}"
        for some, fewest, what in lacking
    )
    begun = any(some for some, *_ in material) or (recites and any(some for some, *_ in lacking))
    return " and ".join(said), begun


@cache
def offered_tests() -> tuple[OfferedTest, ...]:
    """List every test, the strongest first: exact ones, those that are exact under one assumption, the others."""
    least = {"documents": FEW_DOCUMENTS, "recited": FEWEST_RECITED}
    found = ((name, said, fill(said["needs"], **least)) for name, said in sentences_of("choices").items())
    return tuple(OfferedTest(name=name, **{**said, "needs": needs}) for name, said, needs in found)


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
        shown = most if number is None else number
        return f"{'more than ' * (number is None)}{shown:,} {self.unit}{'s' * (shown != 1)}"

    @property
    def power(self) -> str:
        """The units for power 0.8 in words, for texts that were read once and four times."""
        if self.documents(1) == self.documents(4) == UNMEASURED:
            return UNMEASURED
        return f"{self.documents(1)} where the model read them once, {self.documents(4)} where four times"


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
    known, access = replace(names or Names(), texts=corpus, model=model), situation.access
    typed = {name: shlex.quote(getattr(known, name)) for name in known.__slots__ if name != "columns"}
    typed["texts"] = shlex.join([operand(corpus), *known.columns])
    # a server's log-probabilities do not tell which tokens are the likeliest, so that recite asks it for text
    typed |= {
        "asked": " --access text" * (access == "text"),
        "written": " --access text" * (access != "weights"),
    }
    found = []
    for choice in offered_tests():
        lack, begun = _find_missing(choice.name, situation)
        barred = _OFFERS.index(access) < _OFFERS.index(choice.reads)
        one = Advised(
            choice=choice,
            state="cannot" if barred else "could" if lack else "applies",
            missing=_BARRED[choice.reads] if barred else lack,
            begun=bool(lack) and begun,
            needed=needed()[choice.name],
            commands=tuple(command.format_map(typed) for command in choice.commands),
        )
        found.append(one)
    order: tuple[State, ...] = ("applies", "could", "cannot")
    return Advice(situation, tuple(sorted(found, key=lambda row: order.index(row.state))))


def _measured(name: str) -> Any:
    return json.loads(files("pretrace.verdicts").joinpath(name).read_text(encoding="utf-8"))


@cache
def needed() -> Mapping[str, Needed]:
    """What was measured of each test, by its name (`needed.json`, written by `benchmarks.designs.table`)."""
    return {name: Needed(**one) for name, one in _measured("needed.json").items()}


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


def look(source: str, columns: Columns) -> Seen:
    """Look at what stands in `source`; errors as for `open_corpus`."""
    try:
        corpus = open_corpus(source, columns)
    except TextsError:
        # a column called label may say something else than membership, which is no matter here
        columns = replace(columns, label="")
        corpus = open_corpus(source, columns)
    four = {name: getattr(columns, name) for name in ("text", "label", "id", "group")}
    more = {name: value for name in FURTHER if (value := getattr(columns, name))}
    template = {name: more.pop(name) for name in ("template",) if name in more}
    named = {name: value for name, value in four.items() if value is not None}
    options = template | {name: some for name, some in (("columns", named), ("reading", more)) if some}
    documents = len({text.document for text in corpus.texts})
    canaries = len({one.lower() for text in corpus.texts for one in _RANDOM.findall(text.text)})
    said = [f"{plural(len(corpus), 'text')} of {plural(documents, 'document')}."]
    if canaries:
        said.append(f"{plural(canaries, 'random string')} (UUIDs, hashes) in the texts.")
    grouped = any(text.group for text in corpus.texts)
    if not grouped and (name := repeated_column(Path(source), FEW_DOCUMENTS)):
        said.append(say("ask.repeat", name=name, shown=repr(name)))
    if known := register.known(text.text for text in corpus.texts):
        said += [say("ask.tested", so_many=register.words_of(len(known) + 1, LEVEL)), *known]
    windowed = recite.windowed(corpus) if (recite := find_test("recite")) else None
    has = Situation(documents=documents, canaries=canaries, windowed=windowed)
    return Seen(has, Names(columns=as_words(options)), tuple(said), corpus, columns, options)


def as_words(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Options as they are typed: `True` is a switch, a tuple an option that is given more than once, a mapping one with
    keys.

    >>> as_words({"columns": {"text": "body"}, "power": True, "corpus": ("a", "b")})
    ('--columns', 'text=body', '--power', '--corpus', 'a', '--corpus', 'b')
    """
    words: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        value = join_keys(value) if isinstance(value, Mapping) else value
        for one in value if isinstance(value, tuple) else (value,):
            words += [flag] if one is True else [flag, str(one)]
    return tuple(words)


def situate(has: Situation, model: str, *, unseen: int = 0, checkpoint: bool = False) -> Situation:
    """Add control documents, what the model offers, and its size, as its name and the headers of its files tell."""
    access: Any = "logprobs" if served_kind(model) else "text" if text_kind(model) else "weights"
    size = float(count_parameters(model))
    return replace(has, unseen=unseen, checkpoint=checkpoint, access=access, parameters=size)


COPIES = (1, 4, 16, 64)
"""How often a text may have been read, in the picture."""
COMPARING = ("controls-placebo", "controls", "flag")
"""The tests that compare documents with others that were not read: what was measured of documents is of them."""
_SUPPOSED = 1e9
"""Parameters where nobody knows them."""
_LEAST_SIZE, _MOST_SIZE = 0.7, 1.5
"""A size is a measured one from 0.7 to 1.5 times it."""
WIDTH = 16
_HIGHEST = 0.9995
"""An AUC that was given as 1 counts as this one: no finite effect has 1."""


@dataclass(frozen=True, slots=True)
class _Study:
    """The AUC of documents (lowest and highest by kind of text) by how often a model of these `parameters` and `tokens`
    read them; `unseen` is that of none. Ours have the AUC of a law between the ends, with at most `beside` times other
    text, and how many cells that were left out lay in their range, of how many (`held`)."""

    name: str
    source: str
    parameters: float
    tokens: float
    unseen: tuple[float, float]
    auc: Mapping[int, tuple[float, ...]]
    beside: int = 0
    held: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _ExpectedRow:
    """What is expected where a text was read so many times: the AUC of documents, the share of tests that find it at
    5%, and the documents on each side for 0.8 (20 at least: fewer make no test; None where ten million fail)."""

    copies: int
    auc: Estimate
    chance: Estimate
    needed: int | None


@dataclass(frozen=True, slots=True)
class _Expected:
    """What is expected: the parameters behind study `name` (`size`), the model's (`own`), and the `basis` in words."""

    name: str
    documents: int
    controls: int
    own: float | None
    size: float
    rows: tuple[_ExpectedRow, ...]
    basis: str
    spread: str


@cache
def studies(name: str = "measured.json") -> tuple[_Study, ...]:
    """What others measured, the smallest models first."""
    found = (
        _Study(**{**one, "auc": {int(copies): tuple(some) for copies, some in one["auc"].items()}})
        for one in _measured(name)
    )
    return tuple(sorted(found, key=lambda one: one.parameters))


own_studies = partial(studies, "measured_here.json")
"""What was measured here, the smallest models first."""


def expected(has: Situation) -> _Expected:
    """What is expected of a comparison of these documents and controls (two or more) by a model like this one."""
    documents, controls = max(2, has.documents), max(2, has.unseen)
    parameters = has.parameters or None
    wanted, here = parameters or _SUPPOSED, own_studies()
    same = here if wanted <= _MOST_SIZE * here[-1].parameters else studies()
    nearest = min(same, key=lambda one: abs(math.log(one.parameters / wanted)))
    size = min(max(wanted, same[0].parameters), same[-1].parameters)
    rows = []
    for copies in COPIES:
        effects = _effects(same, size, copies)
        if effects is not None:
            aucs = [NormalDist().cdf(effect / math.sqrt(2)) for effect in effects]
            powers = [auc_power(auc, documents, controls) for auc in aucs]
            enough = auc_documents(aucs[0])
            least = enough if enough is None else max(FEW_DOCUMENTS, enough)
            rows.append(_ExpectedRow(copies, Estimate(*aucs), Estimate(*powers), least))
    basis = _basis(nearest, size, has)
    if missing := [copies for copies in COPIES if copies not in {row.copies for row in rows}]:
        basis += f" Texts read {' or '.join(map(str, missing))} times were not measured."
    spread = "by kind of text"
    if nearest.held:
        spread = "a range that held in {} of {} cases left out".format(*nearest.held)
    return _Expected(nearest.name, documents, controls, parameters, size, tuple(rows), basis, spread)


def _effects(same: Sequence[_Study], size: float, copies: int) -> tuple[float, float, float] | None:
    """The middle (of the ends unless given), lowest and highest distance in standard deviations; None if unmeasured."""
    found = []
    for one in same:
        if copies in one.auc:
            given = [min(_HIGHEST, auc) for auc in one.auc[copies]]
            low, *inner, high = (math.sqrt(2) * NormalDist().inv_cdf(auc) for auc in given)
            found.append((math.log(one.parameters), inner[0] if inner else (low + high) / 2, low, high))
    if not found:
        return None
    sizes, *effects = zip(*found, strict=True)
    middle, least, most = (float(np.interp(math.log(size), sizes, one)) for one in effects)
    return middle, min(least, most), max(least, most)


def _basis(nearest: _Study, size: float, has: Situation) -> str:
    parameters, tokens = has.parameters, has.training_tokens
    said = [say("expected.basis", name=nearest.name, size=_parameters_words(size))]
    if nearest.beside:
        least, *_, most = (_parameters_words(one.parameters) for one in own_studies())
        numbers = {"name": nearest.name, "least": least, "most": most, "beside": nearest.beside}
        said = [say("expected.own", tokens=_parameters_words(nearest.tokens), **numbers)]
    if not parameters:
        said.append(say("expected.unsized"))
    elif not _LEAST_SIZE <= size / parameters <= _MOST_SIZE:
        said.append(say("expected.other_size", own=_parameters_words(parameters)))
    if tokens and not _LEAST_SIZE <= nearest.tokens / tokens <= _MOST_SIZE:
        theirs, own = _parameters_words(nearest.tokens), _parameters_words(tokens)
        said.append(say("expected.other_tokens", nearest=theirs, tokens=own))
    return " ".join(said)


def _parameters_words(number: float) -> str:
    """A number of parameters or tokens in words.

    >>> _parameters_words(1.3e6), _parameters_words(8e9), _parameters_words(5e11)
    ('1.3 million', '8 billion', '500 billion')
    """
    for unit, name in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:,.0f}"


def chance(test: str, has: Situation, units: int | None = None) -> str:
    """How likely a test of `offered_tests` finds one reading: large models if it compares documents, or small ones."""
    found = expected_for(test, has)
    if found is None:
        most, have = needed()[test].documents(1), "" if units is None else f" Here there are {units:,}."
        return (
            say("expected.unmeasured") if most == UNMEASURED else say("expected.found", most=most, have=have)
        )
    one = found.rows[0].chance
    middle, low, high = (_hundredths(share) for share in (one.value, one.low, one.high))
    spread = f" ({low} to {high}, {found.spread})" if low != high else ""
    numbers = {
        "documents": found.documents,
        "controls": found.controls,
        "size": _parameters_words(found.size),
    }
    most = "at most " * (test == "flag")
    alone = f" {say('expected.alone')}" * (test == "controls")
    said = say("expected.comparison", chance=middle, spread=spread, most=most, **numbers)
    return f"{said}{alone} {found.basis}"


def enough(test: str, has: Situation) -> str:
    """The words for what gives power 0.8, where the texts were read once and four times, by large or small models."""
    if test not in COMPARING:
        power = needed()[test].power
        return power if power == UNMEASURED else f"{power} (small models that read the texts last)"
    found, (once, four) = expected(has), (documents_needed(has, copies) for copies in (1, 4))
    least, size = "at least " * (test == "flag"), _parameters_words(found.size)
    return say("expected.enough", least=least, once=once, four=four, name=found.name, size=size)


def documents_needed(has: Situation, copies: int = 1) -> str:
    """How many documents on each side find in 8 of 10 cases what was read so often by a model of this size."""
    number = next((row.needed for row in expected(has).rows if row.copies == copies), None)
    return "more documents than there are" if number is None else f"{number:,} documents"


def expected_for(test: str, has: Situation) -> _Expected | None:
    """What is expected of a test that compares documents; None for another, and without documents on both sides."""
    return expected(has) if test in COMPARING and min(has.documents, has.unseen) >= 2 else None


def foresee(test: str, has: Situation) -> Iterator[str]:
    """How likely a test finds a single reading, and the documents that it takes; nothing where it compares none."""
    if found := expected_for(test, has):
        yield chance(test, has)
        yield from picture(found)


def picture(found: _Expected) -> Iterator[str]:
    """Draw the documents needed against copies as bars, and in how many of 100 cases those that there are find it."""
    yield "Documents needed on each side, for 8 of 10 cases;"
    yield "then in how many of 100 cases your documents find it:"
    longest = max((math.log10(row.needed) for row in found.rows if row.needed), default=1.0)
    for row in found.rows:
        bar, number = f"{'█' * WIDTH}…", "none would do"
        if row.needed:
            bar = "█" * max(1, round(WIDTH * math.log10(row.needed) / longest))
            number = f"{row.needed:,}"
        times = f"read {row.copies:>2} time{'s' if row.copies > 1 else ' '}"
        middle, low, high = (_hundredths(one) for one in (row.chance.value, row.chance.low, row.chance.high))
        yield f"  {times}  {bar} {number}; {middle}{f' ({low} to {high})' if low != high else ''}"


def _hundredths(share: float) -> str:
    """A share as a number of cases in a hundred: never "0" or "100" where it is not."""
    return "fewer than 1" if share < 0.005 else "more than 99" if share > 0.995 else str(round(100 * share))
