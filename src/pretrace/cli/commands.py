"""All commands, in the groups and the order that the help shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from pretrace import __version__
from pretrace.cli import (
    advising,
    auditing,
    building,
    collecting,
    comparing,
    exporting,
    flagging,
    making,
    marking,
    ordering,
    printing,
    scoring,
    sharded,
    side_by_side,
)
from pretrace.cli import cutoff as cutoffs
from pretrace.cli import twins as twin_texts
from pretrace.cli.help import Command, Commands
from pretrace.cli.options import command_of

_CONTEXT = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="pretrace",
    cls=Commands,
    help="Was this text, or this collection, in the data a language model was pretrained on?",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)
build = typer.Typer(
    cls=Commands,
    help="Make a benchmark from texts you have: members and non-members, with a card of how it was made.",
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
    *functions: Callable[..., int | None],
    plugins: bool = True,
) -> None:
    for function in functions:
        name = function.__name__.rstrip("_")
        to.command(name, cls=Command, rich_help_panel=panel)(command_of(function, plugins=plugins))


_AUDITS, _TESTS, _BENCHMARKS, _LOOK = "Audit and flag", "Without an earlier checkpoint", "Benchmarks", "Look"
_add(app, _AUDITS, advising.advise, auditing.audit, flagging.flag)
_add(
    app,
    _TESTS,
    marking.mark,
    marking.check,
    marking.canaries,
    ordering.order,
    collecting.collections,
    cutoffs.cutoff,
    twin_texts.twins,
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
_add(app, _LOOK, printing.show)
_add(app, _LOOK, printing.report, plugins=False)
_add(app, _LOOK, printing.list_)
_add(app, _LOOK, making.demo, plugins=False)
