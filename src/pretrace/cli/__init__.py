"""The command line: parse, call, print. Errors a user can mend go to standard error, exit code 2."""

from __future__ import annotations

import os
import sys
import warnings

from pretrace.cli.commands import app
from pretrace.errors import PretraceError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; never a traceback for what a user can mend."""
    warnings.showwarning = _note  # type: ignore[assignment]  # takes fewer of the arguments
    try:
        app(prog_name="pretrace")
    except PretraceError as error:
        _leave(str(error), 2)
    except KeyboardInterrupt:
        _leave("stopped; what was read is kept, the same command goes on from there.", 130)
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _leave(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 2)


def _note(message: Warning | str, category: type[Warning], filename: str, *_: object) -> None:
    """Our own warnings as one line; those of libraries are for developers."""
    if issubclass(category, UserWarning) and "pretrace" in filename:
        print(f"pretrace: note: {' '.join(str(message).split())}", file=sys.stderr)


def _leave(message: str, code: int) -> None:
    line = " ".join(message.split())
    print(f"pretrace: {line}", file=sys.stderr)
    sys.exit(code)
