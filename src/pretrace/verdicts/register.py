"""The verdicts made on this machine: whoever tests until something is found should be seen doing it.

Each verdict adds a line to a file in the cache. What it holds is shown on page one and decides nothing: the level was
set beforehand, and a register on one machine knows nothing of tests made on another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pretrace.cache.location import cache_folder
from pretrace.results.atomic import explained
from pretrace.results.rounding import recorded_p
from pretrace.results.wording import say
from pretrace.verdicts.draws import TextsSketch

FILE = "audits.jsonl"
_RESULT = ("time", "p", "outcome", "name")
"""What does not make a test another one."""


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    """A verdict in the register: test, texts, weights, the settings that make it this test. `name` is for people."""

    test: str
    texts: TextsSketch
    weights: str
    settings: Mapping[str, Any]
    name: str = ""


def words_of(number: int, level: float) -> str:
    """How many tests of texts are known, and the level of each for one false accusation in 1 / level cases over all."""
    if number == 1:
        return say("register.first")
    return say("register.several", number=number, each=level / number, level=level)


def earlier_tests(entry: RegisterEntry, level: float, folder: Path | None = None) -> tuple[str, ...]:
    """Say how many different tests (test, settings, model) of the same texts there are with this one, then the others,
    a line each. Ask before `note`."""
    lines, own = _different(entry.texts, folder), _identity(asdict(entry))
    others = [_described(line) for identity, line in lines.items() if identity != own]
    return (words_of(len(others) + 1, level), *others)


def known(texts: Iterable[str], folder: Path | None = None) -> tuple[str, ...]:
    """List the different tests of these texts, a line each, oldest first."""
    return tuple(_described(line) for line in _different(TextsSketch.of(texts), folder).values())


def note(entry: RegisterEntry, p: float | None, outcome: str, folder: Path | None = None) -> None:
    """Add a verdict to the register; OutputError where that cannot be written."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    line = {**asdict(entry), "time": time, "p": p, "outcome": outcome}
    path = (folder or cache_folder()) / FILE
    written = json.dumps(line, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(handle, written.encode("utf-8", "backslashreplace"))  # in one piece, whoever else writes
        finally:
            os.close(handle)


def read_tests(folder: Path | None = None) -> tuple[dict[str, Any], ...]:
    """Read all lines, oldest first. One that cannot be read is passed over: no test should fail for it."""
    try:
        lines = ((folder or cache_folder()) / FILE).read_bytes().splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        with suppress(ValueError):
            found.append(json.loads(line))
    return tuple(entry for entry in found if isinstance(entry, dict))


def _different(texts: TextsSketch, folder: Path | None) -> dict[str, Mapping[str, Any]]:
    """The first line of each different test of texts of which these share half, by what makes it this test."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in read_tests(folder):
        other = TextsSketch.read(line.get("texts"))
        if other is not None and texts.shares_half(other):
            found.setdefault(_identity(line), line)
    return found


def _identity(line: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in line.items() if name not in _RESULT}
    return json.dumps(kept, sort_keys=True, default=str)


def _described(line: Mapping[str, Any]) -> str:
    model = line.get("name") or f"weights {str(line.get('weights'))[:12]}"
    shown = recorded_p(line.get("p"))
    return f"{line.get('time', 'no date')}: {line.get('test')} of {model}, {shown}, {line.get('outcome', 'no outcome')}"
