"""Notes on standard error, and whether they and all progress are wanted (--quiet)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pretrace.cli.streams import say

_state = {"quiet": False}  # of the process: warnings and progress come from threads, too
said_at = [time.monotonic()]
"""When the last line of progress was said, or the command began: short stages one after another count together."""


def quiet() -> bool:
    """Whether nothing but errors is to be said on standard error."""
    return _state["quiet"]


@contextmanager
def silenced(wanted: bool) -> Iterator[None]:
    """A command, without notes and progress if that is wanted."""
    said_at[0] = time.monotonic()
    before = _state["quiet"]
    _state["quiet"] = wanted or before
    try:
        yield
    finally:
        _state["quiet"] = before


def note(words: str) -> None:
    """Say something on standard error in one line, unless it is to be quiet."""
    if not quiet():
        say(f"pretrace: note: {' '.join(words.split())}")
