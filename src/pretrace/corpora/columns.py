"""Which columns hold text, label, id and group, and how names and cells are shown."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pretrace.errors import ExpressionError, TextsError, require
from pretrace.results import wording
from pretrace.results.wording import say
from pretrace.settings import COLUMNS, READING, TEXTS, option

TEXT_NAMES = ("text", "input")


@dataclass(frozen=True, slots=True)
class Columns:
    """How texts stand in their source: the columns to read, and what files and characters they are in. None stands for
    the usual name: `text` or else `input` for the text (or a conversation called `messages` or `conversations`),
    `label`, `id` and `group`, each read where it is present. A name that is given must be there; an empty one leaves
    the column out. ExpressionError for a template that is none, and an unknown encoding."""

    text: str | None = COLUMNS.key(None, "Column of the text; several: prompt,completion.", essential=True)
    label: str | None = COLUMNS.key(None, "Column of the label, 1 member, 0 non-member; label unless named.")
    id: str | None = COLUMNS.key(None, "Column of the id; id unless named.")
    group: str | None = COLUMNS.key(
        None, "Column of the document a text was cut from; intervals resample documents; group unless named."
    )
    template: str | None = option(
        None,
        r'How a text is made of columns, as in "{question}\n{choices}\n{answer}", in place of --columns text.',
        panel=TEXTS,
    )
    split: str | None = READING.key(None, "Split to read, if a folder holds several, such as test.")
    files: str | None = READING.key(
        None, "Files of a folder to read, as in *.py; a file of source code is one text."
    )
    encoding: str | None = READING.key(
        None, "Encoding of the files, as in cp1252; UTF-8, or what a byte order mark says, unless named."
    )
    more: tuple[str, ...] = ()
    """Further columns, for `Text.meta`; each must be there. No option: those who need them name them."""
    give_way: bool = False
    """Whether a name that is not found gives way to the usual one. No option: `of_another` sets it."""

    def __post_init__(self) -> None:
        require(
            self.text is None or self.template is None,
            "--columns text and --template both say what the text is: give one of the two.",
        )
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, ValueError):
                raise ExpressionError(
                    f"--reading encoding: {self.encoding[:60]!r} is not known; name one such as cp1252 or gb18030."
                ) from None
        if self.template is not None:
            require(
                bool(self.named_texts),
                '--template names columns in braces, as in "{question} {answer}"; write {{ and }} for braces.',
            )

    @property
    def of_another(self) -> Columns:
        """The same names for a second source, such as controls; one that it lacks gives way to the usual name."""
        return replace(self, give_way=True)

    @property
    def named_texts(self) -> tuple[str, ...]:
        """The columns that were named for the text, in order. ExpressionError for a template that cannot be read."""
        if self.template is None:
            return tuple(filter(None, map(str.strip, (self.text or "").split(","))))
        try:
            names = [name for _, name, _, _ in string.Formatter().parse(self.template) if name is not None]
        except ValueError as error:
            raise ExpressionError(f"--template cannot be read: {error}.") from None
        return tuple(dict.fromkeys(name.partition("[")[0] for name in names))

    @property
    def required(self) -> set[str]:
        """The columns that must be there: the ones that were named."""
        given = () if self.give_way else (*self.named_texts, self.label, self.id, self.group)
        return {name for name in (*given, *self.more) if name}

    @property
    def recorded(self) -> dict[str, str | None]:
        """What was given, as a run records it: the names of the four columns, and of the rest what is not as usual."""
        four = {"text": self.text, "label": self.label, "id": self.id, "group": self.group}
        more = {name: getattr(self, name) for name in FURTHER}
        return {**four, **{name: value for name, value in more.items() if value}}

    def pick_texts(self, found: Collection[str], source: str) -> tuple[str, ...]:
        """The columns that a text is made of, in order. TextsError where they are not there."""
        named = self.named_texts
        if named and all(name in found for name in named):
            return named
        if not named or self.give_way:
            for name in (*TEXT_NAMES, *_CONVERSATIONS):
                if name in found and not (name == "input" and _ANSWERS & set(found)):
                    return (name,)
        missing = [name for name in named if name not in found]
        wanted = (*missing, *TEXT_NAMES) if self.give_way or not named else missing
        names = " or ".join(map(repr, wanted))
        raise TextsError(say("texts.no_text_column", source=source, names=names, found=listed(found)))

    def others(self, found: Collection[str]) -> dict[str, Any]:
        """The names of the columns beside the text, the usual ones where none are given or one gives way."""
        return {
            role: role if name is None or (self.give_way and name and name not in found) else name
            for role, name in (("label", self.label), ("id", self.id), ("group", self.group))
        }


FURTHER = ("template", "split", "files", "encoding")
"""What is recorded where it is not as usual."""
_CONVERSATIONS = ("messages", "conversations", "conversation")
"""Usual names of a column that holds lists of messages, where no column of texts is there."""
_ANSWERS = {"instruction", "output", "response", "completion", "answer", "target"}
"""Columns beside which `input` is a part of a text at most."""


def messages_of(value: object) -> list[str] | None:
    """What the messages of a conversation say, as lists of {role, content} or {from, value} hold them; None for
    anything else.

    >>> messages_of([{"from": "human", "value": "Is it?"}, {"from": "gpt", "value": "Yes."}])
    ['Is it?', 'Yes.']
    """
    if isinstance(value, Mapping):  # by columns, as parquet holds them
        columns: list[Any] = [*value.values()]
        if all(isinstance(one, list) for one in columns) and len({*map(len, columns)}) == 1:
            value = [dict(zip(value, cells, strict=True)) for cells in zip(*columns, strict=True)]
    if not (isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)):
        return None
    for role, content in (("role", "content"), ("from", "value")):
        if all({role, content} <= one.keys() for one in value):
            return [_said_in(one[content]) for one in value]
    return None


def _said_in(content: object) -> str:
    """What a message says: of a list of parts the texts among them."""
    if not isinstance(content, list):
        return cell_of(content)
    parts = (one.get("text") if isinstance(one, Mapping) else one for one in content)
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def distinct(names: Iterable[str], found: Sequence[str], source: str) -> tuple[str, ...]:
    """Names of columns, each once. TextsError where two of a table have one of them, and cannot be told apart."""
    names = tuple(dict.fromkeys(names))
    for name in names:
        if list(found).count(name) > 1:
            raise TextsError(f"{source} has more than one column {name!r}: rename all but one.")
    return names


USUAL = Columns()
"""The usual column names: text or input, label, id, group."""


def cell_of(value: object) -> str:
    """A cell of a further column as a string: "" for empty, null or NaN, a list or an object as JSON."""
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return name_of(value)


def listed(names: Collection[str]) -> str:
    """Column names as a message shows them: the first dozen, and how many more there are."""
    return wording.listed([*names], 12) or "no columns"


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


def shown(name: str | Path) -> str:
    """A path as messages and reports print it; a name that is no valid Unicode must not stop them."""
    return mended(str(name))[0]


def kind_of(value: object) -> str:
    """What a cell holds, in words for a message."""
    words = {int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    words |= {type(None): "nothing", bool: "true or false"}
    return words.get(type(value), type(value).__name__)
