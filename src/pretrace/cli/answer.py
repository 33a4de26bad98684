"""What a command answers: printed for people or, with --json, as one JSON document.

A command returns a `Reply`, or a number where it has nothing to say but its exit code. `command_of` prints it. So a
command knows nothing of --json, and what it says on standard output cannot get into the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pretrace.errors import shown

if TYPE_CHECKING:
    from pretrace.types import Verdict

# The one printer of the command line: nothing that a file, model, column or server is called steers a terminal. Text is
# shown without markup, its control characters as text; lines on standard error are for `pretrace.cli.say`.


class _Console(Console):
    """A console that writes no control character but its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for one in super().render(renderable, options):
            if one.control or one.text.isprintable():
                yield one
            else:
                yield Segment(shown(one.text, keep="\n\t"), one.style)

    def on_broken_pipe(self) -> None:
        """BrokenPipeError, which the program's end knows; Rich would leave the program here."""
        raise BrokenPipeError


def printer(*, stderr: bool = False) -> Console:
    """A console to print to: standard output, or standard error."""
    return _Console(highlight=False, stderr=stderr)


def prose(text: str, style: str = "") -> Text:
    """A text as it is, whose lines break between words."""
    return Text(shown(text, keep="\n"), style)


def plain_table(
    *words: str, numbers: Sequence[str] = (), rows: Iterable[Sequence[str]], caption: str = "", **how: Any
) -> Table:
    """Make a table without rules: columns of `words`, which fold, then columns of `numbers`, which do not."""
    table = Table(box=None, padding=(0, 2, 0, 0), caption=caption and prose(caption), **how)
    table.caption_justify = "left"
    for name in words:
        table.add_column(prose(name), overflow="fold")
    for name in numbers:
        table.add_column(prose(name), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(prose, row))
    return table


def show(said: Iterable[RenderableType], *, stderr: bool = False) -> None:
    """Print what is said; a line that is a string is not broken, since it may hold a path or a command."""
    console = printer(stderr=stderr)
    for one in said:
        line = isinstance(one, str)
        console.print(prose(str(one)) if line else one, soft_wrap=line)


CANNOT_ANSWER = 4
"""The exit code where no verdict is possible with what there is, the same as for a verdict that is withheld."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command found, in the words that everybody shares, and in its own.

    `said` is printed for people. `outcome` is a word that scripts act on, `code` the exit code, `statement` a sentence,
    `folder` what was written, `report` the page in it, `verdict` what stands there. `own`
    are the command's own keys of the JSON document: anything that `results.folder.to_plain` takes.
    """

    said: Iterable[RenderableType] = ()
    _: KW_ONLY
    outcome: str = "done"
    code: int = 0
    statement: str = ""
    folder: Path | None = None
    report: Path | None = None
    verdict: Verdict | None = None
    own: Mapping[str, Any] = field(default_factory=dict)

    def document(self, command: str) -> dict[str, Any]:
        """The answer as the JSON document of a command."""
        from pretrace.results.folder import to_plain  # takes arrays, and so imports numpy

        return {
            "command": command,
            "outcome": self.outcome,
            "exit_code": self.code,
            "statement": self.statement,
            "folder": None if self.folder is None else str(self.folder),
            "report": None if self.report is None else str(self.report),
            **{name: to_plain(value, name) for name, value in self.own.items()},
        }


Answered = Reply | int | None
"""What a command may return."""
