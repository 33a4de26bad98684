"""Fields of settings that say how a user gives them: help, range and name, each written once, beside the default.

The command line is derived from these fields (`pretrace.cli.commands`), and the settings check their own ranges.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, TypeVar

from pretrace.errors import require

T = TypeVar("T")
LARGEST = 2**63 - 1
"""The largest whole number that an option takes where it names no smaller one."""
TEXTS, MODEL, RUN, CONTROLS, TRAINING = "Texts", "Model", "Run", "Controls", "Training"
"""Groups of options, as the help shows them."""


@dataclass(frozen=True, slots=True)
class Option:
    """How a field is given on the command line: as an option, or as a key of the option `of`, as in
    `--columns text=body,id=key`.

    `name` is the option without its dashes where it is not the field's own. `metavar` makes it a positional argument.
    `least` and `most` are the range, both included. `read` turns what was written into the value, `written` is then
    the default as a user writes it. `path` says that the value may name something that is read ("in") or names what is
    written ("out"). Essential options are those that the short help shows. `states` is what a report calls the answer
    of an option by which the one who asks says something.
    """

    help: str
    name: str = ""
    of: Option | None = None
    metavar: str = ""
    panel: str = RUN
    least: float | None = None
    most: float | None = None
    read: Callable[[str], Any] | None = None
    written: str = ""
    path: Literal["", "in", "out"] = ""
    essential: bool = False
    states: str = ""

    def key(self, default: Any = MISSING, help: str = "", **how: Any) -> Any:
        """A dataclass field that is a key of this option; keyword arguments are those of `Option`."""
        return option(default, help, of=self, **how)

    def flag(self, name: str) -> str:
        """How it is typed, for a field of this name: `--seed`, or `--columns text` for a key."""
        name = self.name or name
        return f"--{self.of.name} {name}" if self.of else f"--{name.replace('_', '-')}"


def option(default: Any = MISSING, help: str = "", **how: Any) -> Any:
    """A dataclass field that is an option; keyword arguments are those of `Option`."""
    return field(default=default, metadata={"option": Option(help, **how)})


def like(settings: type[Any], name: str, **default: Any) -> Any:
    """The same option as a field of other settings, with the same default unless another is given."""
    found: Field[Any] = next(one for one in fields(settings) if one.name == name)
    return field(default=default.get("default", found.default), metadata=found.metadata)


def seed_option() -> Any:
    """The field for the seed of all that is drawn."""
    return option(0, "Seed of all that is drawn at random.", least=0, most=LARGEST, essential=True)


def is_kept() -> bool:
    """Whether what is made of texts is kept on disk: unless PRETRACE_CACHE is off."""
    return os.environ.get("PRETRACE_CACHE") != "off"


def requested_option(panel: str, *, essential: bool = False) -> Any:
    """The field for who asks."""
    said = "Who asks, for the first page of the report."
    return option("", said, panel=panel, states="requested_by", essential=essential)


COLUMNS = Option("Names of columns, as in text=body,id=key.", name="columns", panel=TEXTS)
READING = Option("How files are read, as in split=test,encoding=cp1252.", name="reading", panel=TEXTS)


_PART = re.compile(
    r"""(?: (?<==)"[^"]*" | (?<==)'[^']*' | \((?:[^()]|\([^()]*\))*\) | ,(?!\s*[A-Za-z][\w-]*\s*=) | [^,] )+""",
    re.VERBOSE,
)


def split_keys(written: str) -> Iterator[tuple[str, str, str]]:
    """Split the value of an option with keys: key, = ("" where it is missing), value. A comma ends a value where a key
    follows; a value may be quoted.

    >>> [*split_keys("text=prompt,completion, id='a,b=c',method=lora(rank=8, on='all')")]
    [('text', '=', 'prompt,completion'), ('id', '=', 'a,b=c'), ('method', '=', "lora(rank=8, on='all')")]
    """
    for part in _PART.findall(written):
        key, equals, value = (one.strip() for one in part.partition("="))
        quoted = len(value) > 1 and value[0] == value[-1] in "\"'"
        yield key.replace("-", "_"), equals, value[1:-1] if quoted else value


def join_keys(values: Mapping[str, Any], equals: str = "=") -> str:
    """Write what `split_keys` reads.

    >>> join_keys({"text": "body", "id": "a,b=c", "skip_unreadable": True})
    'text=body,id="a,b=c",skip_unreadable=true'
    """
    parts = []
    for key, value in values.items():
        said = str(value).lower() if isinstance(value, bool) else str(value)
        plain = [*split_keys(f"k={said},z=")] == [("k", "=", said), ("z", "=", "")]
        mark = "" if plain else "'" if '"' in said else '"'
        parts.append(f"{key}{equals}{mark}{said}{mark}")
    return ",".join(parts)


def option_of(one: Field[Any]) -> Option | None:
    """How a field is given on the command line; None for one that is not."""
    found: Option | None = one.metadata.get("option")
    return found


def statements_of(settings: Any) -> dict[str, str]:
    """What the one who asks says (`Option.states`), without what was left empty; the last field, who it is, first."""
    said = {
        described.states: getattr(settings, one.name)
        for one in reversed(fields(settings))
        if (described := option_of(one)) and described.states
    }
    return {name: words for name, words in said.items() if words}


def shared(kind: type[T], settings: Any, **others: Any) -> T:
    """Settings of another kind with what both have fields for, and with `others`."""
    known = {one.name for one in fields(settings)} - set(others)
    both = {one.name: getattr(settings, one.name) for one in fields(kind) if one.name in known}  # type: ignore[arg-type]
    return kind(**both, **others)


def check_ranges(settings: Any) -> None:
    """ExpressionError for a number of the settings out of its range; for `__post_init__`."""
    for one in filter(lambda one: one.init, fields(settings)):
        described, value = option_of(one), getattr(settings, one.name)
        if described is None or not isinstance(value, int | float):
            continue
        name = described.flag(one.name)
        least, most = described.least, described.most
        most = LARGEST if most is None and isinstance(value, int) else most
        require(isinstance(value, int) or math.isfinite(value), f"{name} is a number, found {value}.")
        require(least is None or value >= least, f"{name} must be at least {least}, found {value}.")
        require(most is None or value <= most, f"{name} must be at most {_shown(most)}, found {value}.")


def _shown(number: float | None) -> str:
    return "2^63 - 1" if number == LARGEST else f"{number}"
