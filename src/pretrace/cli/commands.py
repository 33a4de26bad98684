"""All commands, in the groups and the order that the help shows. A command is imported when it is called."""

from __future__ import annotations

import ast
from collections import UserDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from pretrace import __version__

CONTEXT = {"help_option_names": ["-h", "--help"]}
COMPLETING = "_PRETRACE_COMPLETE"
"""The variable by which a shell asks how a word goes on."""


@dataclass(frozen=True)
class CommandEntry:
    """A command that is imported when it is called or its options are asked for.

    `words` are what is typed after `pretrace`. `place` is where its function stands: a module of `pretrace.cli`, a
    colon and the name.
    """

    words: str
    place: str
    plugins: bool = True

    @cached_property
    def says(self) -> str:
        """The first sentence of the docstring, for lists; it is read from the source, and nothing is imported."""
        module, _, name = self.place.partition(":")
        source = Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
        found = next(one for one in ast.parse(source).body if getattr(one, "name", "") == name)
        assert isinstance(found, ast.FunctionDef)
        return first_sentence(" ".join((ast.get_docstring(found) or "").split()))

    @cache  # noqa: B019 - there are as many as commands
    def made(self) -> Any:
        """Build the command, as typer has it."""
        from pretrace.cli.help import Command
        from pretrace.cli.options import command_of

        module, _, name = self.place.partition(":")
        function = getattr(import_module(f"pretrace.cli.{module}"), name)
        alone = typer.Typer(add_completion=False)
        made = command_of(function, plugins=self.plugins, name=self.words)
        alone.command(self.words.split()[-1], cls=Command)(made)
        return typer.main.get_command(alone)


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """Commands below a word."""

    words: str
    says: str
    entries: tuple[CommandEntry, ...]

    def made(self) -> Any:
        """Build the group, as typer has it."""
        return Commands(
            name=self.words,
            help=self.says,
            entries=self.entries,
            no_args_is_help=True,
            context_settings=CONTEXT,
        )


HelpRow = tuple[str, tuple[str, ...], str]
"""A line of the help of a group: a question, the commands that answer it, and how."""


class Commands(TyperGroup):
    """A group of commands, in the order of `entries`. The help shows `rows`, where there are none a line a command."""

    entries: tuple[CommandEntry | CommandGroup, ...] = ()
    rows: ClassVar[tuple[HelpRow, ...]] = ()

    def __init__(self, *, entries: tuple[CommandEntry, ...] = (), **given: Any) -> None:
        """A group with what typer gives one."""
        super().__init__(**given)
        self.entries = entries or self.entries
        self.commands = LoadedCommands({one.words.split()[-1]: one for one in self.entries})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from pretrace.cli.help import rendered

        formatter.write(rendered(self, ctx, everything=True))

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names in the order in which they stand in the table."""
        return list(self.commands)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete a word with commands that have a name and a sentence and nothing else."""
        listed: Any = {
            name: TyperCommand(name, help=one.says)
            for name, one in zip(self.commands, self.entries, strict=True)
        }
        ctx.command = TyperGroup(name=self.name, commands=listed, params=self.params)
        return list(ctx.command.shell_complete(ctx, incomplete))


class LoadedCommands(UserDict[str, Any]):
    """Commands by name; one is imported when it is first asked for."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(name).made()


def first_sentence(text: str) -> str:
    """What stands before the first full stop or semicolon, as a sentence."""
    end = min((at for at in (text.find(". "), text.find("; ")) if at >= 0), default=-1)
    return text if end < 0 else f"{text[:end]}."


_USED, _WHICH = "Was it used?", "Which texts?"
_METHODS, _FOUND = "How well does a method tell?", "What was found?"


class Root(Commands):
    """The commands of `pretrace`."""

    rows = (
        (_USED, ("ask",), "What you have in, one sentence out."),
        (_USED, ("audit",), "A collection, against control documents."),
        (_USED, ("recite",), "By words that the model prints."),
        (_USED, ("mark",), "By marks you leave, or random strings."),
        (_WHICH, ("flag",), "Each text, at a rate of false flags."),
        (_WHICH, ("scan",), "What stands in a corpus you have."),
        (_WHICH, ("samples",), "Items of a benchmark, as lm-eval ran it."),
        (_METHODS, ("score", "evaluate"), "Scores; with labels AUC and intervals."),
        (_METHODS, ("tune", "plant", "count"), "What some scores need first."),
        (_METHODS, ("build",), "Benchmarks; how alike two sets are."),
        (_METHODS, ("demo",), "A small model, trained and tested."),
        (_FOUND, ("runs",), "Results rendered, compared, verified."),
        (_FOUND, ("show", "serve"), "A text in colours; all of it as a page."),
        (_FOUND, ("list", "cache"), "What there is; what is kept on disk."),
    )
    entries = (
        CommandEntry("ask", "asking:ask"),
        CommandEntry("audit", "auditing:audit"),
        CommandEntry("recite", "testing:recite"),
        CommandGroup(
            "mark",
            "Before publication: mark texts or an order, check a model for the marks; or for random strings in texts.",
            (
                CommandEntry("mark texts", "marking:mark"),
                CommandEntry("mark order", "marking:order"),
                CommandEntry("mark check", "marking:check"),
                CommandEntry("mark canaries", "marking:canaries"),
            ),
        ),
        CommandEntry("flag", "flagging:flag"),
        CommandEntry("scan", "scanning:scan"),
        CommandEntry("samples", "harness:samples"),
        CommandEntry("score", "scoring:score"),
        CommandEntry("evaluate", "scoring:evaluate"),
        CommandEntry("tune", "making:tune"),
        CommandEntry("plant", "making:plant"),
        CommandEntry("count", "making:count"),
        CommandGroup(
            "build",
            "Make a benchmark from texts you have, with a card of how it was made; how alike two sets of texts are.",
            (
                CommandEntry("build patents", "building:patents"),
                CommandEntry("build dated", "building:dated"),
                CommandEntry("build ccnews", "building:ccnews"),
                CommandEntry("build quality", "building:quality"),
                CommandEntry("build gap", "building:gap"),
            ),
        ),
        CommandEntry("demo", "making:demo", plugins=False),
        CommandGroup(
            "runs",
            "Results: rendered again, side by side, verified, made again, put together from shards.",
            (
                CommandEntry("runs report", "printing:report", plugins=False),
                CommandEntry("runs compare", "folders:compare"),
                CommandEntry("runs table", "folders:table"),
                CommandEntry("runs verify", "folders:verify"),
                CommandEntry("runs again", "folders:again", plugins=False),
                CommandEntry("runs merge", "flagging:merge"),
            ),
        ),
        CommandEntry("show", "printing:show"),
        CommandEntry("list", "printing:list_"),
        CommandEntry("serve", "serving:serve", plugins=False),
        CommandGroup(
            "cache",
            "What is kept on disk so that it need not be computed twice: where, how much, and deleting it.",
            (
                CommandEntry("cache info", "caching:info", plugins=False),
                CommandEntry("cache clear", "caching:clear", plugins=False),
            ),
        ),
    )


app = typer.Typer(
    name="pretrace",
    cls=Root,
    help="Was this text, or this collection, in the data a language model was pretrained on?",
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"pretrace {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Was this text, or this collection, in the data a language model was pretrained on?"""


def call(words: Sequence[str]) -> int:
    """Carry out a command line here; its exit code."""
    code = app(args=list(words), prog_name="pretrace", standalone_mode=False)
    return code if isinstance(code, int) else 0


def every_command() -> Iterator[CommandEntry]:
    """All commands, those of groups among them; none is imported."""
    for one in Root.entries:
        yield from (one,) if isinstance(one, CommandEntry) else one.entries
