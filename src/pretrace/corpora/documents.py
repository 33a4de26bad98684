"""Documents as texts: pages, Word, PDF and plain text, alone or in a folder."""

from __future__ import annotations

import codecs
import gzip
import io
import logging
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from pretrace.corpora.columns import mended
from pretrace.corpora.reading import Reading, Row
from pretrace.corpora.webpages import decoded, read_html
from pretrace.errors import MissingPackageError, TextsError

# The text of `.docx` and `.pdf` files, by python-docx and pypdf (extra `documents`), imported when used.


_UNPACKED = 1 << 29
"""Most bytes that the parts of a `.docx` file may have unpacked."""
EMPTY_PAGES = "pages without a text layer (pictures, scans, or empty) are missing"
CHANGES = "tracked changes are read as accepted"

_DAMAGED = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError),
    *(RecursionError, NotImplementedError, struct.error, zlib.error, zipfile.BadZipFile),
)
"""What readers of files raise for those they cannot make sense of, besides their own errors."""
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _RUN = f"{_WORD}p", f"{_WORD}r"
_PIECES = {f"{_WORD}tab": "\t", f"{_WORD}br": "\n", f"{_WORD}cr": "\n", f"{_WORD}noBreakHyphen": "-"}
_LEFT_OUT = ("{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback", f"{_WORD}moveFrom")
"""What is there a second time: a text box for old versions, and a moved text where it was."""


def _read_pdf(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """The text layer of a PDF, page after page, and what is to be told of it. TextsError for a scan, a file that
    needs a password and one that is damaged; MissingPackageError without the extra."""
    try:
        import pypdf
        from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError
    except ImportError:
        raise MissingPackageError("pypdf", "a .pdf file", "documents") from None
    try:
        with _silent("pypdf"):
            pages = [page.extract_text().strip() for page in pypdf.PdfReader(io.BytesIO(raw)).pages]
    except (FileNotDecryptedError, DependencyError):
        raise TextsError("the PDF is encrypted: save a copy without a password.") from None
    except (PyPdfError, *_DAMAGED) as error:
        raise TextsError(f"the PDF is damaged ({_reason(error)}): save it again, or leave it out.") from None
    text = "\n".join(page for page in pages if page)
    if not text:
        raise TextsError(
            "the PDF has no text layer, as scans have none: recognise its text first (OCR, such as ocrmypdf), or "
            "leave it out."
        )
    return text, (EMPTY_PAGES,) if not all(pages) else ()


def _read_docx(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """The paragraphs of a Word document in order, a line each, those of tables, text boxes and content controls among
    them, and what is to be told of it. Headers, footers, notes and comments are left out. TextsError for one that is
    damaged; MissingPackageError without the extra."""
    try:
        import docx
        from docx.opc.exceptions import OpcError
        from lxml.etree import LxmlError
    except ImportError:
        raise MissingPackageError("python-docx", "a .docx file", "documents") from None
    if raw.startswith(_OLD_OFFICE):
        raise TextsError("the file is encrypted, or an older .doc: save it as .docx without a password.")
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            if sum(part.file_size for part in packed.infolist()) > _UNPACKED:
                raise TextsError(f"the document unpacks to more than {_UNPACKED >> 20} MB: leave it out.")
        body = docx.Document(io.BytesIO(raw)).element.body
        lines = [
            _paragraph(one)
            for one in body.iter(_PARAGRAPH)
            if next(one.iterancestors(*_LEFT_OUT), None) is None
        ]
        changed = next(body.iter(f"{_WORD}ins", f"{_WORD}del", f"{_WORD}moveTo"), None) is not None
    except (OpcError, LxmlError, *_DAMAGED) as error:
        raise TextsError(
            f"the .docx file is damaged ({_reason(error)}): save it again in a word processor, or leave it out."
        ) from None
    return "\n".join(line for line in lines if line.strip()), (CHANGES,) if changed else ()


def _paragraph(paragraph: Any) -> str:
    """The text of a paragraph without those of text boxes in it, which are paragraphs of their own. python-docx
    itself passes over inserted text and content controls."""
    pieces: list[str] = []
    for one in paragraph.iter(f"{_WORD}t", *_PIECES):
        around = next(one.iterancestors(_PARAGRAPH, *_LEFT_OUT))
        if around is paragraph and one.getparent().tag == _RUN:  # tab stops are called tab, too
            pieces.append(_PIECES.get(one.tag) or one.text or "")
    return "".join(pieces)


def _reason(error: BaseException) -> str:
    """The first line of an error, or its kind."""
    said = re.sub(r"\s+", " ", str(error)).strip()
    return (said[:100] or type(error).__name__).rstrip(".:")


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """No log lines of a package: what it repairs by itself is no news to a user."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # the loggers below it take its level; `disabled` they would not
    try:
        yield
    finally:
        logger.setLevel(before)


FRONT_MATTER = "front matter (title, date, tags between --- or +++) was taken off"

_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
"""The line that opens front matter (YAML, TOML), and those that close it."""
_KEY = re.compile(r"[\w\"'.-]+\s*[:=]|\[")


class Document(NamedTuple):
    """The text of one file, whether bytes of it were replaced, and what is to be told of it, in half sentences."""

    text: str
    damaged: bool = False
    remarks: tuple[str, ...] = ()


def _markdown(raw: bytes) -> Document:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in raw[:4096]:
        raise TextsError("the file is written in UTF-16, and UTF-8 is wanted: convert it first.")
    text, damaged = mended(raw.removeprefix(codecs.BOM_UTF8))
    body = _without_front_matter(text)
    return Document(body, damaged, (FRONT_MATTER,) if body != text else ())


def _without_front_matter(text: str) -> str:
    """The text below its front matter. A rule (---) on the first line is no front matter unless a key follows."""
    first, *lines = text.splitlines(keepends=True) or [""]
    closing = _FENCES.get(first.rstrip(), ())
    head = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    place = next((number for number, line in enumerate(lines) if line.rstrip() in closing), None)
    if place is None or not _KEY.match(head):
        return text
    return "".join(lines[place + 1 :]).lstrip("\r\n")


def _html(raw: bytes) -> Document:
    page, damaged = decoded(raw)
    return Document(read_html(page), damaged)


def _docx(raw: bytes) -> Document:
    text, remarks = _read_docx(raw)
    return Document(text, remarks=remarks)


def _pdf(raw: bytes) -> Document:
    text, remarks = _read_pdf(raw)
    return Document(text, remarks=remarks)


DOCUMENTS: dict[str, Callable[[bytes], Document]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".html": _html,
    ".htm": _html,
    ".docx": _docx,
    ".pdf": _pdf,
}
"""Readers by the ending of the name. Each raises TextsError, without the name of the file, for one that cannot be
read, and MissingPackageError where its package is not installed."""


def _read_document(raw: bytes, ending: str) -> Document:
    """The text of a file of a kind. TextsError where it cannot be read, or holds none."""
    if not raw:
        raise TextsError("the file is empty: leave it out.")
    document = DOCUMENTS[ending](raw)
    if not document.text.strip():
        raise TextsError("the file holds no text: leave it out.")
    return document


# Files opened, packed or not; a file that cannot be read is a TextsError.


@contextmanager
def unreadable_explained(source: str) -> Iterator[None]:
    """While it lasts, an error of the operating system or of gzip is a TextsError that names the source."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TextsError(f"{source} is not a whole gzip file: {error}") from None
    except OSError as error:
        raise TextsError(f"{source} cannot be read: {error.strerror or error}.") from None


def standard_input() -> BinaryIO:
    """The bytes of standard input; TextsError where it is closed."""
    if sys.stdin is None:
        raise TextsError("standard input is closed: name a file, or lead the texts here with |.")
    return sys.stdin.buffer


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """The bytes of a file, unpacked where its name ends in `.gz`."""
    if not path.name.lower().endswith(".gz"):
        with path.open("rb") as stream:
            yield stream
        return
    with gzip.open(path, "rb") as packed:
        yield io.BufferedReader(cast(io.RawIOBase, packed))


def refuse_utf16(stream: io.BufferedReader, source: str) -> None:
    """TextsError for UTF-16. The mark alone may be two stray bytes; with a NUL near it, the file really is UTF-16."""
    head = stream.peek(4096)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in head:
        raise TextsError(f"{source} is written in UTF-16, and UTF-8 is wanted: convert it first.")


# Rows of files that are one text each: all of a folder, or a single document.


_FAMILY = {".markdown": ".md", ".htm": ".html"}
"""What counts as the same kind of file in the notes."""


def folder_rows(folder: Path, reading: Reading) -> Iterator[Row]:
    """Each `.txt` file and each document below a folder as one text, in the order of the relative paths, which are the
    ids. A `.txt` file is taken just as it stands; what is neither is counted."""
    names = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if not file.is_dir()}
    kinds = {name: _kind_in_folder(name) for name in sorted(names)}
    texts = {name: kind for name, kind in kinds.items() if kind}
    if not texts:
        endings = ", ".join(sorted(DOCUMENTS))
        raise TextsError(
            f"{reading.source} holds no .txt file and no document ({endings}; a README is none): name a file in it, or "
            "another folder."
        )
    pipes = [name for name in texts if names[name].exists() and not names[name].is_file()]
    if pipes:
        raise TextsError(
            f"{reading.source} holds {pipes[0]!r}, which is a pipe or a device and no file: take it out of the folder."
        )
    reading.left_out += len(names) - len(texts)
    documents = set(texts.values()) != {".txt"}
    for name, kind in texts.items():
        row = _text_file(names[name]) if kind == ".txt" else _document(names[name], kind, reading)
        reading.kinds[_FAMILY.get(kind, kind)] += not row.fault
        named = {"id": name, "group": name} if documents else {"id": name}
        yield row if row.fault else row._replace(fields={**row.fields, **named})


def document_rows(file: Path, reading: Reading) -> Iterator[Row]:
    """The one row of a file that is one text; its name is the id and the group."""
    row = _document(file, ending_of(file.name), reading)
    name = mended(file.name)[0]
    yield row if row.fault else row._replace(fields={**row.fields, "id": name, "group": name})


def ending_of(name: str) -> str:
    """The ending of a file's name in small letters, without the `.gz` of a packed one."""
    return Path(name.lower().removesuffix(".gz")).suffix


def _kind_in_folder(name: str) -> str:
    """The ending of a file to be read, "" for one that is left out: another kind, and of documents those that are
    hidden, the lock files of word processors, and a README, which tells of the folder."""
    ending, path = ending_of(name), Path(name)
    if ending == ".txt":
        return ending
    hidden = any(part.startswith((".", "~$")) for part in path.parts)
    readme = len(path.parts) == 1 and path.name.lower().startswith("readme.")
    return ending if ending in DOCUMENTS and not (hidden or readme) else ""


def _text_file(file: Path) -> Row:
    with unreadable_explained(str(file)), opened(file) as stream:
        refuse_utf16(stream, str(file))
        text, damaged = mended(stream.read().removeprefix(codecs.BOM_UTF8))
    return Row({"text": text}, None, damaged)


def _document(file: Path, ending: str, reading: Reading) -> Row:
    with unreadable_explained(str(file)), opened(file) as stream:
        raw = stream.read()
    try:
        read = _read_document(raw, ending)
    except TextsError as error:
        return reading.fault(f"{mended(str(file))[0]}: {error}", None)
    reading.remarks.update(read.remarks)
    return Row({"text": read.text}, None, read.damaged)
