"""Patent pages a user has: a folder of HTML and text files, or a table with a page a row."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np

from pretrace.building.markup import Dates, read_markup, take_labels
from pretrace.building.writing import Digest
from pretrace.corpora.columns import Columns, listed, mended, name_of
from pretrace.corpora.dates import days
from pretrace.corpora.documents import unreadable_explained
from pretrace.corpora.folders import walk
from pretrace.corpora.formats import ending_of
from pretrace.corpora.near_copies import Hashes, shingles, squeezed
from pretrace.corpora.opening import path_exists, rows_of, shown
from pretrace.corpora.packing import not_utf8, open_unpacked, without_packing
from pretrace.corpora.reading import EveryColumn, counted
from pretrace.errors import TextsError
from pretrace.settings import option

PAGES = "Pages"
"""The group of options on the pages."""

_MARKUP = (".html", ".htm")
_PLAIN = (".txt",)
_TEXT_NAMES = ("text", "html", "content", "input")
_PUBLISHED_NAMES = ("published", "publication_date", "publicationDate")
_PRIORITY_NAMES = ("priority", "priority_date", "priorityDate")
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
    """Columns of a table of pages; None stands for the usual names: text, html, content or input; published
    or publication_date; priority or priority_date; id."""

    text: str | None = option(
        None,
        "Column of the page; text, html, content or input unless named.",
        name="text-column",
        panel=PAGES,
    )
    published: str | None = option(
        None, "Column of the publication date; published unless named.", name="published-column", panel=PAGES
    )
    priority: str | None = option(
        None, "Column of the priority date; priority unless named.", name="priority-column", panel=PAGES
    )
    id: str | None = option(None, "Column of the page's id; id unless named.", name="id-column", panel=PAGES)


class Pages:
    """The pages of a file or folder, read once from the first to the last; `notes` then tells what was mended.

    `dates` is a table (page, published, priority) whose dates come before those of the page itself; a page is
    named by its path below the folder, with or without its ending, or by its id. TextsError for whatever is
    wrong with the source.
    """

    def __init__(self, source: Path, columns: PageColumns, dates: Path | None = None) -> None:
        self.source = source
        self.columns = columns
        self.known = _dates_file(dates) if dates else {}
        self._used: set[str] = set()
        self._other_files = 0
        self._encodings: dict[str, int] = {}

    def __iter__(self) -> Iterator[PatentPage]:
        if not path_exists(self.source):
            raise TextsError(f"there is no file or folder {shown(self.source)!r}: check the path.")
        seen: set[str] = set()
        for page in self._of_folder() if self.source.is_dir() else self._of_table():
            if page.id in seen:
                raise TextsError(
                    f"{shown(self.source)}: every page needs an id of its own, found {page.id!r} twice."
                )
            seen.add(page.id)
            yield self._with_known(page)

    def notes(self) -> list[str]:
        """What a card should tell of the reading, in sentences."""
        unused = sorted(set(self.known) - self._used)
        told = {
            f"{counted(self._other_files, 'file')} in the folder left out: neither .html nor .txt.": self._other_files,
            f"The dates file names {counted(len(unused), 'page')} that are not among the pages, such as "
            f"{next(iter(unused), '')!r}.": unused,
        }
        encodings = sorted(self._encodings.items())
        read_as = [f"{counted(number, 'page')} not in UTF-8 read as {name}." for name, number in encodings]
        return [*(note for note, count in told.items() if count), *read_as]

    def _with_known(self, page: PatentPage) -> PatentPage:
        stem = re.sub(r"\.(html?|txt)$", "", without_packing(page.id), flags=re.IGNORECASE)
        for name in (page.id, stem):
            if name in self.known:
                self._used.add(name)
                return replace(page, dates=self.known[name].or_else(page.dates))
        return page

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
                raw = stream.read()
            content = self._decoded(raw, file)
            text, dates = read_markup(content) if ending_of(name) in _MARKUP else take_labels(_plain(content))
            yield PatentPage(mended(name)[0], text, _in_name(name).or_else(dates))

    def _of_table(self) -> Iterator[PatentPage]:
        columns, where = self.columns, shown(self.source)
        published = (columns.published,) if columns.published else _PUBLISHED_NAMES
        priority = (columns.priority,) if columns.priority else _PRIORITY_NAMES
        identity = columns.id or "id"
        needed = {name for name in (columns.published, columns.priority, columns.id) if name}
        names = (columns.text,) if columns.text else _TEXT_NAMES
        for number, row in enumerate(_rows(self.source, needed, names)):
            column = next((name for name in names if row.get(name)), names[0])
            raw = row.get(column)
            if not isinstance(raw, str):
                raise TextsError(
                    f"{where}: row {number} has no text in the column {column!r}: mend it or take it out."
                )
            marked = column == "html" or _LOOKS_LIKE_MARKUP.match(raw)
            text, dates = read_markup(raw) if marked else take_labels(_plain(raw))
            given = Dates(days(_first_of(row, published)), days(_first_of(row, priority)))
            name = _name_in(row, identity, f"{where}: row {number}") or str(number)
            yield PatentPage(name, text, given.or_else(dates))

    def _decoded(self, raw: bytes, file: Path) -> str:
        """The text of a file: UTF-8, else what it says it is, else GB 18030, the usual one of Chinese pages. TextsError
        for one that is none of these."""
        try:
            return raw.removeprefix(codecs.BOM_UTF8).decode()
        except UnicodeDecodeError:
            pass
        said = _CHARSET.search(raw[:2048])
        for name in ((said[1].decode(),) if said else ()) + ("gb18030",):
            try:
                content = raw.decode(name)
            except (UnicodeDecodeError, LookupError):
                continue
            self._encodings[name.lower()] = self._encodings.get(name.lower(), 0) + 1
            return mended(content)[0]
        raise TextsError(not_utf8(raw, shown(file)))


def _plain(content: str) -> str:
    """A text as it stands, with line ends of one kind."""
    return content.replace("\r\n", "\n").replace("\r", "\n")


def _in_name(name: str) -> Dates:
    """Dates in a file's name: CN1.published-2019-05-21.priority-2018-01-05.txt."""
    told = {found["what"].lower(): days(found["date"]) for found in _IN_NAME.finditer(name)}
    return Dates(told.get("published"), told.get("priority"))


def _rows(source: Path, needed: set[str], texts: Sequence[str]) -> Iterator[Mapping[str, object]]:
    """The rows of a table by column, some of which must be there; the first row has one of `texts`."""
    found: dict[str, None] = {}
    where = shown(source)
    for row in rows_of(source, EveryColumn(Columns(label="", id="", group=""), where)):
        if not found and not any(name in row.fields for name in texts):
            missing = "' or '".join(texts)
            raise TextsError(
                f"{where} has no column '{missing}'; it has {listed(row.fields)}: name another one."
            )
        found |= dict.fromkeys(row.fields)
        yield row.fields
    if not found:
        raise TextsError(f"{where} holds no texts: give a source with at least one.")
    for name in sorted(needed - found.keys()):
        raise TextsError(f"{where} has no column '{name}'; it has {listed(found)}: name another one.")


def _first_of(row: Mapping[str, object], names: Sequence[str]) -> object:
    """The first cell among some columns that holds anything, None where none does."""
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _name_in(row: Mapping[str, object], column: str, where: str) -> str:
    """An id as a string, "" where there is none; TextsError for a list or an object."""
    try:
        return name_of(row.get(column))
    except ValueError:
        raise TextsError(
            f"{where} holds {str(row.get(column))[:60]} where a name or a number was wanted: mend it."
        ) from None


def _dates_file(path: Path) -> dict[str, Dates]:
    """Dates by page; TextsError where the file has not the three columns."""
    known: dict[str, Dates] = {}
    for number, row in enumerate(_rows(path, {"page", "published", "priority"}, ("page",))):
        page = _name_in(row, "page", f"{shown(path)}: row {number}")
        if page in known:
            raise TextsError(f"{shown(path)}: row {number} names the page {page!r} a second time.")
        known[page] = Dates(days(row.get("published")), days(row.get("priority")))
    return known


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
    """The text without those lines; the others as they stand."""
    return "\n".join(line for line in text.split("\n") if line.strip() not in lines)


def exact_key(text: str) -> str:
    """The same for texts that differ in white space alone."""
    digest = Digest()
    digest.add((squeezed(text),))
    return str(digest)


class Near:
    """Finds texts that are nearly the same: whose sets of 8-character shingles have a Jaccard index of at
    least `least` (0.7 to 1).

    Candidates are those that agree in a band of a one-permutation MinHash of 64 bins (16 bands of 4: at an
    index of 0.7 one pair in a hundred goes unseen, at 0.8 one in five thousand); of them the index is computed.
    """

    def __init__(self, least: float) -> None:
        self.least = least
        self._texts: list[str] = []
        self._sketches: list[Hashes] = []
        self._bands: dict[tuple[int, bytes], list[int]] = {}

    def known(self, text: str) -> bool:
        """Whether a text like this was given before; one that was not is remembered."""
        hashes = shingles(text)
        sketch = _sketch(hashes, _FINE)
        keys = list(_keys(_sketch(hashes, _BINS)))
        candidates = dict.fromkeys(place for key in keys for place in self._bands.get(key, ()))
        for place in candidates:
            # an estimate from 512 bins is off by 0.1 less than once in ten thousand times; without it pages of one
            # template would all be compared in full, which takes hours for thousands
            if not _far(self._sketches[place], sketch, self.least - 0.1) and (
                jaccard(hashes, shingles(self._texts[place])) >= self.least
            ):
                return True
        for key in keys:
            self._bands.setdefault(key, []).append(len(self._texts))
        self._texts.append(text)
        self._sketches.append(sketch)
        return False


def jaccard(one: Hashes, other: Hashes) -> float:
    """Size of the intersection over that of the union, of two sets of hashes."""
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / max(1, len(one) + len(other) - common)


def _sketch(hashes: Hashes, bins: int) -> Hashes:
    """The smallest hash in each of so many equal ranges (a power of two), uint64; 0 where a range holds none."""
    shift = np.uint64(64 - bins.bit_length() + 1)
    numbers = np.arange(bins, dtype=np.uint64)
    places = np.searchsorted(hashes, numbers << shift)
    held = np.append(hashes, np.uint64(0))[places]
    return np.where(held >> shift == numbers, held, np.uint64(0))


def _far(one: Hashes, other: Hashes, least: float) -> bool:
    """Whether the bins that hold anything agree in a smaller share than `least`."""
    used = int(np.count_nonzero(one | other))
    return int(np.count_nonzero((one == other) & (one != 0))) < least * used


def _keys(sketch: Hashes) -> Iterator[tuple[int, bytes]]:
    bands: Sequence[Hashes] = np.split(sketch, _BINS // _BAND)
    return ((number, band.tobytes()) for number, band in enumerate(bands) if band.any())
