"""Against testing until something is found: draws that nobody can choose, and the verdicts made on this machine.

The seed of a test follows from its texts, its name and the settings that matter. Names of files, ids of texts and their
place never enter, so the same texts as a folder and as an archive give the same p.

Each verdict adds a line to a file in the cache. What it holds is shown on page one and decides nothing: the level was
set beforehand, and a register on one machine knows nothing of tests made on another.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.cache import cache_folder
from pretrace.results.atomic import explained
from pretrace.results.wording import recorded_p, say

LEAST_DRAWS, MOST_DRAWS = 1000, 10_000_000
"""Draws of a null distribution: with fewer, p itself is a matter of luck; more than so many no memory holds."""
_BYTES = 8
_LOWEST = 64


def texts_hash(texts: Iterable[str]) -> str:
    """The SHA-256 of texts as a multiset, in hexadecimal digits. White space counts as one space and not at the ends:
    a line end of another system makes no other texts."""
    return hashlib.sha256(b"".join(sorted(map(text_digest, texts)))).hexdigest()


def text_digest(text: str) -> bytes:
    """The SHA-256 of one text, of which `texts_hash` is made: for texts that are not held in memory."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).digest()


def seed_of(test: str, texts: Iterable[str], **settings: Any) -> int:
    """The seed of a test's draws, from 0 to 2**64 - 1: a hash of its name, the texts (`texts_hash`) and the `settings`
    that change what is tested, such as the score, and not the number of draws, ids or places."""
    return seed_from(test, texts_hash(texts), **settings)


def seed_from(test: str, hashed: str, **settings: Any) -> int:
    """The same from the `texts_hash` of the texts."""
    plain = json.dumps(settings, sort_keys=True, ensure_ascii=True, default=str)
    digest = hashlib.sha256(f"{test}\n{hashed}\n{plain}".encode()).digest()
    return int.from_bytes(digest[:_BYTES], "big")


@dataclass(frozen=True, slots=True)
class TextsSketch:
    """The `number` of different texts of a collection and their lowest hashes, 64 at most (Broder 1997): enough to see
    whether two collections share half of the texts of the smaller one; exact where both have up to 64."""

    number: int
    lowest: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextsSketch:
        """Sketch these texts."""
        return cls.of_digests(b"".join(map(text_digest, texts)))

    @classmethod
    def of_digests(cls, digests: bytes | bytearray) -> TextsSketch:
        """Sketch texts that are not held in memory, by the `text_digest` of each, one after the other."""
        different = np.unique(np.frombuffer(digests, ">u8")[::4])
        return cls(len(different), tuple(f"{one:016x}" for one in different[:_LOWEST].tolist()))

    @classmethod
    def read(cls, plain: object) -> TextsSketch | None:
        """Read what a JSON file holds of one; None for anything else."""
        if not isinstance(plain, dict) or not isinstance(plain.get("number"), int):
            return None
        return cls(plain["number"], tuple(map(str, plain.get("lowest", ()))))

    def _shares_half(self, other: TextsSketch) -> bool:
        """Say whether both have at least half of the smaller one's texts in common."""
        mine, theirs = set(self.lowest), set(other.lowest)
        lowest = heapq.nsmallest(_LOWEST, mine | theirs)
        alike = sum(one in mine and one in theirs for one in lowest) / max(1, len(lowest))  # Jaccard
        common = alike / (1 + alike) * (self.number + other.number)
        return common > 0 and common >= min(self.number, other.number) / 2


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
        if other is not None and texts._shares_half(other):
            found.setdefault(_identity(line), line)
    return found


def _identity(line: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in line.items() if name not in _RESULT}
    return json.dumps(kept, sort_keys=True, default=str)


def _described(line: Mapping[str, Any]) -> str:
    model = line.get("name") or f"weights {str(line.get('weights'))[:12]}"
    shown = recorded_p(line.get("p"))
    return f"{line.get('time', 'no date')}: {line.get('test')} of {model}, {shown}, {line.get('outcome', 'no outcome')}"
