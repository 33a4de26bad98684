"""What a builder leaves behind: JSON lines, and beside them a card that says how they were made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrace.corpora.near_copies import squeezed
from pretrace.errors import OutputError
from pretrace.results.atomic import atomic_bytes, atomic_text, check_writable
from pretrace.results.folder import file_hash
from pretrace.results.output_checks import OutputFile, json_object, json_with

Row = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Built:
    """A benchmark that was built: its rows, what lies in its card, and where both were written."""

    rows: tuple[Row, ...]
    card: Mapping[str, Any]
    out: Path

    @property
    def card_path(self) -> Path:
        """Where the card lies."""
        return _card_of(self.out)


class LeftOut:
    """What did not become part of the benchmark, by reason and by name."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def add(self, reason: str, name: str) -> None:
        """One more."""
        self._names.setdefault(reason, []).append(name)

    def count(self, reason: str) -> int:
        """How many for this reason."""
        return len(self._names.get(reason, ()))

    def __str__(self) -> str:
        """The reasons with their counts, for a message."""
        return ", ".join(f"{why}: {len(who)}" for why, who in sorted(self._names.items())) or "none"

    def plain(self) -> dict[str, Any]:
        """Counts and names by reason, in the same order whatever order they came in."""
        return {why: {"count": len(who), "ids": sorted(who)} for why, who in sorted(self._names.items())}


def _card_of(out: Path) -> Path:
    """Where the card of a file lies: `patentmia.jsonl` has `patentmia.card.json` beside it."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.card.json")


def _has_its_card(path: Path) -> bool:
    card = json_object(_card_of(path)) or {}
    return "settings" in card and card.get("sha256") == file_hash(path)


CARD = OutputFile("card of a benchmark", json_with("settings", "sha256"))
_BENCHMARK = OutputFile("benchmark with its card", _has_its_card)


def check_place(out: Path, settings: Mapping[str, Any]) -> None:
    """OutputError where `out` cannot be written, or holds anything but what the same settings made."""
    if out.suffix != ".jsonl":
        raise OutputError(f"a benchmark is written as JSON lines: --out {out.name}.jsonl, found {out.name}.")
    check_writable(_card_of(out), CARD)
    check_writable(out, _BENCHMARK)
    if not out.exists():
        return
    made = (json_object(_card_of(out)) or {})["settings"]
    changed = _difference(made, json.loads(json.dumps(settings)))
    if changed:
        raise OutputError(
            f"{out} is there already, made with other settings ({changed}): choose another --out, or delete it."
        )


def _difference(old: Any, new: Mapping[str, Any]) -> str:
    if not isinstance(old, dict):
        return "unreadable"
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {str(old.get(name))[:40]}, now {str(new.get(name))[:40]}" for name in names)


def write(out: Path, rows: Sequence[Row], card: Mapping[str, Any]) -> Built:
    """The rows and their card on the disk, each whole or not at all; the card holds the hash of the rows.

    The card comes first: whoever is killed between the two can give the same command again.
    """
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(
        "utf-8", "backslashreplace"
    )
    full = {**card, "sha256": hashlib.sha256(content).hexdigest()}
    check_writable(out, _BENCHMARK)
    atomic_text(_card_of(out), json.dumps(full, ensure_ascii=False, indent=2, allow_nan=False) + "\n", CARD)
    atomic_bytes(out, content)
    return Built(tuple(rows), full, out)


class Digest:
    """A hash over strings, so that no two lists of strings have the same one."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, parts: Iterable[str]) -> None:
        """The next strings."""
        for part in parts:
            encoded = part.encode("utf-8", "surrogatepass")
            self._digest.update(len(encoded).to_bytes(8, "little") + encoded)

    def __str__(self) -> str:
        return self._digest.hexdigest()

    @classmethod
    def of(cls, *parts: str) -> str:
        """The hash of some strings."""
        made = cls()
        made.add(parts)
        return str(made)


def drawn_order(names: Iterable[str], seed: int, purpose: str) -> list[str]:
    """The names in an order drawn from the seed and each name alone: not from where it stands in the list."""
    return sorted(names, key=lambda name: (keyed(purpose, seed, name), name))


def keyed(purpose: str, seed: int, name: str) -> int:
    """A number drawn from purpose, seed and name, evenly over 128 bits."""
    return int(Digest.of(purpose, str(seed), name)[:32], 16)


def exact_key(text: str) -> str:
    """The same for texts that differ in white space alone."""
    return Digest.of(squeezed(text))
