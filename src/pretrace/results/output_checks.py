"""What stands where something of ours is to go: nothing, an earlier one of the same kind, or what must not be lost.

One rule for every path that a user names to be written: what pretrace did not write is not replaced, and a result is
replaced only by a result of the same kind. `pretrace.results.atomic` asks here before anything is written, and again
when it is put in its place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pretrace.errors import OutputError

FILES_KEY = "files"
MARKER, RESULT = "run.json", "result.json"
CARD, CARD_KEY = "card.json", "pretrace_planted"
ADAPTER_CARD, ADAPTER_KEY = "adapter_card.json", "pretrace_adapter"


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder: what it is called, its JSON part (`marker`), by whose `key` it is known and which holds the
    number of its `format`; in messages what writes it, and what mends a damaged one. A result replaces none of another
    `test` ("" where that does not matter)."""

    name: str
    marker: str
    key: str
    format: int = 1
    writer: str = ""
    cure: str = ""
    sealed: bool = True
    test: str = ""

    def of(self, test: str) -> FolderKind:
        """The same kind, of one test alone."""
        return replace(self, test=test)


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A kind of file: what it is called, and whether the file at a path is an earlier one."""

    name: str
    known: Callable[[Path], bool]


ADAPTER = FolderKind("adapter", ADAPTER_CARD, ADAPTER_KEY)
PLANTED = FolderKind("planted model", CARD, CARD_KEY)
RUN = FolderKind("run", MARKER, "pretrace_run", 1, "--out", "run the detection again", sealed=False)
VERDICTS = FolderKind(
    "test result", RESULT, "pretrace_verdict", 2, "one of pretrace's tests", "run the test again"
)
_FOLDERS = (RUN, PLANTED, ADAPTER, VERDICTS)  # all that pretrace writes as a folder

OWN = OutputFile("file", lambda path: True)
"""A file in a place of pretrace's own, such as its cache: whatever is there may go."""
NEW = OutputFile("file", lambda path: False)
"""A file that takes the place of none."""

_LITTER = {".DS_Store", "Thumbs.db", "desktop.ini"}  # file browsers leave these; nobody misses them


def json_with(*keys: str) -> Callable[[Path], bool]:
    """Whether a file is a JSON object with these keys."""
    return lambda path: keys == tuple(key for key in keys if key in (json_object(path) or {}))


def check_file(place: Path, output: OutputFile) -> None:
    """Raise OutputError unless `place` is free, or holds an earlier file of the same kind."""
    if place.is_dir():
        raise OutputError(f"{place} is a folder; give the name of a file.")
    if not os.path.lexists(place):
        return
    if not place.is_file():
        raise OutputError(
            f"{place} is a device or a pipe, which cannot be replaced; give the name of a file."
        )
    if not output.known(place):
        why = "" if output is NEW else f", and it is no {output.name} that pretrace wrote"
        raise OutputError(
            f"{place} is there already{why}: it is not replaced. Choose another name, or delete it."
        )


def check_replaceable(place: Path, output: FolderKind | None = None) -> None:
    """Raise OutputError unless `place` is free, an empty folder, or one that pretrace wrote and that holds a result of
    the kind of `output`; without one, unless it is free or empty."""
    for _ in range(100):
        before = _identity(place)
        objection = None if before is None else _objection(place, output)
        if objection is None:
            return
        if _identity(place) == before:
            break  # else another writer swapped the folder while we looked: what we saw was half of each
    raise OutputError(objection)


def recorded_files(folder: Path) -> set[str]:
    """The files that the JSON files of a folder of ours name, themselves among them, by their paths from there."""
    return {name for kind, facts in _found(folder) for name in (kind.marker, *(facts.get(FILES_KEY) or ()))}


def _identity(place: Path) -> tuple[int, int, int] | None:
    try:
        found = place.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _objection(place: Path, output: FolderKind | None) -> str | None:
    if not place.is_dir():
        return f"{place} is a file; choose another name for the folder."
    here = False
    with suppress(OSError):
        here = Path.cwd().is_relative_to(place)
    if os.path.ismount(place) or here:
        what = "a mounted drive" if os.path.ismount(place) else "the folder you are in"
        return f"{place} is {what}, which cannot be replaced; choose a folder in it: {place / 'run'}"
    try:
        for kind, facts in _found(place):
            test = facts.get("test")
            if output is None or kind.marker != output.marker or output.test not in ("", test):
                what = f"{'an' if kind.name[0] in 'aeiou' else 'a'} {kind.name}{f' ({test})' if test else ''}"
                return f"{place} holds {what}, which is not replaced; choose another folder."
        strange = list(islice(_strangers(place, recorded_files(place)), 4))
    except FileNotFoundError:
        return f"{place} vanishes and comes back; choose another folder."
    if not strange:
        return None
    shown = ", ".join(strange[:3]) + (", …" if len(strange) > 3 else "")
    return f"{place} holds files that belong to no result ({shown}); choose another folder."


def _found(place: Path) -> Iterator[tuple[FolderKind, Mapping[str, Any]]]:
    for kind in _FOLDERS:
        facts = json_object(place / kind.marker)
        if facts is not None and kind.key in facts:
            yield kind, facts


def _strangers(place: Path, ours: set[str]) -> Iterator[str]:
    """What lies in a folder and is not `ours`: its entries where nothing is, else the files below it."""
    if not ours:
        yield from sorted(entry.name for entry in place.iterdir() if entry.name not in _LITTER)
        return
    for root, folders, files in os.walk(place):
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in sorted((*files, *links)):
            path = Path(root, name).relative_to(place).as_posix()
            if name not in _LITTER and path not in ours:
                yield path


def json_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file, without a wait for what is no file; None where there is none, or no such file."""
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
