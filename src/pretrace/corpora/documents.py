"""Documents as texts: pages, Word, PDF, EPUB, Markdown and source code, a file a text. Of an HTML page it is what a
reader sees, a line a block, without navigation, scripts and the like."""

from __future__ import annotations

import io
import logging
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.parsers import expat

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pretrace.corpora.reading import HEAD, decode_text, encoding_of, is_utf8, mended
from pretrace.errors import MissingPackageError, PretraceError, TextsError
from pretrace.results.wording import say

_UNPACKED = 1 << 29  # most bytes that the parts of a `.docx` or `.epub` file may have unpacked
_TAIL = 4096  # bytes at the end of a PDF among which its end mark is looked for
EMPTY_PAGES = "pages without a text layer (pictures, scans, or empty) are missing"
CHANGES = "tracked changes are read as accepted"

_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _RUN = f"{_WORD}p", f"{_WORD}r"
_PIECES = {f"{_WORD}tab": "\t", f"{_WORD}br": "\n", f"{_WORD}cr": "\n", f"{_WORD}noBreakHyphen": "-"}
_LEFT_OUT = ("{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback", f"{_WORD}moveFrom")
"""What is there a second time: a text box for old versions, and a moved text where it was."""


Document = tuple[str, tuple[str, ...]]
"""The text of one file, and what is to be told of it, in half sentences."""


def _pdf(raw: bytes, encoding: str | None) -> Document:
    """The text layer of a PDF, page after page; TextsError for a scan, one with a password and one that is cut."""
    try:
        import pypdf
        from pypdf.errors import DependencyError, FileNotDecryptedError
    except ImportError:
        raise MissingPackageError("pypdf", "a .pdf file", "documents") from None
    logger = logging.getLogger("pypdf")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # what it repairs by itself is no news; its loggers take this level
    try:
        pages = [page.extract_text().strip() for page in pypdf.PdfReader(io.BytesIO(raw)).pages]
    except (FileNotDecryptedError, DependencyError):
        raise TextsError("the PDF is encrypted: save a copy without a password.") from None
    finally:
        logger.setLevel(before)
    if b"%%EOF" not in raw[-_TAIL:]:
        raise TextsError("the PDF is cut off: its end mark is not there; fetch it again.")
    text = "\n".join(page for page in pages if page)
    if not text:
        raise TextsError(say("texts.scan"))
    return text, () if all(pages) else (EMPTY_PAGES,)


def _docx(raw: bytes, encoding: str | None) -> Document:
    """The paragraphs of a Word document, a line each, also in tables and text boxes; no headers, footers and notes."""
    try:
        import docx
    except ImportError:
        raise MissingPackageError("python-docx", "a .docx file", "documents") from None
    if raw.startswith(_OLD_OFFICE):
        raise TextsError("the file is encrypted, or an older .doc: save it as .docx without a password.")
    with zipfile.ZipFile(io.BytesIO(raw)) as packed:
        _refuse_large(packed, "document")
    body = docx.Document(io.BytesIO(raw)).element.body
    # Without text boxes in a paragraph. python-docx itself passes over inserted text and content controls.
    lines = [
        "".join(
            _PIECES.get(one.tag) or one.text or ""
            for one in paragraph.iter(f"{_WORD}t", *_PIECES)
            if next(one.iterancestors(_PARAGRAPH, *_LEFT_OUT)) is paragraph
            and one.getparent().tag == _RUN  # tab stops are called tab, too
        )
        for paragraph in body.iter(_PARAGRAPH)
        if next(paragraph.iterancestors(*_LEFT_OUT), None) is None
    ]
    changed = next(body.iter(f"{_WORD}ins", f"{_WORD}del", f"{_WORD}moveTo"), None) is not None
    return "\n".join(line for line in lines if line.strip()), (CHANGES,) if changed else ()


def _refuse_large(packed: zipfile.ZipFile, what: str) -> None:
    if sum(part.file_size for part in packed.infolist()) > _UNPACKED:
        raise TextsError(f"the {what} unpacks to more than {_UNPACKED >> 20} MB: leave it out.")


FRONT_MATTER = "front matter (title, date, tags between --- or +++) was taken off"

_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
"""The line that opens front matter (YAML, TOML), and those that close it."""
_KEY = re.compile(r"[\w\"'.-]+\s*[:=]|\[")


def _markdown(raw: bytes, encoding: str | None) -> Document:
    """The text below its front matter. A rule (---) on the first line is no front matter unless a key follows."""
    text = decode_text(raw, "the file", encoding)
    first, *lines = text.splitlines(keepends=True) or [""]
    closing = _FENCES.get(first.rstrip(), ())
    head = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    place = next((number for number, line in enumerate(lines) if line.rstrip() in closing), None)
    if place is None or not _KEY.match(head):
        return text, ()
    return "".join(lines[place + 1 :]).lstrip("\r\n"), (FRONT_MATTER,)


_EPUB_TABLE = "{http://www.idpf.org/2007/opf}"
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"


def _epub(raw: bytes, encoding: str | None) -> Document:
    """The chapters of a book in the order in which they are read, without its table of contents."""
    texts = []
    with zipfile.ZipFile(io.BytesIO(raw)) as book:
        _refuse_large(book, "book")
        locked = book.read(_LOCKS).decode("utf-8", "replace") if _LOCKS in book.namelist() else ""
        container = _parse_xml(book.read("META-INF/container.xml"), "the book")
        place = next(one.attrib["full-path"] for one in container.iter(f"{_CONTAINER}rootfile"))
        table, above = _parse_xml(_DOCTYPE.sub(b"", book.read(place)), "the book"), place.rpartition("/")[0]
        items = {one.get("id"): one for one in table.iter(f"{_EPUB_TABLE}item")}
        for one in [items[one.get("idref")] for one in table.iter(f"{_EPUB_TABLE}itemref")]:
            if "nav" in one.get("properties", "").split():
                continue
            name = posixpath.normpath(posixpath.join(above, unquote(one.attrib["href"])))
            if f'URI="{name}"' in locked:
                raise TextsError("the book is protected against reading (DRM): give one that is not.")
            texts.append(_read_xhtml(decode_page(book.read(name), None)))
    return "\n".join(text for text in texts if text), ()


_LOCKS = "META-INF/encryption.xml"
_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]*>")  # of older books; one with declarations is refused


_SELF_CLOSED = re.compile(r"<([a-zA-Z][\w:.-]*)((?:\s[^<>]*?)?)/>")


def _read_xhtml(page: str) -> str:
    """The text of a page of XHTML, in which any element may be closed where it is opened."""

    def opened(one: re.Match[str]) -> str:
        return one[0] if one[1] in _NOT_NESTED else f"<{one[1]}{one[2]}></{one[1]}>"

    return read_html(_SELF_CLOSED.sub(opened, page))


def _parse_xml(raw: bytes, source: str) -> ElementTree.Element:
    """The root of a document without a document type, which could declare entities that expand without end."""

    def refuse(*_: object) -> None:
        raise TextsError(say("texts.doctype", source=source))

    looked = expat.ParserCreate()
    looked.StartDoctypeDeclHandler = refuse
    try:
        looked.Parse(raw, True)
        return ElementTree.XML(raw)
    except (expat.ExpatError, ElementTree.ParseError, ValueError, LookupError) as error:
        raise TextsError(f"{source} is not XML that can be read: {error}; save it again.") from None


SOURCE = ".source"
"""Stands for the ending of a file that is read as it is, as source code is."""
DOCUMENTS: dict[str, Callable[[bytes, str | None], Document]] = {
    **dict.fromkeys((".md", ".markdown"), _markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), lambda raw, named: (read_html(decode_page(raw, named)), ())),
    **{".docx": _docx, ".pdf": _pdf, ".epub": _epub},
}
"""Readers by the ending of the name, of the bytes and the encoding that was named. Each raises TextsError, without the
name of the file, for one that cannot be read, and MissingPackageError where its package is not installed."""


def read_document(raw: bytes, ending: str, encoding: str | None) -> Document:
    """The text of a file of a kind. TextsError where it cannot be read, or a document holds none."""
    if ending == SOURCE:
        return decode_text(raw, "the file", encoding), ()
    try:
        document = DOCUMENTS[ending](raw, encoding)
    except (PretraceError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - the readers of others raise anything for a file that is none
        reason = " ".join(str(error).split())[:100].rstrip(".:") or type(error).__name__
        said = f"the {ending} file is damaged ({reason}): fetch it or save it again, or leave it out."
        raise TextsError(said) from None
    if not document[0].strip():
        raise TextsError("the file holds no text: leave it out.")
    return document


DEEPEST = 2_000
"""Open tags within each other; the time to read a page grows with the square of it."""

_HIDDEN = frozenset((
    "head", "title", "script", "style", "noscript", "template", "nav", "aside", "button", "select", "svg", "iframe",
    "object", "audio", "video", "canvas", "dialog",
))  # fmt: skip
_HIDDEN_OUTSIDE = _HIDDEN | {"header", "footer"}
"""Left out where they are the page's; within an article they hold its title and its date."""
_INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "img",
    "input", "ins", "kbd", "label", "mark", "meter", "output", "picture", "q", "rp", "rt", "ruby", "s", "samp",
    "small", "source", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr", "data",
    "-comment",
))  # fmt: skip
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*)", re.IGNORECASE)
_NOT_NESTED = frozenset((
    "p", "li", "td", "th", "tr", "dt", "dd", "option", "rp", "rt", "area", "base", "br", "col", "embed", "hr",
    "img", "input", "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w:.-]+)", re.IGNORECASE)
_LATIN = frozenset(("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"))


def read_html(html: str) -> str:
    """The text of a page or a piece of one, with the white space of a browser: each block begins a line; in `pre` it
    stays. TextsError for tags that are nested deeper than any page has them."""
    page = parse_page(html)  # kept by name: nodes do not keep it in every version
    return visible_text(page.body)


def parse_page(html: str) -> LexborHTMLParser:
    """The tree of a page. TextsError for tags that are nested deeper than any page has them."""
    steps = (-1 if one[1] else 1 for one in _TAG.finditer(html) if one[2].lower() not in _NOT_NESTED)
    if max(accumulate(steps, lambda depth, step: max(0, depth + step), initial=0)) > DEEPEST:
        raise TextsError(f"more than {DEEPEST:,} HTML tags stand open within each other: this is no page.")
    return LexborHTMLParser(mended(html)[0])


def visible_text(root: LexborNode | None) -> str:
    """What a reader sees of all below a node, as `read_html` gives it."""
    done: list[str] = []
    now: list[str] = []
    pre, verbatim = 0, False  # open `pre` elements, in which white space stays

    def end() -> None:
        nonlocal verbatim
        line = "".join(now)
        line = line.rstrip() if verbatim else " ".join(line.split())
        if line or (verbatim and pre):
            done.append(line)
        now.clear()
        verbatim = False

    for node, closed in _walked(root) if root else ():
        tag = node.tag or ""
        if tag == "-text" or tag in ("td", "th"):
            text = node.text(deep=False) if tag == "-text" else " "
            for number, piece in enumerate(text.split("\n") if pre else (text,)):
                if number:
                    end()
                verbatim = verbatim or pre > 0
                now.append(piece)
        elif tag not in _INLINE:
            pre += (tag == "pre") * (-1 if closed else 1)
            end()
    end()
    return "\n".join(done)


def decode_page(raw: bytes, named: str | None = None) -> str:
    """A page's characters: by its mark; as UTF-8; as it states or as was `named`. TextsError where it is none."""
    stated = _CHARSET.search(raw[:HEAD])
    plain = named is None and encoding_of(raw[:HEAD], None) == "utf-8"
    if stated is not None and plain and (raw.isascii() or not is_utf8(raw)):
        name = stated[1].decode("ascii", "replace").lower()
        name = "windows-1252" if name in _LATIN else name  # what browsers take these for
        with suppress(UnicodeDecodeError, LookupError):
            if not name.startswith("utf-16"):  # or this statement could not be read
                return raw.decode(name)
    return decode_text(raw, "the file", named)


def _walked(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """The nodes below one in the order of the page, an element again (True) at its end, without hidden ones."""
    node, articles = root.first_child, 0
    stack: list[LexborNode] = []
    while node is not None or stack:
        if node is None:
            node = stack.pop()
            articles -= node.tag in ("article", "main")
            yield node, True
        elif node.tag == "-text":
            yield node, False
        elif node.tag not in (_HIDDEN if articles else _HIDDEN_OUTSIDE) and "hidden" not in (
            node.attributes or {}
        ):
            yield node, False
            articles += node.tag in ("article", "main")
            stack.append(node)
            node = node.first_child
            continue
        node = node.next
