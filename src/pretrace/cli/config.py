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

from pretrace.errors import ExpressionError, TextsError, regular
from pretrace.registry import nearest
from pretrace.settings import join_keys


def options_in(
    path: Path, command: str, declared: Mapping[str, Any], known: Collection[str]
) -> dict[str, list[str]]:
    """Read what the file gives for the options of a command (`CliOption`), by their names, each as words that could be
    typed. TextsError where it cannot be read, ExpressionError for a name that nothing has (`known` are the tables that
    a file may have) and for a value of the wrong kind."""
    written = _read(path)
    shown = {one.replace("_", "-"): one for one in declared}
    flat = {
        name: value for name, value in written.items() if not isinstance(value, dict) or name not in known
    }
    for name, value in flat.items():
        if isinstance(value, dict) and name.replace("_", "-") not in shown:
            raise ExpressionError(f"{path}: there is no command {name!r}{nearest(name, known)}")
    own = written
    for word in command.split():
        own = own.get(word, {})
        if not isinstance(own, dict):
            raise ExpressionError(f"{path}: {word!r} is a command, so it is a table: [{command}].")
    found = {}
    for option, value in (flat | own).items():
        name = option.replace("_", "-")
        if name not in shown:
            raise ExpressionError(f"{path}: there is no option {option!r}{nearest(name, shown)}")
        found[shown[name]] = _written(f"{path}: {option}", value, declared[shown[name]])
    return found


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # most commands are given no file

    try:
        return tomllib.loads(regular(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TextsError(f"--config {path} cannot be read as TOML: {reason}.") from None


def _written(where: str, value: Any, leaf: Any) -> list[str]:
    """A value as the words that would be typed for it."""
    several = get_origin(leaf.hint) is tuple
    if leaf.keys and isinstance(value, dict):
        keys = {name: leaf.keys.get(name.replace("-", "_"), leaf) for name in value}
        written = {name: _written(f"{where}: {name}", value[name], keys[name]) for name in keys}
        return [join_keys({name: ",".join(words) for name, words in written.items()})]
    if isinstance(value, list) and several and not any(isinstance(one, dict | list) for one in value):
        return [",".join(map(str, value))] if leaf.option.read else [*map(str, value)]
    if isinstance(value, dict | list):
        wanted = "one value or a list of them" if several and not leaf.option.read else "one value"
        raise ExpressionError(f"{where} takes {wanted}, found {value!r}.")
    return [str(value).lower() if isinstance(value, bool) else str(value)]
