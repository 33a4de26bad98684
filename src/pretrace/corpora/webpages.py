"""The text of an HTML page: what a reader sees, a line a block, without navigation, scripts and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pretrace.corpora.packing import HEAD, decode_text, encoding_of, is_utf8
from pretrace.corpora.reading import mended
from pretrace.errors import TextsError

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
NOT_NESTED = frozenset((
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
    steps = (-1 if one[1] else 1 for one in _TAG.finditer(html) if one[2].lower() not in NOT_NESTED)
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
