"""The options of a command, derived from the settings it takes.

A command is a function. A parameter that is a settings dataclass becomes the options that its fields declare
(`pretrace.settings.option`), those of settings within it among them; a parameter annotated with an `Option` is one
itself. So help, range, name and default of an option stand in one place, and a command receives finished settings.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from cyclopts import App, ArgumentCollection, Group, Parameter, Token

from pretrace.cli import progress
from pretrace.cli.answer import Answered, alone, deliver
from pretrace.cli.streams import silenced
from pretrace.errors import ExpressionError, OutputError, TextsError, regular
from pretrace.registry import load_plugin
from pretrace.settings import LARGEST, Option, check_ranges, option_of

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


def complete_scores(context: Any) -> list[str]:
    """What a list of scores may go on with: the names that begin as its last one does."""
    from pretrace.scores import scores  # imports them all, and numpy

    before, comma, last = context.incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in scores if name.startswith(last)]


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


def read_config(app: App, words: Sequence[str], arguments: ArgumentCollection) -> None:
    """Give the options that were not given the values that the file of --config has for them."""
    known = {one.field_info.name: one for one in arguments}
    if CONFIG not in known or not known[CONFIG].tokens:
        return
    run: Any = app.default_command
    path, commands = Path(known[CONFIG].tokens[0].value), {run.words, *app.app_stack.current_frame[0]}
    for name, values in options_in(path, run.words, run.declared, commands).items():
        if not known[name].tokens:
            flag = run.declared[name].flag
            known[name].tokens = [
                Token(keyword=flag, value=value, source=str(path), index=i) for i, value in enumerate(values)
            ]


def options_in(
    path: Path, command: str, declared: Mapping[str, CliOption], known: Collection[str]
) -> dict[str, Any]:
    """Read what the file gives for the options of a command, by their names, each as words that could be typed.
    TextsError where it cannot be read, ExpressionError for a name that nothing has (`known` are the tables that a file
    may have) and for a value of the wrong kind."""
    written = _read(path)
    for name, value in written.items():
        if isinstance(value, dict) and name not in known:
            raise ExpressionError(f"{path}: there is no command {name!r}{_nearest(name, known)}.")
    flat = {name: value for name, value in written.items() if not isinstance(value, dict)}
    own = written
    for word in command.split():
        own = own.get(word, {})
        if not isinstance(own, dict):
            raise ExpressionError(f"{path}: {word!r} is a command, so it is a table: [{command}].")
    shown = {one.replace("_", "-"): one for one in declared if one != CONFIG}
    found = {}
    for option, value in (flat | own).items():
        name = option.replace("_", "-")
        if name not in shown:
            raise ExpressionError(f"{path}: there is no option {option!r}{_nearest(name, shown)}.")
        found[shown[name]] = _written(f"{path}: {option}", value, declared[shown[name]])
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


def _written(where: str, value: Any, leaf: CliOption) -> list[str]:
    """A value as the words that would be typed for it."""
    several = get_origin(leaf.hint) is tuple
    if leaf.hint is bool:
        if not isinstance(value, bool):
            raise ExpressionError(f"{where} is true or false, found {value!r}.")
        return [str(value).lower()]
    if isinstance(value, list) and several and not any(isinstance(one, dict | list) for one in value):
        words = list(map(str, value))
        return [",".join(words)] if leaf.option.read else words
    if isinstance(value, dict | list | bool):
        wanted = "one value or a list of them" if several and not leaf.option.read else "one value"
        raise ExpressionError(f"{where} takes {wanted}, found {value!r}.")
    return [str(value)]


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}"


T = TypeVar("T")
_KINDS = {int: "N", float: "X", Path: "PATH"}
PLUGIN, JSON, QUIET = "plugin", "json", "quiet"
_PLUGIN = Option(
    "A Python file that adds scores, corpora or models; give it more than once for several.", path="in"
)
_EVERYWHERE = {
    JSON: Option(
        "Print the answer as one JSON document on standard output, and nothing else.", panel="Output"
    ),
    QUIET: Option("No progress and no notes on standard error; errors are still said.", panel="Output"),
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


_panel = cache(Group.create_ordered)


class CliOption(NamedTuple):
    """One option: its name as a Python name, its declaration, type and default."""

    name: str
    option: Option
    hint: Any
    default: Any

    @property
    def flag(self) -> str:
        """How it is typed, or what a positional argument is called."""
        return self.option.metavar or f"--{self.name.replace('_', '-')}"

    def value(self, given: Any) -> Any:
        """What settings hold, from what was written."""
        if self.option.read is not None:
            return self.option.read(given)
        return not given if self.hint is bool and self.default is True else given

    def parameter(self, *, short: bool) -> inspect.Parameter:
        """The parameter by which cyclopts knows the option; the `short` help shows essential ones alone."""
        own, hint, default = self.option, self.hint, self.default
        if own.read is not None:
            default, hint = own.written, str
        elif hint is bool:
            default = False
        kinds = (hint, *get_args(hint))
        shown = Parameter(
            name=self.flag,
            help=first_sentence(own.help) if short else own.help + _range(own),
            group=_panel("Essentials" if short else "Options" if own.metavar else own.panel or "Options"),
            show=own.essential or not short,
            negative=(),
            allow_leading_hyphen=not own.metavar,
            allow_repeating=True,
            show_default=bool(default) and default is not MISSING,
            metavar=next((word for kind, word in _KINDS.items() if kind in kinds), "TEXT"),
            completer=complete_scores if self.name in ("scores", "score") else None,
        )
        kind = inspect.Parameter.POSITIONAL_ONLY if own.metavar else inspect.Parameter.KEYWORD_ONLY
        default = inspect.Parameter.empty if default is MISSING else default
        return inspect.Parameter(self.name, kind, default=default, annotation=Annotated[hint, shown])


def first_sentence(text: str) -> str:
    """What stands before the first full stop or semicolon, as a sentence."""
    end = min((at for at in (text.find(". "), text.find("; ")) if at >= 0), default=-1)
    return text if end < 0 else f"{text[:end]}."


def _range(own: Option) -> str:
    if own.most == LARGEST or (own.least is None and own.most is None):
        return ""
    if own.most is None:
        return f" [{own.least} or more]"
    return f" [at most {own.most}]" if own.least is None else f" [{own.least} to {own.most}]"


def command_of(function: Callable[..., Answered], words: str, *, plugins: bool = True) -> App:
    """Make a command of a function: it is given its settings, what it answers is printed, and the code of that comes
    back.

    With `plugins`, files named by --plugin are imported before any settings are made. `words` are what is typed.
    """
    hints = get_type_hints(function, include_extras=True)
    declared = declare_options(function, plugins=plugins)
    forwards = ForwardedFlags in hints.values()
    essential = any(leaf.option.essential for leaf in declared.values())
    short = essential and not {"--help", "-h"}.isdisjoint(sys.argv) and "--help-all" not in sys.argv
    parameters = sorted((leaf.parameter(short=short) for leaf in declared.values()), key=lambda one: one.kind)
    signature = inspect.Signature(parameters)

    def run(*positional: Any, **named: Any) -> int:
        bound = signature.bind(*positional, **named)
        bound.apply_defaults()
        given = bound.arguments
        for path in given.get(PLUGIN, ()):
            load_plugin(path)
        check_outputs({name: (leaf.option, given[name]) for name, leaf in declared.items()})
        with silenced(given[QUIET]), progress.command(words):
            with alone(given[JSON] and not forwards):
                built = {
                    one: build_argument(one, hints[one], given, declared) for one in hints if one != "return"
                }
                answer = function(**_with_chat(built))
            return answer if forwards else deliver(answer, words, json=given[JSON])  # type: ignore[return-value]

    run.__signature__, run.__annotations__ = signature, {one.name: one.annotation for one in parameters}  # type: ignore[attr-defined]
    run.words, run.declared = words, declared  # type: ignore[attr-defined]
    run.__doc__ = " ".join((inspect.getdoc(function) or "").split())
    more = sum(not leaf.option.essential for leaf in declared.values())
    return App(
        name=words.split()[-1],
        default_command=run,
        config=read_config,
        help_flags=["--help", "-h", "--help-all"],
        help_epilogue=f"pretrace {words} --help-all shows {more} more options." if short else None,
    )


def _with_chat(built: dict[str, Any]) -> dict[str, Any]:
    """The settings of a command, where --chat means the chat template of its model."""
    source: Any = built.get("source")
    target = built.get("target")
    if not getattr(getattr(source, "columns", None), "chat", False):
        return built
    columns = replace(source.columns, chat_of=getattr(target, "model", None) or "")
    return {**built, "source": replace(source, columns=columns)}


def declare_options(function: Callable[..., Answered], *, plugins: bool = True) -> dict[str, CliOption]:
    """The options of a command by name: its own, then those of every command."""
    hints = get_type_hints(function, include_extras=True)
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
    built = kind(
        **{
            one.name: build_argument(one.name, inner, given, declared)
            if described is None
            else declared[_name(one, described)].value(given[_name(one, described)])
            for one, described, inner in _fields(kind, _first(extras, Only))
        }
    )
    check_ranges(built)
    return built


def arguments_of(function: Callable[..., Answered], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a command that is called from here with these options, by their names in Python; the others are
    as if nobody had typed them. OutputError as from `check_outputs`."""
    hints = get_type_hints(function, include_extras=True)
    declared = declare_options(function)
    given = {name: leaf.parameter(short=False).default for name, leaf in declared.items()} | dict(options)
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
