"""Groups of commands that know names and first sentences, and import a command when it is called or its options are
asked for: help, completion and a mistyped name import none."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

CONTEXT = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is imported when it is asked for.

    `words` are what is typed after `pretrace`. `place` is where its function stands: a module of `pretrace.cli`, a
    colon and the name. `says` is the first sentence of the function's docstring, for lists.
    """

    words: str
    place: str
    says: str
    plugins: bool = True

    def made(self) -> Any:
        """The command, as typer has it."""
        return _command(self)


@dataclass(frozen=True, slots=True)
class Group:
    """Commands below a word."""

    words: str
    says: str
    members: type[Commands]

    def made(self) -> Any:
        """The group, as typer has it."""
        own = typer.Typer(
            name=self.words, cls=self.members, help=self.says, no_args_is_help=True, context_settings=CONTEXT
        )
        return typer.main.get_group(own)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the help of a group: a question, the commands that answer it, and how."""

    question: str
    commands: tuple[str, ...]
    says: str


class Commands(TyperGroup):
    """A group of commands, in the order of `entries`. The help shows `rows`, where there are none a line a command."""

    entries: ClassVar[tuple[Entry | Group, ...]] = ()
    rows: ClassVar[tuple[Row, ...]] = ()

    def __init__(self, **given: Any) -> None:
        """A group with what typer gives one."""
        super().__init__(**given)
        self.commands = Loaded({one.words.split()[-1]: one for one in self.entries})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from pretrace.cli.help import rendered

        formatter.write(rendered(self, ctx, everything=True))

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order in which they stand in the table."""
        return list(self.commands)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """How a word goes on, told by commands that have a name and a sentence and nothing else."""
        listed: Any = {
            name: TyperCommand(name, help=one.says)
            for name, one in zip(self.commands, self.entries, strict=True)
        }
        ctx.command = TyperGroup(name=self.name, commands=listed, params=self.params)
        return list(ctx.command.shell_complete(ctx, incomplete))


class Loaded(UserDict[str, Any]):
    """Commands by name; one is imported when it is first asked for."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        return found.made() if isinstance(found, Entry | Group) else found


@cache
def _command(entry: Entry) -> Any:
    from pretrace.cli.help import Command
    from pretrace.cli.options import command_of

    module, _, name = entry.place.partition(":")
    function = getattr(import_module(f"pretrace.cli.{module}"), name)
    alone = typer.Typer(add_completion=False)
    alone.command(entry.words.split()[-1], cls=Command)(
        command_of(function, plugins=entry.plugins, name=entry.words)
    )
    return typer.main.get_command(alone)
