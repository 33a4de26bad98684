"""The command line: parse, call, print. Errors a user can mend go to standard error, exit code 2."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from pretrace.cli.streams import note, note_end, prepare, say
from pretrace.errors import PretraceError
from pretrace.registry import plugin_fault

__all__ = ["main"]

_STOPPED = 130


def main() -> None:
    """Run the command line; never a traceback for what a user can mend, nor for Ctrl-C."""
    prepare()
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
    note_end(code, " ".join(message.split()))
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
