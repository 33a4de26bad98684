"""The command line as a process: parse, call, print. Errors a user can mend go to standard error, exit code 2.

Notes on standard error can be silenced (--quiet). A program that started the command, such as `pretrace serve`, is told
its progress and exit code in a small JSON file: PRETRACE_PROGRESS names it. It holds `share` (0 to 1), `left` (seconds,
null while unknown), `said` (what is being done) and, when the command is over, `ended` (its exit code) and `message`
(its line of error).

Control characters and escape sequences are shown as text (`pretrace.errors.shown`), lest what a file, model, column or
server is called steers a terminal. A console that is not UTF-8 gets the escape of a letter that it lacks. Only `--json`
is exact.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from pretrace.errors import PretraceError, shown
from pretrace.registry import plugin_fault

_STOPPED = 130


def main() -> None:
    """Run the command line; never a traceback for what a user can mend, nor for Ctrl-C."""
    _prepare()
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # no child imports modules from the folder it is started in
    warnings.showwarning = _note  # type: ignore[assignment]  # takes fewer of the arguments
    with _interrupts() as interrupts:
        try:
            code, message = _called(sys.argv[1:] or ["--help"])
        except BaseException:
            # What was interrupted may fail in its own way: a zip file that cannot be closed, a native library.
            if not interrupts:
                raise
            code, message = _STOPPED, ""
    if code == _STOPPED:
        message = "stopped; what was read is kept, the same command goes on from there."
    if message:
        with suppress(OSError):  # nobody listens
            say(f"pretrace: {' '.join(message.split())}")
    write_progress(1.0, 0.0, "", ended=code, message=" ".join(message.split()))
    sys.exit(code)


def _called(arguments: list[str]) -> tuple[int, str]:
    from cyclopts import CycloptsError  # not above: an interrupt of an import is one like any other

    from pretrace.cli.commands import call

    try:
        code = call(arguments)
        sys.stdout.flush()
    except PretraceError as error:
        return 2, str(error)
    except CycloptsError as error:
        command = " ".join(["pretrace", *(error.command_chain or ())])
        said = str(error).replace("Unused Tokens:", "too many words:")
        return 2, f"{said}{'' if said[-1] in '.?' else '.'} See {command} --help."
    except KeyboardInterrupt:
        return _STOPPED, ""
    except BrokenPipeError:
        # the reader of our output has had enough of it, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python fails as it ends
        return 0, ""
    except SystemExit as error:
        said = (plugin_fault(error) or "something that pretrace called ended the program").rstrip(".")
        return 2, f"{said} (exit code {error.code}), before the work was done: nothing was written."
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        return 2, plugin_fault(error) or f"{error.strerror or error}{place}."
    except Exception as error:
        fault = plugin_fault(error)
        if fault is None:
            raise
        return 2, fault
    return code, ""


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The signals of Ctrl-C while the context lasts; each still raises KeyboardInterrupt."""
    met: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        met.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield met  # ignored, as by a shell's background jobs, or another's business
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield met
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _note(message: Warning | str, category: type[Warning], filename: str, *_: object) -> None:
    """Our own warnings as one line; those of libraries are for developers."""
    if issubclass(category, UserWarning) and "pretrace" in filename:
        note(str(message))


# The standard streams.


def _prepare() -> None:
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
_writing = threading.Lock()


def write_progress(share: float, left: float | None, said: str, **ended: Any) -> None:
    """Write how far the command is, or with what `ended` it; nothing where no file is asked for or it cannot be
    written."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    beside = Path(f"{path}.{os.getpid()}")
    content = {"share": min(1.0, max(0.0, share)), "left": left, "said": said, **ended}
    with _writing, suppress(OSError):  # progress is no reason to lose the work
        beside.write_text(json.dumps(content), encoding="utf-8")
        beside.replace(path)
