"""The command line: parse, call, print. Errors a user can mend go to standard error, exit code 2."""

from __future__ import annotations

import os
import sys
import warnings

import typer

from pretrace.cli.commands import app
from pretrace.errors import PretraceError

__all__ = ["app", "main"]

_STOPPED = 130
# The base of all complaints about arguments, which typer makes public only through its children.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main() -> None:
    """Run the command line; never a traceback for what a user can mend."""
    warnings.showwarning = _note  # type: ignore[assignment]  # takes fewer of the arguments
    try:
        code = app(args=sys.argv[1:] or ["--help"], prog_name="pretrace", standalone_mode=False)
    except PretraceError as error:
        _leave(str(error), 2)
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "pretrace"
        _leave(f"{error.format_message()} See {command} --help.", 2)  # type: ignore[attr-defined]
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _leave(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 2)
    if code == _STOPPED:
        _leave("stopped; what was read is kept, the same command goes on from there.", _STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _note(message: Warning | str, category: type[Warning], filename: str, *_: object) -> None:
    """Our own warnings as one line; those of libraries are for developers."""
    if issubclass(category, UserWarning) and "pretrace" in filename:
        print(f"pretrace: note: {' '.join(str(message).split())}", file=sys.stderr)


def _leave(message: str, code: int) -> None:
    line = " ".join(message.split())
    print(f"pretrace: {line}", file=sys.stderr)
    sys.exit(code)
