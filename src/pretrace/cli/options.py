"""The options of a command, derived from the settings it takes.

A command is a function. A parameter that is a settings dataclass becomes the options that its fields declare
(`pretrace.settings.option`), those of settings within it among them; a parameter annotated with an `Option` is one
itself. So help, range, name and default of an option stand in one place, and a command receives finished settings.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from cyclopts import App, ArgumentCollection, Group, Parameter, Token

from pretrace.cli.answer import Answered, alone, deliver
from pretrace.cli.config import options_in
from pretrace.cli.streams import silenced
from pretrace.errors import ExpressionError, OutputError
from pretrace.registry import load_plugin
from pretrace.settings import LARGEST, Option, check_ranges, option, option_of

T = TypeVar("T")
_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")
_KINDS = {int: "N", float: "X", Path: "PATH"}
_panel = cache(Group.create_ordered)
_GIVEN = "every"


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


def complete_scores(context: Any) -> list[str]:
    """What a list of scores may go on with: the names that begin as its last one does."""
    from pretrace.scores import scores  # imports them all, and numpy

    before, comma, last = context.incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in scores if name.startswith(last)]


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


# What every command takes is declared once, of the program: cyclopts shows and completes it for each.


_EVERY = "Every command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Everywhere:
    """The options of every command."""

    plugin: tuple[Path, ...] = option(
        (),
        "A Python file that adds scores, corpora or models; give it more than once for several.",
        panel=_EVERY,
        path="in",
    )
    json: bool = option(
        False, "Print the answer as one JSON document on standard output, and nothing else.", panel=_EVERY
    )
    quiet: bool = option(
        False, "No progress and no notes on standard error; errors are still said.", panel=_EVERY
    )
    config: Path | None = option(
        None,
        "A TOML file with options by their names: a table for each command, or flat. What is given here wins.",
        panel=_EVERY,
        path="in",
    )


HELP_FLAGS = ["--help", "-h", "--help-all"]


def with_launcher(line: App, without_plugins: Collection[str] = ()) -> App:
    """The app that takes the options of every command, before or behind those of the command, and calls `line`;
    ExpressionError for a plug-in given to a command `without_plugins`."""
    tokens = inspect.Parameter(
        "tokens",
        inspect.Parameter.VAR_POSITIONAL,
        annotation=Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    )
    own = [leaf.parameter(short="--help-all" not in sys.argv) for leaf in EVERYWHERE.values()]

    def launch(*tokens: str, **named: Any) -> Any:
        every = Everywhere(**named)
        run: Any = line.parse_commands(tokens)[1][-1].default_command
        words, declared = getattr(run, "words", ""), getattr(run, "declared", {})
        if every.config:
            known = {name: leaf for name, leaf in (EVERYWHERE | declared).items() if name != "config"}
            found = options_in(every.config, words, known, {words, *line})
            plugin = every.plugin or tuple(map(Path, found.pop("plugin", ())))
            flags: dict[str, Any] = {
                one: getattr(every, one) or found.pop(one, []) == ["true"] for one in ("json", "quiet")
            }
            every = replace(every, plugin=plugin, **flags)
            line.config = (partial(_fill, str(every.config), found),)
        if every.plugin and words in without_plugins:
            raise ExpressionError(f"pretrace {words} takes no --plugin.")
        call, bound, ignored = line.parse_args(tokens)
        return call(*bound.args, **bound.kwargs, **dict.fromkeys(ignored, every))

    launch.__signature__ = inspect.Signature([tokens, *own])  # type: ignore[attr-defined]
    launch.__annotations__ = {one.name: one.annotation for one in (tokens, *own)}
    line.meta.default(launch)
    line.meta.suppress_keyboard_interrupt = line.suppress_keyboard_interrupt
    return line.meta


def _fill(
    path: str,
    written: Mapping[str, list[str]],
    app: App,
    words: tuple[str, ...],
    arguments: ArgumentCollection,
) -> None:
    """Give what is `written` in a file to the options that were not given."""
    for one in arguments:
        if not one.tokens:
            values = enumerate(written.get(one.field_info.name, ()))
            one.tokens = [Token(keyword=one.name, value=value, source=path, index=i) for i, value in values]


# A command.


def command_of(function: Callable[..., Answered], words: str) -> App:
    """Make a command of a function: it is given its settings, what it answers is printed, and the code of that comes
    back. Files named by --plugin are imported before any settings are made. `words` are what is typed."""
    hints = get_type_hints(function, include_extras=True)
    declared = declare_options(function)
    forwards = ForwardedFlags in hints.values()
    typed = sys.argv[: [*sys.argv, "--"].index("--")]
    asked = not set(HELP_FLAGS[:2]).isdisjoint(typed) and HELP_FLAGS[2] not in typed
    short = asked and any(leaf.option.essential for leaf in declared.values())
    shown = [leaf for leaf in declared.values() if leaf.option.essential or not short]
    own = sorted((leaf.parameter(short=short) for leaf in shown), key=lambda one: one.kind)
    handed = Annotated[Everywhere, Parameter(parse=False)]
    parameters = [*own, inspect.Parameter(_GIVEN, inspect.Parameter.KEYWORD_ONLY, annotation=handed)]

    def run(*positional: Any, every: Everywhere, **named: Any) -> int:
        from pretrace.cli import progress  # imports numpy, which help and completion do without

        given = inspect.Signature(own).bind(*positional, **named).arguments
        for path in every.plugin:
            load_plugin(path)
        with silenced(every.quiet), progress.command(words):
            with alone(every.json and not forwards):
                answer = function(**arguments_of(function, given, every))
            return answer if forwards else deliver(answer, words, as_json=every.json)  # type: ignore[return-value]

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.words, run.declared = words, declared  # type: ignore[attr-defined]
    run.__doc__ = " ".join((inspect.getdoc(function) or "").split())
    more = [*EVERYWHERE, *(name for name, leaf in declared.items() if short and not leaf.option.essential)]
    return App(
        name=words.split()[-1],
        default_command=run,
        help_flags=HELP_FLAGS,
        help_epilogue=f"pretrace {words} --help-all shows {len(more)} more options." if asked else None,
    )


def declare_options(function: Callable[..., Answered]) -> dict[str, CliOption]:
    """The options of a command by name, without those of every command."""
    hints = get_type_hints(function, include_extras=True)
    return {
        leaf.name: leaf
        for name, parameter in inspect.signature(function).parameters.items()
        for leaf in _options_in(name, hints[name], parameter.default)
    }


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


def arguments_of(
    function: Callable[..., Answered], options: Mapping[str, Any], every: Everywhere | None = None
) -> dict[str, Any]:
    """The arguments of a command with these options, by their names in Python; the others are as if nobody had typed
    them, and --chat means the chat template of the model in question. OutputError as from `check_outputs`."""
    every, declared = every or Everywhere(), declare_options(function)
    given = {name: leaf.parameter(short=False).default for name, leaf in declared.items()} | dict(options)
    leaves = {**declared, "plugin": EVERYWHERE["plugin"], "config": EVERYWHERE["config"]}
    written = {**given, "plugin": every.plugin, "config": every.config}
    check_outputs({name: (leaf.option, written[name]) for name, leaf in leaves.items()})
    hints = get_type_hints(function, include_extras=True)
    built = {
        one: ForwardedFlags(f"--{flag}" for flag in ("json", "quiet") if getattr(every, flag))
        if hint is ForwardedFlags
        else RawOptions(_recorded(given | ({"plugin": every.plugin} if every.plugin else {})))
        if hint is RawOptions
        else build_argument(one, hint, given, declared)
        for one, hint in hints.items()
        if one != "return"
    }
    source: Any = built.get("source")
    if getattr(getattr(source, "columns", None), "chat", False):
        columns = replace(source.columns, chat_of=getattr(built.get("target"), "model", None) or "")
        built["source"] = replace(source, columns=columns)
    return built


def build_argument(name: str, hint: Any, given: Mapping[str, Any], declared: Mapping[str, CliOption]) -> Any:
    """The argument for a parameter or field: settings, or the value of one option."""
    kind, extras = split_annotated(hint)
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
    if isinstance(value, dict):
        return {name: _recorded(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_recorded(one) for one in value]
    return str(value) if isinstance(value, Path) else value


EVERYWHERE = {leaf.name: leaf for leaf in _options_in(_GIVEN, Everywhere, MISSING)}
"""The options of every command, by name."""
