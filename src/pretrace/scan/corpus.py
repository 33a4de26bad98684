"""The corpus: files as buffers of folded strings, in memory that does not grow with them.

JSON lines, parquet and plain text are searched as the bytes that they are; every other format that texts are read from,
and WARC and WET, as the rows that the one reader of texts (`pretrace.corpora`) gives. A row that holds no text is
counted and told; a file that cannot be read on is an `Unread`, and what was read of it counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, Any, NamedTuple, cast

import numpy as np

from pretrace.corpora.columns import USUAL
from pretrace.corpora.documents import SOURCE
from pretrace.corpora.formats import LINES, is_json_list, rows_in
from pretrace.corpora.packing import HEAD, as_utf8, is_utf8, open_unpacked, place_of
from pretrace.corpora.reading import EveryColumn, SourceRow, Unreadable
from pretrace.errors import PretraceError
from pretrace.scan.files import CorpusFile, Unread, check_characters, check_end, kind_of, warc_rows
from pretrace.scan.folding import (
    Numbers,
    Stream,
    Streams,
    Strings,
    cut_of,
    hash_of,
    strings_of_item,
    strings_of_lines,
)

BLOCK_BYTES, LINES_BYTES = 8 << 20, 1 << 20
"""Bytes of a file that are searched at a time, of JSON lines so few that they stay in the processor's memory."""
PARQUET_BYTES = 4 << 20
"""Bytes of parquet that are searched at a time, about."""
ROWS = 1024
_FACTS = {
    "id": ("id", "doc_id", "document_id", "uuid", "warc_record_id"),
    "url": ("url", "source_url", "link", "source"),
    "date": ("date", "timestamp", "created", "added", "published"),
}
"""Names of the columns that tell of a document."""
_NESTED = ("meta", "metadata")


class DocumentFacts(NamedTuple):
    """What is known of a document of the corpus, "" where nothing is."""

    id: str = ""
    url: str = ""
    date: str = ""


_About = DocumentFacts | Mapping[str, Any] | bytes
"""What tells of a document: what is known, its cells, or its line of JSON, which is read when it is asked."""


@dataclass(frozen=True, slots=True, eq=False)
class _StringBatch:
    """What was read of a file at a time: strings, what tells of a row of theirs (`_facts_from` reads it), how many rows
    were read so far, how far the file was read in its own bytes, and rows that hold no text."""

    strings: Strings
    about: Callable[[int], _About]
    number: int
    read: int
    unreadable: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class CorpusDocuments:
    """Documents in one buffer, which is that of the next ones as soon as these are asked for. `facts` tells of a row,
    `number` rows were read so far, up to byte `read` of the file, and `unreadable` more hold no text."""

    stream: Stream
    strings: Strings
    facts: Callable[[int], DocumentFacts]
    number: int
    read: int
    unreadable: int = 0


@dataclass(slots=True)
class CorpusReader:
    """Reads files of the corpus, all strings of each row, or those of the column `text`; `exact` compares bytes as they
    are. `encoding` is that of the files that are no UTF-8."""

    text: str | None = None
    exact: bool = False
    encoding: str | None = None

    def documents(self, file: CorpusFile, most: int | None = None) -> Iterator[CorpusDocuments]:
        """The documents of a file, a buffer at a time, up to `most` bytes of it; Unread where it breaks off."""
        streams, number, read = Streams(exact=self.exact), 0, 0
        kept: dict[int, _About] = {}
        for batch in self._batches(file):
            number, read, unreadable = batch.number, batch.read, batch.unreadable
            if self.text is not None and number and unreadable == number:
                raise Unread(f"{file.address} has no column {self.text}: name another with --corpus-column.")

            def facts(row: int, batch: _StringBatch = batch, kept: dict[int, _About] = kept) -> DocumentFacts:
                return _facts_from(kept[row] if row in kept else batch.about(row))

            for stream in streams.join(batch.strings):
                yield CorpusDocuments(stream, batch.strings, facts, number, read, unreadable)
            if most is not None and read >= most:
                return
            kept = {row: kept[row] if row in kept else batch.about(row) for row in streams.rows}
        for stream in streams.end():
            yield CorpusDocuments(stream, Strings.of([]), lambda row: _facts_from(kept[row]), number, read)

    def _batches(self, file: CorpusFile) -> Iterator[_StringBatch]:
        if file.fault:
            raise Unread(f"{file.address}: {file.fault}")
        try:
            with open_unpacked(file.address) as stream:
                yield from self._read(stream, file)
        except PretraceError as error:
            said = str(error)
            raise Unread(said if said.startswith(file.address) else f"{file.address}: {said}") from None
        except Exception as error:
            known = isinstance(error, EOFError | OSError | ValueError)
            if not known and type(error).__module__.partition(".")[0] not in ("pyarrow", "fsspec", "aiohttp"):
                raise
            said = str(error).partition("\n")[0] or type(error).__name__
            raise Unread(f"{file.address}: {said}") from None

    def _read(self, stream: Any, file: CorpusFile) -> Iterator[_StringBatch]:
        head = stream.peek(HEAD)[:HEAD]
        kind = kind_of(file.address, head)
        columns = replace(USUAL, encoding=None if is_utf8(head, cut=True) else self.encoding)
        if kind in (*LINES, ".txt", SOURCE):
            written = as_utf8(stream, file.address, columns.encoding)
            if kind in LINES and is_json_list(written, lists=kind == ".json"):
                stream, columns = written, USUAL  # which is UTF-8 now
            else:
                yield from (self._lines if kind in LINES else self._text)(written, file)
                return
        if kind == ".parquet" and stream.seekable():
            yield from self._parquet(stream, file)
            return
        unread: list[Unreadable] = []
        reading = EveryColumn(columns, file.address, unread.append)
        rows = (
            warc_rows(stream)
            if kind == ".warc"
            else rows_in(stream, kind, file.address, file.address, reading)
        )
        yield from self._rows(rows, stream, file)

    def _rows(self, rows: Iterator[SourceRow], stream: Any, file: CorpusFile) -> Iterator[_StringBatch]:
        """The strings of rows that hold every column of theirs."""
        number = read = 0
        while some := _some(rows):
            strings = self._wanted(
                _strings_of([row.fields for row in some], range(number, number + len(some)))
            )
            read += len(strings.raw)

            def about(row: int, some: Sequence[SourceRow] = some, number: int = number) -> _About:
                return some[row - number].fields

            unreadable, place = len(some) - len(np.unique(strings.rows)), place_of(stream, read)
            number += len(some)
            yield _StringBatch(strings, about, number, min(file.size or place, place), unreadable)

    def _lines(self, stream: IO[bytes], file: CorpusFile) -> Iterator[_StringBatch]:
        number, read, rest = 0, 0, 0
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
                if not some:
                    check_end(bytes(raw), file)
                found = self._of_lines(raw, number, place_of(stream, read))
                number = found.number
                yield found
            rest = size - cut
            if some and cut:
                space[:rest] = space[cut:size]
            if not some:
                return

    def _of_lines(self, raw: memoryview, number: int, read: int) -> _StringBatch:
        strings, lines, odd = strings_of_lines(raw, number)
        if len(odd):  # what the kernel leaves to Python
            items = [_item(bytes(raw[slice(*lines[i].tolist())])) for i in odd.tolist()]
            strings = Strings.joined([strings, _strings_of(items, odd + number)])
        strings = self._wanted(strings)

        unreadable = len(lines) - len(np.unique(strings.rows))
        return _StringBatch(
            strings,
            lambda row: bytes(raw[slice(*lines[row - number].tolist())]),
            number + len(lines),
            read,
            unreadable,
        )

    def _wanted(self, strings: Strings) -> Strings:
        """Those of the column that was named, where one was."""
        if self.text is None:
            return strings
        named = [hash_of(0, one.encode()) for one in self.text.split(",")]
        return strings.only(np.isin(strings.outermost, np.array(named, dtype=np.uint64)))

    def _parquet(self, stream: IO[bytes], file: CorpusFile) -> Iterator[_StringBatch]:
        from pyarrow import parquet

        table = parquet.ParquetFile(stream, pre_buffer=False)
        names, number, total = table.schema_arrow.names, 0, max(1, table.metadata.num_rows)
        beside = {kind: next((n for n in some if n in names), None) for kind, some in _FACTS.items()}
        wanted = (
            None if self.text is None else [self.text, *(n for n in beside.values() if n and n != self.text)]
        )
        size = sum(table.metadata.row_group(i).total_byte_size for i in range(table.metadata.num_row_groups))
        rows = max(64, min(1 << 16, PARQUET_BYTES * total // max(1, size)))
        for batch in table.iter_batches(batch_size=rows, columns=wanted):
            first, number = number, number + batch.num_rows
            every = [
                one
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
                for one in _leaves(column, hash_of(0, name.encode()), 0, np.arange(first, number))
            ]
            strings = self._wanted(Strings.joined([Strings.of([]), *every]))

            def about(row: int, batch: Any = batch, first: int = first) -> _About:
                known = {k: _said(batch.column(n)[row - first].as_py()) for k, n in beside.items() if n}
                return DocumentFacts(**known)

            unreadable = batch.num_rows - len(np.unique(strings.rows))
            yield _StringBatch(strings, about, number, int(file.size * number / total), unreadable)

    def _text(self, stream: IO[bytes], file: CorpusFile) -> Iterator[_StringBatch]:
        """A text file is one document, in pieces."""
        rest, read, checked = b"", 0, False
        while True:
            some = stream.read(BLOCK_BYTES)
            checked = checked or check_characters(memoryview(some), file)
            read, raw = read + len(some), rest + some
            cut = cut_of(raw) if some else len(raw)
            if not cut and len(raw) > 4 * BLOCK_BYTES:
                cut = len(raw)
            rest = raw[cut:]
            if cut:
                strings = Strings.of([raw[:cut]])
                yield _StringBatch(strings, lambda _: DocumentFacts(file.address), 1, place_of(stream, read))
            if not some:
                return


def _some(rows: Iterator[SourceRow]) -> list[SourceRow]:
    """Rows of one buffer: so many, or as many as have so many bytes."""
    some, size = [], 0
    for row in rows:
        some.append(row)
        size += sum(len(cell) for cell in row.fields.values() if isinstance(cell, str | bytes))
        if len(some) >= ROWS or size >= BLOCK_BYTES:
            break
    return some


def _leaves(array: Any, column: int, outermost: int, rows: Numbers) -> Iterator[Strings]:
    """The strings of a column of parquet, nested ones included."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind, outermost = array.type, outermost or column
    if pa.types.is_struct(kind):
        for i, one in enumerate(kind):
            yield from _leaves(array.field(i), hash_of(column, one.name.encode()), outermost, rows)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(array.flatten(), column, outermost, rows[array.value_parent_indices().to_numpy()])
    elif pa.types.is_map(kind):
        for row, cell in zip(rows.tolist(), array.to_pylist(), strict=True):
            found = list(strings_of_item([list(pair) for pair in cell or ()], column, outermost))
            yield Strings.of(
                [one for one, _ in found], rows=[row] * len(found), columns=[one for _, one in found]
            )
    elif any(one(kind) for one in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
                                   pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)):  # fmt: skip
        there = array.is_valid().to_numpy(zero_copy_only=False)
        array = array.drop_null().cast(pa.large_binary())
        _, offsets, content = array.buffers()
        places = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        first, last = (int(places[0]), int(places[-1])) if len(places) else (0, 0)
        raw = np.frombuffer(content or b"", dtype=np.uint8)[first:last]
        places = np.stack([places[:-1], places[1:]], axis=1) - first
        columns, outer = (np.full(len(array), one, dtype=np.uint64) for one in (column, outermost))
        yield Strings(raw, places, rows[there], columns, outer, np.zeros(len(array), dtype=np.bool_))


def _strings_of(items: Sequence[object], rows: Sequence[int] | Numbers) -> Strings:
    """The strings of some rows, nested ones included."""
    found = [(row, *one) for row, item in zip(rows, items, strict=True) for one in strings_of_item(item)]
    if not found:
        return Strings.of([])
    numbers, written, columns = zip(*found, strict=True)
    return Strings.of(written, rows=numbers, columns=columns)


def _item(line: bytes) -> object:
    """What a line of JSON holds; None where it is none."""
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
    except (ValueError, RecursionError):
        return None


_LENIENT = json.JSONDecoder(strict=False)


def _facts_from(about: _About) -> DocumentFacts:
    """What is known of a document, from its line or its cells where it is not read yet."""
    if isinstance(about, DocumentFacts):
        return about
    if isinstance(about, bytes):
        try:
            item = _LENIENT.decode(about.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return DocumentFacts()
        if not isinstance(item, dict):
            return DocumentFacts()
        about = item
    nested: Mapping[str, Any] = next(
        (about[name] for name in _NESTED if isinstance(about.get(name), dict)), {}
    )
    both = {**nested, **about}
    return DocumentFacts(
        *(next((_said(both[name]) for name in names if name in both), "") for names in _FACTS.values())
    )


def facts_of(metadata: str) -> DocumentFacts:
    """What an index keeps beside a document: what its line said, and the file where it said nothing of itself."""
    facts = _facts_from(metadata.encode("utf-8", "replace"))
    if facts == DocumentFacts():
        with suppress(ValueError, RecursionError, AttributeError):
            item = json.loads(metadata)
            return DocumentFacts(url=_said(item.get("path")))
    return facts


def _said(value: object) -> str:
    return "" if value is None else str(value)[:500]
