"""The corpus: files as buffers of folded documents, in memory that does not grow with them.

JSON lines and plain text are searched as the bytes that they are; every other format that texts are read from, and WARC
and WET, as the rows that the one reader of texts (`pretrace.corpora`) gives. A document that cannot be read is counted
and told; a file that cannot be read on is an `Unread`, and what was read of it counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any, NamedTuple, cast

import numpy as np

from pretrace.corpora.columns import USUAL, Columns
from pretrace.corpora.documents import SOURCE
from pretrace.corpora.formats import LINES, is_json_list, rows_in
from pretrace.corpora.packing import HEAD, as_utf8, is_utf8, opened, place_of
from pretrace.corpora.reading import EveryColumn, Row, Unreadable
from pretrace.errors import PretraceError, TextsError
from pretrace.scan.files import CorpusFile, Unread, check_characters, check_end, kind_of, warc_rows
from pretrace.scan.folding import Bytes, Spans, lines_of, packed, room_for

BLOCK_BYTES, LINES_BYTES = 8 << 20, 1 << 20
"""Bytes of a file that are searched at a time, of JSON lines so few that they stay in the processor's memory."""
OVERLAP = 1 << 16
"""Bytes of a text file that are searched again with what follows, so that no run is cut."""
ROWS = 1024
TEXT_NAMES = ("text", "content", "raw_content", "body", "input")
_ID_NAMES = ("id", "doc_id", "document_id", "uuid", "warc_record_id")
_URL_NAMES = ("url", "source_url", "link", "source")
_DATE_NAMES = ("date", "timestamp", "created", "added", "published")
_NESTED = ("meta", "metadata")


class Facts(NamedTuple):
    """What is known of a document of the corpus, "" where nothing is."""

    id: str = ""
    url: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """Documents in one buffer. `facts` tells of the i-th of them, and `number` is that of the first in its file.
    The buffer is that of the next documents as soon as these are asked for.
    `read` is how far the file was read, in its own bytes; `unreadable` documents were left out. `before` bytes of the
    first document stood in earlier buffers."""

    buffer: Bytes
    spans: Spans
    number: int
    facts: Callable[[int], Facts]
    read: int
    unreadable: int = 0
    before: int = 0


@dataclass(slots=True)
class Reader:
    """Reads files of the corpus: `text` names the column, or it is guessed; `exact` compares bytes as they are; `fast`
    uses the kernels. `encoding` is that of the files that are no UTF-8."""

    text: str | None = None
    exact: bool = False
    fast: bool = True
    encoding: str | None = None
    _room: Bytes = field(default_factory=lambda: room_for(0))
    """Where lines are folded, over and over: what was found in a buffer is read before the next one comes."""

    def documents(self, file: CorpusFile, most: int | None = None) -> Iterator[Documents]:
        """The documents of a file, a buffer at a time, up to `most` bytes of it; Unread where it breaks off."""
        if file.fault:
            raise Unread(f"{file.address}: {file.fault}")
        try:
            with opened(file.address) as stream:
                for found in self._read(stream, file):
                    yield found
                    if most is not None and found.read >= most:
                        return
        except PretraceError as error:
            said = str(error)
            raise Unread(said if said.startswith(file.address) else f"{file.address}: {said}") from None
        except (EOFError, OSError, ValueError) as error:
            raise Unread(
                f"{file.address}: {str(error).partition(chr(10))[0] or type(error).__name__}"
            ) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("pyarrow", "fsspec", "aiohttp"):
                raise
            raise Unread(
                f"{file.address}: {str(error).partition(chr(10))[0] or type(error).__name__}"
            ) from None

    def _read(self, stream: Any, file: CorpusFile) -> Iterator[Documents]:
        head = stream.peek(HEAD)[:HEAD]
        kind = kind_of(file.address, head)
        columns = replace(USUAL, encoding=None if is_utf8(head, cut=True) else self.encoding)
        if kind in (*LINES, ".txt", SOURCE):
            written = as_utf8(stream, file.address, columns.encoding)
            if kind in LINES and is_json_list(written, lists=kind == ".json"):
                stream = written  # without its mark
            else:
                yield from (self._lines if kind in LINES else self._text)(written, file)
                return
        unread: list[Unreadable] = []
        reading = EveryColumn(columns, file.address, unread.append)
        rows = (
            warc_rows(stream)
            if kind == ".warc"
            else rows_in(stream, kind, file.address, file.address, reading)
        )
        yield from self._rows(rows, stream, file)

    def _rows(self, rows: Iterator[Row], stream: Any, file: CorpusFile) -> Iterator[Documents]:
        """The documents of rows that hold every column of theirs."""
        number, read, key = 0, 0, self.text or ""
        while some := _some(rows):
            fine = [row for row in some if not row.fault]
            key = key or next(
                (one for one in TEXT_NAMES for row in fine if _text_in(row, one) is not None), ""
            )
            texts = [_text_in(row, key) for row in some]
            if fine and not number and (not key or all(_text_in(row, key) is None for row in fine)):
                raise Unread(
                    f"{file.address} has no column {key or ' or '.join(TEXT_NAMES)}: name it with --corpus-column."
                )
            buffer, spans = packed([text or b"" for text in texts], exact=self.exact, fast=self.fast)
            read += sum(len(text or b"") for text in texts)

            def facts(i: int, some: Sequence[Row] = some, key: str = key) -> Facts:
                return _facts_in({name: cell for name, cell in some[i].fields.items() if name != key})

            unreadable, place = sum(text is None for text in texts), place_of(stream, read)
            yield Documents(buffer, spans, number, facts, min(file.size or place, place), unreadable)
            number += len(some)

    def _lines(self, stream: IO[bytes], file: CorpusFile) -> Iterator[Documents]:
        key, number, read, rest = self.text or "", 0, 0, 0
        space, checked = bytearray(2 * LINES_BYTES), False
        while True:
            if len(space) - rest < LINES_BYTES:  # a line longer than the buffer
                space = space + bytes(len(space))
            some = cast(Any, stream).readinto(memoryview(space)[rest : rest + LINES_BYTES])
            read, size = read + some, rest + some
            cut = space.rfind(b"\n", rest, size) + 1 if some else size
            if cut:
                raw = memoryview(space)[:cut]
                checked = checked or check_characters(raw, file)
                key = key or _text_column(bytes(raw))
                if not some:
                    check_end(bytes(raw), file)
                found = self._of_lines(raw, key, number, place_of(stream, read))
                number += len(found.spans)
                yield found
            rest = size - cut
            if some and cut:
                space[:rest] = space[cut:size]
            if not some:
                return

    def _of_lines(self, raw: memoryview, key: str, number: int, read: int) -> Documents:
        if not self.fast:
            lines = [line for line in bytes(raw).split(b"\n") if line.strip()]
            texts = [_string(line, key) for line in lines]
            buffer, spans = packed([text or b"" for text in texts], exact=self.exact, fast=False)
            unreadable = sum(text is None for text in texts)
            return Documents(buffer, spans, number, lambda i: _facts(lines[i]), read, unreadable)
        buffer, spans, odd, places, inside = lines_of(raw, key, exact=self.exact, room=self._room_for)
        full = np.flatnonzero(~odd | (places[:, 1] - places[:, 0] > 1))
        blank = [i for i in np.flatnonzero(odd).tolist() if not bytes(raw[slice(*places[i])]).strip()]
        kept = np.setdiff1d(full, blank)
        lines = [bytes(raw[slice(*places[i])]) for i in kept[odd[kept]].tolist()]
        spans, places, inside = spans[kept], places[kept], inside[kept]
        inside[odd[kept]] = places[odd[kept], :1]
        unreadable = 0
        if (
            lines
        ):  # what the kernel leaves to Python: escapes of halves, keys that come twice, what is no object
            texts = [_string(line, key) for line in lines]
            unreadable = sum(text is None for text in texts)
            more, theirs = packed([text or b"" for text in texts], exact=self.exact, fast=True)
            spans = spans.copy()
            spans[odd[kept]] = theirs + len(buffer)
            buffer = np.concatenate([buffer, more])
        whole = any(key in names for names in _FACTS.values())

        def facts(i: int) -> Facts:
            """Read without the text, which is by far the longest."""
            (start, end), (begin, close) = places[i].tolist(), inside[i].tolist()
            if whole:
                begin = close = start
            return _facts(bytes(raw[start:begin]) + bytes(raw[close:end]))

        return Documents(buffer, spans, number, facts, read, unreadable)

    def _room_for(self, size: int) -> Bytes:
        if len(self._room) < size:
            self._room = room_for(size * 5 // 4)
        return self._room

    def _text(self, stream: IO[bytes], file: CorpusFile) -> Iterator[Documents]:
        """A text file is one document, in pieces that overlap."""
        rest, read, before, checked = b"", 0, 0, False
        while some := stream.read(BLOCK_BYTES):
            read += len(some)
            checked = checked or check_characters(memoryview(some), file)
            raw = rest + some
            written = raw.decode("utf-8", "replace").encode() if b"\xff" in raw else raw
            buffer, spans = packed([written], exact=self.exact, fast=self.fast)
            yield Documents(
                buffer, spans, 0, lambda i: Facts(file.address), place_of(stream, read), 0, before
            )
            rest = raw[-OVERLAP:]
            before += len(raw) - len(rest)


def _some(rows: Iterator[Row]) -> list[Row]:
    """Rows of one buffer: so many, or as many as have so many bytes."""
    some, size = [], 0
    for row in rows:
        some.append(row)
        size += sum(len(cell) for cell in row.fields.values() if isinstance(cell, str | bytes))
        if len(some) >= ROWS or size >= BLOCK_BYTES:
            break
    return some


_FACTS: Mapping[str, tuple[str, ...]] = {"id": _ID_NAMES, "url": _URL_NAMES, "date": _DATE_NAMES}


def _text_column(raw: bytes) -> str:
    """The usual name of the text that the first object has; "text" where it has none."""
    for line in raw.split(b"\n", 100)[:100]:
        with suppress(ValueError, RecursionError):
            item = json.loads(line)
            if isinstance(item, dict):
                return next((name for name in TEXT_NAMES if isinstance(item.get(name), str)), "text")
    return "text"


def _string(line: bytes, key: str) -> bytes | None:
    """The string under a key of a line that holds an object; None where there is none. Bytes that are no UTF-8 stay as
    they are, as the kernel leaves them, but for the one that parts documents."""
    odd = False
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        odd, text = True, line.decode("utf-8", "surrogateescape")
    try:
        item = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    found = _text_in(Row(item), key) if isinstance(item, dict) else None
    if found is None or not odd:
        return found
    return _ESCAPED.sub(lambda one: bytes([(one[0][1] & 3) << 6 | one[0][2] & 63]), found).replace(
        b"\xff", b"?"
    )


_ESCAPED = re.compile(rb"\xed[\xb2\xb3][\x80-\xbf]")
"""How a byte that is no UTF-8 is written after `surrogateescape`."""


_LENIENT = json.JSONDecoder(strict=False)


def _facts(line: bytes) -> Facts:
    """What the object of a line says of its text."""
    try:
        item = _LENIENT.decode(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return Facts()
    return _facts_in(item) if isinstance(item, dict) else Facts()


def _facts_in(item: Mapping[str, Any]) -> Facts:
    """What the cells of a row say of its text."""
    nested: Mapping[str, Any] = {}
    for name in _NESTED:
        if isinstance(item.get(name), dict):
            nested = item[name]
            break
    both = {**nested, **item} if nested else item
    return Facts(_first(both, _ID_NAMES), _first(both, _URL_NAMES), _first(both, _DATE_NAMES))


def facts_of(metadata: str) -> Facts:
    """What an index keeps beside a document: what its line said, and the file where it said nothing of itself."""
    facts = _facts(metadata.encode("utf-8", "replace"))
    if facts == Facts():
        with suppress(ValueError, RecursionError, AttributeError):
            item = json.loads(metadata)
            return Facts(url=_said(item.get("path")))
    return facts


def _first(item: Mapping[str, Any], names: Sequence[str]) -> str:
    for name in names:
        if name in item:
            return _said(item[name])
    return ""


def _bytes(cell: object) -> bytes | None:
    """The text in a cell: a string, bytes, or what is said in a conversation; None for anything else."""
    if isinstance(cell, list | dict):
        cell = USUAL.text_of({"": cell}, [""])
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogatepass")
    return bytes(cell).decode("utf-8", "replace").encode() if isinstance(cell, bytes) else None


def _text_in(row: Row, key: str) -> bytes | None:
    """The text in a column of a row, or in several that are joined (`prompt,completion`)."""
    cell = row.fields.get(key)
    if cell is None and "," in key and key not in row.fields:
        columns = Columns(text=key)
        with suppress(TextsError, ValueError):
            return _bytes(columns.text_of(row.fields, columns.pick_texts(row.fields, "")))
    return _bytes(cell)


def _said(value: object) -> str:
    return "" if value is None else str(value)[:500]
