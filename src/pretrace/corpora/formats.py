"""The file formats, each a generator of rows: text, JSON lines, JSON, CSV, TSV, parquet, folders.

Everything but `.json` is read as a stream, in memory that does not grow with the file.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, cast

from pretrace.corpora.columns import kind_of, mended
from pretrace.corpora.documents import (
    DOCUMENTS,
    document_rows,
    ending_of,
    folder_rows,
    opened,
    refuse_utf16,
    unreadable_explained,
)
from pretrace.corpora.reading import Reading, Row
from pretrace.corpora.webpages import FEEDS, feed_rows
from pretrace.errors import TextsError

_FIELD_LIMIT = 10 * 1024 * 1024
"""Longest field of a CSV file in characters: a quote that is never closed stops here."""

_NO_OBJECT = ', not a JSON object: write each text as {"text": "…"}.'
_BATCH_ROWS = 256
_READ_AHEAD = 1024 * 1024
"""Bytes of a parquet column read at a time."""


def rows_of(path: Path, reading: Reading) -> Iterator[Row]:
    """The rows of a file or folder, in order. Raises TextsError for whatever is wrong with it."""
    with unreadable_explained(reading.source):
        if path.is_dir():
            yield from folder_rows(path, reading)
        elif path.is_fifo():
            with path.open("rb") as pipe:
                yield from sniffed_rows(pipe, reading)
        elif ending_of(path.name) in DOCUMENTS:
            yield from document_rows(path, reading)
        else:
            read = _format_of(path, reading.source)
            with opened(path) as stream:
                yield from read(stream, reading)


def sniffed_rows(stream: io.BufferedReader, reading: Reading) -> Iterator[Row]:
    """Rows of a stream without a name: JSON lines where the first line that is not blank is a JSON object,
    a text a line otherwise."""
    lines = _lines(stream, reading.source)
    head: list[tuple[int, str, bool]] = []
    for line in lines:
        head.append(line)
        if line[1].strip():
            break
    read = _json_of if head and _is_object(head[-1][1]) else _text_of
    return read(itertools.chain(head, lines), reading)


def _text_rows(stream: io.BufferedReader, reading: Reading) -> Iterator[Row]:
    """A text a line; blank lines are skipped and counted."""
    return _text_of(_lines(stream, reading.source), reading)


def _json_rows(stream: io.BufferedReader, reading: Reading) -> Iterator[Row]:
    """A JSON object a line."""
    return _json_of(_lines(stream, reading.source), reading)


def _json_list_rows(stream: io.BufferedReader, reading: Reading) -> Iterator[Row]:
    """The objects of a JSON list, read as a whole; JSON lines under the wrong name are read as such."""
    if not stream.peek(4096).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        yield from _json_rows(stream, reading)
        return
    refuse_utf16(stream, reading.source)
    content, damaged = mended(stream.read().removeprefix(codecs.BOM_UTF8))
    items = cast(list[object], _parsed(content, reading.source))
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield Row(item, None, damaged)
        else:
            yield reading.fault(f"{reading.source}: row {number} is {kind_of(item)}{_NO_OBJECT}", None)


def _csv_rows(stream: io.BufferedReader, reading: Reading, *, delimiter: str = ",") -> Iterator[Row]:
    """The rows of a table with a header; fields may hold line ends inside quotes."""
    refuse_utf16(stream, reading.source)
    # surrogateescape keeps the bytes that are not UTF-8 apart, so that they can be counted by field
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
    head = [next(lines, "")]
    while head[-1] and not head[-1].strip():
        head.append(next(lines, ""))
    if (
        delimiter == "," and "," not in head[-1] and ";" in head[-1]
    ):  # as spreadsheets write it in many countries
        delimiter = ";"
    table = csv.reader(
        itertools.chain(head if head[-1] else head[:-1], lines), delimiter=delimiter, strict=True
    )
    header: list[str] = []
    places: dict[str, int] = {}
    start = 1
    try:
        for cells in table:
            line, start = start, table.line_num + 1
            if not cells:
                continue
            if not header:
                header = [_escaped(cell)[0] for cell in cells]
                found = {name: place for place, name in reversed(list(enumerate(header)))}
                places = {name: found[name] for name in reading.pick(header)}
                continue
            if len(cells) != len(header):
                yield reading.fault(
                    f"{reading.source}, line {line}: {len(cells)} fields, and the header names {len(header)}.",
                    line,
                )
                continue
            mended_cells = {name: _escaped(cells[place]) for name, place in places.items()}
            fields = {name: cell for name, (cell, _) in mended_cells.items()}
            yield Row(fields, line, any(bad for _, bad in mended_cells.values()))
    except csv.Error as error:
        raise TextsError(
            f"{reading.source}, line {start}: {error}; look at the quotes of the row that starts there."
        ) from None


def parquet_rows(stream: IO[bytes], reading: Reading) -> Iterator[Row]:
    """The rows of a parquet file, of which only the columns wanted are read, a few hundred rows at a time."""
    import pyarrow
    from pyarrow import parquet

    try:
        # both settings are needed, or the whole column of a row group is held in memory
        table = parquet.ParquetFile(
            stream, buffer_size=_READ_AHEAD, pre_buffer=False, page_checksum_verification=True
        )
        names = reading.pick(table.schema_arrow.names)
        for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=list(names)):
            cells = [_cells(batch.column(name), name, reading.source) for name in names]
            for row in zip(*cells, strict=True):
                yield Row(dict(zip(names, row, strict=True)))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise TextsError(f"{reading.source} is not a whole parquet file: {reason}; make it anew.") from None


def _parquet_gz_rows(stream: IO[bytes], reading: Reading) -> Iterator[Row]:
    """The rows of a gzipped parquet file: unpacked to a temporary file, since parquet is read from its end."""
    with tempfile.TemporaryFile() as whole:
        shutil.copyfileobj(stream, whole)
        whole.seek(0)
        yield from parquet_rows(whole, reading)


_decoder = json.JSONDecoder(strict=False)
_decode, _scan = _decoder.decode, _decoder.scan_once
"""`json.loads` makes a decoder anew for each line, which takes longer than the line; `scan_once` is `decode` without
looking for white space on both sides, which takes as long as a short line."""
_Format = Callable[[io.BufferedReader, Reading], Iterator[Row]]

FORMATS: dict[str, _Format] = {
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
    ".json": _json_list_rows,
    ".csv": _csv_rows,
    ".tsv": partial(_csv_rows, delimiter="\t"),
    ".parquet": parquet_rows,
    ".txt": _text_rows,
}
"""Tables, and text a line. Files that are one text and feeds have dictionaries of their own: published benchmarks are
never of those kinds, and a README beside them is not to be taken for one."""


def _format_of(path: Path, source: str) -> _Format:
    ending = ending_of(path.name)
    if ending in FEEDS:
        return feed_rows
    if ending not in FORMATS:
        endings = ", ".join((*FORMATS, *DOCUMENTS, *FEEDS))
        raise TextsError(
            f"{source}: its name does not tell its format; give a file that ends in {endings} (each also with .gz), or "
            "a folder of .txt files or documents."
        )
    return _parquet_gz_rows if path.name.lower().endswith(".parquet.gz") else FORMATS[ending]


def _lines(stream: io.BufferedReader, source: str) -> Iterator[tuple[int, str, bool]]:
    """Number (from 1), text without its line end, and whether bytes were replaced."""
    refuse_utf16(stream, source)
    for number, raw in enumerate(stream, start=1):
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        if raw.isascii():  # nearly always, and a call less
            yield number, raw.decode("ascii"), False
        else:
            yield number, *mended(raw)


def _text_of(lines: Iterator[tuple[int, str, bool]], reading: Reading) -> Iterator[Row]:
    for number, line, damaged in lines:
        if line.strip():
            yield Row({"text": line}, number, damaged)
        else:
            reading.blank += 1


def _json_of(lines: Iterator[tuple[int, str, bool]], reading: Reading) -> Iterator[Row]:
    for number, line, damaged in lines:
        if not line or line.isspace():
            continue
        try:
            item, end = _scan(line, 0)
        except (StopIteration, ValueError, RecursionError):
            end = -1
        try:
            if end != len(line):  # white space around it, or not JSON
                item = _parsed(line, reading.source, number)
        except TextsError as error:
            yield reading.fault(str(error), number)
            continue
        if isinstance(item, dict):
            yield Row(item, number, damaged)
        else:
            yield reading.fault(f"{reading.source}, line {number} is {kind_of(item)}{_NO_OBJECT}", number)


def _parsed(content: str, source: str, line: int | None = None) -> object:
    """A JSON value; control characters inside strings are let through, for they harm nobody."""
    try:
        return _decode(content)
    except (ValueError, RecursionError) as error:
        where = source if line is None else f"{source}, line {line}"
        raise TextsError(f"{where} {_why_not(error)}") from None


def _why_not(error: Exception) -> str:
    """Why something cannot be read as JSON, in half a sentence."""
    if not isinstance(error, json.JSONDecodeError):
        return f"is JSON that cannot be read ({error}): mend it or take it out."
    place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
    return f"is not JSON: {error.msg}, at {place}; mend it or take it out."


def _is_object(line: str) -> bool:
    try:
        return isinstance(_decode(line), dict)
    except (ValueError, RecursionError):
        return False


def _escaped(cell: str) -> tuple[str, bool]:
    if cell.isascii():
        return cell, False
    return mended(cell.encode("utf-8", "surrogateescape"))


def _cells(column: object, name: str, source: str) -> list[object]:
    """The cells of one batch of a parquet column; strings that are not UTF-8 come back as bytes. TextsError for values
    that Python has not, such as a day beyond the year 9999 or a time zone that nobody knows."""
    import pyarrow

    array = cast("pyarrow.Array", column)
    try:
        return cast(list[object], array.to_pylist())
    except UnicodeDecodeError:
        return cast(list[object], array.cast(pyarrow.binary()).to_pylist())
    except (ValueError, OverflowError, LookupError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise TextsError(
            f"{source}: the column {name!r} ({array.type}) holds a value that cannot be read ({reason}); mend it, or "
            "make it a column of strings."
        ) from None
