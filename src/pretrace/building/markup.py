"""A patent's text and dates out of an HTML page, by rule.

Pages as Google Patents lays them out are read section by section (abstract, description, claims); of any
other page the visible text is taken, without navigation and the like. Dates are those of the page itself:
what stands in its tables of cited and similar patents is passed over.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from pretrace.corpora.columns import mended
from pretrace.corpora.dates import Days, days

_SECTIONS = frozenset(("abstract", "description", "claims"))
_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr",
))  # fmt: skip
_HIDDEN = frozenset((
    "head", "script", "style", "noscript", "template", "nav", "header", "footer", "aside", "button", "select",
    "svg",
))  # fmt: skip
_INLINE = frozenset((
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "ins", "kbd", "mark", "q", "s", "small",
    "span", "strong", "sub", "sup", "time", "u",
))  # fmt: skip
_CLOSED_BY_THE_NEXT = frozenset(("p", "li", "td", "th", "tr", "dt", "dd", "option"))
_OTHER_PATENTS = (
    "backwardreferences", "forwardreferences", "similardocuments", "docdbfamily", "applications",
)  # fmt: skip

_TAG = re.compile(
    r"<(/?)(?!(?:script|style)(?![\w:-]))([a-z][\w:-]*)((?:[^<>]*[\s\"'])?/(?=>))?", re.IGNORECASE | re.ASCII
)
_FLAT = "param"  # an empty element that the standard lets stand anywhere in a body
_WAS = "data-was"

_PUBLISHED_META = frozenset((
    "citation_publication_date", "citation_date", "article:published_time", "datepublished", "publication_date",
    "publicationdate", "pubdate", "dc.date", "dc.date.issued", "dcterms.issued", "dcterms.date",
))  # fmt: skip
_PRIORITY_META = frozenset(("citation_priority_date", "priority_date", "prioritydate", "dc.date.priority"))
_FILED = frozenset(("datesubmitted", "dcterms.datesubmitted"))

# A field as patent offices print it: "(43)申请公布日 2019.05.21", "【优先权日】2024-03-05", "申请号：202410012345.6".
_LABEL = re.compile(
    r"(?:[(\uff08\[【]\d\d[)\uff09\]】] ?)?[\[【]?(?:"
    r"(?P<published>(?:申请|授权)?公(?:开|布|告)(?:[(\uff08]公告[)\uff09])?日期?|publication date|published(?: on)?)|"
    r"(?P<priority>(?:最早)?优先权日期?|priority date)|"
    r"(?P<filed>(?:专利)?(?:申请|授权)日期?|(?:filing|application|grant) date)|"
    r"(?P<number>(?:申请|授权)?公(?:开|布|告)(?:[(\uff08]公告[)\uff09])?号|(?:专利)?申请号|专利号|优先权号|"
    r"(?:publication|application|patent) number)"
    r")[\]】]? ?[:\uff1a|]? ?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:[A-Z]{2} ?)?\d[\d ./]{3,20}(?:[A-Z]\d?)?", re.IGNORECASE)
_BETWEEN = " ,;|。\uff0c\uff1b"
_LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class Dates:
    """When a patent was published, and the date its priority counts from; None where that is not known."""

    published: Days | None = None
    priority: Days | None = None

    def or_else(self, other: Dates) -> Dates:
        """These dates, and those of the other for what is not known here."""
        return Dates(self.published or other.published, self.priority or other.priority)


def read_markup(html: str) -> tuple[str, Dates]:
    """The text of a page, a line a block of it, and its dates."""
    page = _Page()
    page.read(html)
    found = {name: _earliest(some) for name, some in page.dates.items()}
    marked = Dates(found["published"], found["priority"])
    meta = Dates(found["meta published"], found["meta priority"])
    whole, labelled = take_labels(_lines(page.pieces))
    sections = [(piece, around) for piece, around in page.pieces if "section" in around]
    text = take_labels(_lines(sections))[0] if sections else whole
    return text, marked.or_else(meta).or_else(labelled)


def take_labels(text: str) -> tuple[str, Dates]:
    """A text without the lines that only give its dates and numbers ("公开日：2019-05-21"), and those dates.

    A label and what it names stand alone on a line, or on two; several may share one. What a sentence says of
    another patent's dates is not such a line. They are taken out since they would give the answer away, and so
    are filing dates and numbers, which hold the year, though no date is read from them.
    """
    lines = text.split("\n")
    kept: list[str] = []
    found: dict[str, list[str]] = {"published": [], "priority": []}
    at = 0
    while at < len(lines):
        taken, fields = _fields_from(lines, at)
        for name, value in fields:
            if name in found:
                found[name].append(value)
        kept += [] if taken else [lines[at]]
        at += taken or 1
    return "\n".join(kept), Dates(_earliest(found["published"]), _earliest(found["priority"]))


def _fields_from(lines: Sequence[str], at: int) -> tuple[int, list[tuple[str, str]]]:
    """How many lines from `at` on are labels and what they name, and those: 0 where it is another line."""
    line = " ".join(lines[at].split())
    if fields := _fields(line):
        return 1, fields
    if at + 1 < len(lines) and _LABEL.fullmatch(line):
        fields = _fields(f"{line} {' '.join(lines[at + 1].split())}")
    return (2 if fields else 0), fields


def _fields(line: str) -> list[tuple[str, str]]:
    """The labels of a line with their values; none unless the whole line consists of them."""
    labels = list(_LABEL.finditer(line)) if len(line) <= _LONGEST_LINE else []
    if not labels or labels[0].start() > 0:
        return []
    ends = [*(label.start() for label in labels[1:]), len(line)]
    fields = [
        (str(label.lastgroup), line[label.end() : end].strip(_BETWEEN))
        for label, end in zip(labels, ends, strict=True)
    ]
    sound = (_NUMBER.fullmatch(value) if name == "number" else days(value) for name, value in fields)
    return fields if all(sound) else []


def _earliest(written: Iterable[str]) -> Days | None:
    known = [found for found in map(days, written) if found]
    return min(known, key=lambda one: (one.first, one.last), default=None)


_MARKED = {"publicationdate": "published", "datepublished": "meta published", "prioritydate": "priority"}
"""What a property says of a date."""


class _Page:
    """Collects what is visible, each piece with what the tags around it mean, and the dates that are marked as such."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, frozenset[str]]] = []
        self.dates: dict[str, list[str]] = {
            name: [] for name in ("published", "priority", "meta published", "meta priority")
        }
        self._open: list[tuple[str, frozenset[str]]] = []  # tag, and what it and those around it mean to us
        self._tags: Counter[str] = Counter()
        self._awaited = ""

    def read(self, html: str) -> None:
        """Every tag becomes an empty element with its name as an attribute, and what is open is kept here.

        The standard's rules of nesting search all open elements at most tags, so that a tree of 50,000 nested ones
        takes a minute; and they drop the rows and cells of a table that stand outside of one, which may say that a
        date is another patent's.
        """
        flat = _TAG.sub(_flat_tag, mended(html)[0])
        tree = LexborHTMLParser(f"<body>{flat}")  # kept by name: nodes do not keep it in every version
        node = tree.body.first_child if tree.body else None
        while node is not None:
            if node.tag == "-text":
                self._text(node.text(deep=False))
            elif node.tag in (_FLAT, "script", "style"):
                given = {name: value or "" for name, value in node.attributes.items()}
                if given.get("type", "").lower() == "application/ld+json" and node.tag == "script":
                    self.dates["meta published"] += _published_in(node.text())
                written = given.pop(_WAS, f"{node.tag}/").lower()  # "p", "/p" or "p/"
                tag = written.strip("/")
                if not written.startswith("/"):
                    self._start(tag, given)
                if written.startswith("/") or (written.endswith("/") and tag not in _VOID):
                    self._end(tag)
            node = node.next

    def _start(self, tag: str, given: Mapping[str, str]) -> None:
        if tag == "meta":
            self._meta(given)
        prop = given.get("itemprop", "").lower()
        if prop in _MARKED and "other" not in self._around():
            if written := given.get("datetime") or given.get("content"):
                self.dates[_MARKED[prop]].append(written)
            else:
                self._awaited = _MARKED[prop]
        if tag not in _INLINE:
            self._add("\n")
        if tag in _VOID:
            return
        if tag == "body":
            self._close(0)  # the end of <head> may go without saying
        if tag in _CLOSED_BY_THE_NEXT and self._open and self._open[-1][0] == tag:
            self._close(len(self._open) - 1)
        self._open.append((tag, self._around() | self._meaning(tag, given)))
        self._tags[tag] += 1

    def _end(self, tag: str) -> None:
        self._awaited = ""
        if tag not in _INLINE:
            self._add("\n")
        if self._tags[tag]:
            last = next(place for place in reversed(range(len(self._open))) if self._open[place][0] == tag)
            self._close(last)

    def _close(self, place: int) -> None:
        """Close the tag at a place, and all within it."""
        self._tags.subtract(tag for tag, _ in self._open[place:])
        del self._open[place:]

    def _around(self) -> frozenset[str]:
        """What the open tags mean."""
        return self._open[-1][1] if self._open else frozenset()

    def _text(self, text: str) -> None:
        if self._awaited and text.strip():
            self.dates[self._awaited].append(text.strip())
            self._awaited = ""
        self._add(re.sub(r"\s+", " ", text))

    def _meaning(self, tag: str, given: Mapping[str, str]) -> frozenset[str]:
        prop = given.get("itemprop", "").lower()
        if prop in _SECTIONS and tag in ("section", "div"):
            return frozenset(("section",))
        if prop.startswith(_OTHER_PATENTS):
            return frozenset(("other",))
        inside = "section" in self._around()
        if tag in _HIDDEN or (tag == "h2" and inside):  # such a heading is the site's, not the patent's
            return frozenset(("hidden",))
        return frozenset(("source",)) if "google-src-text" in given.get("class", "") else frozenset()

    def _meta(self, given: Mapping[str, str]) -> None:
        name = (given.get("name") or given.get("property") or "").lower()
        scheme = given.get("scheme", "").lower()
        if name in _PRIORITY_META or (name == "dc.date" and scheme == "priority"):
            self.dates["meta priority"].append(given.get("content", ""))
        elif name in _PUBLISHED_META and scheme not in _FILED:
            self.dates["meta published"].append(given.get("content", ""))

    def _add(self, piece: str) -> None:
        if not self._around() & {"hidden", "other"}:
            self.pieces.append((piece, self._around()))


def _flat_tag(found: re.Match[str]) -> str:
    slash, tag, to_the_end = found.groups()
    return f"<{_FLAT} {_WAS}={slash}{tag}/ {to_the_end}" if to_the_end else f"<{_FLAT} {_WAS}={slash}{tag} "


def _lines(pieces: Sequence[tuple[str, frozenset[str]]]) -> str:
    """The pieces as lines. Where a page shows a translation and keeps what was translated, the latter is it."""
    originals = any("source" in around for _, around in pieces)
    kept = "".join(piece for piece, around in pieces if not originals or "source" in around or piece == "\n")
    lines = (" ".join(line.split()) for line in kept.split("\n"))
    return "\n".join(line for line in lines if line)


def _published_in(data: str) -> list[str]:
    """The dates of publication in linked data (JSON-LD)."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return []
    entries = found if isinstance(found, list) else [found]
    dates = (entry.get("datePublished") for entry in entries if isinstance(entry, dict))
    return [date for date in dates if isinstance(date, str)]
