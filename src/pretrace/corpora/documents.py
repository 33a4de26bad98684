"""Files that are one text each, as authors have them: Markdown, HTML, Word and PDF."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple

from pretrace.corpora.columns import mended
from pretrace.corpora.office import read_docx, read_pdf
from pretrace.corpora.webpages import decoded, read_html
from pretrace.errors import TextsError

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
    text, remarks = read_docx(raw)
    return Document(text, remarks=remarks)


def _pdf(raw: bytes) -> Document:
    text, remarks = read_pdf(raw)
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


def read_document(raw: bytes, ending: str) -> Document:
    """The text of a file of a kind. TextsError where it cannot be read, or holds none."""
    if not raw:
        raise TextsError("the file is empty: leave it out.")
    document = DOCUMENTS[ending](raw)
    if not document.text.strip():
        raise TextsError("the file holds no text: leave it out.")
    return document
