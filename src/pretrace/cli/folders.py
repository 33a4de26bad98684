"""What is done with result folders: `pretrace runs verify`, `again`, `compare` and `table`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from pretrace.cli.answer import Reply, plain_table
from pretrace.cli.commands import call, options_of, places
from pretrace.cli.options import EVERYWHERE, ForwardedFlags, written_to
from pretrace.cli.printing import measured
from pretrace.cli.streams import note
from pretrace.corpora import Columns
from pretrace.corpora.opening import operand
from pretrace.errors import OutputError
from pretrace.registry import require
from pretrace.report.tables import format_table, save_figures
from pretrace.report.wording import bracketed, named
from pretrace.results.atomic import check_writable
from pretrace.results.folder import OpenFolder
from pretrace.runs import kind_of, load_run
from pretrace.scoring.side_by_side import SettingDifference, side_by_side
from pretrace.settings import TEXTS, Option, join_keys, split_keys
from pretrace.types import Run
from pretrace.verdicts.settings import input_option
from pretrace.verification import verify as check

FAILED = 2
"""The exit code where something is not as it was recorded."""
_FOLDER = Option(
    "A folder that a run, an audit, a flagging or another test was written to.",
    metavar="FOLDER",
    path="in",
    essential=True,
)


def _place(help: str) -> str | None:
    given: str | None = input_option(None, help, TEXTS)
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class _VerifyInputs:
    """Where the texts are now; those that are not named are looked for where they were."""

    texts: str | None = _place("The texts in question, as they are now; given as TEXTS is.")
    controls: str | None = _place(
        "The control documents of an audit, or the known non-members of a flagging."
    )
    reference: str | None = _place("The labelled texts that detectors of a run were fitted on.")
    sealed: str | None = _place("The sealed file of `pretrace mark check`.")
    answers: str | None = _place("The answers of `pretrace mark check`.")
    columns: Annotated[Columns, "text", "label", "id", "group"] = field(default_factory=Columns)

    @property
    def named(self) -> dict[str, str]:
        """The places that were named, by the role of the texts."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "columns"}
        return {role: place for role, place in found.items() if place}


def verify(folder: Annotated[Path, _FOLDER], inputs: _VerifyInputs) -> Reply:
    """Is a result what was written? Every hash, the report against its tables, and the texts against those of the
    result. Exit code 0 when all that can be checked holds, 2 otherwise."""
    found = check(folder, inputs.named, columns=inputs.columns)
    wrong = ", ".join(one.name for one in found.checks if one.state == "no")
    open_ = ", ".join(one.name for one in found.checks if one.state not in ("no", "yes"))
    rest = f"not as it was recorded: {wrong}" if not found.holds else "as it was recorded"
    statement = f"This {found.kind} is {rest}{f'; not checked: {open_}' * bool(open_ and found.holds)}."

    table = plain_table(
        *("check", "state", "words"),
        rows=[(one.name, one.state, one.words) for one in found.checks],
        show_header=False,
    )
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    return Reply(
        [table, statement],
        outcome="holds" if found.holds else "differs",
        code=0 if found.holds else FAILED,
        statement=statement,
        folder=folder,
        own={"kind": found.kind, "checks": found.checks},
    )


# `pretrace runs again`: the command that made a result, with the options that the result recorded.


_TESTS = {"marks": "mark check", "triggers": "mark check", "canaries": "mark canaries"}
"""Tests whose command has another name."""
_OUT = written_to(
    "Folder for what is made again; FOLDER-again unless given. A result that is already there is replaced."
)
_TRUST = Option(
    "Run code that the recorded options name, too (--plugin, --model-args trust_remote_code or allow_pickle): only for "
    "a result of your own.",
    panel="",
    essential=True,
)
_CODE = ("--plugin", "--config", "--model-args trust_remote_code", "--model-args allow_pickle")


def again(
    folder: Annotated[Path, _FOLDER],
    passed: ForwardedFlags,
    out: Annotated[Path | None, _OUT] = None,
    trust: Annotated[bool, _TRUST] = False,
) -> int:
    """Make a result again: the same command with the options that it recorded, relative paths from here. It
    compares nothing: `pretrace runs verify` says whether a folder is what was written."""
    named = folder if folder.name not in ("", "..") else folder.resolve()
    place = out or named.with_name(f"{named.name}-again")
    command, given = recorded(folder)
    words = command_line(folder, command, given)
    flags = [
        (flag, key)
        for flag, _, value in (one.partition("=") for one in words)
        for key, *_ in split_keys(value)
    ]
    code = next((one for one in _CODE for flag, key in flags if one in (flag, f"{flag} {key}")), "")
    if code and not trust:  # a folder may come from a stranger
        raise OutputError(
            f"{folder} was made with {code}, which can run any code: give --trust if the result is your own."
        )
    said = [*words, f"--out={place}"]
    note(f"again: pretrace {shlex.join(said)}")
    ended = call([*said, *passed])
    note(f"pretrace runs verify {shlex.quote(str(place))} checks the new folder; {folder} is as it was.")
    return ended


def recorded(folder: Path) -> tuple[str, dict[str, Any]]:
    """The command that made a result, and its options as they were given, without --out. OutputError where the folder
    holds no result, or one that does not say it."""
    kind = kind_of(folder)
    content = OpenFolder(kind, folder).content
    settings = content.get("settings")
    settings = settings if isinstance(settings, Mapping) else {}
    given = settings.get("given" if kind.marker == "run.json" else "command")
    if not isinstance(given, Mapping) or not given:
        raise OutputError(
            f"{folder} does not record the options that it was made with: a program made it. Give the "
            "command itself."
        )
    test = kind.test or str(content.get("test"))
    named = {"audit": "audit", "run": str(settings.get("command"))}
    command = named.get(kind.name) or _TESTS.get(test, test)
    return command, {name: value for name, value in given.items() if name != "out"}


def command_line(folder: Path, command: str, given: Mapping[str, Any]) -> list[str]:
    """The words of the command. OutputError for an option that there is no more, and for texts that came from
    standard input, which are gone."""
    if command not in places():
        raise OutputError(f"{folder} was made by {command!r}, which is no command of pretrace.")
    declared = {**options_of(command), **EVERYWHERE}
    positional: list[str] = []
    words: list[str] = []
    for name, value in given.items():
        if name not in declared:
            flag = f"--{name.replace('_', '-')}"
            raise OutputError(
                f"{folder} was made with {flag}, which `pretrace {command}` does not have: give the command itself."
            )
        if value == "-":
            raise OutputError(
                f"{folder} was made from standard input, which is gone: give the command itself."
            )
        if declared[name].option.metavar:
            positional += [operand(str(one)) for one in (value if isinstance(value, list) else [value])]
        else:
            words += _words(f"--{name.replace('_', '-')}", value)
    return [*command.split(), *words, *positional]


def _words(flag: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{flag}={join_keys({key: one})}" for key, one in value.items())
    elif isinstance(value, list):
        yield from (f"{flag}={one}" for one in value)
    elif isinstance(value, bool):
        if value:
            yield flag
    elif value is not None:
        yield f"{flag}={value}"


# `pretrace runs compare`: runs side by side.


_OTHERS = {"audit": "an audit", "test result": "the verdict of a test"}


def compare(
    runs: Annotated[
        tuple[Path, ...],
        Option(
            "Folders that `score` or `evaluate` wrote; two or more.", metavar="RUN", path="in", essential=True
        ),
    ],
    score: Annotated[
        tuple[str, ...],
        Option(
            "The score to show, as the runs name it; give it more than once for several. Default: all.",
            panel="",
            essential=True,
        ),
    ] = (),
) -> Reply:
    """Put runs side by side: models by corpora, with their controls. It says which numbers do not compare, since the
    runs differ in texts, start token or other settings."""
    found = side_by_side([(str(folder), _opened(folder, runs)) for folder in runs], score)
    rows = []
    for one in found.runs:
        for row in one.scores:
            figures = ("–" if auc is None else bracketed(auc) for auc in (row.auc, row.placebo, one.blind))
            rows.append((f"{one.number}  {named(one.model, 40)}", named(one.corpus, 30), row.score, *figures))
    table = plain_table("model", "corpus", "score", numbers=("AUC", "placebo", "blind"), rows=rows)
    own = {"runs": found.runs, "scores": found.scores, "differences": found.differences}
    return Reply([table, *map(_said, found.differences)], own=own)


def _opened(folder: Path, runs: tuple[Path, ...]) -> Run:
    name = kind_of(folder).name
    if name != "run":
        raise OutputError(
            f"{folder} is {_OTHERS.get(name, f'a {name}')}: compare takes runs, folders that `score` or `evaluate` "
            "wrote."
        )
    if sum(os.path.realpath(one) == os.path.realpath(folder) for one in runs) > 1:
        raise OutputError(f"{folder} is given twice: name each run once.")
    return load_run(folder)


def _said(one: SettingDifference) -> str:
    values = "; ".join(f"{value} ({', '.join(map(str, runs))})" for value, runs in one.values)
    return f"- {'Compare with care' if one.compares else 'Does not compare'}: {one.setting}: {values}. {one.words}"


# `pretrace runs table`: a measured run for a paper.


_FIGURES = written_to("Folder for the ROC curves and the AUCs, each as PDF and as SVG.")


def table(
    run: Annotated[Path, Option("A folder that `evaluate` wrote.", metavar="RUN", path="in", essential=True)],
    latex: Annotated[bool, Option("As LaTeX, with the rules of booktabs.", panel="", essential=True)] = False,
    markdown: Annotated[bool, Option("As Markdown.", panel="", essential=True)] = False,
    figures: Annotated[Path | None, _FIGURES] = None,
) -> Reply:
    """The figures of a run for a paper: a table with 95% intervals, the best of each column in bold. With --figures
    also the curves as files."""
    require(not (latex and markdown), "a table has one form: give --latex or --markdown.")
    if figures is not None:
        check_writable(figures)
    found = _opened(run, (run,))
    text = format_table(found, "latex" if latex else "markdown")
    made = save_figures(found, figures) if figures else ()

    said = [text if latex or markdown else measured(found), *(f"Figure: {path}" for path in made)]
    return Reply(said, folder=run, own={"table": text, "figures": [str(path) for path in made]})
