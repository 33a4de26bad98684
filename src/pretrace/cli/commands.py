"""All commands, in the groups and the order that the help shows. A command is imported when it is called.

A package of others adds one with an entry point in the group `pretrace.commands`: the name is what is typed, the value
the function, `package.module:function`, with parameters as the commands here have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cyclopts import App, Group

from pretrace import __version__, plugins
from pretrace.cli.answer import printer
from pretrace.cli.options import EVERYWHERE, HELP_FLAGS, command_of
from pretrace.errors import ExpressionError

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
        "flag": ("flagging:flag", "Each text, at a rate of false flags."),
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
        "runs merge": ("flagging:merge", "Put the parts of several workers together."),
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


def __getattr__(words: str) -> Any:
    """A command as cyclopts looks it up when it is called: an attribute of this module."""
    if words == _COMPLETION:
        from cyclopts.completion.install import create_install_completion_command

        return create_install_completion_command(app().install_completion, False)
    if words.startswith("__") or (words not in _OWN and words not in places()):
        raise AttributeError(words)
    return command_of(find_function(words), words, places)


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
        groups[first].command(f"{__name__}:{words}", name=name, sort_key=i, **_listed(words))
    if not own:
        said = "Install shell completion for this application."
        made.command(f"{__name__}:{_COMPLETION}", name=_COMPLETION, help=said, group=_PANELS[-1])
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
