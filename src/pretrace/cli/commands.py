"""The command line: all commands by name, each made of a function that takes settings and gives a `Reply`.

A command is imported when it is called. A package of others adds one with an entry point in the group
`pretrace.commands`: the name is what is typed, the value the function, `package.module:function`, with parameters as
the commands here have them.

A parameter that is a settings dataclass becomes the options that its fields declare (`pretrace.settings.option`), those
of settings within it among them; a parameter annotated with an `Option` is one itself. `Annotated[Target, "model"]`
takes the named fields alone, and fields that are keys of one subject are one option: `--columns text=body,id=key`. So
help, range, name and default of an option stand in one place, and a command receives finished settings.

Options may also stand in a TOML file (--config): a table for each command, or flat. What is typed wins:

    model = "smollm2"
    seed = 3

    [audit]
    controls = "unpublished.jsonl"
    placebo = ["older", "oldest"]
    columns = {text = "body", id = "key"}

What a command answers is printed for people or, with --json, as one JSON document. So a command knows nothing of
--json, and what it says on standard output cannot get into the document. Nothing that a file, model, column or server
is called steers a terminal: text is shown without markup, its control characters as text.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import KW_ONLY, MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NewType, get_args, get_origin, get_type_hints

from cyclopts import App, ArgumentCollection, CycloptsError, Group, Parameter, Token, convert
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pretrace import __version__, plugins
from pretrace.cli import silenced
from pretrace.errors import ExpressionError, OutputError, TextsError, regular, require, shown
from pretrace.registry import load_plugin, nearest
from pretrace.settings import LARGEST, Option, check_ranges, join_keys, option, option_of, split_keys

if TYPE_CHECKING:
    from pretrace.types import Verdict


_COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Was it used?": {
        "ask": ("asking:ask", "What you have in, one sentence out."),
        "audit": ("auditing:audit", "A collection, against control documents."),
        "recite": ("", "By words that the model prints."),
        "mark": ("", "By marks you leave before publication, or random strings."),
        "mark texts": ("", "Mark texts before you publish them."),
        "mark order": ("", "Put rows in an order drawn at random before you publish them."),
        "mark check": ("", "Was a model trained on texts that were marked?"),
        "mark canaries": ("", "Does a model know the random strings of these texts?"),
    },
    "Which texts?": {
        "flag": ("scoring:flag", "Each text, at a rate of false flags."),
        "scan": ("", "What stands in a corpus you have."),
        "samples": ("", "Items of a benchmark, as lm-eval ran it."),
    },
    "How well does a method tell?": {
        "score": ("scoring:score", "Scores: a row a text."),
        "evaluate": ("scoring:evaluate", "Scores with labels: AUC and intervals."),
        "tune": ("making:tune", "A model tuned on known non-members, for fsd."),
        "plant": ("making:plant", "A model trained on a known part of the texts."),
        "count": ("making:count", "How often tokens occur, for dc_pdd."),
        "build": ("", "Benchmarks from texts you have; how alike two sets are."),
        "build patents": ("", "PatentMIA from patent pages you have."),
        "build ccnews": ("", "A CCNewsPDD: members as they are, non-members transformed."),
        "build quality": ("", "How alike two sets of texts are, beside how alike one is to itself."),
        "build gap": ("", "How far apart two sets of texts are, by classifiers that see no model."),
        "demo": ("making:demo", "A small model, trained and tested."),
    },
    "What was found?": {
        "runs": ("", "Results rendered, verified, merged."),
        "runs report": ("looking:report", "Render a report again from its tables, without a model."),
        "runs table": ("looking:table", "The figures of a run for a paper."),
        "runs verify": ("looking:verify", "Is a result what was written?"),
        "runs merge": ("scoring:merge", "Put the parts of several workers together."),
        "show": ("looking:show", "A text in colours."),
        "list": ("looking:list_", "Scores, corpora and what --model takes."),
        "serve": ("", "All of it as a page on this machine."),
        "cache": ("", "What is kept on disk so that it need not be computed twice."),
        "cache info": ("caching:info", "Where it is, what it holds, how much of which model."),
        "cache clear": ("caching:clear", "Delete it, or a part."),
    },
}
"""By question: where in this package a command of the core is made ("" for groups, and for what `plugins` has), and
what the help says."""
_OWN = plugins.COMMANDS | {
    words: f"pretrace.cli.{place}"
    for rows in _COMMANDS.values()
    for words, (place, _) in rows.items()
    if place
}

_COMPLETION = "--install-completion"
_TYPED = "pretrace "
"""What stands before the words of a command where cyclopts looks it up, so that no name of this module is one."""


@cache
def places() -> dict[str, str]:
    """Where each command is made, by its words, in the order of the help; none is imported."""
    from importlib.metadata import entry_points

    # Nobody replaces one of ours.
    found = {one.name: one.value for one in entry_points(group="pretrace.commands")} | _OWN
    ordered = [words for rows in _COMMANDS.values() for words in rows if words in found]
    return {words: found[words] for words in dict.fromkeys([*ordered, *found])}


def find_function(words: str) -> Any:
    """Import the function of a command; ExpressionError where no plug-in has it."""
    module, _, name = (_OWN.get(words) or places().get(words, "")).partition(":")
    if not module or (
        module.startswith(f"{plugins.__name__}.") and find_spec(module.rpartition(".")[0]) is None
    ):
        raise ExpressionError(f"pretrace {words} is a command of a plug-in that is not installed here.")
    return getattr(import_module(module), name)


def __getattr__(name: str) -> Any:
    """A command as cyclopts looks it up when it is called: an attribute of this module."""
    words = name.removeprefix(_TYPED)
    if words == _COMPLETION:
        from cyclopts.completion.install import create_install_completion_command

        return create_install_completion_command(app().install_completion, False)
    if words.startswith("__") or (words not in _OWN and words not in places()):
        raise AttributeError(words)
    return _command_of(find_function(words), words, places)


_PANELS = [Group(title, sort_key=i) for i, title in enumerate([*_COMMANDS, "Of other packages", "Options"])]


def _listed(words: str) -> dict[str, Any]:
    """What lists of commands say of one, and in which panel."""
    for panel, rows in zip(_PANELS, _COMMANDS.values(), strict=False):
        if words in rows:
            return {"help": rows[words][1], "group": None if " " in words else panel}
    return {"help": places().get(words, ""), "group": None if " " in words else _PANELS[-2]}


def app(only: str = "") -> App:
    """The command line; with the commands alone that begin with the word `only`, where that is one of ours."""
    made = App(
        name="pretrace",
        help="Was this text, or this collection, in the data a language model was pretrained on?",
        version=f"pretrace {__version__}",
        console=printer(),
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
        verbose=False,
        suppress_keyboard_interrupt=False,
        help_format="plaintext",
        help_flags=HELP_FLAGS,
    )
    made["--version"].group = made["--help"].group = _PANELS[-1]
    groups = {"": made}
    own = {words: place for words, place in _OWN.items() if words.split()[0] == only}
    for i, words in enumerate(own or places()):
        first, _, name = words.rpartition(" ")
        if first not in groups:
            groups[first] = App(name=first, sort_key=i, help_flags=HELP_FLAGS, **_listed(first))
            made.command(groups[first])
        groups[first].command(f"{__name__}:{_TYPED}{words}", name=name, sort_key=i, **_listed(words))
    if not own:
        said = "Install shell completion for this application."
        made.command(f"{__name__}:{_TYPED}{_COMPLETION}", name=_COMPLETION, help=said, group=_PANELS[-1])
    return made


def call(words: Sequence[str]) -> int:
    """Carry out a command line here; its exit code."""
    words = list(words)
    line = app(words[0])
    run: Any = line.parse_commands(words)[1]
    for one in (one for one in run if hasattr(one.default_command, "declared")):
        one.help = one.default_command.__doc__  # all of it, where lists of commands have a line
        leaves = [*one.default_command.declared.values(), *EVERYWHERE.values()]
        valued = {leaf.flag for leaf in leaves if leaf.hint is not bool}
        if "-" in words and words[words.index("-") - 1] not in valued and "--" not in words:
            words.remove("-")  # standard input, which would be taken for an option
            words += ["--", "-"]
    return line(words) or 0


_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")
_WORDS = {int: "a whole number", float: "a number", bool: "true or false"}
_KINDS = {int: "N", float: "X", Path: "PATH"}
_panel = cache(Group.create_ordered)


def _check_outputs(given: Sequence[tuple[_CliOption, Any]]) -> None:
    """OutputError where an output of a command is one of its inputs, or a folder that holds one.

    `given` are the options and their values. Links and relative paths are followed. Paths within an
    expression, such as `wikimia(path='a.jsonl')` or `masked:FOLDER`, are inputs too.
    """
    outputs = [(one.flag, Path(value)) for one, value in given if one.option.path == "out" and value]
    inputs = [(one.flag, path) for one, value in given if one.option.path == "in" for path in _paths(value)]
    for goal, out in outputs:
        place = Path(os.path.realpath(out))
        for flag, path in inputs:
            same = out.exists() and out.samefile(path)
            if same or Path(os.path.realpath(path)).is_relative_to(place):
                raise OutputError(
                    f"{goal} {out} would overwrite {path}, which {flag} names as an input: choose another {goal}."
                )


def _paths(value: Any) -> Iterator[Path]:
    """The files and folders that a value names, of those that exist."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _paths(one)
        return
    written = str(value or "")
    quoted = ("".join(found) for found in _QUOTED.findall(written))
    for name in (written, written.partition(":")[2], written.rpartition("@")[0], *quoted):
        path = Path(name).expanduser()
        try:
            if name and path.exists():
                yield path
        except (OSError, ValueError):
            continue


RawOptions = NewType("RawOptions", dict[str, Any])
"""A command that has a parameter of this type is given its options as they were written, None left out."""


class _CliOption(NamedTuple):
    """One option: its name as a Python name, its declaration, type and default, and its keys by name. The name of a key
    begins with that of its option: "columns text"."""

    name: str
    option: Option
    hint: Any
    default: Any
    keys: Mapping[str, _CliOption] = {}

    @property
    def flag(self) -> str:
        """How it is typed, or what a positional argument is called."""
        head, space, key = self.name.partition(" ")
        return self.option.metavar or f"--{head.replace('_', '-')}{space}{key}"

    @property
    def _unwritten(self) -> Any:
        """What stands for it where nobody typed it."""
        return self.default if self.option.read is None else self.option.written

    @property
    def _shown(self) -> str:
        """Its default, for people; "" where there is none."""
        if self.hint is bool and self.option.of:
            return _WORDS[bool]
        return "" if self._unwritten in (MISSING, None, "", False, ()) else str(self._unwritten)

    def _read_keys(self, words: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
        """The values of its keys; ExpressionError for what is none, for a value of the wrong type, and for two."""
        if isinstance(words, Mapping):
            return dict(words)
        found: dict[str, str] = {}
        for key, equals, value in (one for word in words for one in split_keys(word)):
            fault = f"has no key {key!r}" if equals else f"is written KEY=VALUE, found {key!r}"
            cure = f": write {key}=VALUE." if key in self.keys else nearest(key, self.keys)
            require(bool(equals) and key in self.keys, f"{self.flag} {fault}{cure}")
            other = found.setdefault(key, value)
            require(
                other == value, f"{self.flag} {key} is given twice, as {other!r} and {value!r}: give it once."
            )
        return {key: self.keys[key]._convert(value) for key, value in found.items()}

    def _convert(self, written: str) -> Any:
        """The value of a key, of its type."""
        if self.option.read is not None:
            return written
        try:
            return convert(self.hint, [written])
        except CycloptsError:
            kinds = (self.hint, *get_args(self.hint))
            choice = f"one of {', '.join(map(str, kinds[1:]))}"
            wanted = next((words for kind, words in _WORDS.items() if kind in kinds), choice)
            raise ExpressionError(f"{self.flag} is {wanted}, found {written!r}.") from None

    def _value(self, given: Any) -> Any:
        """What settings hold, from what was written."""
        return given if self.option.read is None else self.option.read(given)

    def _parameter(self, *, short: bool) -> inspect.Parameter:
        """The parameter by which cyclopts knows the option; the `short` help shows essential ones alone."""
        own, hint, default = self.option, self.hint, self._unwritten
        if own.read is not None:
            hint = str
        kinds = (hint, *get_args(hint))
        help = _first_sentence(own.help) if short else own.help + _range(own)
        metavar = next((word for kind, word in _KINDS.items() if kind in kinds), "TEXT")
        shown = Parameter(
            name=self.flag,
            help=f"{help}{self._say_keys(short=short)}",
            group=_panel("Essentials" if short else "Options" if own.metavar else own.panel or "Options"),
            show=own.essential or not short,
            negative=(),
            allow_leading_hyphen=not own.metavar,
            allow_repeating=True,
            show_default=bool(default) and default is not MISSING,
            metavar="KEY=VALUE" if self.keys else metavar,
        )
        kind = inspect.Parameter.POSITIONAL_ONLY if own.metavar else inspect.Parameter.KEYWORD_ONLY
        default = inspect.Parameter.empty if default is MISSING else default
        return inspect.Parameter(self.name, kind, default=default, annotation=Annotated[hint, shown])

    def _say_keys(self, *, short: bool) -> str:
        """Its keys with their defaults, in a line; or each with its help."""
        named = [
            (f"{key} ({one._shown})" if one._shown else key, one.option) for key, one in self.keys.items()
        ]
        if short:
            return f" Keys: {', '.join(name for name, _ in named)}." if named else ""
        return "".join(f"\n{name}: {own.help}{_range(own)}" for name, own in named)


def _first_sentence(text: str) -> str:
    """What stands before the first full stop or semicolon, as a sentence."""
    end = min((at for at in (text.find(". "), text.find("; ")) if at >= 0), default=-1)
    return text if end < 0 else f"{text[:end]}."


def _range(own: Option) -> str:
    if own.most == LARGEST or (own.least is None and own.most is None):
        return ""
    if own.most is None:
        return f" [{own.least} or more]"
    return f" [at most {own.most}]" if own.least is None else f" [{own.least} to {own.most}]"


def output_option(default: Any = MISSING, help: str = "", panel: str = "") -> Any:
    """The field for what is written: a file or a folder; it stands in the short help."""
    return option(default, help, panel=panel, path="out", essential=True)


_EVERY: Mapping[str, tuple[str, Any, Any]] = {
    "plugin": (
        "A Python file that adds scores, corpora or models; give it more than once for several.",
        *(tuple[Path, ...], ()),
    ),
    "json": ("Print the answer as one JSON document on standard output, and nothing else.", bool, False),
    "quiet": ("No progress and no notes on standard error; errors are still said.", bool, False),
    "config": (
        "A TOML file with options by their names: a table for each command, or flat. What is given here wins.",
        *(Path | None, None),
    ),
}
EVERYWHERE = {
    name: _CliOption(
        name, Option(help, panel="Every command", path="" if hint is bool else "in"), hint, default
    )
    for name, (help, hint, default) in _EVERY.items()
}
"""The options of every command, by name."""
HELP_FLAGS = ["--help", "-h", "--help-all"]
WITHOUT_PLUGINS = ("runs report", "demo", "serve", "cache info", "cache clear")
"""Commands that take no --plugin."""


def _command_of(
    function: Callable[..., Answered], words: str, tables: Callable[[], Iterable[str]] = tuple
) -> App:
    """Make a command of a function: it is given its settings, what it answers is printed, and the code of that comes
    back. Files named by --plugin are imported before any settings are made. `words` are what is typed, `tables` the
    commands that a file of options may have tables for."""
    declared = _declare(function)
    every = {
        name: leaf for name, leaf in EVERYWHERE.items() if name != "plugin" or words not in WITHOUT_PLUGINS
    }
    typed = sys.argv[: [*sys.argv, "--"].index("--")]
    asked = not set(HELP_FLAGS[:2]).isdisjoint(typed) and HELP_FLAGS[2] not in typed
    short = asked and any(leaf.option.essential for leaf in declared.values())
    shown = [leaf for leaf in (declared | every).values() if leaf.option.essential or not short]
    parameters = sorted((leaf._parameter(short=short) for leaf in shown), key=lambda one: one.kind)
    signature = inspect.Signature(parameters)

    def run(*positional: Any, **named: Any) -> int:
        from pretrace.cli import telling  # imports numpy, which help and completion do without

        given = signature.bind(*positional, **named).arguments
        for path in given.get("plugin", ()):
            load_plugin(path)
        as_json = given.get("json", False)
        with silenced(given.get("quiet", False)), telling.command(words):
            # what is printed meanwhile goes to standard error where standard output is the JSON document's
            with redirect_stdout(sys.stderr) if as_json else nullcontext():
                answer = function(**arguments_of(function, given))
            reply = answer if isinstance(answer, Reply) else Reply(code=answer or 0)
            if as_json:  # in ASCII, which every console has
                print(json.dumps(reply.document(words), allow_nan=False, indent=1))
            else:
                print_lines(reply.said)
            return reply.code

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.words, run.declared = words, declared  # type: ignore[attr-defined]
    run.__doc__ = " ".join((inspect.getdoc(function) or "").split())
    more = len(every) + sum(short and not leaf.option.essential for leaf in declared.values())
    return App(
        name=words.split()[-1],
        default_command=run,
        help_flags=HELP_FLAGS,
        help_epilogue=f"pretrace {words} --help-all shows {more} more options." if asked else None,
        config=partial(_fill, words, declared | every, tables),
    )


def _fill(
    command: str,
    declared: Mapping[str, _CliOption],
    tables: Callable[[], Iterable[str]],
    _app: App,
    _words: tuple[str, ...],
    arguments: ArgumentCollection,
) -> None:
    """Give what the file of --config holds to the options, and keys of options, that were not given."""
    named = [token.value for one in arguments if one.field_info.name == "config" for token in one.tokens]
    if not named:
        return
    others = {name: leaf for name, leaf in declared.items() if name != "config"}
    top = {command, *(words.split()[0] for words in tables())}
    written = _read_file(Path(named[-1]), command, others, top)
    for one in (one for one in arguments if one.field_info.name in written):
        name, given = (
            one.field_info.name,
            {key for token in one.tokens for key, *_ in split_keys(token.value)},
        )
        values = [] if one.tokens else written[name]
        if declared[name].keys:
            found = (part for word in written[name] for part in split_keys(word))
            values = [join_keys({key: value}, equals) for key, equals, value in found if key not in given]
        for value in values:
            one.tokens.append(Token(keyword=one.name, value=value, source=named[-1], index=len(one.tokens)))


def _read_file(
    path: Path, command: str, declared: Mapping[str, _CliOption], tables: Collection[str]
) -> dict[str, list[str]]:
    """Read what the file gives for the options of a command, by their names, each as words that could be
    typed. TextsError where it cannot be read, ExpressionError for a name that is neither an option nor one of the
    `tables` that a file may have."""
    import tomllib  # most commands are given no file

    try:
        written: Any = tomllib.loads(regular(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TextsError(f"--config {path} cannot be read as TOML: {reason}.") from None
    own = written
    for word in command.split():
        own = own.get(word, {})
        require(isinstance(own, dict), f"{path}: {word!r} is a command, so it is a table: [{command}].")
    flat = {
        name: value for name, value in written.items() if not (isinstance(value, dict) and name in tables)
    }
    known, found = {*(one.replace("_", "-") for one in declared), *tables}, {}
    for name, value in {**flat, **own}.items():
        option = name.replace("-", "_")
        require(option in declared, f"{path}: there is no option or table {name!r}{nearest(name, known)}")
        leaf = declared[option]
        several = get_origin(leaf.hint) is tuple
        is_one = not isinstance(value, dict | list) or (leaf.keys if isinstance(value, dict) else several)
        require(bool(is_one), f"{path}: {name} takes one value, found {value!r}.")
        several = several and isinstance(value, list) and not leaf.option.read
        found[option] = [*map(_typed, value)] if several else [_typed(value)]
    return found


def _typed(value: Any) -> str:
    """A value as it is typed: commas part a list."""
    if isinstance(value, dict):
        return join_keys({name: _typed(one) for name, one in value.items()})
    if isinstance(value, list):
        return ",".join(map(_typed, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _declare(function: Callable[..., Answered]) -> dict[str, _CliOption]:
    """The options of a command by name, without those of every command."""
    hints, found = get_type_hints(function, include_extras=True), dict[str, _CliOption]()
    for name, parameter in inspect.signature(function).parameters.items():
        for leaf in _options_in(name, hints[name], parameter.default):
            if (of := leaf.option.of) is None:
                found[leaf.name] = leaf
                continue
            name, _, key = leaf.name.partition(" ")
            whole = found.get(name) or _CliOption(name, of, tuple[str, ...], ())
            shown = replace(of, essential=whole.option.essential or leaf.option.essential)
            default = MISSING if leaf.default is MISSING else whole.default
            found[name] = whole._replace(option=shown, default=default, keys={**whole.keys, key: leaf})
    return found


def _options_in(name: str, hint: Any, default: Any) -> Iterator[_CliOption]:
    """The options of a parameter or field: those of the settings it is, or itself."""
    kind, extras = _split_annotated(hint)
    if extras and isinstance(own := extras[0], Option):
        missing = default is inspect.Parameter.empty
        yield _CliOption(name, own, kind, MISSING if missing else default)
    elif is_dataclass(kind):
        for one, described, inner in _fields(kind, extras):
            if described is None:
                yield from _options_in(one.name, inner, MISSING)
            else:
                yield _CliOption(_name(one.name, described), described, inner, one.default)


def arguments_of(function: Callable[..., Answered], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a command with these options, by their names in Python; the others are as if nobody had typed
    them, and a chat template is that of the model in question. OutputError as from `_check_outputs`."""
    declared = _declare(function)
    given = {name: leaf._unwritten for name, leaf in declared.items()} | dict(options)
    leaves = {name: leaf for name, leaf in EVERYWHERE.items() if leaf.option.path and name in given}
    written: dict[str, Any] = {name: given[name] for name in leaves}
    for name, leaf in declared.items():
        if leaf.keys:
            given[name] = leaf._read_keys(given[name])
        for key, one in leaf.keys.items() or [(name, leaf)]:
            leaves[one.name] = one
            written[one.name] = given[name].get(key, one._unwritten) if leaf.keys else given[name]
            if written[one.name] is MISSING:
                raise ExpressionError(f"{leaf.flag} needs the key {key}: {one.option.help}")
    _check_outputs([(leaf, written[name]) for name, leaf in leaves.items()])
    hints = get_type_hints(function, include_extras=True)
    return {
        one: RawOptions(
            _recorded({name: value for name, value in given.items() if name not in _NOT_RECORDED})
        )
        if hint is RawOptions
        else _build_argument(one, hint, written, leaves)
        for one, hint in hints.items()
        if one != "return"
    }


def _build_argument(
    name: str, hint: Any, given: Mapping[str, Any], declared: Mapping[str, _CliOption]
) -> Any:
    """The argument for a parameter or field: settings, or the value of one option."""
    kind, extras = _split_annotated(hint)
    if not is_dataclass(kind) or not isinstance(kind, type):
        return declared[name]._value(given[name])
    built = kind(
        **{
            one.name: _build_argument(one.name, inner, given, declared)
            if described is None
            else declared[_name(one.name, described)]._value(given[_name(one.name, described)])
            for one, described, inner in _fields(kind, extras)
        }
    )
    check_ranges(built)
    return built


def _fields(kind: Any, only: tuple[Any, ...]) -> Iterator[tuple[Field[Any], Option | None, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        if not one.init:
            continue
        described, hint = option_of(one), hints[one.name]
        if (not only or one.name in only) and (described or is_dataclass(_split_annotated(hint)[0])):
            yield one, described, hint


def _name(name: str, described: Option) -> str:
    return described.flag(name)[2:].replace("-", "_")


def _split_annotated(hint: Any) -> tuple[Any, tuple[Any, ...]]:
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


_NOT_RECORDED = ("json", "quiet", "config")


class _Console(Console):
    """A console that writes no control character but its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for one in super().render(renderable, options):
            if one.control or one.text.isprintable():
                yield one
            else:
                yield Segment(shown(one.text, keep="\n\t"), one.style)

    def on_broken_pipe(self) -> None:
        """BrokenPipeError, which the program's end knows; Rich would leave the program here."""
        raise BrokenPipeError


def printer(*, stderr: bool = False) -> Console:
    """A console to print to: standard output, or standard error."""
    return _Console(highlight=False, stderr=stderr)


def prose(text: str, style: str = "") -> Text:
    """A text as it is, whose lines break between words."""
    return Text(shown(text, keep="\n"), style)


def plain_table(
    *words: str, numbers: Sequence[str] = (), rows: Iterable[Sequence[str]], caption: str = "", **how: Any
) -> Table:
    """Make a table without rules: columns of `words`, which fold, then columns of `numbers`, which do not."""
    table = Table(box=None, padding=(0, 2, 0, 0), caption=caption and prose(caption), **how)
    table.caption_justify = "left"
    for name in words:
        table.add_column(prose(name), overflow="fold")
    for name in numbers:
        table.add_column(prose(name), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(prose, row))
    return table


def print_lines(said: Iterable[RenderableType], *, stderr: bool = False) -> None:
    """Print what is said; a line that is a string is not broken, since it may hold a path or a command."""
    console = printer(stderr=stderr)
    for one in said:
        line = isinstance(one, str)
        console.print(prose(str(one)) if line else one, soft_wrap=line)


CANNOT_ANSWER = 4
"""The exit code where no verdict is possible with what there is, the same as for a verdict that is withheld."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command found, in the words that everybody shares, and in its own.

    `said` is printed for people. `outcome` is a word that scripts act on, `code` the exit code, `statement` a sentence,
    `folder` what was written, `report` the page in it, `verdict` what stands there. `own`
    are the command's own keys of the JSON document: anything that `results.folder.to_plain` takes.
    """

    said: Iterable[RenderableType] = ()
    _: KW_ONLY
    outcome: str = "done"
    code: int = 0
    statement: str = ""
    folder: Path | None = None
    report: Path | None = None
    verdict: Verdict | None = None
    own: Mapping[str, Any] = field(default_factory=dict)

    def document(self, command: str) -> dict[str, Any]:
        """The answer as the JSON document of a command."""
        from pretrace.results.folder import to_plain  # takes arrays, and so imports numpy

        return {
            "command": command,
            "outcome": self.outcome,
            "exit_code": self.code,
            "statement": self.statement,
            "folder": None if self.folder is None else str(self.folder),
            "report": None if self.report is None else str(self.report),
            **{name: to_plain(value, name) for name, value in self.own.items()},
        }


Answered = Reply | int | None
"""What a command may return."""
