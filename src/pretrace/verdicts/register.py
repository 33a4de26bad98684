"""The verdicts made on this machine: whoever tests until something is found should be seen doing it.

Each verdict adds a line to a file in the cache. What stands there is told on page one and decides nothing: the level
was set beforehand, and a register on one machine knows nothing of tests made on another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pretrace.cache.location import cache_folder
from pretrace.results.atomic import explained
from pretrace.results.rounding import p_value, recorded_p
from pretrace.verdicts.draws import texts_hash

FILE = "audits.jsonl"
_TOLD = ("time", "p", "outcome", "name")
"""What an entry tells of a result, and what does not make a test another one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A verdict as the register holds it: the hash of its texts (`texts_hash`), the model's weights, the test and the
    settings that make it this test and no other (score, reference model, columns), in plain values."""

    test: str
    texts: str
    weights: str
    settings: Mapping[str, Any]
    name: str = ""
    """The model's name, for people."""

    @classmethod
    def of(
        cls, test: str, texts: Iterable[str], weights: str, settings: Mapping[str, Any], name: str = ""
    ) -> Entry:
        """The entry of a test of these texts."""
        return cls(test, texts_hash(texts), weights, dict(settings), name)

    @property
    def line(self) -> dict[str, Any]:
        """What the file holds of it, beside the result."""
        own = {"texts": self.texts, "weights": self.weights, "test": self.test, "name": self.name}
        return {"settings": dict(self.settings), **own}


@dataclass(frozen=True, slots=True)
class _Kth:
    """That `number` different tests of these texts were made, the present one included, at this `level`; `others`
    tells of the others, a line each, oldest first. `again` says that the present one was made before."""

    number: int
    level: float
    others: tuple[str, ...] = ()
    again: bool = False

    @property
    def each(self) -> float:
        """The level of each of so many tests, for one false accusation in 1 / level cases over all of them."""
        return self.level / self.number

    def words(self, p: float | None = None) -> str:
        """The sentences for page one and the terminal, with what `p` says beside both levels."""
        if self.number == 1:
            return "No other test of these texts is known on this machine. Tests made elsewhere are not known here."
        said = (
            f"This test was made before, and it is one of {self.number:,} tests of these texts on this machine"
            if self.again
            else f"This is the {ordinal(self.number)} test of these texts on this machine"
        )
        said += f"; for {self.number:,} tests the level is {self.each:.3g} each, and for one it is {self.level:g}."
        if p is None:
            return said
        if p <= self.each:
            return f"{said} p = {p_value(p)} lies at or below both."
        if p <= self.level:
            return f"{said} p = {p_value(p)} lies at or below the level of one test, and above that of {self.number:,}."
        return f"{said} p = {p_value(p)} lies above both."


def kth(entry: Entry, level: float, folder: Path | None = None) -> _Kth:
    """How many different tests (test, settings, model) of the same texts the register knows, with this one: the same
    test made again is no new one. Ask before `note`, or every test was made before."""
    lines = _different(entry.texts, folder)
    own = _identity(entry.line)
    others = tuple(_told(line) for identity, line in lines.items() if identity != own)
    return _Kth(len(others) + 1, level, others, own in lines)


def known(texts: Iterable[str], folder: Path | None = None) -> tuple[str, ...]:
    """The different tests of these texts that the register knows, a line each, oldest first."""
    return tuple(_told(line) for line in _different(texts_hash(texts), folder).values())


def _different(texts: str, folder: Path | None) -> dict[str, Mapping[str, Any]]:
    """The first line of each different test of these texts, by what makes it this test."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in earlier_tests(texts, folder=folder):
        found.setdefault(_identity(line), line)
    return found


def note(entry: Entry, p: float | None, outcome: str, folder: Path | None = None) -> None:
    """Add a verdict to the register; OutputError where that cannot be written."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    note_test({**entry.line, "time": time, "p": p, "outcome": outcome}, folder)


def note_test(line: Mapping[str, Any], folder: Path | None = None) -> None:
    """Add a line to the register; OutputError where that cannot be written."""
    path = (folder or cache_folder()) / FILE
    written = json.dumps(line, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(handle, written.encode("utf-8", "backslashreplace"))  # in one piece, whoever else writes
        finally:
            os.close(handle)


def earlier_tests(
    texts: str, weights: str | None = None, folder: Path | None = None
) -> tuple[dict[str, Any], ...]:
    """What was noted of tests of the same texts (by their hash) and weights, or any weights, oldest first.

    A line that cannot be read is passed over: the register informs, and no test should fail for it.
    """
    try:
        lines = ((folder or cache_folder()) / FILE).read_bytes().splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if (
            isinstance(entry, dict)
            and entry.get("texts") == texts
            and weights in (None, entry.get("weights"))
        ):
            found.append(entry)
    return tuple(found)


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, …, 11th, …"""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _identity(line: Mapping[str, Any]) -> str:
    """What makes a test this one: everything but its result."""
    kept = {name: value for name, value in line.items() if name not in _TOLD}
    return json.dumps(kept, sort_keys=True, default=str)


def _told(line: Mapping[str, Any]) -> str:
    """A test of the register in one line."""
    test = line.get("test") or line.get("procedure") or "audit"
    model = line.get("name") or f"weights {str(line.get('weights'))[:12]}"
    shown = recorded_p(line.get("p"))
    return f"{line.get('time', 'no date')}: {test} of {model}, {shown}, {line.get('outcome', 'no outcome')}"
