"""The text of `.docx` and `.pdf` files, by python-docx and pypdf (extra `documents`), imported when used."""

from __future__ import annotations

import io
import logging
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pretrace.errors import MissingPackageError, TextsError

UNPACKED = 1 << 29
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


def read_pdf(raw: bytes) -> tuple[str, tuple[str, ...]]:
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


def read_docx(raw: bytes) -> tuple[str, tuple[str, ...]]:
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
            if sum(part.file_size for part in packed.infolist()) > UNPACKED:
                raise TextsError(f"the document unpacks to more than {UNPACKED >> 20} MB: leave it out.")
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
