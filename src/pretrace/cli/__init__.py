"""The command line: parse, call, print. Errors a user can mend go to standard error, exit code 2."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pretrace.cli.notes import note
from pretrace.cli.progress_file import note_end
from pretrace.errors import PretraceError

__all__ = ["main"]

_STOPPED = 130


def main() -> None:
    """Run the command line; never a traceback for what a user can mend, nor for Ctrl-C."""
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
        print(f"pretrace: {' '.join(message.split())}", file=sys.stderr)
    note_end(code, " ".join(message.split()))
    sys.exit(code)


def _called(arguments: list[str]) -> tuple[int, str]:
    """The exit code and what is to be said on standard error."""
    import typer  # not above: an interrupt while modules are imported is one like any other

    from pretrace.cli.commands import app

    # The base of all complaints about arguments, which typer makes public only through its children.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        code = app(args=arguments, prog_name="pretrace", standalone_mode=False)
    except PretraceError as error:
        return 2, str(error)
    except usage_error as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "pretrace"
        return 2, f"{error.format_message()} See {command} --help."  # type: ignore[attr-defined]
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1, ""
    except OSError as error:
        return 2, f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
    return (code if isinstance(code, int) else 0), ""


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
