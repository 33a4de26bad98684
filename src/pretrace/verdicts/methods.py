"""What each score and each test of a collection reached on models with known training data.

`methods.json` is written by `python -m benchmarks.methods`, which says what a row holds. benchmarks/results/methods.md
shows all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pretrace.verdicts.expected import parameters_words


@dataclass(frozen=True, slots=True)
class Reached:
    """What a method reached: `value` and `never_saw` (a model that read none of the texts) are [value, low, high] of an
    AUC of documents or of a share of tests that reject at 5%, whichever `what` says. None where it was not measured or
    means nothing: `units` are those of a test, `passes` how often the models read a text, `dilution` how many times as
    much other text was read."""

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
    head = (
        *("method", "what", "value (95%)", "never saw", "copies", "other text", "place", "model", "units", "passes"),
        *("kind of text", "source"),
    )  # fmt: skip
    lines = [head, *map(_cells, found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
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
