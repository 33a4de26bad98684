"""All commands, in the groups and the order that the help shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from pretrace import __version__
from pretrace.cli import (
    advising,
    asking,
    auditing,
    building,
    caching,
    checking,
    collecting,
    comparing,
    exporting,
    flagging,
    harness,
    making,
    marking,
    ordering,
    printing,
    repeating,
    scanning,
    scoring,
    serving,
    sharded,
    side_by_side,
    verifying,
)
from pretrace.cli import cutoff as cutoffs
from pretrace.cli.answer import Answered
from pretrace.cli.help import Command, Commands
from pretrace.cli.options import Leaf, command_of

_CONTEXT = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="pretrace",
    cls=Commands,
    help="Was this text, or this collection, in the data a language model was pretrained on?",
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)
build = typer.Typer(
    cls=Commands,
    help="Make a benchmark from texts you have: members and non-members, with a card of how it was made.",
    no_args_is_help=True,
    context_settings=_CONTEXT,
)
cache = typer.Typer(
    cls=Commands,
    help="What is kept on disk so that it need not be computed twice: where, how much, and deleting it.",
    no_args_is_help=True,
    context_settings=_CONTEXT,
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


def _add(
    to: typer.Typer,
    panel: str,
    *functions: Callable[..., Answered],
    plugins: bool = True,
) -> None:
    for function in functions:
        name = function.__name__.rstrip("_")
        said = f"{_GROUPS[id(to)]} {name}" if id(to) in _GROUPS else name
        to.command(name, cls=Command, rich_help_panel=panel)(command_of(function, plugins=plugins, name=said))


_GROUPS = {id(build): "build", id(cache): "cache"}


def _call(words: Sequence[str]) -> int:
    code = app(args=list(words), prog_name="pretrace", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _leaves_of(command: str) -> Mapping[str, Leaf]:
    found = getattr(typer.main.get_command(app), "commands", {}).get(command)
    leaves: Mapping[str, Leaf] = getattr(getattr(found, "callback", None), "leaves", {})
    return leaves


_AUDITS, _TESTS = "Audit and flag", "Without an earlier checkpoint"
_BENCHMARKS, _RECORD, _LOOK = "Benchmarks", "For the record", "Look"
_add(
    app,
    _AUDITS,
    asking.made_with(_call),
    advising.advise,
    auditing.audit,
    flagging.flag,
    scanning.scan,
    harness.samples,
)
_add(
    app,
    _TESTS,
    marking.mark,
    marking.draw,
    checking.check,
    checking.canaries,
    ordering.order,
    collecting.collections,
    cutoffs.cutoff,
)
_add(
    app,
    "Score and evaluate",
    scoring.score,
    scoring.evaluate,
    sharded.merge,
    side_by_side.compare,
    exporting.export,
)
_add(app, "Models and counts", making.tune, making.plant, making.count)
_add(build, "Commands", building.patents, building.dated, building.ccnews)
app.add_typer(build, name="build", rich_help_panel=_BENCHMARKS)
_add(app, _BENCHMARKS, comparing.quality, comparing.gap)
_add(app, _RECORD, verifying.verify)
_add(app, _RECORD, repeating.made_with(_call, _leaves_of), plugins=False)
_add(cache, "Commands", caching.info, caching.clear, plugins=False)
app.add_typer(cache, name="cache", rich_help_panel=_RECORD)
_add(app, _LOOK, printing.show)
_add(app, _LOOK, printing.report, plugins=False)
_add(app, _LOOK, printing.list_)
_add(app, _LOOK, making.demo, serving.serve, plugins=False)
