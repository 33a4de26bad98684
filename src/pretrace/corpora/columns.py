"""Which columns hold text, label, id and group, and what a cell of each may say."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from pretrace.errors import TextsError
from pretrace.settings import TEXTS, option

TEXT_NAMES = ("text", "input")
_SHOWN_COLUMNS = 12

_LABELS: dict[object, bool | None] = {
    "1": True,
    "1.0": True,
    "true": True,
    "member": True,
    "0": False,
    "0.0": False,
    "false": False,
    "non-member": False,
    "nonmember": False,
    "": None,
    "nan": None,
    "null": None,
    "none": None,
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns to read.

    None stands for the usual name: `text` or else `input` for the text, `label`, `id` and `group` for
    the others, each read where it is present. A name that is given must be there. An empty name leaves
    a column out, for files whose `label` says something else than membership.
    """

    text: str | None = option(
        None,
        "Column of the text; text or input unless named.",
        name="text-column",
        panel=TEXTS,
        essential=True,
    )
    label: str | None = option(
        None,
        "Column of the label, 1 member, 0 non-member; label unless named.",
        name="label-column",
        panel=TEXTS,
    )
    id: str | None = option(None, "Column of the id; id unless named.", name="id-column", panel=TEXTS)
    group: str | None = option(
        None,
        "Column of the document a text was cut from; intervals resample documents; group unless named.",
        name="group-column",
        panel=TEXTS,
    )
    more: tuple[str, ...] = ()
    """Further columns, for `Text.meta`; each must be there. No option: those who need them name them."""
    give_way: bool = False
    """Whether a name that is not found gives way to the usual one. No option: `of_another` sets it."""

    @property
    def text_alone(self) -> Columns:
        """The same text column, and no other."""
        return Columns(self.text, label="", id="", group="")

    @property
    def of_another(self) -> Columns:
        """The same names for a second source, such as control documents: one that it does not have gives way to the
        usual name, since texts in a folder have no columns, and two tables need not call theirs the same."""
        return replace(self, give_way=True)

    @property
    def named(self) -> set[str]:
        """The names that were given and must therefore be found."""
        given = () if self.give_way else self.recorded.values()
        return {name for name in (*given, *self.more) if name}

    @property
    def recorded(self) -> dict[str, str | None]:
        """The names of the four columns, as a run records them."""
        return {"text": self.text, "label": self.label, "id": self.id, "group": self.group}

    def pick(self, found: Collection[str], source: str) -> Columns:
        """The columns to read of those found, "" for the ones that are not there.

        Raises TextsError for a name that was given and is not found, and where there is no text.
        """
        for name in sorted(self.named):
            if name not in found:
                raise TextsError(f"{source} has no column {name!r}; it has {listed(found)}.")
        others = self.others(found)
        there: dict[str, Any] = {role: name if name in found else "" for role, name in others.items()}
        return replace(self, text=self.pick_text(found, source), **there)

    def pick_loosely(self, found: Collection[str], source: str) -> Columns:
        """The columns to look for where each row brings its own keys: only the text must be in the first."""
        return replace(self, text=self.pick_text(found, source), **self.others(found))

    def pick_text(self, found: Collection[str], source: str) -> str:
        """The name of the text column."""
        named: tuple[str, ...] = () if self.text is None else (self.text,)
        wanted: tuple[str, ...] = (*named, *TEXT_NAMES) if self.give_way or not named else named
        for name in wanted:
            if name in found:
                return name
        raise TextsError(
            f"{source} has no column {' or '.join(map(repr, wanted))} to take the texts from; it has "
            f"{listed(found)}: name the one that holds the text."
        )

    def others(self, found: Collection[str]) -> dict[str, Any]:
        """The names of the columns beside the text, the usual ones where none are given or one gives way."""
        return {
            role: role if name is None or (self.give_way and name and name not in found) else name
            for role, name in self.recorded.items()
            if role != "text"
        }


USUAL = Columns()
"""The usual column names: text or input, label, id, group."""


def cell_of(value: object) -> str:
    """A cell of a further column as a string: "" for empty, null or NaN, a list or an object as JSON."""
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return name_of(value)


def listed(names: Collection[str]) -> str:
    """Column names as a message shows them: the first dozen, and how many more there are."""
    shown = [repr(name) for name in list(names)[:_SHOWN_COLUMNS]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "") if shown else "no columns"


def membership(value: object) -> bool | None:
    """True for a member, False for a non-member, None for unknown (empty, null or NaN).

    Raises ValueError for anything else, so that a column of sentiments is never taken for membership.

    >>> [membership(value) for value in (1, "0", "Member", 0.0, "", None, float("nan"))]
    [True, False, True, False, None, None, None]
    """
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    key = value.strip().lower() if isinstance(value, str) else None
    if key is None or key not in _LABELS:
        raise ValueError("neither member nor non-member")
    return _LABELS[key]


def name_of(value: object) -> str:
    """An id or a group as a string: "" for empty, null or NaN; 3.0 is "3", since a column of whole
    numbers with gaps comes back as floats. Raises ValueError for a list or an object."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, list | dict | tuple):
        raise ValueError("a list or an object")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return mended(value)[0] if isinstance(value, str | bytes) else str(value)


def mended(value: str | bytes) -> tuple[str, bool]:
    """A text that can be encoded, and whether anything was replaced by U+FFFD: bytes that are not UTF-8,
    or half a surrogate pair, as JSON can spell it.

    >>> mended(b"caf\\xe9"), mended("\\ud83d!")
    (('caf�', True), ('�!', True))
    """
    if value.isascii():  # nearly always, and many times faster than decoding in a try
        return (value.decode() if isinstance(value, bytes) else value), False
    if isinstance(value, bytes):
        try:
            return value.decode(), False
        except UnicodeDecodeError:
            return value.decode(errors="replace"), True
    try:
        value.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value), True
    return value, False


def kind_of(value: object) -> str:
    """What a cell holds, in words for a message."""
    if value is None:
        return "nothing"
    words = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}
    return words.get(type(value), "an object" if isinstance(value, dict) else type(value).__name__)
