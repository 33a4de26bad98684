"""The one printer of the command line: nothing that a file, model, column or server is called steers a terminal.

`Plain` shows control characters as text where a text is made, the console of `printer` does so with everything else
that it prints; lines on standard error are for `pretrace.cli.streams.say`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich import console as rich
from rich.segment import Segment
from rich.text import Text

from pretrace.errors import shown


class Plain(Text):
    """A text as it is, without markup, with control characters as text; line ends stay."""

    def __init__(self, text: str = "", style: str = "") -> None:
        super().__init__(shown(text, keep="\n"), style)


class _Console(rich.Console):
    """A console that writes no control character but its own."""

    def render(
        self, renderable: rich.RenderableType, options: rich.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for one in super().render(renderable, options):
            if one.control or one.text.isprintable():
                yield one
            else:
                yield Segment(shown(one.text, keep="\n\t"), one.style)

    def on_broken_pipe(self) -> None:
        """BrokenPipeError, which the program's end knows; Rich would leave the program here."""
        raise BrokenPipeError


def printer(*, stderr: bool = False) -> rich.Console:
    """A console to print to: standard output, or standard error."""
    return _Console(highlight=False, stderr=stderr)


def write_json(document: Mapping[str, Any]) -> None:
    """Write a JSON document to standard output; where that is not UTF-8, with JSON's own escapes."""
    from pretrace.results.serialization import to_json  # takes arrays, and so imports numpy

    text = to_json(document).decode()
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(document, allow_nan=False, indent=1) + "\n"
    sys.stdout.write(text)
