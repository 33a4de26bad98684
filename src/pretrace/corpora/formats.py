"""The files of texts, packed or not, in formats of which each is a generator of rows: text, JSON lines, JSON, CSV, TSV,
parquet, arrow, documents. Packing and format are seen by the first bytes, the format else by the name of a file.

All but documents and lists of JSON are read as a stream, in memory that does not grow with the file. A Git LFS pointer
is refused. A stream that ends too early raises EOFError, one that is damaged OSError; `unreadable_explained` makes a
TextsError of either.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import io
import itertools
import json
import lzma
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, AnyStr, BinaryIO

import zstandard

from pretrace.corpora.documents import DOCUMENTS, SOURCE, read_document
from pretrace.corpora.reading import (
    HEAD,
    SourceRow,
    TextReading,
    decoded_pieces,
    distinct,
    encoding_of,
    kind_of,
    mended,
    not_utf8,
    refuse_utf16,
    shown,
)
from pretrace.errors import TextsError
from pretrace.results.wording import say, sentences_of

_PACKED = (".gz", ".zst", ".zstd", ".bz2", ".xz")
"""Endings of packed files."""
_PIECE = 1 << 17
_ZST_PIECE = 1 << 16  # smaller, since zstandard unpacks all of a piece at once
_LONGEST_POINTER = 1024
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v\d")
_PACKINGS = (
    (re.compile(rb"\x1f\x8b"), "gz"),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL), "zst"),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), "bz2"),
    (re.compile(rb"\xfd7zXZ\x00"), "xz"),
)
_WINDOW = 1 << 31  # largest window of a zst frame, which some corpora are packed with (`zstd --long=31`)


def without_packing(name: str) -> str:
    """The name of a file without the ending of a packed one."""
    return next((name[: -len(one)] for one in _PACKED if name.lower().endswith(one)), name)


def ending_of(name: str) -> str:
    """The ending of a file's name in small letters, without that of a packed one."""
    return Path(without_packing(name.lower())).suffix


def stem_of(name: str) -> str:
    """The name of a file without its folders and endings."""
    return Path(without_packing(Path(name).name)).stem


def _packing_of(head: bytes) -> str:
    """How bytes are packed, by the first ones: gz, zst, bz2, xz, or "" where they are not."""
    return next((name for magic, name in _PACKINGS if magic.match(head)), "")


@contextmanager
def open_unpacked(address: str | Path) -> Iterator[io.BufferedReader]:
    """The unpacked bytes of a file, or of an address that fsspec opens. TextsError for a pointer of Git LFS and for a
    pipe, which may stay silent."""
    path, source = Path(address), str(address)
    if isinstance(address, str) and "://" in address:
        import fsspec

        opened = fsspec.open(address, "rb")
    elif path.exists() and not (path.is_file() or path.is_dir()):
        raise TextsError(say("texts.pipe", source=address))
    else:
        opened = path.open("rb")
    with opened as stream:
        raw = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)
        yield unpack_stream(raw, source)


@contextmanager
def unreadable_explained(source: str) -> Iterator[None]:
    """While it lasts, an error of the operating system or of a packed file is a TextsError that names the source."""
    try:
        yield
    except (EOFError, OSError) as error:
        if "://" in source:
            raise TextsError(
                f"{source} cannot be fetched ({error}): check the address, or download it and name the file."
            ) from None
        if isinstance(error, OSError) and error.errno is not None:
            raise TextsError(f"{source} cannot be read: {error.strerror or error}; check the path.") from None
        raise TextsError(f"{source} is damaged or not whole: {error}; fetch it again.") from None


def standard_input() -> BinaryIO:
    """The bytes of standard input; TextsError where it is closed."""
    if sys.stdin is None:
        raise TextsError("standard input is closed: name a file, or lead the texts here with |.")
    return sys.stdin.buffer


def unpack_stream(stream: io.BufferedReader, source: str) -> io.BufferedReader:
    """The unpacked bytes of a stream that is at its beginning. TextsError for a pointer of Git LFS."""
    head = stream.peek(HEAD)[:HEAD]
    if len(head) < _LONGEST_POINTER and _POINTER.match(head):
        raise TextsError(f"{source} is a Git LFS pointer, not the file: run `git lfs pull` there.")
    packing = _packing_of(head)
    return _made_stream(stream, _unpacked(stream, packing)) if packing else stream


def place_of(stream: Any, read: int) -> int:
    """How many bytes of a file itself were read, for a stream of `unpack_stream`; `read` where it does not know."""
    under = getattr(getattr(stream, "raw", None), "under", stream)
    try:
        return int(under.tell())
    except (OSError, ValueError):
        return read


class _MadeStream(io.RawIOBase):
    """A stream whose bytes are made of those of another one, `under`, a piece at a time."""

    def __init__(self, under: IO[bytes], pieces: Iterator[bytes]) -> None:
        self.under, self._pieces, self._output = under, pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, space: Any) -> int:
        """Fill the space with what follows."""
        while not len(self._output):
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._output = memoryview(piece)
        size = min(len(space), len(self._output))
        space[:size] = self._output[:size]
        self._output = self._output[size:]
        return size


def _made_stream(under: IO[bytes], pieces: Iterator[bytes]) -> io.BufferedReader:
    """Such a stream with a buffer, from which bytes can be peeked at."""
    return io.BufferedReader(_MadeStream(under, pieces), 1 << 20)


def _unpacked(under: IO[bytes], packing: str) -> Iterator[bytes]:
    """The bytes of a packed stream, of as many streams as stand behind each other in it."""
    is_zst = packing == "zst"
    given, one = b"", _decompressor(packing)
    while True:
        if not given and getattr(one, "needs_input", True):
            given = under.read(_ZST_PIECE if is_zst else _PIECE)
            if not given:
                raise EOFError(f"its {packing} stream is cut off")
        try:
            made = one.decompress(given, *(() if is_zst else (1 << 20,)))
        except (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, EOFError) as error:
            raise OSError(f"its {packing} stream is damaged: {error}") from None
        yield made
        if not one.eof:
            given = getattr(one, "unconsumed_tail", b"")
            continue
        rest = one.unused_data
        while not (given := rest.lstrip(b"\0")):  # padding, which gz and xz allow
            if not (rest := under.read(_PIECE)):
                return
        given += under.read(16)
        if _packing_of(given) != packing:
            raise OSError(f"bytes that are not {packing} stand behind its end")
        one = _decompressor(packing)


def _decompressor(packing: str) -> Any:
    """What unpacks one stream; gz gives back what it did not take (`unconsumed_tail`), others keep it."""
    if packing == "zst":
        return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
    if packing == "gz":
        return zlib.decompressobj(31)
    return bz2.BZ2Decompressor() if packing == "bz2" else lzma.LZMADecompressor(lzma.FORMAT_XZ)


def as_utf8(stream: io.BufferedReader, source: str, named: str | None = None) -> io.BufferedReader:
    """The bytes of a text file in UTF-8, without a mark; those that are none are left to who reads them."""
    head = stream.peek(HEAD)[:HEAD]
    encoding = encoding_of(head, named)
    if encoding.startswith("utf-8"):
        refuse_utf16(head, source)
        if head.startswith(codecs.BOM_UTF8):
            stream.read(len(codecs.BOM_UTF8))
        return stream
    pieces = decoded_pieces(iter(partial(stream.read, _PIECE), b""), encoding, source)
    return _made_stream(stream, (one.encode("utf-8", "surrogatepass") for one in pieces))


_FIELD_LIMIT = 10 * 1024 * 1024
"""Longest field of a CSV file in characters: a quote that is never closed stops here."""

_NO_OBJECT = ', not a JSON object: write each text as {"text": "…"}.'
_BATCH_ROWS = 256
_READ_AHEAD = 1024 * 1024  # bytes of a parquet column read at a time
LINES = (".jsonl", ".ndjson", ".json")
"""Endings of JSON, one object a line or a list of objects."""
ARCHIVES = (".warc", ".wet")
"""Endings of web archives, which are corpora to be searched and no texts."""


def file_rows(address: Path | str, reading: TextReading, kind: str = "") -> Iterator[SourceRow]:
    """The rows of one file, of a `kind` of `recognise_format` or the one found; TextsError for whatever is wrong."""
    name = Path(address).name
    source = shown(address)
    with unreadable_explained(source), open_unpacked(address) as stream:
        kind = kind or recognise_format(name, stream.peek(HEAD)[:HEAD])
        yield from rows_in(stream, kind, name, source, reading)


def rows_in(
    stream: io.BufferedReader, kind: str, name: str, source: str, reading: TextReading
) -> Iterator[SourceRow]:
    """The rows of an unpacked stream of a kind; `name` is that of its file, and `source` what messages call it."""
    if kind in DOCUMENTS or kind == SOURCE:  # one row, whose name is the id and the group
        try:
            text, remarks = read_document(stream.read(), kind, reading.columns.encoding)
        except TextsError as error:
            yield reading.fault(f"{source}: {error}", None)
            return
        reading.remarks.update(remarks)
        ending = ending_of(name) if kind == SOURCE else kind
        reading.kinds[_FAMILY.get(ending, ending)] += 1
        yield SourceRow({"text": text, **dict.fromkeys(("id", "group"), shown(name))})
    elif kind in FORMATS:
        yield from FORMATS[kind](stream, reading, source)
    else:
        if cure := sentences_of("texts.save_as").get(ending_of(name)):
            raise TextsError(f"{source} is of no kind that is read: {cure}.")
        facts = {"endings": ", ".join(ENDINGS), "packed": ", ".join(_PACKED)}
        raise TextsError(say("texts.no_format", source=source, **facts))


def recognise_format(name: str, head: bytes) -> str:
    """The format of a file, as the ending that tells it: by its first bytes, else by its name; "" where neither does.

    >>> recognise_format("a.csv", b"PAR1"), recognise_format("part-0", b'{"text": "a"}')
    ('.parquet', '.jsonl')
    """
    ending = ending_of(name)
    known = ending if ending in (*ENDINGS, *ARCHIVES) else ""
    if head.startswith(b"PK\x03\x04"):
        if known in (".docx", ".epub"):
            return known
        return ".epub" if b"application/epub+zip" in head else ".docx" if b"word/" in head else ""
    for magic, kind in _MAGIC:
        if magic.match(head):
            return kind
    if known:
        return ".warc" if known in ARCHIVES else known
    return ".jsonl" if _OBJECT.match(head) and _is_object(head.split(b"\n", 1)[0]) else ""


_MAGIC = (
    (re.compile(rb"PAR1"), ".parquet"),
    (re.compile(rb"ARROW1\0\0|\xff\xff\xff\xff..\0\0", re.DOTALL), ".arrow"),
    (re.compile(rb"%PDF-"), ".pdf"),
    (re.compile(rb"WARC/\d"), ".warc"),
)
_OBJECT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"')
_LIST = re.compile(rb"\s*\[\s*[{\]]")


def looks_like_rows(head: bytes) -> bool:
    """Whether the first bytes of a JSON file are those of a list of objects, or of an object a line."""
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    first, _, more = text.partition(b"\n")
    is_long = text.startswith(b"{") and not more and len(head) == HEAD
    return is_long or bool(_LIST.match(text)) or _is_object(first) or b"\0" in head


def sniffed_rows(stream: io.BufferedReader, reading: TextReading) -> Iterator[SourceRow]:
    """Rows of an unpacked stream without a name: a table, JSON lines by its first full line, else a text a line."""
    kind, source = recognise_format("", stream.peek(HEAD)[:HEAD]), reading.source
    if kind not in ("", ".jsonl"):
        yield from rows_in(stream, kind, source, source, reading)
        return
    stream = as_utf8(stream, source, reading.columns.encoding)
    head = _to_first_line(stream)
    parse = _object_in if _is_object(b"".join(head)) else partial(_text_in, reading)
    yield from _line_rows(itertools.chain(head, stream), parse, reading, source)


_FAMILY = {".markdown": ".md", ".htm": ".html", ".xhtml": ".html"}
"""What counts as the same kind of file in the notes."""


def _text_rows(stream: io.BufferedReader, reading: TextReading, source: str) -> Iterator[SourceRow]:
    stream = as_utf8(stream, source, reading.columns.encoding)
    return _line_rows(stream, partial(_text_in, reading), reading, source)


def _json_rows(stream: io.BufferedReader, reading: TextReading, source: str) -> Iterator[SourceRow]:
    """A JSON object a line, or the objects of a list."""
    stream = as_utf8(stream, source, reading.columns.encoding)
    if not is_json_list(stream):
        yield from _line_rows(stream, _object_in, reading, source)
        return
    raw = stream.read()
    try:
        items = _json_in(raw.decode().strip())
    except UnicodeDecodeError:
        raise TextsError(not_utf8(raw, source)) from None
    except ValueError as error:
        raise TextsError(f"{source} {error}") from None
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield SourceRow(item)
        else:
            yield reading.fault(f"{source}: row {number} is {kind_of(item)}{_NO_OBJECT}", None)


def _line_rows(
    lines: Iterable[bytes],
    parse: Callable[[str], dict[str, object] | None],
    reading: TextReading,
    source: str,
) -> Iterator[SourceRow]:
    """What is parsed of each line, None for a blank one; ValueError, half a sentence, where it cannot be."""
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            fields = parse(line.decode())
        except UnicodeDecodeError:
            yield reading.fault(not_utf8(line, f"{source}, line {number},", whole=line == raw), number)
        except ValueError as error:
            yield reading.fault(f"{source}, line {number} {error}", number)
        else:
            if fields is not None:
                yield SourceRow(fields, number)


def _text_in(reading: TextReading, line: str) -> dict[str, object] | None:
    is_blank = not line.strip()
    reading.blank += is_blank
    return None if is_blank else {"text": line}


def _object_in(line: str) -> dict[str, object] | None:
    if not (line := line.strip()):
        return None
    item = _json_in(line)
    if not isinstance(item, dict):
        raise ValueError(f"is {kind_of(item)}{_NO_OBJECT}")
    return item


def _json_in(text: str) -> Any:
    """What JSON without white space around it says; ValueError, half a sentence, where it says nothing."""
    try:
        item, end = _decoder.raw_decode(text)
        if end != len(text):
            raise json.JSONDecodeError("Extra data", text, end)
        return item
    except (ValueError, RecursionError) as error:
        reason = str(error).replace(": line 1 column", ", at column")
        raise ValueError(f"is not JSON that can be read ({reason}): mend it or take it out.") from None


def is_json_list(stream: io.BufferedReader) -> bool:
    """Whether a stream of UTF-8 begins with a JSON list of objects."""
    return bool(_LIST.match(stream.peek(HEAD)))


def _csv_rows(
    stream: io.BufferedReader, reading: TextReading, source: str, *, delimiter: str = ","
) -> Iterator[SourceRow]:
    """The rows of a table with a header; the delimiter is the one that the header tells."""
    raw = as_utf8(stream, source, reading.columns.encoding)
    # surrogateescape keeps the bytes that are not UTF-8 apart, so that the row that holds them can be named
    lines = io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="")
    csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
    head = _to_first_line(lines)
    delimiter = _delimiter("".join(head), delimiter, {"text", *reading.columns.required})
    table = csv.reader(itertools.chain(head, lines), delimiter=delimiter, strict=True)
    header: list[str] = []
    places: dict[str, int] = {}
    line, start = 1, 1
    try:
        for cells in table:
            line, start = start, table.line_num + 1
            if not cells or (not header and not any(map(str.strip, cells))):
                continue
            if not header:
                header = _refuse_odd_bytes(cells, source, line)
                found = {name: place for place, name in reversed(list(enumerate(header)))}
                places = {name: found[name] for name in reading.pick(header, source)}
                continue
            try:
                if len(cells) != len(header):
                    counts = f"{len(cells)} fields, and the header names {len(header)}"
                    raise TextsError(f"{source}, line {line}: {counts}.")
                wanted = _refuse_odd_bytes([cells[place] for place in places.values()], source, line)
                yield SourceRow(dict(zip(places, wanted, strict=True)), line)
            except TextsError as error:
                yield reading.fault(str(error), line)
    except csv.Error as error:
        raise TextsError(
            f"{source}, line {start}: {error}; look at the quotes of the row that starts there."
        ) from None
    finally:
        lines.detach()


def _to_first_line(lines: Iterable[AnyStr]) -> list[AnyStr]:
    """The lines up to the first one that is not blank; the next one is what follows it."""
    head: list[AnyStr] = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    return head


def _delimiter(header: str, usual: str, wanted: Collection[str]) -> str:
    """The sign that parts most of the wanted names from the rest of the header, or else stands most often in it outside
    quotes; the usual one where no other does better."""
    plain = re.sub(r'"[^"]*"', "", header)

    def parted(sign: str) -> tuple[int, int]:
        names = {one.strip(' "\r\n') for one in header.split(sign)} if sign in plain else set()
        return len(names.intersection(wanted)), plain.count(sign)

    return max((usual, ",", ";", "\t", "|"), key=parted)


def _refuse_odd_bytes(cells: list[str], source: str, line: int) -> list[str]:
    """The cells. TextsError where one holds bytes that are not UTF-8, which were kept apart."""
    for cell in cells:
        if mended(cell)[1]:
            raw = cell.encode("utf-8", "surrogateescape")
            raise TextsError(not_utf8(raw, f"{source}, line {line},"))
    return cells


def _parquet_rows(stream: IO[bytes], reading: TextReading, source: str) -> Iterator[SourceRow]:
    """The rows of a parquet file, of which only the columns wanted are read, a few hundred rows at a time."""
    from pyarrow import parquet

    with _whole_file(stream, source, "parquet") as whole:
        # both settings are needed, or the whole column of a row group is held in memory
        how = {"buffer_size": _READ_AHEAD, "pre_buffer": False, "page_checksum_verification": True}
        table = parquet.ParquetFile(whole, **how)
        found = table.schema_arrow.names
        names = distinct(reading.pick(found, source), found, source)
        for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=list(names)):
            yield from _rows_of_batch(batch, names, source)


def _arrow_rows(stream: IO[bytes], reading: TextReading, source: str) -> Iterator[SourceRow]:
    """The rows of an arrow file, or of an arrow stream, as `datasets` writes them."""
    from pyarrow import ipc

    with _whole_file(stream, source, "arrow") as whole:
        if whole.read(len(_ARROW_FILE)) == _ARROW_FILE:
            file = ipc.open_file(whole)
            found = file.schema.names
            batches = (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            whole.seek(-len(_ARROW_END), io.SEEK_END)
            if whole.read() not in (_ARROW_END, _ARROW_END[:4] * 2):
                raise EOFError("its end mark is not there")
            whole.seek(0)
            table = ipc.open_stream(whole)
            found, batches = table.schema.names, iter(table)
        names = distinct(reading.pick(found, source), found, source)
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                yield from _rows_of_batch(batch.slice(start, _BATCH_ROWS), names, source)


_ARROW_FILE, _ARROW_END = b"ARROW1", b"\xff\xff\xff\xff\0\0\0\0"


def _rows_of_batch(batch: Any, names: Sequence[str], source: str) -> Iterator[SourceRow]:
    """The rows of a batch; strings that are not UTF-8 come back as bytes. TextsError for values that Python has not."""
    import pyarrow

    cells = []
    for name in names:
        array = batch.column(name)
        try:
            cells.append(array.to_pylist())
        except UnicodeDecodeError:
            cells.append(array.cast(pyarrow.binary()).to_pylist())
        except (ValueError, OverflowError, LookupError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            facts = {"source": source, "name": name, "type": array.type, "reason": reason}
            raise TextsError(say("texts.no_value", **facts)) from None
    for row in zip(*cells, strict=True):
        yield SourceRow(dict(zip(names, row, strict=True)))


@contextmanager
def _whole_file(stream: IO[bytes], source: str, kind: str) -> Iterator[IO[bytes]]:
    """A stream that can be read from its end, itself or a copy on disk; TextsError for what is no file of a `kind`."""
    import pyarrow

    with nullcontext(stream) if stream.seekable() else tempfile.TemporaryFile() as whole:
        if whole is not stream:
            shutil.copyfileobj(stream, whole, _READ_AHEAD)
            whole.seek(0)
        try:
            yield whole
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError, EOFError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise TextsError(f"{source} is not a whole {kind} file: {reason}; make it again.") from None


_decoder = json.JSONDecoder(strict=False)
"""`json.loads` makes a decoder anew for each line, which takes longer than the line."""
_Format = Callable[[io.BufferedReader, TextReading, str], Iterator[SourceRow]]

FORMATS: dict[str, _Format] = {
    **dict.fromkeys(LINES, _json_rows),
    ".csv": _csv_rows,
    ".tsv": partial(_csv_rows, delimiter="\t"),
    ".parquet": _parquet_rows,
    ".arrow": _arrow_rows,
    ".feather": _arrow_rows,
    ".txt": _text_rows,
}
"""Tables, and text a line. Files that are one text have a dictionary of their own: published benchmarks are
never of those kinds, and a README beside them is not to be taken for one."""
TABLES = tuple(ending for ending in FORMATS if ending != ".txt")
"""Endings of tables."""
ENDINGS = (*FORMATS, *DOCUMENTS)
"""Endings of all files that are read."""


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(_decoder.decode(line.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False
