"""The corpus: the files that sources name, and what is in them as buffers of folded strings.

JSON lines, parquet and plain text are searched as the bytes that they are; every other format, WARC and WET too, as
rows. A row without text is counted; of a file that cannot be read on, what was read counts. Memory does not grow with
the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from pretrace.corpora.documents import SOURCE, decode_page, read_html
from pretrace.corpora.folders import holds_facts, is_hidden, walk
from pretrace.corpora.formats import (
    ARCHIVES,
    LINES,
    as_utf8,
    ending_of,
    is_json_list,
    open_unpacked,
    place_of,
    recognise_format,
    rows_in,
)
from pretrace.corpora.reading import HEAD, USUAL, SourceRow, TextReading, Unreadable, is_utf8, not_utf8
from pretrace.errors import PretraceError, TextsError
from pretrace.plugins.scan.folding import (
    Numbers,
    Spans,
    Stream,
    Strings,
    Tail,
    fold_pieces,
    hash_of,
    load_kernels,
    rows_of,
    streams_of,
)
from pretrace.results.wording import say

_NO_DATA = frozenset((
    "png", "jpg", "jpeg", "gif", "webp", "svg", "ico", "bmp", "tif", "tiff", "mp3", "mp4", "m4a", "wav", "ogg", "flac",
    "mov", "avi", "webm", "mkv", "woff", "woff2", "ttf", "otf", "css", "pyc", "so", "o", "dll", "exe", "lock", "sha256",
    "md5", "crc", "metadata",
))  # fmt: skip
"""Endings of files that hold no texts, which a corpus may well hold."""


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One file of the corpus, by the address that fsspec opens, and its size in bytes (0 where it is not known).
    `fault` says why it cannot be read, where that is known beforehand."""

    address: str
    size: int
    fault: str = ""


def _check_characters(raw: bytes | memoryview, address: str) -> bool:
    """Whether the bytes say how their file is written, as those do that are not all ASCII: as UTF-8. TextsError where
    most of their lines that are not ASCII are no UTF-8, as in another encoding; single ones may be damaged."""
    if not np.frombuffer(raw, dtype=np.int8).min(initial=0):
        return False
    some = bytes(raw)
    if not is_utf8(some, cut=True):
        lines = [line for line in some.split(b"\n")[:-1] or [some] if not line.isascii()]
        if 2 * sum(not is_utf8(line) for line in lines) > len(lines):
            raise TextsError(not_utf8(some, address, option="--corpus-reading encoding"))
    return True


def files_of(sources: Sequence[str]) -> tuple[CorpusFile, ...]:
    """The files that sources name, each once, in order; what cannot be read and may hold texts with its fault.
    TextsError for a source with no file that is read."""
    found: dict[str, CorpusFile] = {}
    for source in sources:
        mine = _listed(source)
        if all(one.fault for one in mine):
            told = f" ({mine[0].address}: {mine[0].fault})" if mine else ""
            raise TextsError(say("scan.refused.no_files", source=source, told=told))
        for one in mine:
            found.setdefault(one.address, one)
    return tuple(found.values())


def _listed(source: str) -> list[CorpusFile]:
    if "://" not in source:
        path = Path(source)
        if path.is_dir():
            files, faults = walk(path)
            made = [CorpusFile(str(path / n), 0, why) for n, why in faults.items() if not is_hidden(n)]
            made += [_local(one) for name, one in files.items() if _may_hold_texts(name)]
            return sorted(made, key=lambda one: one.address)
        base = Path(path.anchor)
        with suppress(ValueError, NotImplementedError):  # it is no pattern
            some = [path] if path.is_file() else sorted(base.glob(str(path.relative_to(base))))
            return [_local(one) for one in some if one.is_file()]
        return []
    try:
        import fsspec

        system, root = fsspec.core.url_to_fs(source)
        if any(sign in root for sign in "*?["):
            names = sorted(system.glob(root))
        elif system.isdir(root):
            names = [one for one in sorted(system.find(root)) if _may_hold_texts(one)]
        else:
            names = [root]
        return [
            CorpusFile(cast(str, system.unstrip_protocol(name)), int(system.info(name).get("size") or 0))
            for name in names
        ]
    except ImportError as error:
        raise TextsError(f"{source} needs a package that is not there: {error}.") from None
    except Exception as error:  # noqa: BLE001 - file systems of others raise anything
        told = str(error).partition("\n")[0] or type(error).__name__
        raise TextsError(f"{source} cannot be listed: {told.rstrip('.')}.") from None


def _local(path: Path) -> CorpusFile:
    return CorpusFile(str(path), path.stat().st_size)


def _may_hold_texts(name: str) -> bool:
    """Whether a file below a folder is read or told: pictures and facts on data that lie beside them are not."""
    known = bool(recognise_format(name, b""))
    hidden = Path(name).name.startswith(".")
    return not (holds_facts(name) or (not known and (hidden or ending_of(name)[1:] in _NO_DATA)))


# Web archives.


_WARC_VERSION = re.compile(rb"WARC/\d+\.\d+\s*")
_HTTP_TYPE = re.compile(rb"^content-type:\s*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def _warc_rows(stream: IO[bytes]) -> Iterator[SourceRow]:
    """The texts of WET files and of the HTML pages of WARC files. EOFError for a cut record, ValueError for none."""
    facts = {"id": "warc-record-id", "url": "warc-target-uri", "date": "warc-date"}
    while line := stream.readline():
        if not line.strip():
            continue
        if not _WARC_VERSION.fullmatch(line):
            if not line.endswith(b"\n"):
                raise EOFError("it ends within the head of a record, so it was cut off")
            raise ValueError("it holds bytes between its records that are none of a web archive")
        head, raw = _warc_record(stream)
        kind = head.get("warc-type")
        try:
            http, _, body = raw.partition(b"\r\n\r\n")
            text = raw if kind == "conversion" else None
            if kind == "response" and http.startswith(b"HTTP/"):
                typed = _HTTP_TYPE.search(http)
                if typed and b"html" in typed[1].lower():  # or it is no page
                    text = read_html(decode_page(body)).encode("utf-8", "surrogatepass")
        except TextsError as error:
            yield SourceRow({}, fault=str(error))
            continue
        if text is not None:
            yield SourceRow({"text": text, **{name: head.get(key, "") for name, key in facts.items()}})


def _warc_record(stream: IO[bytes]) -> tuple[dict[str, str], bytes]:
    """The head of a record by the names of its fields, and its content. EOFError where one of them is cut."""
    head: dict[str, str] = {}
    while (line := stream.readline()).strip():
        name, _, value = line.decode("utf-8", "replace").partition(":")
        head[name.strip().lower()] = value.strip()
    length = head.get("content-length", "")
    if not line or not length.isdecimal():
        raise EOFError("the head of a record has no end or no length, so it was cut off")
    if len(raw := stream.read(int(length))) < int(length):
        raise EOFError(f"a record of {int(length):,} bytes has {len(raw):,}, so it was cut off")
    return head, raw


# What is in them.

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


DocumentFacts = tuple[str, str, str]
"""What is known of a document of the corpus: its id, address and date, "" where nothing is."""


_Batch = tuple[Strings, Callable[[int], object], int, int]
"""What is read of a file at a time: strings, the i-th of its rows as it tells of itself, rows and bytes so far."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was read of a file: its documents, those left out as unreadable, bytes, and why it could not be read on."""

    file: str
    documents: int = 0
    unreadable: int = 0
    bytes: int = 0
    unread: str = ""


class CorpusReader:
    """Reads a file of the corpus: all strings of each row, or those of the columns `text`, of which commas part
    several. `read` is what was read so far, and says why it broke off."""

    def __init__(
        self, file: CorpusFile, text: str | None = None, exact: bool = False, encoding: str | None = None
    ) -> None:  # fmt: skip
        self._file, self._exact, self._encoding = file, exact, encoding
        self._named = text.split(",") if text is not None else []
        self._wanted = [hash_of(0, one.encode()) for one in self._named]
        self.read = FileFacts(file.address)
        self._tails = dict[int, Tail]()
        self._kept = dict[int, DocumentFacts]()  # of rows before `_first`, which the tails hold
        self._first = 0
        self._told: Callable[[int], object] = lambda _: None

    def documents(self, most: int | None = None) -> Iterator[Stream]:
        """The documents of the file, up to `most` bytes of it, in one buffer after the other, which is that of the next
        ones as soon as these are asked for."""
        return streams_of(self._strings(most), self._tails, exact=self._exact)

    def facts(self, row: int) -> DocumentFacts:
        """What is known of a document of the last buffer."""
        return self._kept[row] if row in self._kept else _facts_of(self._told(row - self._first))

    def _strings(self, most: int | None) -> Iterator[Strings]:
        """The strings of the file, a buffer at a time; where it is not read to its end, no run goes on behind."""
        address, why = self._file.address, ""
        try:
            if self._file.fault:
                raise TextsError(self._file.fault)
            with open_unpacked(address) as stream:
                for strings, told, number, place in self._read(stream):
                    empty = max(0, number - self.read.documents - len(np.unique(strings.rows)))
                    if self._named and empty == number > 0:
                        column = ",".join(self._named)
                        raise TextsError(
                            f"{address} has no column {column}: name another with --corpus-reading column."
                        )
                    self._first, self._told = self.read.documents, told
                    self.read = FileFacts(address, number, self.read.unreadable + empty, place)
                    yield strings
                    if most is not None and place >= most:
                        break
                    self._kept = {row: self.facts(row) for row in rows_of(self._tails.values())}
        except PretraceError as error:
            why = str(error) if str(error).startswith(address) else f"{address}: {error}"
        except Exception as error:
            known = isinstance(error, EOFError | OSError | ValueError)
            if not known and type(error).__module__.partition(".")[0] not in ("pyarrow", "fsspec", "aiohttp"):
                raise
            said = str(error).partition("\n")[0] or type(error).__name__
            why = f"{address}: {said}"
        self.read = replace(self.read, unread=why)
        if why or (most is not None and self.read.bytes >= most):
            self._tails.clear()

    def _read(self, stream: Any) -> Iterator[_Batch]:
        """What is read of the file at a time, up to where it breaks off: as a format of texts, a web archive, or text.
        TextsError for bytes that are none of it."""
        address, head = self._file.address, stream.peek(HEAD)[:HEAD]
        name = address.partition("?")[0]
        kind = recognise_format(name, head) or (".warc" if ending_of(name) in ARCHIVES else SOURCE)
        if kind == SOURCE and b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise TextsError(f"{address}: it is of no kind that is read, and no text")
        columns = replace(USUAL, encoding=None if is_utf8(head, cut=True) else self._encoding)
        if kind in (*LINES, ".txt", SOURCE):
            written = as_utf8(stream, address, columns.encoding)
            if not (kind in LINES and is_json_list(written)):
                return (self._lines if kind in LINES else self._text)(written)
            stream, columns = written, USUAL  # which is UTF-8 now
        if kind == ".parquet" and stream.seekable():
            return self._parquet(stream)
        reading = TextReading(columns, address, list[Unreadable]().append, every_column=True)
        others = rows_in(stream, kind, address, address, reading)
        return self._rows(_warc_rows(stream) if kind == ".warc" else others, stream)

    def _rows(self, rows: Iterator[SourceRow], stream: Any) -> Iterator[_Batch]:
        """The strings of rows that hold every column of theirs."""
        number = read = 0
        while some := _some(rows):
            first, number = number, number + len(some)
            fields = [row.fields for row in some]
            strings = _strings_of(fields, range(first, number), self._wanted)
            read += len(strings.raw)
            place = place_of(stream, read)
            yield strings, fields.__getitem__, number, min(self._file.size or place, place)

    def _lines(self, stream: IO[bytes]) -> Iterator[_Batch]:
        number, read, rest, checked = 0, 0, 0, False
        space = bytearray(2 * LINES_BYTES)  # the same one again and again, which is faster by a tenth
        while True:
            if len(space) - rest < LINES_BYTES:  # a line longer than the buffer
                space = space + bytes(len(space))
            some = cast(Any, stream).readinto(memoryview(space)[rest : rest + LINES_BYTES])
            read, size = read + some, rest + some
            cut = space.rfind(b"\n", rest, size) + 1 if some else size
            raw = memoryview(space)[:cut]
            if not some and bytes(raw).strip():
                try:
                    json.loads(bytes(raw), strict=False)
                except (ValueError, RecursionError):
                    raise TextsError("it ends within a line, so it was cut off") from None
            if cut:
                checked = checked or _check_characters(raw, self._file.address)
                strings, lines, odd = _strings_of_lines(raw, number, self._wanted)
                if len(odd):  # what the kernel leaves to Python
                    items = [_item(raw[slice(*line)], "surrogateescape") for line in lines[odd].tolist()]
                    strings = Strings.joined([strings, _strings_of(items, odd + number, self._wanted)])
                number += len(lines)

                def told(i: int, raw: memoryview = raw, lines: Spans = lines) -> object:
                    return _item(raw[slice(*lines[i].tolist())], "replace")

                yield strings, told, number, place_of(stream, read)
            rest = size - cut
            space[:rest] = space[cut:size]
            if not some:
                return

    def _parquet(self, stream: IO[bytes]) -> Iterator[_Batch]:
        from pyarrow import parquet

        table = parquet.ParquetFile(stream, pre_buffer=False)
        names, number, total = table.schema_arrow.names, 0, max(1, table.metadata.num_rows)
        beside = [n for some in _FACTS.values() for n in [name for name in some if name in names][:1]]
        wanted = [*self._named, *beside] if self._named else None
        size = sum(table.metadata.row_group(i).total_byte_size for i in range(table.metadata.num_row_groups))
        rows = max(64, min(1 << 16, PARQUET_BYTES * total // max(1, size)))
        for batch in table.iter_batches(batch_size=rows, columns=wanted):
            first, number = number, number + batch.num_rows
            every = [
                one
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
                if not self._named or name in self._named
                for one in _leaves(column, hash_of(0, name.encode()), np.arange(first, number))
            ]
            strings, place = Strings.joined([Strings.of([]), *every]), int(self._file.size * number / total)

            def told(i: int, batch: Any = batch) -> object:
                return batch.select(beside).slice(i, 1).to_pylist()[0]

            yield strings, told, number, place

    def _text(self, stream: IO[bytes]) -> Iterator[_Batch]:
        """A text file is one document, in pieces."""
        rest, read, checked, facts = b"", 0, False, {0: {"id": self._file.address}}.get
        while (some := stream.read(BLOCK_BYTES)) or rest:
            checked = checked or _check_characters(some, self._file.address)
            read, raw = read + len(some), rest + some
            cut = _cut_of(raw) if some else len(raw)
            cut = cut or (len(raw) if len(raw) > 4 * BLOCK_BYTES else 0)
            rest = raw[cut:]
            if cut:
                yield Strings.of([raw[:cut]]), facts, 1, place_of(stream, read)


def _some(rows: Iterator[SourceRow]) -> list[SourceRow]:
    """Rows of one buffer: so many, or as many as have so many bytes."""
    some, size = [], 0
    for row in rows:
        some.append(row)
        size += sum(len(cell) for cell in row.fields.values() if isinstance(cell, str | bytes))
        if len(some) >= ROWS or size >= BLOCK_BYTES:
            break
    return some


def _leaves(array: Any, column: int, rows: Numbers) -> Iterator[Strings]:
    """The strings of a column of parquet, nested ones included."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_struct(kind):
        for i, one in enumerate(kind):
            yield from _leaves(array.field(i), hash_of(column, one.name.encode()), rows)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(array.flatten(), column, rows[array.value_parent_indices().to_numpy()])
    elif pa.types.is_map(kind):
        yield _strings_of(array.to_pylist(), rows, column=column)
    elif str(kind) in ("string", "large_string", "string_view", "binary", "large_binary", "binary_view"):
        there = array.is_valid().to_numpy(zero_copy_only=False)
        array = array.drop_null().cast(pa.large_binary())
        _, offsets, content = array.buffers()
        places = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        first, last = (int(places[0]), int(places[-1])) if len(places) else (0, 0)
        raw = np.frombuffer(content or b"", dtype=np.uint8)[first:last]
        places = np.stack([places[:-1], places[1:]], axis=1) - first
        columns = np.full(len(array), column, dtype=np.uint64)
        yield Strings(raw, places, rows[there], columns, np.zeros(len(array), dtype=np.bool_))


def _strings_of(
    items: Sequence[object], rows: Sequence[int] | Numbers, wanted: Sequence[int] = (), column: int = 0
) -> Strings:
    """The strings of some rows, nested ones included."""
    both = zip(rows, items, strict=True)
    found = [(row, *one) for row, item in both for one in _strings_of_item(item, wanted, column)]
    numbers, written, columns = zip(*found, strict=True) if found else ((), (), ())
    return Strings.of(written, rows=numbers, columns=columns)


def _strings_of_lines(
    raw: bytes | memoryview, first: int, wanted: Sequence[int] = ()
) -> tuple[Strings, Spans, Numbers]:
    """The strings of JSON lines, nested ones included, of all columns or those `wanted`; the places of the lines that
    hold more than white space, numbered from `first`; and which of those must be read in another way (no JSON, too
    deep)."""
    kernels = load_kernels()
    buffer = np.frombuffer(raw, dtype=np.uint8)
    ends = np.append(np.flatnonzero(buffer == ord("\n")), len(buffer))
    lines = np.stack([np.append(0, ends[:-1] + 1), ends], axis=1)
    most = int(np.count_nonzero(buffer == ord('"'))) // 2 + 1
    places, rows = np.empty((most, 2), dtype=np.int64), np.empty(most, dtype=np.int64)
    columns, kinds = np.empty(most, dtype=np.uint64), np.zeros(len(lines), dtype=np.uint8)
    number = kernels.find_strings(buffer, lines, np.array(wanted, np.uint64), places, columns, rows, kinds)
    full = np.flatnonzero(kinds)
    numbers = np.cumsum(kinds > 0) - 1 + first
    escaped = np.ones(number, dtype=np.bool_)
    found = Strings(raw, places[:number], numbers[rows[:number]], columns[:number], escaped)
    return found, lines[full], np.flatnonzero(kinds[full] == kernels.ODD)


def _strings_of_item(
    item: object, wanted: Sequence[int] = (), column: int = 0
) -> Iterator[tuple[bytes, int]]:
    """The strings of a row, nested ones included, each with its column; of all columns, or of those `wanted`."""
    if isinstance(item, Mapping):
        for name, one in item.items():
            made = hash_of(column, str(name).encode("utf-8", "surrogatepass"))
            if column or not wanted or made in wanted:
                yield from _strings_of_item(one, wanted, made)
    elif isinstance(item, list | tuple):
        for one in item:
            yield from _strings_of_item(one, wanted, column)
    elif isinstance(item, str | bytes) and (column or not wanted):
        written = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item
        if isinstance(item, str) and b"\xed" in written:  # bytes that were no UTF-8 are as they were
            written = _ODD_BYTE.sub(lambda one: bytes([(one[0][1] & 3) << 6 | one[0][2] & 63]), written)
        yield written, column


_ODD_BYTE = re.compile(rb"\xed[\xb2\xb3][\x80-\xbf]")
"""How a byte that is no UTF-8 is written after `surrogateescape`."""
_RESERVE = 1024
"""Bytes at the end of a piece of a text file that are read with the next one: no tag, entity or escape is longer."""


def _cut_of(raw: bytes) -> int:
    """The last place where a long string can be cut so that both parts fold as the whole does; 0 for none."""
    window = raw[-4 * _RESERVE :]
    [whole] = fold_pieces([window])
    for found in reversed([one.start() for one in re.finditer(rb"[A-Za-z]", window[:-_RESERVE])]):
        if b"".join(fold_pieces([window[:found], window[found:]])) == whole:
            return len(raw) - len(window) + found
    return 0


_LENIENT = json.JSONDecoder(strict=False)


def _item(line: bytes | memoryview, errors: str) -> Any:
    """What a line of JSON holds; None where it is none."""
    try:
        return _LENIENT.decode(str(line, "utf-8", errors))
    except (ValueError, RecursionError):
        return None


def _facts_of(item: object) -> DocumentFacts:
    """What the cells of a row, or the object of a line, tell of a document."""
    if not isinstance(item, Mapping):
        return "", "", ""
    nested: list[Mapping[str, Any]] = [item[name] for name in _NESTED if isinstance(item.get(name), dict)]
    both = {**(nested[0] if nested else {}), **item}
    found = (next((both[name] for name in names if name in both), None) for names in _FACTS.values())
    name, url, date = ("" if value is None else str(value)[:500] for value in found)
    return name, url, date
