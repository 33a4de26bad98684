"""`pretrace runs verify`: is a result folder what was written, and are these its texts?"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table

from pretrace.cli.answer import Answer, Plain
from pretrace.corpora import Columns
from pretrace.settings import TEXTS, Option, option
from pretrace.verification import Verification
from pretrace.verification import verify as check

FAILED = 2
"""The exit code where something is not as it was recorded."""
_FOLDER = Option(
    "A folder that a run, an audit, a flagging or another test was written to.",
    metavar="FOLDER",
    path="in",
    essential=True,
)


def _place(help: str) -> str | None:
    given: str | None = option(None, help, panel=TEXTS, path="in", essential=True)
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyInputs:
    """Where the texts are now; those that are not named are looked for where they were."""

    texts: str | None = _place("The texts in question, as they are now; given as TEXTS is.")
    heldout: str | None = _place("The control documents of an audit.")
    nonmembers: str | None = _place("The known non-members of a flagging.")
    reference: str | None = _place("The labelled texts that detectors of a run were fitted on.")
    controls: tuple[str, ...] = option(
        (), "The control collections of `pretrace collections`, in their order.", panel=TEXTS, path="in"
    )
    sealed: str | None = _place("The sealed file of `pretrace mark check`.")
    answers: str | None = _place("The answers of `pretrace mark check`.")
    columns: Columns = field(default_factory=Columns)

    @property
    def named(self) -> dict[str, str | tuple[str, ...]]:
        """The places that were named, by the role of the texts."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "columns"}
        return {role: place for role, place in found.items() if place}


def verify(folder: Annotated[Path, _FOLDER], inputs: VerifyInputs) -> Answer:
    """Is a result what was written? Every hash, the report against its tables, and the texts against those of the
    result. Exit code 0 when all that can be checked holds, 2 otherwise."""
    found = check(folder, inputs.named, columns=inputs.columns)
    statement = _statement(found)

    def say(console: Console) -> None:
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for column in ("check", "state"):
            table.add_column(column, no_wrap=True)
        table.add_column("words", overflow="fold")
        for one in found.checks:
            table.add_row(one.name, one.state, Plain(one.words))
        console.print(table)
        console.print(Plain(statement), soft_wrap=True)

    return Answer(
        say=say,
        outcome="holds" if found.holds else "differs",
        code=0 if found.holds else FAILED,
        statement=statement,
        folder=folder,
        own={"kind": found.kind, "checks": found.checks},
    )


def _statement(found: Verification) -> str:
    if not found.holds:
        wrong = ", ".join(one.name for one in found.checks if one.state == "no")
        return f"This {found.kind} is not as it was recorded: {wrong}."
    open_ = [one.name for one in found.checks if one.state != "yes"]
    return f"This {found.kind} is as it was recorded" + (
        f"; not checked: {', '.join(open_)}." if open_ else "."
    )
