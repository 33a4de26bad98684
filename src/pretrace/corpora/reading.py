"""Rows of any source turned into texts, by one set of rules for what their cells may say, with a count of what was
mended."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pretrace.corpora.columns import Columns, cell_of, distinct, kind_of, listed, mended, messages_of, name_of
from pretrace.corpora.packing import not_utf8
from pretrace.errors import TextsError
from pretrace.results.wording import plural, say
from pretrace.types import Text


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
        return name_of(value)
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
