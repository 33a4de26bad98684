"""The audits made on this machine: whoever audits until something is found should be seen doing it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pretrace.cache.location import cache_folder
from pretrace.results.atomic import explained

FILE = "audits.jsonl"


def note_audit(entry: Mapping[str, Any], folder: Path | None = None) -> None:
    """Add a line about an audit to the register in the cache; OutputError where that cannot be written."""
    path = (folder or cache_folder()) / FILE
    line = json.dumps(entry, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(handle, line.encode("utf-8", "backslashreplace"))  # in one piece, whoever else writes
        finally:
            os.close(handle)


def earlier_audits(
    texts: str, weights: str | None = None, folder: Path | None = None
) -> tuple[dict[str, Any], ...]:
    """What was noted of audits of the same texts (by their hash) and weights, or any weights, oldest first.

    A line that cannot be read is passed over: the register informs, and no audit should fail for it.
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
