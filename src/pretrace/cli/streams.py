"""The standard streams, made fit to print to whatever they are; and lines on standard error.

Control characters and escape sequences are shown as text (`pretrace.errors.shown`), lest what a file, model, column or
server is called steers a terminal. A console that is not UTF-8 gets signs of its own in place of ours, and the escape
of a letter that it lacks. Only `--json` is exact.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress
from pathlib import Path

from pretrace.errors import shown

_INSTEAD = "pretrace"
_SIGNS = {
    "—": "-", "–": "-", "−": "-", "‑": "-", "…": "...", "·": "-", "•": "*", "→": "->", "↵": "\\n", "×": "x",
    "“": '"', "”": '"', "‘": "'", "’": "'", "†": "+", "‡": "++", "≤": "<=", "≥": ">=", "≈": "~", "±": "+-",
    "━": "-", "╸": "-", "╺": "-", "─": "-", "│": "|",
}  # fmt: skip
"""What stands for our own signs where a console lacks them."""


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
                stream.reconfigure(errors=_INSTEAD)


def _instead(error: UnicodeError) -> tuple[str, int]:
    """What is written in place of letters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_SIGNS.get(one) or shown(one, every=True) for one in lacking), error.end


codecs.register_error(_INSTEAD, _instead)


def say(line: str) -> None:
    """Print a line to standard error."""
    print(shown(line), file=sys.stderr, flush=True)


def asks() -> bool:
    """Whether somebody at a terminal can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()
