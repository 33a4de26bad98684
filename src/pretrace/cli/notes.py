"""Notes on standard error, and whether they and all progress are wanted (--quiet)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_state = {"quiet": False}  # of the process: warnings and progress come from threads, too


def quiet() -> bool:
    """Whether nothing but errors is to be said on standard error."""
    return _state["quiet"]


@contextmanager
def silenced(wanted: bool) -> Iterator[None]:
    """No notes and no progress while the context lasts, if that is wanted."""
    before = _state["quiet"]
    _state["quiet"] = wanted or before
    try:
        yield
    finally:
        _state["quiet"] = before


def note(words: str) -> None:
    """Say something on standard error in one line, unless it is to be quiet."""
    if not quiet():
        print(f"pretrace: note: {' '.join(words.split())}", file=sys.stderr)
