"""What a command is doing, said where it has been silent for long: models are opened, a large source is read once.

Stages with lines or bars of their own (`progress`) come first; this is for everything between them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from pretrace.cli.console import printer
from pretrace.cli.lines import Clock, duration
from pretrace.cli.notes import quiet, said_at
from pretrace.cli.progress import LINE_SECONDS, repeated
from pretrace.cli.progress_file import note_share
from pretrace.cli.streams import say

_LATER = 1.0
"""Seconds that a stage's own line is given before it counts as missing; also the time between two looks."""
_doing: list[tuple[str, float]] = []
"""What is being done and since when, the innermost last."""


@contextmanager
def doing(what: str, *, spinner: bool = False, clock: Clock = time.monotonic) -> Iterator[None]:
    """Something that reports no progress, named for the line and for the progress file while the context lasts.

    `spinner` shows it on a terminal too, which nothing else may write to meanwhile.
    """
    _doing.append((what, clock()))
    note_share(0.0, None, what)
    shown = spinner and sys.stderr.isatty() and not quiet()
    try:
        with printer(stderr=True).status(what) if shown else nullcontext():
            yield
    finally:
        _doing.pop()


@contextmanager
def command(name: str, clock: Clock = time.monotonic) -> Iterator[None]:
    """A whole command: a plain line on standard error wherever nothing was said for 30 seconds, lest whatever runs it
    takes it for dead; nothing on a terminal or with --quiet."""
    _doing.append((f"pretrace {name}", clock()))
    note_share(0.0, None, "reading the texts")  # every command that takes long begins with that
    try:
        with (
            nullcontext()
            if sys.stderr.isatty()
            else repeated(lambda: _say(clock), first=LINE_SECONDS + _LATER, every=_LATER)
        ):
            yield
    finally:
        _doing.pop()


def _say(clock: Clock) -> None:
    """The line, if it is time for one."""
    now = clock()
    if quiet() or now - said_at[0] < LINE_SECONDS + _LATER:
        return
    said_at[0] = now
    what, since = _doing[-1]
    say(f"{what} · {duration(now - since)} so far")
