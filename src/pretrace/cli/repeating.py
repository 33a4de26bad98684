"""`pretrace runs again`: the command that made a result, with the options that the result recorded."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pretrace.cli.options import Leaf, Passed
from pretrace.cli.streams import note
from pretrace.cli.verdicts import GONE, TESTS
from pretrace.corpora.opening import operand
from pretrace.errors import OutputError
from pretrace.results.folder import Kind, Opened
from pretrace.runs import kind_of
from pretrace.settings import Option

_TESTS = {"marks": "mark check", "triggers": "mark check", "canaries": "mark canaries", "options": "order"}
"""Tests whose command has another name."""
_FOLDER = Option(
    "A folder that a run, an audit, a flagging or another test was written to.",
    metavar="FOLDER",
    path="in",
    essential=True,
)
_OUT = Option(
    "Folder for what is made again; FOLDER-again unless given. A result that is already there is replaced.",
    panel="",
    path="out",
    essential=True,
)
_TRUST = Option(
    "Run code that the recorded options name, too (--plugin, --trust-remote-code, --allow-pickle): only for a result "
    "of your own.",
    panel="",
    essential=True,
)
_CODE = ("plugin", "trust_remote_code", "allow_pickle")


def again(
    folder: Annotated[Path, _FOLDER],
    passed: Passed,
    out: Annotated[Path | None, _OUT] = None,
    trust: Annotated[bool, _TRUST] = False,
) -> int:
    """Make a result again: the same command with the options that it recorded, relative paths from here. It
    compares nothing: `pretrace runs verify` says whether a folder is what was written."""
    from pretrace.cli.commands import call, leaves_of

    named = folder if folder.name not in ("", "..") else folder.resolve()
    place = out or named.with_name(f"{named.name}-again")
    command, given = recorded(folder)
    if not trust:
        _refuse_code(folder, given)
    words = command_line(folder, command, given, leaves_of(command))
    said = [*words, f"--out={place}"]
    note(f"again: pretrace {shlex.join(said)}")
    code = call([*said, *passed])
    note(f"pretrace runs verify {shlex.quote(str(place))} checks the new folder; {folder} is as it was.")
    return code


def _refuse_code(folder: Path, given: Mapping[str, Any]) -> None:
    """OutputError where the recorded options run code: a folder may come from a stranger."""
    for name in _CODE:
        if given.get(name):
            raise OutputError(
                f"{folder} was made with --{name.replace('_', '-')}, which can run any code: give --trust if the "
                "result is your own."
            )


def recorded(folder: Path) -> tuple[str, dict[str, Any]]:
    """The command that made a result, and its options as they were given, without --out. OutputError where the folder
    holds no result, or one that does not say it."""
    kind = kind_of(folder)
    content = Opened(kind, folder).content
    settings = content.get("settings")
    settings = settings if isinstance(settings, Mapping) else {}
    given = settings.get("given" if kind.marker == "run.json" else "command")
    if not isinstance(given, Mapping) or not given:
        raise OutputError(
            f"{folder} does not record the options that it was made with: a program made it, or an earlier pretrace. "
            "Give the command itself."
        )
    return _command(kind, content, settings), {name: value for name, value in given.items() if name != "out"}


def _command(kind: Kind, content: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    named = {"audit": "audit", "run": str(settings.get("command"))}
    test = kind.test or str(content.get("test"))
    return named.get(kind.name) or _TESTS.get(test, test)


def command_line(
    folder: Path, command: str, given: Mapping[str, Any], leaves: Mapping[str, Leaf]
) -> list[str]:
    """The words of the command. OutputError for an option that there is no more, and for texts that came from
    standard input, which are gone."""
    if not leaves:
        raise OutputError(f"{folder} was made by {command!r}, which is no command of pretrace.")
    positional: list[str] = []
    words: list[str] = []
    for name, value in given.items():
        if name not in leaves:
            flag = f"--{name.replace('_', '-')}"
            why = f"; {GONE[flag]}" if flag in GONE and command in TESTS else ": give the command itself."
            raise OutputError(f"{folder} was made with {flag}, which `pretrace {command}` has no more{why}")
        if value == "-":
            raise OutputError(
                f"{folder} was made from standard input, which is gone: give the command itself."
            )
        if leaves[name].option.metavar:
            positional += [operand(str(one)) for one in (value if isinstance(value, list) else [value])]
        else:
            words += _words(f"--{name.replace('_', '-')}", value)
    return [*command.split(), *words, *positional]


def _words(flag: str, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (f"{flag}={one}" for one in value)
    elif isinstance(value, bool):
        if value:
            yield flag
    elif value is not None:
        yield f"{flag}={value}"
