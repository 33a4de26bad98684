"""The standard streams, made fit to print to whatever they are; and what goes to standard error.

Notes can be silenced (--quiet). A program that started the command, such as `pretrace serve`, is told its progress and
exit code in a small JSON file: PRETRACE_PROGRESS names it. It holds `share` (0 to 1), `left` (seconds, null while
unknown), `said` (what is being done) and, when the command is over, `ended` (its exit code) and `message` (its line
of error).

Control characters and escape sequences are shown as text (`pretrace.errors.shown`), lest what a file, model, column or
server is called steers a terminal. A console that is not UTF-8 gets the escape of a letter that it lacks. Only `--json`
is exact.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pretrace.errors import shown


def prepare() -> None:
    """Make the standard streams fit to print to: a closed one leads nowhere, and no letter is an error."""
    for number, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened gets the number, and what libraries print goes into it.
            os.open(os.devnull, mode)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - it lasts
        elif isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # a stream that cannot seek, opened in a way of its own
                stream.reconfigure(errors="backslashreplace")


def say(line: str) -> None:
    """Print a line to standard error."""
    print(shown(line), file=sys.stderr, flush=True)


def asks() -> bool:
    """Whether somebody at a terminal can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirm(question: str, *, default: bool) -> bool:
    """Ask somebody at a terminal, on standard error; the end of the input is an interrupt."""
    try:
        print(f"{shown(question)} [{'Y/n' if default else 'y/N'}]: ", end="", file=sys.stderr, flush=True)
        answer = input().strip().lower()
    except EOFError:
        raise KeyboardInterrupt from None
    return answer.startswith("y") if answer else default


# Notes on standard error, and whether they and all progress are wanted (--quiet).


_state = {"quiet": False}  # of the process: warnings and progress come from threads, too
said_at = [time.monotonic()]
"""When the last line of progress was said, or the command began."""


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


# Progress and exit code as a small JSON file, for a program that started the command.


VARIABLE = "PRETRACE_PROGRESS"
EVERY = 0.5
"""Seconds between two writes."""
_writing = threading.Lock()


def progress_file() -> Path | None:
    """The file that is asked for; None where none is."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def note_share(share: float, left: float | None, said: str) -> None:
    """Write how far the command is; nothing where no file is asked for or it cannot be written."""
    _write({"share": min(1.0, max(0.0, share)), "left": left, "said": said})


def note_end(code: int, message: str) -> None:
    """Write that the command is over."""
    _write({"share": 1.0, "left": 0.0, "said": "", "ended": code, "message": message})


def _write(content: dict[str, Any]) -> None:
    path = progress_file()
    if path is None:
        return
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    with _writing, suppress(OSError):  # progress is no reason to lose the work
        beside.write_text(json.dumps(content), encoding="utf-8")
        beside.replace(path)
