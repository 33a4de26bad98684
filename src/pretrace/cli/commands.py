"""All commands, in the groups and the order that the help shows. A command is imported when it is called."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from pretrace import __version__

# Groups of commands that know names and first sentences, and import a command when it is called or its options are
# asked for: help, completion and a mistyped name import none.


CONTEXT = {"help_option_names": ["-h", "--help"]}
COMPLETING = "_PRETRACE_COMPLETE"
"""The variable by which a shell asks how a word goes on."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is imported when it is asked for.

    `words` are what is typed after `pretrace`. `place` is where its function stands: a module of `pretrace.cli`, a
    colon and the name; or "verdicts.MODULE:CLASS" for a test (`verdicts.frame.Test`) that takes no more than texts,
    models and its settings: its command is made of it. `says` is the first sentence of the docstring, for lists.
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
    if module.startswith("verdicts."):
        from pretrace.cli.testing import of_test

        function = of_test(getattr(import_module(f"pretrace.{module}"), name))
    else:
        function = getattr(import_module(f"pretrace.cli.{module}"), name)
    made = command_of(function, plugins=entry.plugins, name=entry.words)
    alone = typer.Typer(add_completion=False)
    alone.command(entry.words.split()[-1], cls=Command)(made)
    return typer.main.get_command(alone)


_USED, _WHICH = "Was it used?", "Which texts?"
_METHODS, _FOUND = "How well does a method tell?", "What was found?"


class Build(Commands):
    """The commands below `pretrace build`."""

    entries = (
        Entry(
            "build patents",
            "building:patents",
            "PatentMIA from patent pages you have: snippets of Chinese patents, old ones against new ones.",
        ),
        Entry(
            "build dated",
            "building:dated",
            "A WikiMIA of your own: texts from before a model's cutoff against later ones.",
        ),
        Entry(
            "build ccnews",
            "building:ccnews",
            "Build a CCNewsPDD: members as they are, non-members transformed so that no model can"
            " have read them.",
        ),
        Entry(
            "build quality",
            "building:quality",
            "How alike two sets of texts are, beside how alike A is to itself: shared words, "
            "embeddings, divergence.",
        ),
        Entry(
            "build gap",
            "building:gap",
            "How far apart two sets of texts are, by classifiers that see no model.",
        ),
    )


class Cache(Commands):
    """The commands below `pretrace cache`."""

    entries = (
        Entry(
            "cache info",
            "caching:info",
            "Where the cache is, what it holds, and how much of which model.",
            plugins=False,
        ),
        Entry(
            "cache clear",
            "caching:clear",
            "Delete what is kept, or a part of it: it is computed anew when it is wanted.",
            plugins=False,
        ),
    )


class Mark(Commands):
    """The commands below `pretrace mark texts`."""

    entries = (
        Entry(
            "mark texts",
            "marking:mark",
            "Mark texts before you publish them: of several variants of each text a lot decides "
            "which one you publish.",
        ),
        Entry(
            "mark order",
            "marking:order",
            "Put the rows of a set, or the answer options of its items, in an order drawn by lot before "
            "you publish it.",
        ),
        Entry(
            "mark check",
            "marking:check",
            "Was a model trained on texts that were marked? An exact test of the sealed draw.",
        ),
        Entry(
            "mark canaries",
            "marking:canaries",
            "Does a model know the random strings of these texts (hashes, UUIDs)? Each is "
            "compared with fresh strings of the same format, under the model in question and a "
            "second one.",
        ),
    )


class Runs(Commands):
    """The commands below `pretrace runs`."""

    entries = (
        Entry(
            "runs report",
            "printing:report",
            "Render RUN/report.html again from the run's tables, without a model.",
            plugins=False,
        ),
        Entry(
            "runs compare",
            "folders:compare",
            "Put runs side by side: models by corpora, with their controls.",
        ),
        Entry(
            "runs table",
            "folders:table",
            "The figures of a run for a paper: a table with 95% intervals, the best of each column in bold.",
        ),
        Entry(
            "runs verify",
            "folders:verify",
            "Is a result what was written? Every hash, the report against its tables, and the "
            "texts against those of the result.",
        ),
        Entry(
            "runs again",
            "folders:again",
            "Make a result again: the same command with the options that it recorded, relative "
            "paths from here.",
            plugins=False,
        ),
        Entry(
            "runs merge",
            "scoring:merge",
            "Put the parts of `score --shard`, `evaluate --shard` or `flag --shard` together: the"
            " table, the run or flagging, and its report.",
        ),
    )


class Root(Commands):
    """The commands of `pretrace`."""

    rows = (
        Row(_USED, ("ask",), "What you have in, one sentence out."),
        Row(_USED, ("audit",), "A collection, against control documents."),
        Row(_USED, ("recite",), "By words that the model prints."),
        Row(_USED, ("mark",), "By marks you leave, or random strings."),
        Row(_WHICH, ("flag",), "Each text, at a rate of false flags."),
        Row(_WHICH, ("scan",), "What stands in a corpus you have."),
        Row(_WHICH, ("samples",), "Items of a benchmark, as lm-eval ran it."),
        Row(_METHODS, ("score", "evaluate"), "Scores; with labels AUC and intervals."),
        Row(_METHODS, ("tune", "plant", "count"), "What some scores need first."),
        Row(_METHODS, ("build",), "Benchmarks; how alike two sets are."),
        Row(_METHODS, ("demo",), "A small model, trained and tested."),
        Row(_FOUND, ("runs",), "Results rendered, compared, verified."),
        Row(_FOUND, ("show", "serve"), "A text in colours; all of it as a page."),
        Row(_FOUND, ("list", "cache"), "What there is; what is kept on disk."),
    )
    entries = (
        Entry(
            "ask",
            "asking:ask",
            "Was this used? Looks at what you have, says which test can answer and how likely, asks, runs it, and "
            "ends with one sentence and a report.",
        ),
        Entry(
            "audit",
            "auditing:audit",
            "Was this collection used? A test with its controls, a report, and an exit code: 0 "
            "nothing shown, 3 consistent with training on it, 4 inconclusive.",
        ),
        Entry(
            "recite",
            "testing:recite",
            "Does the model print these texts, word for word? Held against control texts, other documents' ends and a "
            "second model.",
        ),
        Group(
            "mark",
            "Before publication: mark texts or an order, check a model for the marks; or for random strings in texts.",
            Mark,
        ),
        Entry(
            "flag",
            "flagging:flag",
            "Which of these texts were seen? Each against known non-members, at a rate of false "
            "flags, and all together.",
        ),
        Entry(
            "scan",
            "scanning:scan",
            "Are these texts in this corpus? Reads the corpus once and finds every passage of 50 "
            "or more characters that it shares with a text.",
        ),
        Entry(
            "samples",
            "harness:samples",
            "Accuracy on items that a model seems to have seen, beside that on the others, from "
            "what lm_eval --log_samples wrote.",
        ),
        Entry(
            "score",
            "scoring:score",
            "Score texts: one row a text, one column a score, higher = more member-like.",
        ),
        Entry(
            "evaluate",
            "scoring:evaluate",
            "Score labelled texts and measure: AUC, TPR at 5% FPR, accuracy, intervals, and the "
            "controls beside them.",
        ),
        Entry(
            "tune",
            "making:tune",
            "Tune a model on a few known non-members, for fsd(...): an adapter, with a card of "
            "how it was made.",
        ),
        Entry(
            "plant",
            "making:plant",
            "Train a model on a random part of the texts, so that its members are known without a doubt.",
        ),
        Entry(
            "count",
            "making:count",
            "Count a model's tokens in reference texts, for dc_pdd: exact, parallel, resumable.",
        ),
        Group(
            "build",
            "Make a benchmark from texts you have, with a card of how it was made; how alike two sets of texts are.",
            Build,
        ),
        Entry(
            "demo",
            "making:demo",
            "Train a small model on half of a corpus, then tell that half from the other.",
            plugins=False,
        ),
        Group(
            "runs",
            "Results: rendered again, side by side, verified, made again, put together from shards.",
            Runs,
        ),
        Entry(
            "show",
            "printing:show",
            "Print a text's tokens coloured by how surprising each was to the model.",
        ),
        Entry(
            "list",
            "printing:list_",
            "List scores, corpora and what --model takes, one line each.",
        ),
        Entry(
            "serve",
            "serving:serve",
            "A page on this machine for those who do not live in a terminal: look at a text, test"
            " a collection, read results.",
            plugins=False,
        ),
        Group(
            "cache",
            "What is kept on disk so that it need not be computed twice: where, how much, and deleting it.",
            Cache,
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


def every_command(group: type[Commands] = Root) -> Iterator[Entry]:
    """All commands of a group, those of groups in it among them; none is imported."""
    for one in group.entries:
        if isinstance(one, Entry):
            yield one
        else:
            yield from every_command(one.members)
