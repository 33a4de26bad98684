"""The files of a corpus: what names them, what they are, and whether all of them is there.

Files are opened, unpacked and recognised as those of texts are (`pretrace.corpora`). What cannot be read and may hold
texts is a file with a fault, and never passed over.
"""

from __future__ import annotations

import filecmp
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

import numpy as np

from pretrace.corpora.documents import SOURCE
from pretrace.corpora.folders import holds_facts, is_hidden, walk
from pretrace.corpora.formats import ending_of, recognise_format
from pretrace.corpora.packing import HEAD, is_utf8, not_utf8, open_unpacked
from pretrace.corpora.reading import SourceRow
from pretrace.corpora.webpages import decode_page, read_html
from pretrace.errors import PretraceError, TextsError

_NO_DATA = frozenset((
    "png", "jpg", "jpeg", "gif", "webp", "svg", "ico", "bmp", "tif", "tiff", "mp3", "mp4", "m4a", "wav", "ogg", "flac",
    "mov", "avi", "webm", "mkv", "woff", "woff2", "ttf", "otf", "css", "pyc", "so", "o", "dll", "exe", "lock", "sha256",
    "md5", "crc", "metadata",
))  # fmt: skip
"""Endings of files that hold no texts, which a corpus may well hold."""
INDEX = "infini-gram:"
"""How the address of an index begins, which is asked and not read (`scan.index`)."""


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One file of the corpus, by the address that fsspec opens, and its size in bytes (0 where it is not known); or an
    index of it. `fault` says why it cannot be read, where that is known beforehand."""

    address: str
    size: int
    fault: str = ""

    @property
    def is_index(self) -> bool:
        """Whether it is asked, and not read."""
        return self.address.startswith(INDEX)

    @property
    def changed(self) -> int:
        """When it changed, in nanoseconds since 1970; 0 where that is not known."""
        with suppress(OSError, ValueError):
            return 0 if "://" in self.address or self.is_index else Path(self.address).lstat().st_mtime_ns
        return 0


class Unread(Exception):  # noqa: N818 - no error of the caller: what was read before it counts
    """A file that cannot be read on, and why."""


def kind_of(address: str, head: bytes) -> str:
    """What a file of a corpus is read as: a format of texts, a web archive, or text as it stands. Unread for bytes that
    are none of these."""
    name = address.partition("?")[0]
    kind = recognise_format(name, head)
    if kind or ending_of(name) in (".wet", ".warc"):
        return kind or ".warc"
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unread(f"{address}: it is of no kind that is read, and no text")
    return SOURCE


def check_characters(raw: memoryview, file: CorpusFile) -> bool:
    """Whether the bytes say how their file is written, as those do that are not all ASCII: as UTF-8. Unread where most
    of their lines that are not ASCII are no UTF-8, as in another encoding; single ones may be damaged."""
    if not np.frombuffer(raw, dtype=np.int8).min(initial=0):
        return False
    some = bytes(raw)
    if not is_utf8(some, cut=True):
        lines = [line for line in some.split(b"\n")[:-1] or [some] if not line.isascii()]
        if 2 * sum(not is_utf8(line) for line in lines) > len(lines):
            raise Unread(not_utf8(some, file.address, option="--corpus-encoding"))
    return True


def check_end(raw: bytes, file: CorpusFile) -> None:
    """Unread where the last line has no end and is no JSON: the file was cut."""
    last = raw.rpartition(b"\n")[2]
    if last.strip():
        try:
            json.loads(last, strict=False)
        except (ValueError, RecursionError):
            raise Unread(f"{file.address}: it ends within a line, so it was cut off") from None


def files_of(sources: Sequence[str]) -> tuple[CorpusFile, ...]:
    """What sources name, each once, in order: files, folders with all below them, patterns, addresses, indexes. What
    cannot be read and may hold texts is among them with its fault. TextsError for a source with no file that is read.
    """
    found: dict[str, CorpusFile] = {}
    for source in sources:
        if source.startswith(INDEX):
            found.setdefault(source, CorpusFile(source, 0))
            continue
        mine = _listed(source)
        if not any(not one.fault for one in mine):
            told = f" ({mine[0].address}: {mine[0].fault})" if mine else ""
            raise TextsError(
                f"{source} names no file that can be searched{told}: give JSON lines, tables, web archives or texts "
                "(each also packed), a folder of such files, a pattern, or an address that fsspec opens."
            )
        for one in mine:
            found.setdefault(one.address, one)
    return tuple(found.values())


def _listed(source: str) -> list[CorpusFile]:
    if "://" not in source:
        path = Path(source)
        if path.is_dir():
            return _of_folder(path)
        if path.is_file():
            return [_local(path)]
        base = Path(path.anchor or ".")
        parts = path.parts[1:] if path.anchor else path.parts
        with suppress(ValueError, NotImplementedError):
            some = sorted(base.glob(str(Path(*parts)))) if parts else []
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


def _of_folder(folder: Path) -> list[CorpusFile]:
    """The files below a folder that hold texts or may do so, and what cannot be reached."""
    found = walk(folder)
    made = [CorpusFile(str(folder / n), 0, why) for n, why in found.faults.items() if not is_hidden(n)]
    for name, path in found.files.items():
        if not _may_hold_texts(name):
            continue
        if not path.is_file():
            raise TextsError(f"{path} is a pipe or a device and no file: take it out of the folder.")
        made.append(_local(path))
    return sorted(made, key=lambda one: one.address)


def _local(path: Path) -> CorpusFile:
    file = CorpusFile(str(path), path.stat().st_size)
    try:
        with open_unpacked(path) as stream:
            kind_of(str(path), stream.peek(HEAD)[:HEAD])
    except Unread as error:
        return replace(file, fault=str(error).removeprefix(f"{path}: "))
    except (OSError, EOFError, PretraceError):  # told when it is read
        return file
    return file


def _may_hold_texts(name: str) -> bool:
    """Whether a file below a folder is to be read, or told where it cannot be: pictures and the like are neither, and
    no facts on data that lie beside them."""
    known = bool(recognise_format(name, b""))
    hidden = Path(name).name.startswith(".")
    return not (holds_facts(name) or (not known and (hidden or ending_of(name)[1:] in _NO_DATA)))


def find_own_files(files: Sequence[CorpusFile], path: str) -> tuple[CorpusFile, ...]:
    """The files of the corpus that are a file of the texts itself, or a copy of one; `path` is a file or a folder."""
    own: dict[int, list[Path]] = {}
    if not path:
        return ()
    with suppress(OSError, ValueError):  # texts may have an address that is no path
        place = Path(path).resolve(strict=True)
        for one in walk(place).files.values() if place.is_dir() else (place,):
            if one.is_file() and (size := one.stat().st_size):
                own.setdefault(size, []).append(one)

    def same(one: CorpusFile) -> bool:
        try:
            return any(filecmp.cmp(one.address, mine, shallow=False) for mine in own.get(one.size, ()))
        except OSError:
            return False

    return tuple(one for one in files if "://" not in one.address and same(one))


# Web archives.


_WARC_VERSION = re.compile(rb"WARC/\d+\.\d+\s*")
_HTTP_TYPE = re.compile(rb"^content-type:\s*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def warc_rows(stream: IO[bytes]) -> Iterator[SourceRow]:
    """The texts of WET files, and the texts of the HTML pages of WARC files. EOFError where a record is shorter than it
    says, ValueError for what is no record."""
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
            text = raw if kind == "conversion" else _page_of(raw) if kind == "response" else None
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
    size = int(length)
    raw = stream.read(size)
    if len(raw) < size:
        raise EOFError(f"a record of {size:,} bytes has {len(raw):,}, so it was cut off")
    return head, raw


def _page_of(raw: bytes) -> bytes | None:
    """The text of the page in an HTTP response; None for one that is no page."""
    http, _, body = raw.partition(b"\r\n\r\n")
    kind = _HTTP_TYPE.search(http)
    if not (http.startswith(b"HTTP/") and kind and b"html" in kind[1].lower()):
        return None
    return read_html(decode_page(body)).encode("utf-8", "surrogatepass")
