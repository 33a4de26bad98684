"""Options from a TOML file (--config): a table for each command, or flat; what is given on the command line wins.

model = "smollm2"
seed = 3

[audit]
controls = "unpublished.jsonl"
placebo = ["older", "oldest"]
columns = {text = "body", id = "key"}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_origin

from pretrace.errors import TextsError, regular, require
from pretrace.registry import nearest
from pretrace.settings import join_keys


def options_in(
    path: Path, command: str, declared: Mapping[str, Any], tables: Collection[str]
) -> dict[str, list[str]]:
    """Read what the file gives for the options of a command (`CliOption`), by their names, each as words that could be
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
