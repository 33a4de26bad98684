"""PatentMIA from patent pages a user has (Zhang et al. 2024, DC-PDD, section 2.2).

The paper takes 5,000 Chinese patents published before 2023-01-01 as members and 5,000 with a priority date after
2024-03-01 as non-members, cleans the pages (it does not say how), and of each takes 512 consecutive words (jieba) from
a random place.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import re
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from pretrace import __version__
from pretrace.corpora.dates import Days, cutoff_day, days
from pretrace.corpora.documents import decode_page, parse_page, visible_text
from pretrace.corpora.folders import walk
from pretrace.corpora.formats import ending_of, open_unpacked, unreadable_explained, without_packing
from pretrace.corpora.opening import every_row, open_stream
from pretrace.corpora.reading import Columns, mended, not_utf8, refuse_repeated_ids, shown
from pretrace.errors import MissingPackageError, TextsError
from pretrace.plugins.build import writing
from pretrace.plugins.build.writing import Row, add_strings, blind_baseline
from pretrace.registry import require
from pretrace.results.wording import plural, say
from pretrace.settings import COLUMNS, check_ranges, option, seed_option
from pretrace.statistics.documents import text_bands

# A patent's text and dates out of an HTML page, by rule. Pages as Google Patents lays them out are read section by
# section (abstract, description, claims); of any other page the visible text is taken. Dates are those of the page
# itself: its tables of cited and similar patents are removed first.

_SECTION = ":is(section, div):is([itemprop=abstract i], [itemprop=description i], [itemprop=claims i])"
_OTHER_PATENTS = ", ".join(
    f'[itemprop^="{name}" i]'
    for name in ("backwardReferences", "forwardReferences", "similarDocuments", "docdbFamily", "applications")
)
_ORIGINAL = "google-src-text"
"""The class of what stands beside its translation on a page."""
_OF_TABLES = re.compile(r"<(/?)(?:table|thead|tbody|tfoot|tr|td|th)(?![\w:-])", re.IGNORECASE)

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
class _Dates:
    """When a patent was published, and the date its priority counts from; None where that is not known."""

    published: Days | None = None
    priority: Days | None = None

    def __or__(self, other: _Dates) -> _Dates:
        """These dates, and those of the other for what is not known here."""
        return _Dates(self.published or other.published, self.priority or other.priority)


def _earliest(written: Mapping[str, list[str]], where: str = "") -> _Dates:
    """The earliest of the dates that were written as each; `where` is what their names begin with."""
    known = (filter(None, map(days, written.get(where + name, ()))) for name in ("published", "priority"))
    return _Dates(*(min(some, key=lambda one: (one.first, one.last), default=None) for some in known))


def _read_markup(html: str) -> tuple[str, _Dates]:
    """The text of a page, a line a block of it, and its dates. TextsError for tags nested deeper than in any page."""
    # rows and cells as plain blocks, since a parser drops those that stand outside of a table
    page = parse_page(_OF_TABLES.sub(r"<\1div", html))
    # a heading within a section is the site's, not the patent's
    for node in page.css(f"{_OTHER_PATENTS}, {_SECTION} h2"):
        node.decompose()
    for original in page.css(f".{_ORIGINAL}"):
        for node in [*original.parent.iter(include_text=True)] if original.parent else ():
            if _ORIGINAL not in (node.attributes.get("class") or ""):
                node.decompose()
    written = _marked_dates(page)
    dates = _earliest(written) | _earliest(written, "meta ")
    text, labelled = _take_labels(visible_text(page.body))
    if sections := page.css(f"{_SECTION}:not({_SECTION} *)"):
        text = _take_labels("\n".join(filter(None, map(visible_text, sections))))[0]
    return text, dates | labelled


def _marked_dates(page: LexborHTMLParser) -> dict[str, list[str]]:
    """The dates that a page marks as such, by what they are; those of its head begin with "meta "."""
    found = defaultdict[str, list[str]](list)
    for node in page.css("[itemprop]"):
        if what := _MARKED.get((node.attributes["itemprop"] or "").lower()):
            given = node.attributes.get("datetime") or node.attributes.get("content")
            found[what].append(given or node.text(strip=True))
    for node in page.css("meta"):
        name = (node.attributes.get("name") or node.attributes.get("property") or "").lower()
        scheme = (node.attributes.get("scheme") or "").lower()
        if name in _PRIORITY_META or (name == "dc.date" and scheme == "priority"):
            found["meta priority"].append(node.attributes.get("content") or "")
        elif name in _PUBLISHED_META and scheme not in _FILED:
            found["meta published"].append(node.attributes.get("content") or "")
    return found


def _take_labels(text: str) -> tuple[str, _Dates]:
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
    return "\n".join(kept), _earliest(found)


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


_ENDINGS = (".html", ".htm", ".txt")
_USUAL = (
    ("text", "html", "content", "input"),
    ("published", "publication_date", "publicationDate"),
    ("priority", "priority_date", "priorityDate"),
)
"""Usual names of the columns of the page and of its dates."""
# Dates in a file's name: CN1.published-2019-05-21.priority-2018-01-05.txt.
_IN_NAME = re.compile(r"(?P<what>published|priority)[-_=.](?P<date>\d{4}-?\d\d-?\d\d)(?=\D|$)", re.IGNORECASE)
_LOOKS_LIKE_MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|article)\b", re.IGNORECASE)
_Written = tuple[str, str, bool, _Dates]
"""A page as it is written: its id, its characters, whether they are HTML, and what is known of its dates."""


@dataclass(frozen=True, slots=True)
class PatentPages:
    """Where the pages are: a folder or a table, its columns (None stands for the usual names, `_USUAL`), and a table of
    dates."""

    source: Path = option(
        help="A folder of .html and .txt files, or a .jsonl, .csv, .tsv or .parquet file with a page a row.",
        metavar="PAGES",
        path="in",
    )
    text: str | None = COLUMNS.key(None, "Column of the page; text, html, content or input unless named.")
    published: str | None = COLUMNS.key(None, "Column of the publication date; published unless named.")
    priority: str | None = COLUMNS.key(None, "Column of the priority date; priority unless named.")
    id: str | None = COLUMNS.key(None, "Column of the page's id; id unless named.")
    dates: Path | None = option(
        None,
        "A table with the columns page, published and priority, for pages without dates.",
        panel="Pages",
        path="in",
    )


class _Pages:
    """The pages of a file or folder, read once; `notes` then tells what was mended. The table of dates comes before the
    dates of a page, which it names by its path with or without ending, or by its id."""

    def __init__(self, given: PatentPages) -> None:
        self.given, self.source = given, given.source
        self.known: dict[str, _Dates] = {}
        self._used: set[str] = set()
        self._other_files = self._guessed = 0
        wanted = Columns("page", label="", id="page", group="", more=("published", "priority"))
        for row in open_stream(given.dates, wanted).texts() if given.dates else ():
            if row.text in self.known:
                raise TextsError(f"{shown(given.dates or '')} names the page {row.text!r} a second time.")
            self.known[row.text] = _Dates(*(days(row.meta[name]) for name in wanted.more))

    def __iter__(self) -> Iterator[tuple[str, str, _Dates]]:
        """Each page's id, its text, a line a block, and its dates."""
        names: list[str] = []
        pages = self._of_folder() if self.source.is_dir() else self._of_table()
        for name, content, is_markup, dates in pages:
            names.append(name)
            try:
                text, told = _read_markup(content) if is_markup else _take_labels(content)
            except TextsError as error:
                raise TextsError(f"{shown(self.source)}, page {name!r}: {error}") from None
            stem = re.sub(r"\.(html?|txt)$", "", without_packing(name), flags=re.IGNORECASE)
            if known := next((one for one in (name, stem) if one in self.known), None):
                self._used.add(known)
                dates = self.known[known] | dates
            yield name, text, dates | told
        refuse_repeated_ids(names, shown(self.source))

    def notes(self) -> list[str]:
        """What a card should tell of the reading, in sentences."""
        unused = sorted(set(self.known) - self._used)
        counts = (
            (self._other_files, "file", "in the folder left out: neither .html nor .txt"),
            (len(unused), "page", f"named in the dates file not found, such as {', '.join(unused[:1])}"),
            (self._guessed, "page", "not in UTF-8, without another encoding named, read as GB 18030"),
        )
        return [f"{plural(number, noun)} {said}." for number, noun, said in counts if number]

    def _of_folder(self) -> Iterator[_Written]:
        files, faults = walk(self.source)
        pages = {name: file for name, file in files.items() if ending_of(name) in _ENDINGS}
        self._other_files = len(files) - len(pages)
        if not pages:
            yield from self._of_table()
            return
        for name, why in faults.items():
            raise TextsError(f"{shown(self.source / name)} cannot be read: {why}.")
        for name, file in pages.items():
            with unreadable_explained(shown(file)), open_unpacked(file) as stream:
                raw = stream.read()
            told = {found["what"].lower(): days(found["date"]) for found in _IN_NAME.finditer(name)}
            dates = _Dates(told.get("published"), told.get("priority"))
            yield mended(name)[0], self._decoded(raw, shown(file)), ending_of(name) != ".txt", dates

    def _of_table(self) -> Iterator[_Written]:
        first = next(every_row(self.source), None)
        found = first.fields if first else {}
        given = self.given
        text, *dated = (
            named or next((name for name in usual if name in found), "")
            for named, usual in zip((given.text, given.published, given.priority), _USUAL, strict=True)
        )
        columns = Columns(text or None, label="", id=given.id, group="", more=tuple(filter(None, dated)))
        for row in open_stream(self.source, columns).texts():
            dates = _Dates(*(days(row.meta.get(name)) for name in dated))
            yield row.id, row.text, text == "html" or bool(_LOOKS_LIKE_MARKUP.match(row.text)), dates

    def _decoded(self, raw: bytes, file: str) -> str:
        """The text of a file: as pages are decoded, else GB 18030, as Chinese pages are; or TextsError."""
        try:
            return decode_page(raw)
        except TextsError:
            with suppress(UnicodeDecodeError):
                content = raw.decode("gb18030")
                self._guessed += 1
                return content
        raise TextsError(not_utf8(raw, file))


def _sort_page(dates: _Dates, before: date, after: date) -> bool | str:
    """True for a member, False for a non-member, or in words why a page is neither."""
    published, priority = dates.published, dates.priority
    if published is None and priority is None:
        return "no usable date"
    member = published is not None and published.last < before
    other = priority is not None and priority.first > after
    if published and priority and priority.first > published.last:
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


_FEWEST_PAGES = 10
"""A line is never boilerplate that stands on fewer pages."""
_NEAR = 3
"""Bands of MinHash in which near copies agree: at a Jaccard index of 0.8 that is so for 92 pairs in 100, at 0.5 for one
in 5,000, so that pages of one template stay."""


def _find_boilerplate(texts: Sequence[str], share: float) -> dict[str, int]:
    """Lines that stand on more than `share` of the texts, and on 10 at least, with the number of texts."""
    found = Counter[str]()
    for text in texts:
        found.update({line.strip() for line in text.split("\n") if line.strip()})
    least = max(_FEWEST_PAGES, int(share * len(texts)) + 1)
    often = [(line, count) for line, count in found.items() if count >= least]
    return dict(sorted(often, key=lambda item: (-item[1], item[0])))


def _drop_lines(text: str, lines: Mapping[str, int]) -> str:
    """The text without those lines."""
    return "\n".join(line for line in text.split("\n") if line.strip() not in lines)


_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_SPACE = re.compile(r"\s")

# What jieba looks at as one stretch. It is given no more than so many characters of one at a time: its time
# grows with their square where no word of its dictionary is among them.
_STRETCH = re.compile(r"[\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]{1,1000}|[^\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]+")


def _chinese_share(text: str) -> float:
    """The share of Chinese characters among those that are not white space; 0 for a text without any.

    >>> _chinese_share("LED 灯具"), _chinese_share("")
    (0.4, 0.0)
    """
    visible = len(text) - len(_SPACE.findall(text))
    return len(_CHINESE.findall(text)) / visible if visible else 0.0


def _word_spans(text: str) -> list[tuple[int, int]]:
    """Where each word of a text begins and ends, as jieba cuts it by its dictionary and model; MissingPackageError
    without it. Punctuation marks are words, white space is none."""
    found, (tokenizer, _) = [], _jieba_tokenizer()
    for stretch in _STRETCH.finditer(text):
        at = stretch.start()
        for word in tokenizer.cut(stretch[0]):
            if not word.isspace():
                found.append((at, at + len(word)))
            at += len(word)
    return found


@cache
def _jieba_tokenizer() -> tuple[Any, str]:
    """jieba's tokenizer with its dictionary, which takes a second to load, and its version."""
    if importlib.util.find_spec("jieba") is None:
        raise MissingPackageError("jieba", "cutting Chinese text into words")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an old syntax in its source
        import jieba
    jieba.setLogLevel(logging.CRITICAL)
    made = jieba.Tokenizer()
    # else it would keep its dictionary in a file that all users of the machine share
    with tempfile.TemporaryDirectory() as folder:
        made.tmp_dir = folder
        made.initialize()
    return made, str(jieba.__version__)


SIDES, CLEANING, CUTTING = "Members and non-members", "Cleaning", "Cutting"
"""Groups of options."""

_WHY = "patents of different years differ in their subjects and words."


def _lengths(written: str) -> tuple[int, ...]:
    parts = [part.strip() for part in written.split(",") if part.strip()]
    good = all(part.isdecimal() and part.isascii() for part in parts)
    require(good, f"--lengths wants whole numbers, such as 64,128,256,512; found {written[:60]!r}.")
    return tuple(map(int, parts))


@dataclass(frozen=True, slots=True)
class PatentSettings:
    """How the benchmark is made. A row is `words` jieba words; with `lengths`, the first n of them for each n.
    `chinese` is the least share of Chinese characters of a page, `boilerplate` the share of pages from which on a line
    is taken out."""

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
        None, "Most pages of either class (the paper: 5000); all unless given.", panel=SIDES, least=1
    )
    chinese: float = option(0.3, "Least share of Chinese characters.", panel=CLEANING, least=0, most=1)
    boilerplate: float = option(
        0.2, "Take out lines on more than this share of the pages.", panel=CLEANING, least=0, most=1
    )
    seed: int = seed_option()

    def __post_init__(self) -> None:
        check_ranges(self)
        before, after = self._edges
        require(before <= after, say("build.refused.order_of_days", before=before, after=after))
        good = len({*self.lengths} & {*range(1, self.words + 1)}) == len(self.lengths)
        require(good, say("build.refused.lengths", words=self.words, found=[*self.lengths]))

    @property
    def _edges(self) -> tuple[date, date]:
        """The day before which members were published, and the one after which non-members have their priority."""
        return cutoff_day(self.before, "before"), cutoff_day(self.after, "after")


def build_patents(pages: PatentPages, out: Path, settings: PatentSettings) -> writing.Built:
    """The benchmark, written to `out` as JSON lines (id, text, label, group, date, length) with its card. PretraceError
    for pages that cannot be read, without jieba, where a class has no page, and where `out` holds something else."""
    where = {"pages": str(pages.source), "dates": None if pages.dates is None else str(pages.dates)}
    columns = {name: getattr(pages, name) for name in ("text", "published", "priority", "id")}
    record = {**where, "columns": columns, **asdict(settings)}
    writing.check_place(out, record)
    jieba = _jieba_tokenizer()[1]  # which refuses before anything is read
    reader, left_out, digest = _Pages(pages), writing.LeftOut(list), hashlib.sha256()
    dated = _dated(reader, settings, left_out, digest)
    read = len(dated) + sum(map(len, left_out.values()))
    lines = _find_boilerplate([row["text"] for row in dated], settings.boilerplate)
    kept = [{**row, "text": _drop_lines(row["text"], lines)} for row in dated]
    rows = _drawn(kept, settings, left_out, read)
    longest = [row for row in rows if row["length"] == max(settings.lengths, default=settings.words)]
    members, nonmembers = (len({row["group"] for row in rows if row["label"] == side}) for side in (1, 0))
    counts = {"pages": read, "members": members, "nonmembers": nonmembers, "rows": len(rows)}
    card = {
        "kind": "PatentMIA, built",
        "settings": record,
        "counts": counts,
        "boilerplate_lines": dict(list(lines.items())[:50]),
        "notes": [
            *reader.notes(),
            f"{len(lines)} lines that stand on more than {settings.boilerplate:.0%} of the pages were taken out.",
            "Copies were told by their text without white space, near copies by MinHash over shingles of 8 characters; "
            "of two the member, else the older stayed.",
            "Words are those of jieba's default cut, punctuation marks among them and white space not.",
        ],
        "versions": {"pretrace": __version__, "jieba": jieba, "numpy": np.__version__},
        "left_out": writing.record_left_out(left_out),
        "blind": blind_baseline(longest, seed=settings.seed, why=_WHY)[0],
        "pages_sha256": digest.hexdigest(),
    }
    return writing.write(out, rows, card)


def _dated(pages: _Pages, settings: PatentSettings, left_out: writing.LeftOut, digest: Any) -> list[Row]:
    """The pages whose dates tell on which side they are; all of them go into the `digest`."""
    found, edges = list[Row](), settings._edges
    for name, text, dates in pages:
        add_strings(digest, (name, text, str(dates.published), str(dates.priority)))
        label = _sort_page(dates, *edges)
        if isinstance(label, bool) and _chinese_share(text) < settings.chinese:
            label = "too little Chinese"
        if isinstance(label, str):
            left_out[label].append(name)
        else:
            day = str(dates.published if label else dates.priority)
            found.append({"id": name, "text": text, "label": int(label), "group": name, "date": day})
    return found


def _drawn(pages: Sequence[Row], settings: PatentSettings, left_out: writing.LeftOut, read: int) -> list[Row]:
    """As many rows of either class, in the order of their ids, of pages without copies: of two the older stays, so
    that a copy of a member is no non-member. TextsError where a class is empty."""
    sides: dict[bool, dict[str, Row]] = {True: {}, False: {}}
    exact, known = set[bytes](), defaultdict[tuple[int, int], list[str]](list)
    for row in sorted(pages, key=lambda row: (-row["label"], row["date"], row["id"])):
        key = add_strings(hashlib.sha256(), ["".join(row["text"].split())]).digest()
        own = [*enumerate(text_bands(row["text"]))]
        shared = Counter(name for band in own for name in known[band])
        if key in exact or max(shared.values(), default=0) >= _NEAR:
            copy = "a copy" if key in exact else "nearly a copy"
            left_out[f"{copy} of another page"].append(row["id"])
            continue
        exact.add(key)
        for band in own:
            known[band].append(row["id"])
        sides[row["label"] == 1][row["id"]] = row
    first, second = sorted(sides, key=lambda side: (len(sides[side]), not side))
    few = _cut(sides[first], first, settings.size, settings, left_out, read)
    many = _cut(sides[second], second, len(few), settings, left_out, read)
    for name in list(few)[len(many) :]:
        left_out["not drawn"].append(name)
        del few[name]
    return [row for _, rows in sorted((few | many).items()) for row in rows]


def _cut(
    pages: Mapping[str, Row],
    member: bool,
    most: int | None,
    settings: PatentSettings,
    left_out: writing.LeftOut,
    read: int,
) -> dict[str, list[Row]]:
    """The rows of the first pages that are long enough, in an order drawn from seed and id; or TextsError."""
    found: dict[str, list[Row]] = {}
    for name in writing.drawn_order(pages, settings.seed, "patent page"):
        if most is not None and len(found) >= most:
            left_out["not drawn"].append(name)
        elif rows := _snippet(pages[name], settings):
            found[name] = rows
        else:
            left_out["too short"].append(name)
    if not found:
        before, after = settings._edges
        side = f"published before {before}" if member else f"whose priority date is after {after}"
        left = ", ".join(f"{why}: {len(who)}" for why, who in sorted(left_out.items())) or "none"
        numbers = {"words": settings.words, "read": read, "left_out": left}
        raise TextsError(say("build.refused.no_page", of_side=side, **numbers))
    return found


def _snippet(page: Row, settings: PatentSettings) -> list[Row]:
    """The rows of one page; none where it has too few words."""
    text, name = page["text"], page["id"]
    spans = _word_spans(text) if len(text) >= settings.words else []
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
