"""PatentMIA from patent pages a user has (Zhang et al. 2024, DC-PDD, section 2.2).

The paper takes 5,000 Chinese patents published before 2023-01-01 as members and 5,000 with a priority date after
2024-03-01 as non-members, cleans the pages (it does not say how), and of each takes 512 consecutive words (jieba) from
a random place.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import NoReturn

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from pretrace.corpora.columns import listed, mended, name_of, shown
from pretrace.corpora.dates import Days, cutoff_day, days
from pretrace.corpora.documents import unreadable_explained
from pretrace.corpora.folders import walk
from pretrace.corpora.near_copies import Hashes, shingles
from pretrace.corpora.opening import every_row
from pretrace.corpora.packing import ending_of, not_utf8, open_unpacked, without_packing
from pretrace.corpora.reading import refuse_repeated_ids
from pretrace.errors import ExpressionError, TextsError
from pretrace.plugins.build import writing
from pretrace.plugins.build.segmenting import ChineseWords, chinese_share
from pretrace.plugins.build.writing import Row, blind_baseline
from pretrace.registry import require
from pretrace.results.rounding import plural
from pretrace.results.wording import say
from pretrace.settings import COLUMNS, check_ranges, option, seed_option

# A patent's text and dates out of an HTML page, by rule. Pages as Google Patents lays them out are read section by
# section (abstract, description, claims); of any other page the visible text is taken, without navigation and the
# like. Dates are those of the page itself: what stands in its tables of cited and similar patents is passed over.

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

    @classmethod
    def earliest(cls, written: Mapping[str, list[str]], where: str = "") -> Dates:
        """The earliest of the dates that were written as each; `where` is what their names begin with."""
        known = (filter(None, map(days, written.get(where + name, ()))) for name in ("published", "priority"))
        return cls(*(min(some, key=lambda one: (one.first, one.last), default=None) for some in known))

    def or_else(self, other: Dates) -> Dates:
        """These dates, and those of the other for what is not known here."""
        return Dates(self.published or other.published, self.priority or other.priority)


def read_markup(html: str) -> tuple[str, Dates]:
    """The text of a page, a line a block of it, and its dates."""
    page = _Page(html)
    marked, meta = (Dates.earliest(page.dates, where) for where in ("", "meta "))
    whole, labelled = take_labels(_lines(page.pieces))
    sections = [(piece, around) for piece, around in page.pieces if "section" in around]
    text = take_labels(_lines(sections))[0] if sections else whole
    return text, marked.or_else(meta).or_else(labelled)


def take_labels(text: str) -> tuple[str, Dates]:
    """A text without the lines that only give its dates and numbers ("公开日：2019-05-21"), and those dates. A label
    and what it names stand alone on a line, or on two; several may share one. What a sentence says of another patent's
    dates is not such a line. They are taken out since they would give the answer away, and so are filing dates and
    numbers, which hold the year, though no date is read from them."""
    lines, at = text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 0
    kept: list[str] = []
    found = defaultdict[str, list[str]](list)
    while at < len(lines):
        line, taken = " ".join(lines[at].split()), 1
        fields = _fields(line)
        if not fields and at + 1 < len(lines) and _LABEL.fullmatch(line):
            fields, taken = _fields(f"{line} {' '.join(lines[at + 1].split())}"), 2
        if not fields:
            kept.append(lines[at])
        for name, value in fields:
            found[name].append(value)
        at += taken if fields else 1
    return "\n".join(kept), Dates.earliest(found)


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


_MARKED = {"publicationdate": "published", "datepublished": "meta published", "prioritydate": "priority"}
"""What a property says of a date."""


class _Page:
    """Collects what is visible, each piece with what the tags around it mean, and the dates that are marked as such."""

    def __init__(self, html: str) -> None:
        """Every tag becomes an empty element with its name as an attribute, and what is open is kept here. The
        standard's rules of nesting search all open elements at most tags, so that a tree of 50,000 nested ones takes a
        minute; and they drop the rows and cells of a table that stand outside of one, which may say that a date is
        another patent's."""
        self.pieces: list[tuple[str, frozenset[str]]] = []
        self.dates = defaultdict[str, list[str]](list)
        # tag, and what it and those around it mean to us; the first is never closed
        self._open: list[tuple[str, frozenset[str]]] = [("", frozenset())]
        self._tags, self._awaited = Counter[str](), ""
        flat = _TAG.sub(
            lambda m: f"<{_FLAT} {_WAS}={m[1]}{m[2]}/ {m[3]}" if m[3] else f"<{_FLAT} {_WAS}={m[1]}{m[2]} ",
            mended(html)[0],
        )
        tree = LexborHTMLParser(f"<body>{flat}")  # kept by name: nodes do not keep it in every version
        node = tree.body.first_child if tree.body else None
        while node is not None:
            if node.tag == "-text":
                text = node.text(deep=False)
                if self._awaited and text.strip():
                    self.dates[self._awaited].append(text.strip())
                    self._awaited = ""
                self._add(re.sub(r"\s+", " ", text))
            elif node.tag in (_FLAT, "script", "style"):
                given = {name: value or "" for name, value in node.attributes.items()}
                written = given.pop(_WAS, f"{node.tag}/").lower()  # "p", "/p" or "p/"
                tag = written.strip("/")
                if not written.startswith("/"):
                    self._start(tag, given)
                if written.startswith("/") or (written.endswith("/") and tag not in _VOID):
                    self._end(tag)
            node = node.next

    def _start(self, tag: str, given: Mapping[str, str]) -> None:
        prop = given.get("itemprop", "").lower()
        if prop in _MARKED and "other" not in self._around():
            if written := given.get("datetime") or given.get("content"):
                self.dates[_MARKED[prop]].append(written)
            else:
                self._awaited = _MARKED[prop]
        if tag not in _INLINE:
            self._add("\n")
        if tag in _VOID:
            if tag == "meta":
                self._meta(given)
            return
        if tag == "body":
            self._close(1)  # the end of <head> may go without saying
        if tag in _CLOSED_BY_THE_NEXT and self._open[-1][0] == tag:
            self._close(len(self._open) - 1)
        # a heading within a section is the site's, not the patent's
        is_hidden = tag in _HIDDEN or (tag == "h2" and "section" in self._around())
        is_source = "google-src-text" in given.get("class", "")
        meaning = "hidden" if is_hidden else "source" if is_source else ""
        if prop in _SECTIONS and tag in ("section", "div"):
            meaning = "section"
        elif prop.startswith(_OTHER_PATENTS):
            meaning = "other"
        self._open.append((tag, self._around() | {meaning}))
        self._tags[tag] += 1

    def _end(self, tag: str) -> None:
        self._awaited = ""
        if tag not in _INLINE:
            self._add("\n")
        if self._tags[tag]:
            self._close(next(k for k in reversed(range(len(self._open))) if self._open[k][0] == tag))

    def _close(self, place: int) -> None:
        """Close the tag at a place, and all within it."""
        self._tags.subtract(tag for tag, _ in self._open[place:])
        del self._open[place:]

    def _around(self) -> frozenset[str]:
        """What the open tags mean."""
        return self._open[-1][1]

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


def _lines(pieces: Sequence[tuple[str, frozenset[str]]]) -> str:
    """The pieces as lines. Where a page shows a translation and keeps what was translated, the latter is it."""
    originals = any("source" in around for _, around in pieces)
    kept = "".join(piece for piece, around in pieces if not originals or "source" in around or piece == "\n")
    lines = (" ".join(line.split()) for line in kept.split("\n"))
    return "\n".join(line for line in lines if line)


# Pages a user has: a folder of HTML and text files, or a table with a page a row.


PAGES = "Pages"
"""The group of options on the pages."""

_MARKUP = (".html", ".htm")
_PLAIN = (".txt",)
_TEXT_NAMES = ("text", "html", "content", "input")
_PUBLISHED_NAMES = ("published", "publication_date", "publicationDate")
_PRIORITY_NAMES = ("priority", "priority_date", "priorityDate")
# Dates in a file's name: CN1.published-2019-05-21.priority-2018-01-05.txt.
_IN_NAME = re.compile(r"(?P<what>published|priority)[-_=.](?P<date>\d{4}-?\d\d-?\d\d)(?=\D|$)", re.IGNORECASE)
_LOOKS_LIKE_MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|article)\b", re.IGNORECASE)
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PatentPage:
    """One patent page: its text, a line a block, and its dates."""

    id: str
    text: str
    dates: Dates


@dataclass(frozen=True, slots=True)
class PageColumns:
    """Columns of a table of pages; None stands for the usual names, `_TEXT_NAMES` and the like."""

    text: str | None = COLUMNS.key(None, "Column of the page; text, html, content or input unless named.")
    published: str | None = COLUMNS.key(None, "Column of the publication date; published unless named.")
    priority: str | None = COLUMNS.key(None, "Column of the priority date; priority unless named.")
    id: str | None = COLUMNS.key(None, "Column of the page's id; id unless named.")


@dataclass(frozen=True, slots=True)
class PatentPages:
    """Where the pages are: a folder or a table, its columns, and a table of dates."""

    source: Path = option(
        help="A folder of .html and .txt files, or a .jsonl, .csv, .tsv or .parquet file with a page a row.",
        metavar="PAGES",
        path="in",
    )
    columns: PageColumns = field(default_factory=PageColumns)
    dates: Path | None = option(
        None,
        "A table with the columns page, published and priority, for pages without dates.",
        panel=PAGES,
        path="in",
    )


class Pages:
    """The pages of a file or folder, read once; `notes` then tells what was mended. The table of dates comes before the
    dates of a page, which it names by its path with or without ending, or by its id."""

    def __init__(self, given: PatentPages) -> None:
        self.source, self.columns = given.source, given.columns
        self.known: dict[str, Dates] = {}
        self._used: set[str] = set()
        self._other_files, self._encodings = 0, Counter[str]()
        needed = {"page", "published", "priority"}
        for where, row in _rows(given.dates, needed, ("page",)) if given.dates else ():
            page = _name_in(row, "page", where)
            if page in self.known:
                raise TextsError(f"{where} names the page {page!r} a second time.")
            self.known[page] = Dates(days(row.get("published")), days(row.get("priority")))

    def __iter__(self) -> Iterator[PatentPage]:
        names: list[str] = []
        for page in self._of_folder() if self.source.is_dir() else self._of_table():
            names.append(page.id)
            stem = re.sub(r"\.(html?|txt)$", "", without_packing(page.id), flags=re.IGNORECASE)
            if name := next((one for one in (page.id, stem) if one in self.known), None):
                self._used.add(name)
                page = replace(page, dates=self.known[name].or_else(page.dates))
            yield page
        refuse_repeated_ids(names, shown(self.source))

    def notes(self) -> list[str]:
        """What a card should tell of the reading, in sentences."""
        files, unused = self._other_files, sorted(set(self.known) - self._used)
        told = [f"{plural(files, 'file')} in the folder left out: neither .html nor .txt."] if files else []
        if unused:
            pages = f"{plural(len(unused), 'page')} that are not among the pages, such as {unused[0]!r}"
            told.append(f"The dates file names {pages}.")
        others = sorted(self._encodings.items())
        return told + [f"{plural(n, 'page')} not in UTF-8 read as {name}." for name, n in others]

    def _of_folder(self) -> Iterator[PatentPage]:
        below = walk(self.source)
        pages = {name: file for name, file in below.files.items() if ending_of(name) in (*_MARKUP, *_PLAIN)}
        self._other_files = len(below.files) - len(pages)
        if not pages:
            yield from self._of_table()
            return
        for name, why in below.faults.items():
            raise TextsError(f"{shown(self.source / name)} cannot be read: {why}.")
        for name, file in pages.items():
            with unreadable_explained(shown(file)), open_unpacked(file) as stream:
                content = self._decoded(stream.read(), file)
            text, dates = read_markup(content) if ending_of(name) in _MARKUP else take_labels(content)
            told = {found["what"].lower(): days(found["date"]) for found in _IN_NAME.finditer(name)}
            in_name = Dates(told.get("published"), told.get("priority"))
            yield PatentPage(mended(name)[0], text, in_name.or_else(dates))

    def _of_table(self) -> Iterator[PatentPage]:
        columns = self.columns
        needed = {name for name in (columns.published, columns.priority, columns.id) if name}
        names = (columns.text,) if columns.text else _TEXT_NAMES
        dated = [
            (own,) if own else usual
            for own, usual in ((columns.published, _PUBLISHED_NAMES), (columns.priority, _PRIORITY_NAMES))
        ]
        for number, (where, row) in enumerate(_rows(self.source, needed, names)):
            column = next((name for name in names if row.get(name)), names[0])
            raw = row.get(column)
            if not isinstance(raw, str):
                raise TextsError(f"{where} has no text in the column {column!r}: mend it or take it out.")
            marked = column == "html" or _LOOKS_LIKE_MARKUP.match(raw)
            text, dates = read_markup(raw) if marked else take_labels(raw)
            cells = (
                next((row[one] for one in some if row.get(one) not in (None, "")), None) for some in dated
            )
            name = _name_in(row, columns.id or "id", where) or str(number)
            yield PatentPage(name, text, Dates(*map(days, cells)).or_else(dates))

    def _decoded(self, raw: bytes, file: Path) -> str:
        """The text of a file: UTF-8, else what it says it is, else GB 18030 as Chinese pages are; or TextsError."""
        said = _CHARSET.search(raw[:2048])
        for name in ("utf-8", *((said[1].decode(),) if said else ()), "gb18030"):
            with suppress(UnicodeDecodeError, LookupError):
                content = raw.removeprefix(codecs.BOM_UTF8).decode(name)
                if name != "utf-8":
                    self._encodings[name.lower()] += 1
                return mended(content)[0]
        raise TextsError(not_utf8(raw, shown(file)))


def _rows(source: Path, needed: set[str], texts: Sequence[str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The rows of a table, each with what messages call it; all columns of `needed` are there, and in the first row one
    of `texts`."""
    found: dict[str, None] = {}
    table = shown(source)
    for number, row in enumerate(every_row(source)):
        if not found and not any(name in row.fields for name in texts):
            _refuse_column(table, "' or '".join(texts), row.fields)
        found |= dict.fromkeys(row.fields)
        yield f"{table}: row {number}", row.fields
    if not found:
        raise TextsError(f"{table} holds no texts: give a source with at least one.")
    for name in sorted(needed - found.keys()):
        _refuse_column(table, name, found)


def _refuse_column(table: str, missing: str, found: Collection[str]) -> NoReturn:
    raise TextsError(f"{table} has no column '{missing}'; it has {listed(found)}: name another one.")


def _name_in(row: Mapping[str, object], column: str, where: str) -> str:
    """An id as a string, "" where there is none; TextsError for a list or an object."""
    try:
        return name_of(row.get(column))
    except ValueError:
        found = str(row.get(column))[:60]
        raise TextsError(f"{where} holds {found} where a name or a number was wanted: mend it.") from None


def sort_page(dates: Dates, before: date, after: date) -> bool | str:
    """True for a member, False for a non-member, or in words why a page is neither."""
    published, priority = dates.published, dates.priority
    if published is None and priority is None:
        return "no usable date"
    member = published is not None and published.last < before
    other = priority is not None and priority.first > after
    if (member and other) or (published and priority and priority.first > published.last):
        return "its dates contradict each other"
    if member or other:
        return member
    if published and published.first < before:
        return f"published before or after {before}: the date does not tell"
    if priority and priority.last > after:
        return f"priority before or after {after}: the date does not tell"
    if published and published.last > after and priority is None:
        return "no priority date"
    if published is None:
        return "no publication date"
    return "between the two dates"


# What is taken out of pages before anything is cut from them: lines of the site, and pages told twice.


_FEWEST_PAGES = 10
"""A line is never boilerplate that stands on fewer pages."""
_BINS, _BAND = 64, 4
_FINE = 512
"""Bins of the sketch from which the index is estimated before it is computed."""


def find_boilerplate(texts: Iterable[str], share: float) -> dict[str, int]:
    """Lines that stand on more than `share` of the texts, and on 10 at least, with the number of texts."""
    pages = 0
    found: Counter[str] = Counter()
    for text in texts:
        pages += 1
        found.update({line.strip() for line in text.split("\n") if line.strip()})
    least = max(_FEWEST_PAGES, int(share * pages) + 1)
    often = [(line, count) for line, count in found.items() if count >= least]
    return dict(sorted(often, key=lambda item: (-item[1], item[0])))


def drop_lines(text: str, lines: Mapping[str, int]) -> str:
    """The text without those lines."""
    return "\n".join(line for line in text.split("\n") if line.strip() not in lines)


class Near:
    """Finds texts that are nearly the same: whose sets of 8-character shingles have a Jaccard index of at least `least`
    (0.7 to 1). Candidates are those that agree in a band of a one-permutation MinHash of 64 bins (16 bands of 4: at an
    index of 0.7 one pair in a hundred goes unseen, at 0.8 one in five thousand); of them the index is computed."""

    def __init__(self, least: float) -> None:
        self.least = least
        self._texts: list[str] = []
        self._sketches: list[Hashes] = []
        self._bands: dict[tuple[int, bytes], list[int]] = {}

    def known(self, text: str) -> bool:
        """Whether a text like this was given before; one that was not is remembered."""
        hashes = shingles(text)
        sketch, bands = _sketch(hashes, _FINE), np.split(_sketch(hashes, _BINS), _BINS // _BAND)
        keys = [(number, band.tobytes()) for number, band in enumerate(bands) if band.any()]
        for place in dict.fromkeys(place for key in keys for place in self._bands.get(key, ())):
            # an estimate from 512 bins is off by 0.1 less than once in ten thousand times; without it pages of one
            # template would all be compared in full, which takes hours for thousands
            other = self._sketches[place]
            used, same = np.count_nonzero(other | sketch), np.count_nonzero((other == sketch) & (other != 0))
            is_likely = same >= (self.least - 0.1) * used
            if is_likely and jaccard(hashes, shingles(self._texts[place])) >= self.least:
                return True
        for key in keys:
            self._bands.setdefault(key, []).append(len(self._texts))
        self._texts.append(text)
        self._sketches.append(sketch)
        return False


def jaccard(one: Hashes, other: Hashes) -> float:
    """Size of the intersection over that of the union."""
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / max(1, len(one) + len(other) - common)


def _sketch(hashes: Hashes, bins: int) -> Hashes:
    """The smallest hash in each of so many equal ranges (a power of two), uint64; 0 where a range holds none."""
    shift = np.uint64(64 - bins.bit_length() + 1)
    numbers = np.arange(bins, dtype=np.uint64)
    places = np.searchsorted(hashes, numbers << shift)
    held = np.append(hashes, np.uint64(0))[places]
    return np.where(held >> shift == numbers, held, np.uint64(0))


# From pages to rows.


SIDES, CLEANING, CUTTING = "Members and non-members", "Cleaning", "Cutting"
"""Groups of options."""

_WHY = "patents of different years differ in their subjects and words."


def _lengths(written: str) -> tuple[int, ...]:
    parts = [part.strip() for part in written.split(",") if part.strip()]
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise ExpressionError(
            f"--lengths wants whole numbers, such as 64,128,256,512; found {written[:60]!r}."
        )
    return tuple(map(int, parts))


@dataclass(frozen=True, slots=True)
class PatentSettings:
    """How the benchmark is made. A row is `words` jieba words; with `lengths`, the first n of them for each n.
    `chinese` is the least share of Chinese characters of a page, `boilerplate` the share of pages from which on a line
    is taken out, `near` the Jaccard index from which on two pages are one (0: exact copies alone)."""

    before: str = option("2023-01-01", "Members were published before this day.", panel=SIDES)
    after: str = option("2024-03-01", "Non-members have a priority date after this day.", panel=SIDES)
    words: int = option(512, "Words of a snippet, as jieba segments them.", panel=CUTTING, least=1)
    lengths: tuple[int, ...] = option(
        (),
        "Give the first N words of each snippet instead, one row for each length: 64,128,256,512.",
        panel=CUTTING,
        read=_lengths,
    )
    size: int | None = option(
        None,
        "The most pages of either class (the paper: 5000); as many as there are unless given.",
        panel=SIDES,
        least=1,
    )
    chinese: float = option(
        0.3, "Least share of Chinese characters in a page.", panel=CLEANING, least=0, most=1
    )
    boilerplate: float = option(
        0.2,
        "Take out lines that stand on more than this share of the pages.",
        panel=CLEANING,
        least=0,
        most=1,
    )
    near: float = option(
        0.8,
        "Pages this alike are one: Jaccard index of 8-character shingles, 0.7 to 1; 0 for exact copies alone.",
        panel=CLEANING,
    )
    seed: int = seed_option()

    def __post_init__(self) -> None:
        check_ranges(self)
        before, after = self.edges
        require(before <= after, say("build.refused.order_of_days", before=before, after=after))
        good = len({*self.lengths} & {*range(1, self.words + 1)}) == len(self.lengths)
        require(good, say("build.refused.lengths", words=self.words, found=[*self.lengths]))
        require(self.near == 0 or 0.7 <= self.near <= 1, say("build.refused.near", near=self.near))

    @property
    def edges(self) -> tuple[date, date]:
        """The day before which members were published, and the one after which non-members have their priority."""
        return cutoff_day(self.before, "before"), cutoff_day(self.after, "after")


def build_patents(
    pages: PatentPages,
    out: Path,
    settings: PatentSettings,
    *,
    on_progress: writing.OnProgress = lambda what, done: None,
) -> writing.Built:
    """The benchmark, written to `out` as JSON lines (id, text, label, group, date, length) with its card. PretraceError
    for pages that cannot be read, without jieba, where a class has no page, and where `out` holds something else."""
    where = {"pages": str(pages.source), "dates": None if pages.dates is None else str(pages.dates)}
    record = {**where, "columns": asdict(pages.columns), **asdict(settings)}
    writing.check_place(out, record)
    builder, reader = _Builder(settings, on_progress), Pages(pages)
    dated = builder.dated(reader)
    lines = find_boilerplate((row["text"] for row in dated), settings.boilerplate)
    rows = builder.drawn([{**row, "text": drop_lines(row["text"], lines)} for row in dated])
    longest = [row for row in rows if row["length"] == max(settings.lengths, default=settings.words)]
    near = f" Near copies: a Jaccard index of {settings.near:g} or more over shingles of 8 characters."
    return builder.write(
        out,
        rows,
        blind_baseline(longest, seed=settings.seed, why=_WHY)[0],
        kind="PatentMIA, built",
        settings=record,
        counts={"rows": len(rows)},
        boilerplate_lines=dict(list(lines.items())[:50]),
        notes=[
            *reader.notes(),
            f"{len(lines)} lines that stand on more than {settings.boilerplate:.0%} of the pages were taken out.",
            "Copies were told by their text without white space; of two the member, else the older stayed."
            + (near if settings.near else ""),
            "Words are those of jieba's default cut, punctuation marks among them and white space not.",
        ],
        versions={"jieba": builder.words.version},
    )


class _Builder(writing.Building):
    """The steps from pages to rows, each counting what it leaves out."""

    def __init__(self, settings: PatentSettings, on_progress: writing.OnProgress) -> None:
        super().__init__("pages", on_progress)
        self.settings, self.words = settings, ChineseWords()

    def dated(self, pages: Iterable[PatentPage]) -> list[Row]:
        """The pages whose dates tell on which side they are."""
        found, edges = list[Row](), self.settings.edges
        for page in pages:
            dates = page.dates
            self.note(page.id, page.text, str(dates.published), str(dates.priority))
            label = sort_page(dates, *edges)
            if isinstance(label, bool) and chinese_share(page.text) < self.settings.chinese:
                label = "too little Chinese"
            if isinstance(label, str):
                self.left_out[label].append(page.id)
            else:
                day = str(dates.published if label else dates.priority)
                row = {"id": page.id, "text": page.text, "label": int(label), "group": page.id, "date": day}
                found.append(row)
        return found

    def drawn(self, pages: Sequence[Row]) -> list[Row]:
        """As many rows of either class, in the order of their ids, of pages without copies: of two the older stays, so
        that a copy of a member is no non-member. TextsError where a class is empty."""
        near = Near(self.settings.near).known if self.settings.near else lambda text: False
        pages = self.distinct(sorted(pages, key=lambda row: (-row["label"], row["date"], row["id"])), near)
        sides = {side: {row["id"]: row for row in pages if row["label"] == side} for side in (True, False)}
        first, second = sorted(sides, key=lambda side: (len(sides[side]), not side))
        few = self._cut(sides[first], first, self.settings.size)
        many = self._cut(sides[second], second, len(few))
        for name in list(few)[len(many) :]:
            self.left_out["not drawn"].append(name)
            del few[name]
        return [row for _, rows in sorted((few | many).items()) for row in rows]

    def _cut(self, pages: Mapping[str, Row], member: bool, most: int | None) -> dict[str, list[Row]]:
        """The rows of the first pages that are long enough, in an order drawn from seed and id; or TextsError."""
        found: dict[str, list[Row]] = {}
        for name in writing.drawn_order(pages, self.settings.seed, "patent page"):
            if most is not None and len(found) >= most:
                self.left_out["not drawn"].append(name)
            elif rows := self._snippet(pages[name]):
                found[name] = rows
                self.on_progress("cutting members" if member else "cutting non-members", len(found))
            else:
                self.left_out["too short"].append(name)
        if not found:
            before, after = self.settings.edges
            side = f"published before {before}" if member else f"whose priority date is after {after}"
            numbers = {"words": self.settings.words, "read": self.read, "left_out": self.left_out}
            raise TextsError(say("build.refused.no_page", of_side=side, **numbers))
        return found

    def _snippet(self, page: Row) -> list[Row]:
        """The rows of one page; none where it has too few words."""
        settings, text, name = self.settings, page["text"], page["id"]
        spans = self.words.spans(text) if len(text) >= settings.words else []
        places = len(spans) - settings.words + 1
        if places < 1:
            return []
        # the place comes from the page's own name, so that other pages may come and go
        start = int(np.random.default_rng(writing.keyed("snippet", settings.seed, name)).integers(places))
        rows = []
        for length in settings.lengths or (settings.words,):
            cut = text[spans[start][0] : spans[start + length - 1][1]]
            called = f"{name}#{length}" if settings.lengths else name
            rows.append({**page, "id": called, "text": cut, "length": length})
        return rows
