"""The options of a command, derived from the settings it takes.

A command is a function. A parameter that is a settings dataclass becomes the options that its fields declare
(`pretrace.settings.option`), those of settings within it among them; a parameter annotated with an `Option` is one
itself. So help, range, name and default of an option stand in one place, and a command receives finished settings.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

import typer

from pretrace.cli import progress
from pretrace.cli.answer import Answered, alone, deliver
from pretrace.cli.completion import COMPLETED
from pretrace.cli.configuration import CONFIG, OPTION, loader
from pretrace.cli.help import show_all
from pretrace.cli.paths import check_outputs
from pretrace.cli.streams import silenced
from pretrace.registry import load_plugin, require
from pretrace.settings import LARGEST, Option, option_of

T = TypeVar("T")
_KINDS = {int: "N", float: "X", Path: "PATH"}
PLUGIN = "plugin"
_PLUGIN = Option(
    "A Python file that adds scores, corpora or models; give it more than once for several.",
    path="in",
)
_OUTPUT = "Output"
JSON, QUIET = "json", "quiet"
_EVERYWHERE = {
    JSON: Option(
        "Print the answer as one JSON document on standard output, and nothing else.", panel=_OUTPUT
    ),
    QUIET: Option("No progress and no notes on standard error; errors are still said.", panel=_OUTPUT),
}
"""Options of every command."""
_UNRECORDED = {*_EVERYWHERE, CONFIG}
"""What changes how options are given and answers printed, but not what is found: no result records it."""


@dataclass(frozen=True, slots=True)
class Only:
    """Beside a settings dataclass in `Annotated`: the fields that are options of this command."""

    names: tuple[str, ...]
    essential: bool = True
    """Whether those that are essential elsewhere are so here."""


class Given(dict[str, Any]):
    """A command that has a parameter of this type is given its options as they were written, None left out."""


class Passed(tuple[str, ...]):
    """A command that has a parameter of this type hands on to another what every command takes, and lets it print."""


class Leaf(NamedTuple):
    """One option: its name as a Python name, its declaration, type and default."""

    name: str
    option: Option
    hint: Any
    default: Any

    @property
    def inverted(self) -> bool:
        """Whether the option switches off what is on by itself."""
        return self.hint is bool and self.default is True

    @property
    def kind(self) -> str:
        """What a value is, in a word."""
        return next(
            (word for kind, word in _KINDS.items() if kind in (self.hint, *get_args(self.hint))), "TEXT"
        )

    def value(self, given: Any) -> Any:
        """What settings hold, from what was written; ExpressionError for a word that is none of those there are."""
        if get_origin(self.hint) is Literal:
            words = [str(one) for one in get_args(self.hint)]
            said = f"{', '.join(words[:-1])} or {words[-1]}"
            require(given in words, f"--{self.name.replace('_', '-')} is {said}, found {given!r}.")
        if self.option.read is not None:
            return self.option.read(given)
        if isinstance(given, list):
            return tuple(given)
        return not given if self.inverted else given

    def parameter(self) -> inspect.Parameter:
        """The parameter by which typer knows the option."""
        own, hint, default = self.option, self.hint, self.default
        if own.read is not None:
            default, hint = own.written, str
        elif get_origin(hint) is Literal:
            hint = str
        elif get_origin(hint) is tuple:
            hint = list[get_args(hint)[0]]  # type: ignore[misc]
            default = default if default is MISSING else list(default)
        elif self.inverted:
            default = False
        most = LARGEST if own.most is None and int in (hint, *get_args(hint)) else own.most
        how: dict[str, Any] = {"help": own.help, "min": own.least, "max": most}
        if own.metavar:
            made = typer.Argument(metavar=own.metavar, **how)
        else:
            how["autocompletion"] = COMPLETED.get(self.name)
            made = typer.Option(f"--{self.name.replace('_', '-')}", **how)
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=Annotated[hint, made],
        )


def command_of(
    function: Callable[..., Answered], *, plugins: bool = True, name: str = ""
) -> Callable[..., None]:
    """The function as typer calls it, with a parameter for every option; what it answers is printed, and it leaves with
    the code of that.

    `leaves` of what comes back are the options by name. With `plugins`, files named by --plugin are imported
    before any settings are made. `name` is what the command is called where that is not the function's name.
    """
    hints = get_type_hints(function, include_extras=True)
    called = name or function.__name__.rstrip("_")
    leaves = _all_leaves(function, hints, plugins=plugins)

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for path in given.get(PLUGIN, ()):
            load_plugin(path)
        check_outputs({name: (leaf.option, given[name]) for name, leaf in leaves.items() if name in given})
        with silenced(given[QUIET]), progress.command(called):
            with alone(given[JSON] and Passed not in hints.values()):
                answer = function(
                    **{one: _made(one, hints[one], given, leaves) for one in hints if one != "return"}
                )
            code = answer if Passed in hints.values() else deliver(answer, called, json=given[JSON])
        if code:
            raise typer.Exit(cast(int, code))

    parameters = [leaf.parameter() for leaf in leaves.values() if leaf.name != CONFIG]
    parameters += _eager(called, leaves)
    run.leaves = leaves  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _all_leaves(
    function: Callable[..., Answered], hints: Mapping[str, Any], *, plugins: bool
) -> dict[str, Leaf]:
    """The options of a command by name: its own, then those of every command."""
    leaves = {
        leaf.name: leaf
        for name, parameter in inspect.signature(function).parameters.items()
        for leaf in _leaves(name, hints[name], parameter.default)
    }
    if plugins:
        leaves[PLUGIN] = Leaf(PLUGIN, _PLUGIN, tuple[Path, ...], ())
    for name, option in _EVERYWHERE.items():
        leaves.setdefault(name, Leaf(name, option, bool, False))
    if any(leaf.option.essential for leaf in leaves.values()):
        leaves[CONFIG] = Leaf(CONFIG, OPTION, Path | None, None)
    return leaves


def _eager(called: str, leaves: Mapping[str, Leaf]) -> Iterator[inspect.Parameter]:
    """The options that are looked at before all others: those of commands with more than essential options."""
    if CONFIG not in leaves:
        return
    read = typer.Option("--config", is_eager=True, callback=loader(called, leaves), help=OPTION.help)
    shown = typer.Option("--help-all", is_eager=True, callback=show_all, help="Show all options and exit.")
    kind = inspect.Parameter.KEYWORD_ONLY
    yield inspect.Parameter(CONFIG, kind, default=None, annotation=Annotated[Path | None, read])
    yield inspect.Parameter("help_all", kind, default=False, annotation=Annotated[bool, shown])


def _leaves(name: str, hint: Any, default: Any) -> Iterator[Leaf]:
    """The options of a parameter or field: those of the settings it is, or itself."""
    kind, extras = _apart(hint)
    own = _first(extras, Option)
    if own is not None:
        yield Leaf(name, own, kind, MISSING if default is inspect.Parameter.empty else default)
    elif is_dataclass(kind):
        only = _first(extras, Only)
        for one, described, inner in _fields(kind, only):
            if described is None:
                yield from _leaves(one.name, inner, MISSING)
            else:
                shown = described if only is None or only.essential else replace(described, essential=False)
                yield Leaf(_name(one, described), shown, inner, one.default)


def _made(name: str, hint: Any, given: Mapping[str, Any], leaves: Mapping[str, Leaf]) -> Any:
    """The argument for a parameter or field: settings, or the value of one option."""
    kind, extras = _apart(hint)
    if kind is Passed:
        return Passed(f"--{one}" for one in _EVERYWHERE if given[one])
    if kind is Given:
        return Given(
            {
                one: _recorded(given[one])
                for one in leaves
                if given[one] is not None and one not in _UNRECORDED and (given[one] or one != PLUGIN)
            }
        )
    if not is_dataclass(kind) or not isinstance(kind, type):
        return leaves[name].value(given[name])
    return kind(
        **{
            one.name: _made(one.name, inner, given, leaves)
            if described is None
            else leaves[_name(one, described)].value(given[_name(one, described)])
            for one, described, inner in _fields(kind, _first(extras, Only))
        }
    )


def _fields(kind: Any, only: Only | None) -> Iterator[tuple[Field[Any], Option | None, Any]]:
    """The fields of settings that are options or settings themselves, with declaration and type."""
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        if not one.init:
            continue
        described, hint = option_of(one), hints[one.name]
        if (only is None or one.name in only.names) and (described or is_dataclass(_apart(hint)[0])):
            yield one, described, hint


def _name(one: Field[Any], described: Option) -> str:
    return (described.name or one.name).replace("-", "_")


def _first(extras: tuple[Any, ...], kind: type[T]) -> T | None:
    return next((one for one in extras if isinstance(one, kind)), None)


def _apart(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type and what `Annotated` says beside it."""
    if get_origin(hint) is Annotated:
        own, *extras = get_args(hint)
        return own, tuple(extras)
    return hint, ()


def _recorded(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_recorded(one) for one in value]
    return str(value) if isinstance(value, Path) else value
