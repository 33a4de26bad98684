"""Options from a TOML file (--config): a table for each command, or flat; what is given on the command line wins.

model = "smollm2"
seed = 3

[audit]
heldout = "drafts.jsonl"
placebo = ["older", "oldest"]
no-cache = true
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

import typer

from pretrace.errors import ExpressionError, TextsError, regular
from pretrace.settings import Option

if TYPE_CHECKING:
    from pretrace.cli.options import Leaf

CONFIG = "config"
OPTION = Option(
    "A TOML file with options by their names: a table for each command, or flat. What is given here wins.",
    panel="Output",
    path="in",
)


def loader(command: str, leaves: Mapping[str, Leaf]) -> Callable[[typer.Context, Path | None], Path | None]:
    """What --config of a command does before its other options are looked at: the file's options become defaults."""

    def load(context: typer.Context, value: Path | None) -> Path | None:
        if value is not None:
            found = options_in(Path(value), command, leaves)
            context.default_map = {**(context.default_map or {}), **found}
        return value

    return load


def options_in(path: Path, command: str, leaves: Mapping[str, Leaf]) -> dict[str, Any]:
    """What the file gives for the options of a command, by their names as `leaves` has them. TextsError where it cannot
    be read, ExpressionError for a name that nothing has and for a value of the wrong kind."""
    from pretrace.cli.commands import RENAMED, every_command

    written = _read(path)
    known = {one.words.split()[0] for one in every_command()}  # which tables of a file may be called
    known |= set(RENAMED)
    for name, value in written.items():
        if isinstance(value, dict) and name not in known:
            raise ExpressionError(f"{path}: there is no command {name!r}{_nearest(name, known)}.")
    flat = {name: value for name, value in written.items() if not isinstance(value, dict)}
    own = written
    for word in command.split():
        own = own.get(word, {})
        if not isinstance(own, dict):
            raise ExpressionError(f"{path}: {word!r} is a command, so it is a table: [{command}].")
    earlier: object = next((written.get(name) for name, now in RENAMED.items() if now == command), None)
    kept = (
        {name: value for name, value in earlier.items() if not isinstance(value, dict)}
        if isinstance(earlier, dict)
        else {}
    )
    return dict(_values(path, flat | kept | own, leaves))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(regular(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise TextsError(f"--config {path} cannot be read: {reason}.") from None
    except ValueError as error:
        raise TextsError(f"--config {path} is no TOML: {error}.") from None
    except RecursionError:
        raise TextsError(
            f"--config {path} is nested too deeply: an option has one value, or a list."
        ) from None


def _values(path: Path, given: Mapping[str, Any], leaves: Mapping[str, Leaf]) -> Iterator[tuple[str, Any]]:
    for written, value in given.items():
        name = written.replace("-", "_")
        if name not in leaves or name == CONFIG:
            shown = [one.replace("_", "-") for one in leaves if one != CONFIG]
            raise ExpressionError(
                f"{path}: there is no option {written!r}{_nearest(written.replace('_', '-'), shown)}."
            )
        yield name, _value(f"{path}: {written}", value, leaves[name])


def _value(where: str, value: Any, leaf: Leaf) -> Any:
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
