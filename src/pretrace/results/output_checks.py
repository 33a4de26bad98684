"""What stands where a folder of ours is to go: nothing, an earlier one, or something that must not be lost."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from pretrace.errors import OutputError

MARKER = "run.json"
FORMAT_KEY = "pretrace_run"
FILES_KEY = "files"
CARD = "card.json"
CARD_KEY = "pretrace_planted"

ADAPTER_CARD = "adapter_card.json"
ADAPTER_KEY = "pretrace_adapter"

VERDICT = "verdict.json"
AUDIT_KEY = "pretrace_audit"

FLAGS = "flags.json"
FLAGS_KEY = "pretrace_flags"

RESULT = "result.json"
RESULT_KEY = "pretrace_verdict"

COMPARISON = "comparison.json"
COMPARISON_KEY = "pretrace_comparison"

_MARKS = {
    MARKER: FORMAT_KEY,
    CARD: CARD_KEY,
    ADAPTER_CARD: ADAPTER_KEY,
    VERDICT: AUDIT_KEY,
    FLAGS: FLAGS_KEY,
    RESULT: RESULT_KEY,
    COMPARISON: COMPARISON_KEY,
}
"""The file by which a folder of ours is known, and the key in it: a run, a planted model, an adapter, an audit, a
flagging, the verdict of another test, runs side by side."""

_LITTER = {".DS_Store", "Thumbs.db", "desktop.ini"}  # file browsers leave these; nobody misses them


def check_replaceable(place: Path) -> None:
    """Raise OutputError unless `place` is free, an empty folder, or one that pretrace wrote: an earlier run,
    audit, flagging, verdict, comparison, planted model or adapter."""
    for _ in range(100):
        before = _identity(place)
        objection = None if before is None else _objection(place)
        if objection is None:
            return
        if _identity(place) == before:
            break  # else another writer swapped the folder while we looked: what we saw was half of each
    raise OutputError(objection)


def _identity(place: Path) -> tuple[int, int, int] | None:
    try:
        found = place.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _objection(place: Path) -> str | None:
    if not place.is_dir():
        return f"{place} is a file; choose another name for the folder."
    if os.path.ismount(place) or _stand_in(place):
        what = "a mounted drive" if os.path.ismount(place) else "the folder you are in"
        return f"{place} is {what}, which cannot be replaced; choose a folder in it: {place / 'run'}"
    try:
        strange = _strangers(place)
    except FileNotFoundError:
        return f"{place} vanishes and comes back; choose another folder."
    if not strange:
        return None
    shown = ", ".join(strange[:3]) + (", …" if len(strange) > 3 else "")
    return f"{place} holds files that pretrace did not write ({shown}); choose another folder."


def _stand_in(place: Path) -> bool:
    with suppress(OSError):
        return Path.cwd().is_relative_to(place)
    return False


def _strangers(place: Path) -> list[str]:
    """The entries of a folder that nothing of ours has put there: all, where nothing of ours was."""
    entries = sorted(entry.name for entry in place.iterdir() if entry.name not in _LITTER)
    for marker, key in _MARKS.items():
        try:
            facts = json.loads((place / marker).read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(facts, dict) and key in facts:
            files = facts.get(FILES_KEY)
            ours = {str(name).partition("/")[0] for name in files} if isinstance(files, dict) else set()
            return [name for name in entries if name not in ours and name != marker]
    return entries
