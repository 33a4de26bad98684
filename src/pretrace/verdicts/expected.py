"""How likely a test finds what a model read, before anything runs: from measured figures, each with its source.

`measured.json` holds published AUCs of single documents by copies, for models whose training data are known;
`measured_here.json` those that a law of ours foresees for small models, each with a range whose cover was measured on
cells that were left out (`python -m benchmarks.audits.dilution` writes it). Between two sizes of one study the effect
is read off a straight line in the logarithm of the parameters; outside of them another size stands, and the words say
so. From an AUC to the power of the test: `statistics.power.auc_power`.

One function makes the sentence (`chance`) and one the picture (`picture`); plans, `ask`, the page and page one of an
inconclusive report call them.

What each score and each test of a collection reached on models with known training data stands in `methods.json`,
which `python -m benchmarks.methods` writes; evidence/methods.md shows all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import NormalDist

import numpy as np

from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.statistics.power import auc_documents, auc_power
from pretrace.types import Estimate, Situation
from pretrace.verdicts.advise import UNMEASURED, needed
from pretrace.verdicts.wording import say

COPIES = (1, 4, 16, 64)
"""How often a text may have been read, in the picture."""
COMPARING = ("controls-placebo", "controls", "flag")
"""The tests that compare documents with others that were not read: what was measured of documents is of them."""
_SUPPOSED = 1e9
"""Parameters where nobody knows them."""
FEWEST, MOST = 0.7, 1.5
"""A size is a measured one from 0.7 to 1.5 times it."""
WIDTH = 16
_HIGHEST = 0.9995
"""An AUC that was given as 1 counts as this one: no finite effect has 1."""


@dataclass(frozen=True, slots=True)
class Study:
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

    @property
    def spread(self) -> str:
        """What a range says."""
        if self.held is None:
            return "by kind of text"
        inside, cases = self.held
        return f"a range that held in {inside} of {cases} cases left out"


@dataclass(frozen=True, slots=True)
class ExpectedRow:
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
    rows: tuple[ExpectedRow, ...]
    basis: str
    spread: str


@cache
def studies() -> tuple[Study, ...]:
    """What others measured, the smallest models first."""
    return _read("measured.json")


@cache
def own_studies() -> tuple[Study, ...]:
    """What was measured here, the smallest models first."""
    return _read("measured_here.json")


def _read(name: str) -> tuple[Study, ...]:
    written = json.loads(files("pretrace.verdicts").joinpath(name).read_text(encoding="utf-8"))
    found = (
        Study(**{**one, "auc": {int(copies): tuple(some) for copies, some in one["auc"].items()}})
        for one in written
    )
    return tuple(sorted(found, key=lambda one: one.parameters))


def expected(
    documents: int, controls: int, *, parameters: float | None = None, tokens: float | None = None
) -> _Expected:
    """What so many documents and controls find, for parameters and training tokens (0 or None: unknown)."""
    parameters, tokens = parameters or None, tokens or None
    wanted, here = parameters or _SUPPOSED, own_studies()
    same = here if wanted <= MOST * here[-1].parameters else studies()
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
            rows.append(ExpectedRow(copies, Estimate(*aucs), Estimate(*powers), least))
    basis = _basis(nearest, size, parameters, tokens)
    if missing := [copies for copies in COPIES if copies not in {row.copies for row in rows}]:
        basis += f" Texts read {' or '.join(map(str, missing))} times were not measured."
    return _Expected(nearest.name, documents, controls, parameters, size, tuple(rows), basis, nearest.spread)


def _effects(same: Sequence[Study], size: float, copies: int) -> tuple[float, float, float] | None:
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


def _basis(nearest: Study, size: float, parameters: float | None, tokens: float | None) -> str:
    said = [say("expected.basis", name=nearest.name, size=parameters_words(size))]
    if nearest.beside:
        least, *_, most = (parameters_words(one.parameters) for one in own_studies())
        numbers = {"name": nearest.name, "least": least, "most": most, "beside": nearest.beside}
        end = "." if tokens else say("expected.own_end")
        said = [say("expected.own", tokens=parameters_words(nearest.tokens), end=end, **numbers)]
    if parameters is None:
        said.append(say("expected.unsized"))
    elif not FEWEST <= size / parameters <= MOST:
        said.append(say("expected.other_size", own=parameters_words(parameters)))
    if tokens and not FEWEST <= nearest.tokens / tokens <= MOST:
        theirs, own = parameters_words(nearest.tokens), parameters_words(tokens)
        said.append(say("expected.other_tokens", nearest=theirs, tokens=own))
    return " ".join(said)


def parameters_words(number: float) -> str:
    """A number of parameters or tokens in words.

    >>> parameters_words(1.3e6), parameters_words(8e9), parameters_words(5e11)
    ('1.3 million', '8 billion', '500 billion')
    """
    for unit, name in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:,.0f}"


def comparison(found: _Expected, *, noun: str = "") -> str:
    """The sentence: what a single reading would be found with."""
    sides = f"{found.documents:,} documents"
    if found.controls != found.documents:
        sides += f" and {found.controls:,} controls"
    measured = found.own is not None and FEWEST <= found.size / found.own <= MOST
    size = "this size" if measured else f"{parameters_words(found.size)} parameters"
    chance = found.rows[0].chance
    middle, low, high = (_hundredths(one) for one in (chance.value, chance.low, chance.high))
    spread = f" ({low} to {high}, {found.spread})" if low != high else ""
    numbers = {"sides": sides, "size": size, "most": "at most " if noun == "flag" else ""}
    return say("expected.comparison", chance=middle, spread=spread, **numbers)


def chance(test: str, has: Situation, units: int | None = None) -> str:
    """How likely a test of `CHOICES` finds a single reading: large models if it compares documents, or small ones."""
    found = expected_for(test, has)
    if found is not None:
        return f"{comparison(found, noun=test)} {found.basis}"
    one = needed()[test]
    if one.documents(1) == UNMEASURED:
        return say("expected.unmeasured")
    have = "" if units is None else f" Here there are {units:,}."
    kind = "unfound" if one.one is None else "found"
    return say(f"expected.{kind}", most=one.documents(1).removeprefix("more than "), have=have)


def enough(test: str, has: Situation) -> str:
    """The words for what gives power 0.8, where the texts were read once and four times, by large or small models."""
    if test not in COMPARING:
        power = needed()[test].power
        return power if power == UNMEASURED else f"{power} (small models that read the texts last)"
    found = expected(2, 2, parameters=has.parameters, tokens=has.training_tokens)
    once, four = (documents_needed(has, copies) for copies in (1, 4))
    least, size = "at least " * (test == "flag"), parameters_words(found.size)
    return say("expected.enough", least=least, once=once, four=four, name=found.name, size=size)


def documents_needed(has: Situation, copies: int = 1) -> str:
    """How many documents on each side find in 8 of 10 cases what was read so often by a model of this size."""
    found = expected(2, 2, parameters=has.parameters, tokens=has.training_tokens)
    number = next((row.needed for row in found.rows if row.copies == copies), None)
    return "more documents than there are" if number is None else f"{number:,} documents"


def expected_for(test: str, has: Situation) -> _Expected | None:
    """What is expected of a test that compares documents; None for another, and without documents on both sides."""
    if test not in COMPARING or min(has.documents, has.unseen) < 2:
        return None
    return expected(has.documents, has.unseen, parameters=has.parameters, tokens=has.training_tokens)


def foresee(test: str, has: Situation) -> Iterator[str]:
    """How likely a test finds a single reading, and the documents that it takes; nothing where it compares none."""
    found = expected_for(test, has)
    if found is not None:
        yield chance(test, has)
        yield from picture(found)


def picture(found: _Expected) -> Iterator[str]:
    """Draw the documents needed against copies as bars, and in how many of 100 cases those that there are find it."""
    yield "Documents needed on each side, for 8 of 10 cases;"
    yield "behind them, in how many of 100 cases yours find it:"
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


@dataclass(frozen=True, slots=True)
class Reached:
    """What a method reached: `value` and `never_saw` (a model that read nothing) are [value, low, high] of an AUC of
    documents or a share of tests that reject at 5%, as `what` says; None where unmeasured. `units` are those of a test,
    `passes` readings of a text, `dilution` how many times as much other text was read."""

    method: str
    what: str
    kind: str
    copies: int
    dilution: float | None
    place: str | None
    parameters: float | None
    units: int | None
    value: tuple[float, float, float]
    never_saw: tuple[float, float, float] | None
    passes: int | None
    source: str


@cache
def rows() -> tuple[Reached, ...]:
    """All that was measured: by what, copies and dilution, then the best first."""
    written = json.loads(files("pretrace.verdicts").joinpath("methods.json").read_text(encoding="utf-8"))
    found = (
        Reached(**{**one, **{k: one[k] and tuple(one[k]) for k in ("value", "never_saw")}})
        for one in written["rows"]
    )
    return tuple(
        sorted(found, key=lambda one: (one.what, one.copies, one.dilution or 0, -one.value[0], one.method))
    )


def table(found: Sequence[Reached]) -> Iterator[str]:
    """The rows as lines of equal-width letters."""
    head = ("method", "what", "value (95%)", "never saw", "copies", "other text", "place", "model", "units")
    lines = [(*head, "passes", "kind of text", "source"), *map(_cells, found)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()


def _cells(one: Reached) -> tuple[str, ...]:
    other = "" if one.dilution is None else "none" if one.dilution == 0 else f"{one.dilution:g} times"
    known = ["" if number is None else f"{number:,}" for number in (one.units, one.passes)]
    return (
        one.method, one.what, figure(one.value), f"{one.never_saw[0]:.3f}" if one.never_saw else "not measured",
        str(one.copies), other, one.place or "", parameters_words(one.parameters) if one.parameters else "", *known,
        one.kind, one.source,
    )  # fmt: skip


def figure(value: Sequence[float]) -> str:
    """A value with its interval.

    >>> figure((0.6172, 0.5781, 0.6559))
    '0.617 (0.578 to 0.656)'
    """
    middle, low, high = value
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"
