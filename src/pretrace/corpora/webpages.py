"""The text of an HTML page: what a reader sees, a line a block, without navigation, scripts and the like."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pretrace.corpora.columns import mended
from pretrace.errors import TextsError

DEEPEST = 2_000
"""Open tags within each other; the time to read a page grows with the square of it."""

_HIDDEN = frozenset(
    ("head", "title", "script", "style", "noscript", "template", "nav", "aside", "button")
) | {*("select", "svg", "iframe", "object", "audio", "video", "canvas", "dialog")}
_PAGE_ALONE = frozenset(("header", "footer"))
"""Left out where they are the page's; within an article they hold its title and its date."""
_INLINE = frozenset(
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em")
) | {
    *(
        "font",
        "i",
        "img",
        "input",
        "ins",
        "kbd",
        "label",
        "mark",
        "meter",
        "output",
        "picture",
        "q",
        "rp",
        "rt",
    ),
    *(
        "ruby",
        "s",
        "samp",
        "small",
        "source",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
    ),
    *("wbr", "data", "-comment"),
}
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*)", re.IGNORECASE)
_NOT_NESTED = frozenset(("p", "li", "td", "th", "tr", "dt", "dd", "option", "rp", "rt")) | {
    *(
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    )
}
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w:.-]+)", re.IGNORECASE)
_LATIN = frozenset(("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"))


def read_html(html: str) -> str:
    """The text of a page or of a piece of one. White space is that of a browser: runs of it are one space, each block
    begins a line; in `pre` it stays. TextsError for tags that are nested deeper than any page has them."""
    if _depth(html) > DEEPEST:
        raise TextsError(f"more than {DEEPEST:,} HTML tags stand open within each other: this is no page.")
    tree = LexborHTMLParser(mended(html)[0])  # kept by name: nodes do not keep it in every version
    lines = _Lines()
    for node, closed in _walked(tree.body) if tree.body else ():
        tag = node.tag or ""
        if tag == "-text":
            lines.add(node.text(deep=False))
            continue
        if tag == "pre":
            lines.pre += -1 if closed else 1
        if tag in ("td", "th"):
            lines.add(" ")
        elif tag not in _INLINE:
            lines.end()
    lines.end()
    return "\n".join(lines.done)


def decoded(raw: bytes) -> tuple[str, bool]:
    """A page's characters, and whether bytes of it were replaced: by its byte order mark; as UTF-8 where it is that;
    else in the character set that it states itself."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _in("utf-16", raw)
    text, damaged = mended(raw.removeprefix(codecs.BOM_UTF8))
    stated = _CHARSET.search(raw[:4096])
    if stated is None or not (damaged or raw.isascii()):
        return text, damaged
    name = stated[1].decode("ascii", "replace").lower()
    name = "windows-1252" if name in _LATIN else name  # what browsers take these for
    if name.startswith("utf-16"):  # or this statement could not be read
        return text, damaged
    try:
        return _in(name, raw)
    except LookupError:
        return text, damaged


def _in(encoding: str, raw: bytes) -> tuple[str, bool]:
    try:
        return raw.decode(encoding), False
    except UnicodeDecodeError:
        return raw.decode(encoding, "replace"), True


def _depth(html: str) -> int:
    """The most tags that are open within each other, of those that no other closes."""
    deepest = depth = 0
    for found in _TAG.finditer(html):
        if found[2].lower() not in _NOT_NESTED:
            depth = max(0, depth + (-1 if found[1] else 1))
            deepest = max(deepest, depth)
    return deepest


def _walked(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """The nodes below one in the order of the page, an element a second time (True) at its end; hidden ones are
    passed over. Without recursion, since pages nest deeply."""
    node, articles = root.first_child, 0
    stack: list[LexborNode] = []
    while node is not None or stack:
        if node is None:
            node = stack.pop()
            articles -= node.tag in ("article", "main")
            yield node, True
        elif node.tag == "-text":
            yield node, False
        elif not _hidden(node, articles > 0):
            yield node, False
            articles += node.tag in ("article", "main")
            stack.append(node)
            node = node.first_child
            continue
        node = node.next


def _hidden(node: LexborNode, in_article: bool) -> bool:
    if node.tag in _HIDDEN or (node.tag in _PAGE_ALONE and not in_article):
        return True
    return "hidden" in (node.attributes or {})


class _Lines:
    """Lines in the making. `pre` counts the open `pre` elements, in which white space stays."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.pre = 0
        self._now: list[str] = []
        self._verbatim = False

    def add(self, text: str) -> None:
        if not self.pre:
            self._now.append(text)
            return
        for number, piece in enumerate(text.split("\n")):
            if number:
                self.end()
            self._verbatim = True
            self._now.append(piece)

    def end(self) -> None:
        line = "".join(self._now)
        line = line.rstrip() if self._verbatim else " ".join(line.split())
        if line or (self._verbatim and self.pre):
            self.done.append(line)
        self._now, self._verbatim = [], False
