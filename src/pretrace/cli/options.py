"""The options of a command, derived from the settings it takes.

A command is a function. A parameter that is a settings dataclass becomes the options that its fields declare
(`pretrace.settings.option`), those of settings within it among them; a parameter annotated with an `Option` is one
itself. So help, range, name and default of an option stand in one place, and a command receives finished settings.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

import typer

from pretrace.cli import progress
from pretrace.cli.answer import Answered, alone, deliver
from pretrace.cli.help import show_all
from pretrace.cli.streams import silenced
from pretrace.errors import ExpressionError, OutputError, TextsError, regular
from pretrace.registry import load_plugin, require
from pretrace.settings import LARGEST, Option, option_of

_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")


def check_outputs(given: Mapping[str, tuple[Option, Any]]) -> None:
    """OutputError where an output of a command is one of its inputs, or a folder that holds one.

    `given` are the options and their values by name. Links and relative paths are followed. Paths within an
    expression, such as `wikimia(path='a.jsonl')` or `masked:FOLDER`, are inputs too.
    """
    outputs = [(name, Path(value)) for name, (own, value) in given.items() if own.path == "out" and value]
    inputs = [
        (name, own, path)
        for name, (own, value) in given.items()
        if own.path == "in"
        for path in _paths(value)
    ]
    for out_name, out in outputs:
        place = Path(os.path.realpath(out))
        for name, own, path in inputs:
            same = out.exists() and out.samefile(path)
            if same or Path(os.path.realpath(path)).is_relative_to(place):
                shown = own.metavar or f"--{name.replace('_', '-')}"
                raise OutputError(
                    f"--{out_name} {out} would overwrite {path}, which {shown} names as an input: choose another "
                    f"--{out_name}."
                )


def _paths(value: Any) -> Iterator[Path]:
    """The files and folders that a value names, of those that exist."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _paths(one)
        return
    written = str(value or "")
    quoted = ("".join(found) for found in _QUOTED.findall(written))
    for name in (written, written.partition(":")[2], *quoted):
        path = Path(name).expanduser()
        try:
            if name and path.exists():
                yield path
        except (OSError, ValueError):
            continue


# What a shell completes in the values of options: names of scores.


def scores(incomplete: str) -> list[str]:
    """What a list of scores may go on with: the names that begin as its last one does.

    >>> scores("loss,zl")
    ['loss,zlib']
    """
    from pretrace.scores import scores as known

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in known if name.startswith(last)]


_COMPLETED: Mapping[str, Callable[[str], list[str]]] = {"scores": scores, "score": scores}
"""By the name of the option."""


# Options from a TOML file (--config): a table for each command, or flat; what is given on the command line wins.
#
#     model = "smollm2"
#     seed = 3
#
#     [audit]
#     controls = "unpublished.jsonl"
#     placebo = ["older", "oldest"]
#     no-cache = true


CONFIG = "config"
OPTION = Option(
    "A TOML file with options by their names: a table for each command, or flat. What is given here wins.",
    panel="Output",
    path="in",
)


def loader(
    command: str, declared: Mapping[str, CliOption]
) -> Callable[[typer.Context, Path | None], Path | None]:
    """What --config of a command does before its other options are looked at: the file's options become defaults."""

    def load(context: typer.Context, value: Path | None) -> Path | None:
        if value is not None:
            found = options_in(Path(value), command, declared)
            context.default_map = {**(context.default_map or {}), **found}
        return value

    return load


def options_in(path: Path, command: str, declared: Mapping[str, CliOption]) -> dict[str, Any]:
    """Read what the file gives for the options of a command, by their names. TextsError where it cannot be read,
    ExpressionError for a name that nothing has and for a value of the wrong kind."""
    from pretrace.cli.commands import every_command

    written = _read(path)
    known = {one.words.split()[0] for one in every_command()}  # which tables of a file may be called
    for name, value in written.items():
        if isinstance(value, dict) and name not in known:
            raise ExpressionError(f"{path}: there is no command {name!r}{_nearest(name, known)}.")
    flat = {name: value for name, value in written.items() if not isinstance(value, dict)}
    own = written
    for word in command.split():
        own = own.get(word, {})
        if not isinstance(own, dict):
            raise ExpressionError(f"{path}: {word!r} is a command, so it is a table: [{command}].")
    found = {}
    for option, value in (flat | own).items():
        name = option.replace("-", "_")
        if name not in declared or name == CONFIG:
            shown = [one.replace("_", "-") for one in declared if one != CONFIG]
            near = _nearest(option.replace("_", "-"), shown)
            raise ExpressionError(f"{path}: there is no option {option!r}{near}.")
        found[name] = _value(f"{path}: {option}", value, declared[name])
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(regular(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not valid UTF-8"
        raise TextsError(f"--config {path} cannot be read: {reason}.") from None
    except ValueError as error:
        raise TextsError(f"--config {path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise TextsError(
            f"--config {path} is nested too deeply: an option has one value, or a list."
        ) from None


def _value(where: str, value: Any, leaf: CliOption) -> Any:
    """A value as it would be written on the command line."""
    several = get_origin(leaf.hint) is tuple and leaf.option.read is None
    if leaf.hint is bool:
        if not isinstance(value, bool):
            raise ExpressionError(f"{where} is true or false, found {value!r}.")
        return value
    if isinstance(value, list) and leaf.option.read is not None:
        return ",".join(map(str, value))
    if isinstance(value, list) and several and not any(isinstance(one, dict | list) for one in value):
        return list(map(str, value))
    if isinstance(value, dict | list | bool):
        wanted = "one value or a list of them" if several else "one value"
        raise ExpressionError(f"{where} takes {wanted}, found {value!r}.")
    return [str(value)] if several else str(value)


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}"


T = TypeVar("T")
_KINDS = {int: "N", float: "X", Path: "PATH"}
PLUGIN = "plugin"
_PLUGIN = Option(
    "A Python file that adds scores, corpora or models; give it more than once for several.", path="in"
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


class RawOptions(dict[str, Any]):
    """A command that has a parameter of this type is given its options as they were written, None left out."""


class ForwardedFlags(tuple[str, ...]):
    """A command that has a parameter of this type hands on to another what every command takes, and lets it print."""


class CliOption(NamedTuple):
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
        default = inspect.Parameter.empty if default is MISSING else default
        flag, complete = f"--{self.name.replace('_', '-')}", _COMPLETED.get(self.name)
        given = (
            typer.Argument(metavar=own.metavar, **how)
            if own.metavar
            else typer.Option(flag, autocompletion=complete, **how)
        )
        hint = Annotated[hint, given]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def command_of(
    function: Callable[..., Answered], *, plugins: bool = True, name: str = ""
) -> Callable[..., None]:
    """Make what typer calls for a command, with a parameter for every option: the command is given its settings, what
    it answers is printed, and the program leaves with the code of that.

    `declared` of what comes back are the options by name. With `plugins`, files named by --plugin are imported
    before any settings are made. `name` is what the command is called where that is not the function's name.
    """
    hints = get_type_hints(function, include_extras=True)
    called = name or function.__name__.rstrip("_")
    declared = _all_options(function, hints, plugins=plugins)

    forwards = ForwardedFlags in hints.values()

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for path in given.get(PLUGIN, ()):
            load_plugin(path)
        check_outputs({name: (leaf.option, given[name]) for name, leaf in declared.items() if name in given})
        with silenced(given[QUIET]), progress.command(called):
            with alone(given[JSON] and not forwards):
                built = {
                    one: build_argument(one, hints[one], given, declared) for one in hints if one != "return"
                }
                answer = function(**_with_chat(built))
            code = answer if forwards else deliver(answer, called, json=given[JSON])
        if code:
            raise typer.Exit(cast(int, code))

    parameters = [leaf.parameter() for leaf in declared.values() if leaf.name != CONFIG]
    if CONFIG in declared:  # the options that are looked at before all others
        read = typer.Option("--config", is_eager=True, callback=loader(called, declared), help=OPTION.help)
        shown = typer.Option(
            "--help-all", is_eager=True, callback=show_all, help="Show all options and exit."
        )
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters += [
            inspect.Parameter(CONFIG, kind, default=None, annotation=Annotated[Path | None, read]),
            inspect.Parameter("help_all", kind, default=False, annotation=Annotated[bool, shown]),
        ]
    run.declared = declared  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _with_chat(built: dict[str, Any]) -> dict[str, Any]:
    """The settings of a command, where --chat means the chat template of its model."""
    source: Any = built.get("source")
    target = built.get("target")
    if not getattr(getattr(source, "columns", None), "chat", False):
        return built
    columns = replace(source.columns, chat_of=getattr(target, "model", None) or "")
    return {**built, "source": replace(source, columns=columns)}


def _all_options(
    function: Callable[..., Answered], hints: Mapping[str, Any], *, plugins: bool
) -> dict[str, CliOption]:
    """The options of a command by name: its own, then those of every command."""
    declared = {
        leaf.name: leaf
        for name, parameter in inspect.signature(function).parameters.items()
        for leaf in _options_in(name, hints[name], parameter.default)
    }
    if plugins:
        declared[PLUGIN] = CliOption(PLUGIN, _PLUGIN, tuple[Path, ...], ())
    for name, one in _EVERYWHERE.items():
        declared.setdefault(name, CliOption(name, one, bool, False))
    if any(leaf.option.essential for leaf in declared.values()):
        declared[CONFIG] = CliOption(CONFIG, OPTION, Path | None, None)
    return declared


def _options_in(name: str, hint: Any, default: Any) -> Iterator[CliOption]:
    """The options of a parameter or field: those of the settings it is, or itself."""
    kind, extras = split_annotated(hint)
    own = _first(extras, Option)
    if own is not None:
        yield CliOption(name, own, kind, MISSING if default is inspect.Parameter.empty else default)
    elif is_dataclass(kind):
        only = _first(extras, Only)
        for one, described, inner in _fields(kind, only):
            if described is None:
                yield from _options_in(one.name, inner, MISSING)
            else:
                shown = described if only is None or only.essential else replace(described, essential=False)
                yield CliOption(_name(one, described), shown, inner, one.default)


def build_argument(name: str, hint: Any, given: Mapping[str, Any], declared: Mapping[str, CliOption]) -> Any:
    """The argument for a parameter or field: settings, or the value of one option."""
    kind, extras = split_annotated(hint)
    if kind is ForwardedFlags:
        return ForwardedFlags(f"--{one}" for one in _EVERYWHERE if given[one])
    if kind is RawOptions:
        return RawOptions(
            {
                one: _recorded(given[one])
                for one in declared
                if given[one] is not None and one not in _UNRECORDED and (given[one] or one != PLUGIN)
            }
        )
    if not is_dataclass(kind) or not isinstance(kind, type):
        return declared[name].value(given[name])
    return kind(
        **{
            one.name: build_argument(one.name, inner, given, declared)
            if described is None
            else declared[_name(one, described)].value(given[_name(one, described)])
            for one, described, inner in _fields(kind, _first(extras, Only))
        }
    )


def arguments_of(function: Callable[..., Answered], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a command that is called from here with these options, by their names in Python; the others are
    as if nobody had typed them. OutputError as from `check_outputs`."""
    hints = get_type_hints(function, include_extras=True)
    declared = _all_options(function, hints, plugins=True)
    given = {name: leaf.parameter().default for name, leaf in declared.items()} | dict(options)
    check_outputs({name: (leaf.option, given[name]) for name, leaf in declared.items()})
    return {one: build_argument(one, hints[one], given, declared) for one in hints if one != "return"}


def _fields(kind: Any, only: Only | None) -> Iterator[tuple[Field[Any], Option | None, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        if not one.init:
            continue
        described, hint = option_of(one), hints[one.name]
        if (only is None or one.name in only.names) and (described or is_dataclass(split_annotated(hint)[0])):
            yield one, described, hint


def _name(one: Field[Any], described: Option) -> str:
    return (described.name or one.name).replace("-", "_")


def _first(extras: tuple[Any, ...], kind: type[T]) -> T | None:
    return next((one for one in extras if isinstance(one, kind)), None)


def split_annotated(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type and what `Annotated` says beside it."""
    if get_origin(hint) is Annotated:
        own, *extras = get_args(hint)
        return own, tuple(extras)
    return hint, ()


def _recorded(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_recorded(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def options_of(command: str) -> Mapping[str, CliOption]:
    """The options of a command by name; none where there is no such command."""
    from pretrace.cli.commands import every_command

    found = next((one.made() for one in every_command() if one.words == command), None)
    declared: Mapping[str, CliOption] = getattr(getattr(found, "callback", None), "declared", {})
    return declared
