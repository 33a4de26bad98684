"""Choices that rest on a measurement of this machine, kept in the cache with the figures they rest on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pretrace.cache.location import cache_folder
from pretrace.errors import OutputError
from pretrace.results.atomic import atomic_text

Run = Callable[[], object]
Clock = Callable[[], float]
Round = tuple[float, float]
"""The fewest seconds of the first and of the second of two things that were run in turn."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, why in one clause, and the figures: plain names and numbers, as JSON holds them."""

    chosen: str
    reason: str
    figures: dict[str, Any]


def interleaved(first: Run, second: Run, *, rounds: int, repeats: int, clock: Clock) -> tuple[Round, ...]:
    """The fewest seconds of either in each round; the two take turns, so that a busy moment meets both.

    Each is run once before, unmeasured: the first run of a kind sets up what later ones use.
    """
    first()
    second()
    made = []
    for _ in range(rounds):
        turns = [(_seconds(first, clock), _seconds(second, clock)) for _ in range(repeats)]
        made.append((min(one for one, _ in turns), min(two for _, two in turns)))
    return tuple(made)


def measured_once(kind: str, machine: str, measure: Callable[[], Choice]) -> Choice:
    """The choice of this kind on this machine: the one in the cache, or `measure()`, which is then kept there.

    `machine` names all that the measurement depends on. Delete the file to have it measured again. Where
    nothing can be written the choice is measured anew by each process.
    """
    place = cache_folder() / kind / f"{hashlib.sha256(machine.encode()).hexdigest()[:16]}.json"
    known = _read(place)
    if known is not None:
        return known
    choice = measure()
    written = {
        "machine": machine,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **asdict(choice),
    }
    with contextlib.suppress(OSError, OutputError):
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_text(place, json.dumps(written, indent=1) + "\n")
    return choice


def kept_choices(kind: str) -> list[tuple[Path, Choice]]:
    """All choices of this kind in the cache with their files, the oldest first; damaged files are left out."""
    places = (cache_folder() / kind).glob("*.json")
    found = [(place, choice) for place in places if (choice := _read(place)) is not None]
    return sorted(found, key=lambda one: (one[0].stat().st_mtime, one[0]))


def _read(place: Path) -> Choice | None:
    try:
        found = json.loads(place.read_bytes())
        chosen, reason, figures = found["chosen"], found["reason"], found["figures"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    whole = isinstance(chosen, str) and isinstance(reason, str) and isinstance(figures, dict)
    return Choice(chosen, reason, figures) if whole else None


def _seconds(run: Run, clock: Clock) -> float:
    began = clock()
    run()
    return clock() - began


def described(kind: str, title: str) -> dict[str, str]:
    """One line for each choice of this kind in the cache, for a list: its reason and the file of its figures."""
    lines = {}
    for place, choice in kept_choices(kind):
        lines[f"{title}, {place.stem[:6]}"] = f"{choice.chosen}: {choice.reason} ({place})"
    return lines or {title: "not measured yet: done when a model is first used on a processor"}
