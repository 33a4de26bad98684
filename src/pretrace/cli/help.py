"""The help of a command or a group of them: essentials on one screen, everything with --help-all."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import typer
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from typer.core import TyperCommand

from pretrace.cli.answer import PlainText, printer
from pretrace.cli.commands import Commands, first_sentence
from pretrace.settings import LARGEST, Option

_WIDEST = 110
_OPTIONS, _ESSENTIALS = "Options", "Essentials"
OptionRow = tuple[str, PlainText]


class _Leaf(Protocol):
    """An option of a command, as far as the help shows it (`pretrace.cli.options.CliOption`)."""

    @property
    def option(self) -> Option: ...
    @property
    def kind(self) -> str: ...


class Command(TyperCommand):
    """A command whose help shows its essential options."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the short help."""
        formatter.write(rendered(self, ctx, everything=False))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands after the command's name: what must be given as it is, what may be given in brackets."""
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{(.*?)(\.\.\.)?\}", r"\1", piece) for piece in pieces]


def show_all(context: typer.Context, wanted: bool) -> None:
    """What --help-all does: print the help with every option, and exit."""
    if wanted:
        print(rendered(context.command, context, everything=True))
        raise typer.Exit


def rendered(command: Any, context: Any, *, everything: bool) -> str:
    """The help as text, coloured where the terminal is."""
    console = printer()
    console.width = min(console.width, _WIDEST)
    said = inspect.cleandoc(command.help or "").replace("\n", " ")
    parts: list[RenderableType] = [
        PlainText(command.get_usage(context)),
        PlainText(),
        PlainText(said),
        PlainText(),
    ]
    if isinstance(command, Commands):
        parts += _commands(command)
    declared: Mapping[str, _Leaf] = getattr(command.callback, "declared", {})
    short = not everything and any(leaf.option.essential for leaf in declared.values())
    parts += _panels(grouped(command.get_params(context), declared, short=short))
    if short:
        more = sum(not leaf.option.essential for leaf in declared.values())
        parts.append(PlainText(f"{context.command_path} --help-all shows {more} more options."))
    with console.capture() as captured:
        console.print(Group(*parts))
    return captured.get()


def _commands(group: Commands) -> Iterator[Panel]:
    panels: dict[str, list[OptionRow]] = {}
    for question, commands, says in group.rows:
        panels.setdefault(question, []).append((", ".join(commands), PlainText(says)))
    if not panels:
        panels["Commands"] = [
            (name, PlainText(one.says)) for name, one in zip(group.commands, group.entries, strict=True)
        ]
    return _panels(panels)


def grouped(
    parameters: Iterable[Any], declared: Mapping[str, _Leaf], *, short: bool
) -> dict[str, list[OptionRow]]:
    """The rows of each panel; the short help has one."""
    panels: dict[str, list[OptionRow]] = {}
    for one in parameters:
        leaf = declared.get(one.name)
        if short and (leaf is None or not leaf.option.essential):
            continue
        panel = _ESSENTIALS if short else "" if leaf is None or leaf.option.metavar else leaf.option.panel
        panels.setdefault(panel or _OPTIONS, []).append((_left(one, leaf), _right(one, leaf, short=short)))
    return panels


def _panels(panels: Mapping[str, list[OptionRow]]) -> Iterator[Panel]:
    width = max((len(left) for rows in panels.values() for left, _ in rows), default=0)
    for title, rows in panels.items():
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), expand=True)
        table.add_column(style="bold cyan", width=width, no_wrap=True)
        table.add_column(ratio=1)
        for left, right in rows:
            table.add_row(left, right)
        yield Panel(table, title=title, title_align="left", border_style="dim")


def _left(parameter: Any, leaf: _Leaf | None) -> str:
    """The names of an option with the kind of its value, none for a switch."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name)
    names = ", ".join(parameter.opts)
    return names if parameter.is_flag or leaf is None else f"{names} {leaf.kind}"


def _right(parameter: Any, leaf: _Leaf | None, *, short: bool) -> PlainText:
    """The help, then range and default; in the short help its first sentence and the default."""
    said, default = str(parameter.help or ""), parameter.default
    notes = ["required"] if parameter.required else []
    notes += _range(leaf.option) if leaf is not None and not short else []
    if not isinstance(default, bool) and default not in (None, "", [], ()) and leaf is not None:
        notes.append(f"default: {default}")
    shown = PlainText(first_sentence(said) if short else said)
    shown.append("".join(f" [{note}]" for note in notes), style="dim")
    return shown


def _range(own: Option) -> list[str]:
    if own.most == LARGEST or (own.least is None and own.most is None):
        return []
    if own.most is None:
        return [f"{own.least} or more"]
    return [f"at most {own.most}" if own.least is None else f"{own.least} to {own.most}"]
