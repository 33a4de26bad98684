"""Rows of any source turned into texts: which columns are read, in which encoding, what their cells may say, and what
was mended."""

from __future__ import annotations

import codecs
import json
import math
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pretrace.errors import ExpressionError, TextsError, require
from pretrace.results import wording
from pretrace.results.wording import plural, say
from pretrace.settings import COLUMNS, READING, TEXTS, option
from pretrace.types import Text

_TEXT_NAMES = ("text", "input")
HEAD = 4096
"""Bytes by which a file is recognised."""
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


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
            for name in (*_TEXT_NAMES, *_CONVERSATIONS):
                if name in found and not (name == "input" and _ANSWERS & set(found)):
                    return (name,)
        missing = [name for name in named if name not in found]
        wanted = (*missing, *_TEXT_NAMES) if self.give_way or not named else missing
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
    return _name_of(value)


def listed(names: Collection[str]) -> str:
    """Column names as a message shows them: the first dozen, and how many more there are."""
    return wording.listed([*names], 12) or "no columns"


def _name_of(value: object) -> str:
    """An id or a group as a string: "" for empty, null or NaN; 3.0 is "3", since a column of whole
    numbers with gaps comes back as floats. Raises ValueError for a list or an object."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, list | dict | tuple):
        raise ValueError("a list or an object")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return mended(value)[0] if isinstance(value, str | bytes) else str(value)


def encoding_of(head: bytes, named: str | None) -> str:
    """The encoding of a file by its first bytes, or what was named; utf-8-sig is UTF-8 with a mark."""
    for mark, name in _MARKS:
        # two stray bytes are no mark: UTF-16 of any length has a NUL among its first characters
        if head.startswith(mark) and (
            name == "utf-8-sig" or b"\0" in head or not is_utf8(head[len(mark) :], cut=True)
        ):
            return name
    return codecs.lookup(named).name if named else "utf-8"


def decode_text(raw: bytes, source: str, named: str | None = None) -> str:
    """The characters of a file. TextsError where it is written in another encoding than it says."""
    encoding = encoding_of(raw[:HEAD], named)
    if not encoding.startswith("utf-8"):
        return "".join(decoded_pieces((raw,), encoding, source))
    refuse_utf16(raw[:HEAD], source)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TextsError(not_utf8(raw.removeprefix(codecs.BOM_UTF8), source, whole=True)) from None


def decoded_pieces(pieces: Iterable[bytes], encoding: str, source: str) -> Iterator[str]:
    """The characters of a file, piece by piece; TextsError for bytes that are not in the encoding."""
    try:
        yield from codecs.iterdecode(iter(pieces), encoding)
    except UnicodeError as error:  # without a `reason` for UTF-16 that has no mark
        why = getattr(error, "reason", error)
        raise TextsError(say("texts.encoding", source=source, encoding=encoding, why=why)) from None


def refuse_utf16(head: bytes, source: str) -> None:
    """TextsError for the first bytes of a text that are UTF-16 without a mark."""
    if not head.startswith(codecs.BOM_UTF8) and _utf16_without_mark(head):
        raise TextsError(not_utf8(head, source))


def not_utf8(raw: bytes, where: str, *, whole: bool = False, option: str = "--reading encoding") -> str:
    """What to say of bytes that are no UTF-8, and what helps. `whole`: nothing follows them, so a character that breaks
    off was cut; `option` names an encoding."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        if whole and error.reason == "unexpected end of data" and not raw[: error.start].isascii():
            return f"{where} ends in the middle of a character: it was cut off; fetch it again."
    name = _utf16_without_mark(raw[:HEAD]) or "NAME (cp1252 for older Western European files)"
    return f"{where} is not UTF-8: convert it, or name its encoding with {option}={name}."


def _utf16_without_mark(head: bytes) -> str:
    """The encoding of bytes that are UTF-16 without a mark, which are UTF-8 as well: every other one is NUL."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if 5 * max(even, odd) <= 2 * len(head) or 20 * min(even, odd) > max(even, odd):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def is_utf8(raw: bytes, *, cut: bool = False) -> bool:
    """Whether bytes are UTF-8; `cut` ones may end in the middle of a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw, final=not cut)
    except UnicodeDecodeError:
        return False
    return True


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


class SourceRow(NamedTuple):
    """A record: its cells by column, its line (from 1), why it cannot be read ("" if it can), its file in a folder."""

    fields: Mapping[str, object]
    line: int | None = None
    fault: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is left out since it cannot be read: its row from 0, its line from 1 where it has one, and why."""

    source: str
    row: int
    line: int | None
    reason: str


class TextReading:
    """One pass over one source, which messages call `source`: what to read of it, and what had to be mended on the way.
    The formats yield rows and ask `pick` for the columns worth reading; `stream` makes texts of them. A
    record that cannot be read is given to `unreadable` and left out; without it the first one is a TextsError.
    `every_column` of a table is read, whether one of them is the text or not."""

    def __init__(
        self,
        columns: Columns,
        source: str,
        unreadable: Callable[[Unreadable], object] | None = None,
        *,
        every_column: bool = False,
    ) -> None:
        self.columns = self._found = columns
        self.source = source
        self.blank = self.unread = self._taken = self._surrogates = self._unnamed = 0
        self.left_out: list[str] = []  # files of a folder that were not read
        self.kinds: Counter[str] = Counter()  # files of a folder that were read, by the ending of their names
        self.remarks: Counter[str] = Counter()
        """What formats tell of their texts, in half sentences, and of how many."""
        self.said: list[str] = []  # what is to be told of the source as a whole
        self.chosen: tuple[str, ...] = ()  # the columns that a text is made of
        self._tell, self._every_column = unreadable, every_column

    def pick(self, found: Sequence[str], source: str) -> tuple[str, ...]:
        """The columns to read of those found in a file, for formats that know all of theirs beforehand; TextsError for
        a given name that is not there, or one there twice."""
        if self._every_column:
            return tuple(dict.fromkeys(found))
        columns = self.columns
        for name in sorted(columns.required):
            if name not in found:
                raise TextsError(f"{source} has no column {name!r}; it has {listed(found)}.")
        texts = columns.pick_texts(found, source)
        others = (name for name in columns.others(found).values() if name and name in found)
        return distinct((*texts, *others, *columns.more), found, source)

    def stream(self, rows: Iterable[SourceRow]) -> Iterator[Text]:
        """The texts of a source one at a time, whose ids may still repeat; after the last, `notes` are whole."""
        unseen: set[str] = set()
        first: tuple[str, ...] | None = None
        for number, row in enumerate(rows):
            if row.fault:
                self._leave_out(number, row, row.fault)
                continue
            if first is None:
                first = tuple(row.fields)
                unseen = self.columns.required
                self.chosen = self.columns.pick_texts(first, self.source)
                self._found = replace(self.columns, **self.columns.others(first))
            if unseen:
                unseen -= row.fields.keys()
            try:
                made = self._text(number, row.fields)
            except (TextsError, ValueError) as error:
                where = "" if isinstance(error, TextsError) else f"{self._where(number, row)} "
                self._leave_out(number, row, self.fault(f"{where}{error}", row.line).fault)
                continue
            self._taken += 1
            yield made
        if not self._taken:
            unread = f", and {plural(self.unread, 'record')} that cannot be read" if self.unread else ""
            raise TextsError(f"{self.source} holds no texts{unread}: give a source with at least one.")
        if unseen:
            has = f"its first row has {listed(first or ())}"
            raise TextsError(f"{self.source} has no column {min(unseen)!r}; {has}.")

    def fault(self, reason: str, line: int | None) -> SourceRow:
        """The record that cannot be read, where such records are left out; a TextsError otherwise."""
        if self._tell is None:
            raise TextsError(reason) from None
        return SourceRow({}, line, fault=reason)

    def _leave_out(self, number: int, row: SourceRow, reason: str) -> None:
        self.unread += 1
        if self._tell is not None:
            self._tell(Unreadable(self.source, number, row.line, reason))

    def _string(self, fields: Mapping[str, object]) -> str:
        """The text of a row. ValueError, half a sentence, where it has none."""
        column, is_made = self.chosen[0], len(self.chosen) > 1 or self.columns.template is not None
        value = fields.get(column)
        if isinstance(value, str) and value.isascii() and not is_made:
            return value  # nearly always
        try:
            value = self._made_of(fields)
        except ValueError as error:
            raise ValueError(f"has no text: {error}.") from None
        if isinstance(value, bytes):
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise ValueError(not_utf8(value, "").lstrip()) from None
        if not isinstance(value, str):
            raise ValueError(say("texts.no_string", column=column, what=kind_of(value)))
        text, replaced = mended(value)
        self._surrogates += replaced
        return text

    def _made_of(self, fields: Mapping[str, object]) -> object:
        """The text of a row, or what stands in its place; ValueError, half a sentence, for a missing column."""
        names, template = self.chosen, self.columns.template
        if len(names) == 1 and template is None:
            value = fields.get(names[0])
            return value if isinstance(value, str) else _as_conversation(value)
        for name in names:
            if name not in fields:
                raise ValueError(f"it has no column {name!r}")
        if template is None:  # parts that white space does not part stand on lines of their own
            made = ""
            for part in filter(None, (_part(fields[name]) for name in names)):
                made += part if not made or made[-1].isspace() or part[0].isspace() else f"\n{part}"
            return made
        # a shell passes a line end on as a backslash and an n
        return _Filled().vformat(template.replace("\\n", "\n").replace("\\t", "\t"), (), fields)

    def _text(self, number: int, fields: Mapping[str, object]) -> Text:
        """The text of a row with all that is known of it. ValueError, half a sentence, where a cell makes no sense."""
        text, found = self._string(fields), self._found
        member = _membership(fields.get(found.label) if found.label else None)
        identity = _name(fields, found.id)
        self._unnamed += not identity
        return Text(identity or str(number), text, member, _name(fields, found.group), self._meta(fields))

    def _meta(self, fields: Mapping[str, object]) -> dict[str, str]:
        """The further columns of a text."""
        return {name: cell_of(fields.get(name)) for name in self.columns.more}

    def _where(self, number: int, row: SourceRow) -> str:
        """A row as messages name it."""
        place = f" ({row.file})" if row.file else ""
        return f"{self.source}: row {number}" + (place if row.line is None else f"{place} (line {row.line})")

    @property
    def notes(self) -> tuple[str, ...]:
        """What was mended, skipped and left out so far, in sentences."""
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(self.kinds.items()))
        text, named = self.chosen[0] if self.chosen else None, self.columns.named_texts
        made = [*self.said]
        if len(self.kinds) > 1:
            made.append(say("texts.several_kinds", kinds=kinds))
        if self.columns.give_way and self.columns.text and text not in named and not self.kinds:
            made.append(
                f"{self.source} has no column {self.columns.text!r}: its texts are those of {text!r}."
            )
        made += [f"{plural(number, 'text')}: {remark}." for remark, number in self.remarks.items() if number]
        # where all rows took their number there simply are no ids
        unnamed = self._unnamed if self._unnamed < self._taken else 0
        counts = (
            (self._surrogates, "text", "held half a surrogate pair; it was replaced by U+FFFD"),
            (self.blank, "blank line", "skipped"),
            (len(self.left_out), "file", f"in the folder left out: {listed(self.left_out)}"),
            (self.unread, "record", "could not be read: they are in unreadable.jsonl"),
            (unnamed, "row", "without an id took the row number"),
        )
        return (*made, *(f"{plural(number, noun)} {said}." for number, noun, said in counts if number))


def _as_conversation(value: object) -> object:
    messages = messages_of(value)
    return value if messages is None else "\n\n".join(filter(None, messages))


def _part(value: object) -> str:
    """A cell as a part of a text: a list of strings is a line each."""
    value = _as_conversation(value)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    return value if isinstance(value, str) else cell_of(value)


class _Filled(string.Formatter):
    """A template's fields as parts of a text; of a cell that is an object, `{name[key]}` is what stands under a key."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[object, str]:
        name, _, rest = field_name.partition("[")
        value = kwargs[name]
        for key in filter(None, rest.replace("]", "").split("[")):
            if isinstance(value, list | tuple) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            elif isinstance(value, Mapping) and key in value:
                value = value[key]
            else:
                raise ValueError(f"its column {name!r} has no {key!r}")
        return _part(value), name


def _name(fields: Mapping[str, object], column: str | None) -> str:
    """The id or the group in a row. ValueError, half a sentence, for a cell that is no name."""
    value = fields.get(column) if column else None
    if isinstance(value, str) and value.isascii():
        return value  # nearly always
    try:
        return _name_of(value)
    except ValueError:
        raise ValueError(say("texts.no_name", value=_shortened(value), column=column)) from None


def refuse_repeated_ids(ids: Sequence[str], source: str) -> None:
    """Raise TextsError, naming those that are there more than once, unless all ids differ."""
    if len(set(ids)) == len(ids):
        return
    repeated = listed([name[:60] for name, count in Counter(ids).items() if count > 1])
    raise TextsError(
        f"{source}: every text needs an id of its own, found {repeated} more than once; mend the ids, or name another "
        "id column."
    )


_LABELS: dict[str, bool | None] = {
    **dict.fromkeys(("1", "1.0", "true", "member"), True),
    **dict.fromkeys(("0", "0.0", "false", "non-member", "nonmember"), False),
    **dict.fromkeys(("", "nan", "null", "none")),
}


def _membership(value: object) -> bool | None:
    """True for a member, False for a non-member, None for unknown (empty, null or NaN).

    Raises ValueError, half a sentence, for anything else: a column of sentiments is never taken for membership.

    >>> [_membership(value) for value in (1, "0", "Member", 0.0, "", None, float("nan"))]
    [True, False, True, False, None, None, None]
    """
    key = str(value).strip().lower()
    if key not in _LABELS or not isinstance(value, str | int | float | None):
        raise ValueError(say("texts.no_label", label=_shortened(value)))
    return _LABELS[key]


def _shortened(value: object) -> str:
    """A cell as a message quotes it."""
    quoted = repr(value)
    return quoted if len(quoted) <= 60 else quoted[:57] + "..."
