"""Rows of a file with columns beside the text: dates above all."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from pretrace.corpora.columns import Columns, listed, name_of
from pretrace.corpora.opening import rows_of
from pretrace.corpora.reading import SourceRow, TextReading
from pretrace.errors import ExpressionError, TextsError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.?"
_YEAR = r"(?P<year>(?:1[0-9]|20)\d\d)"
_TIME = r"(?:[T ,]+\d{1,2}:\d\d.*)?"
_FORMS = tuple(
    re.compile(form + r"\s*", re.IGNORECASE)
    for form in (
        rf"{_YEAR}[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}}){_TIME}",
        rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d)(?:T?\d{{4}}(?:\d\d)?Z?)?",
        rf"{_YEAR}\s*年\s*(?P<month>\d{{1,2}})\s*月\s*(?P<day>\d{{1,2}})\s*日.*",
        rf"{_YEAR}\s*年\s*(?P<month>\d{{1,2}})\s*月",
        rf"{_YEAR}\s*年",
        rf"(?:[a-z]+,\s*)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ -]{_MONTH}[ ,-]+{_YEAR}{_TIME}",
        rf"(?:[a-z]+,\s*)?{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}{_TIME}",
        rf"{_MONTH}\s+{_YEAR}",
        rf"{_YEAR}[-/.](?P<month>\d{{1,2}})",
        rf"{_YEAR}",
    )
)
_EITHER_ORDER = re.compile(rf"(?P<first>\d{{1,2}})[-/.](?P<second>\d{{1,2}})[-/.]{_YEAR}{_TIME}")
# Of twelve digits those that begin like a day are one ("202303011200"): as milliseconds they all lie in 1976.
_NUMBER = re.compile(r"(?!(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{4}\Z)\d{9,13}(?:\.\d+)?")
_ZONED = re.compile(r".*\d{1,2}:\d\d.*(?:Z|GMT|UTC?|[+-]\d\d:?\d\d|[ECMP][SD]T)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Days:
    """The days a date may mean, both ends included: "2015-07" is all of July."""

    first: date
    last: date

    def __str__(self) -> str:
        return self.first.isoformat() + ("" if self.first == self.last else f"/{self.last.isoformat()}")


def days(value: object) -> Days | None:
    """The days a cell may mean, None where it holds no date.

    Read are ISO dates and times, RFC 2822, seconds or milliseconds since 1970 (from 1973 on), Chinese and
    English dates, months ("2015-07") and years alone. An instant with a zone counts by its day in UTC, one
    without by the day it names. "03/04/2015" is both the 3rd of April and the 4th of March, and all between.

    >>> str(days("2015-07")), str(days("Fri, 31 Jul 2015 23:30:00 -0500")), str(days(1438300800))
    ('2015-07-01/2015-07-31', '2015-08-01', '2015-07-31')
    >>> str(days("2015年7月3日")), str(days("03/04/2015")), days("yesterday")
    ('2015-07-03', '2015-03-04/2015-04-03', None)
    """
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, date):
        return Days(value, value)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float) and (not math.isfinite(value) or abs(value) >= 1e15):
        return None
    written = str(int(value)) if isinstance(value, float) else str(value).strip()
    if len(written) > 100:
        return None
    return _seconds(written) or _zoned(written) or _written(written) or _either_order(written)


def cutoff_day(value: str, name: str) -> date:
    """The day an option names; ExpressionError where it is not one single day."""
    found = days(value)
    if found is None or found.first != found.last:
        raise ExpressionError(f"{name} wants a day such as 2023-03-01, found {value[:60]!r}.")
    return found.first


def _instant(value: datetime) -> Days:
    try:
        day = (value.astimezone(UTC) if value.tzinfo else value).date()
    except OverflowError:  # the first or last hours that there are
        day = value.date()
    return Days(day, day)


def _seconds(written: str) -> Days | None:
    if not _NUMBER.fullmatch(written):
        return None
    number = float(written)
    return _instant(datetime.fromtimestamp(number / 1000 if number >= 1e11 else number, UTC))


def _zoned(written: str) -> Days | None:
    """An instant with a zone, whose day in UTC may be another than the one written."""
    if not _ZONED.fullmatch(written):
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return _instant(read(written))
        except (ValueError, TypeError, IndexError):
            continue
    return None


def _written(written: str) -> Days | None:
    for form in _FORMS:
        found = form.fullmatch(written)
        if found is None:
            continue
        parts = found.groupdict()
        year, month, day = int(parts["year"]), parts.get("month"), parts.get("day")
        named = month is not None and not month.isdigit()
        number = None if month is None else _MONTHS.index(month[:3].lower()) + 1 if named else int(month)
        return _span(year, number, None if day is None else int(day))
    return None


def _span(year: int, month: int | None, day: int | None) -> Days | None:
    try:
        if month is None:
            return Days(date(year, 1, 1), date(year, 12, 31))
        if day is None:
            return Days(date(year, month, 1), date(year, month, monthrange(year, month)[1]))
        return Days(date(year, month, day), date(year, month, day))
    except ValueError:  # the 31st of June
        return None


def _either_order(written: str) -> Days | None:
    found = _EITHER_ORDER.fullmatch(written)
    if found is None:
        return None
    year, first, second = (int(found[name]) for name in ("year", "first", "second"))
    read = [some for some in (_span(year, first, second), _span(year, second, first)) if some]
    return Days(min(one.first for one in read), max(one.last for one in read)) if read else None


class ColumnReading(TextReading):
    """One pass over a source of which more columns than the usual four are read.

    `wanted` are names to read where they are there, `needed` must be there. The text stands in the first of
    `texts` that holds anything; without them in the column that `columns` names.
    """

    def __init__(
        self,
        source: str,
        columns: Columns,
        wanted: Sequence[str] = (),
        needed: Sequence[str] = (),
        *,
        texts: Sequence[str] = (),
    ) -> None:
        super().__init__(columns, source)
        self.wanted = tuple(wanted)
        self.needed = tuple(sorted(needed))
        self.texts = tuple(texts)

    def pick(self, found: Sequence[str], source: str) -> tuple[str, ...]:
        """The columns to read of a file, for formats that know all of theirs beforehand."""
        self._refuse_missing(found)
        usual = self.texts or super().pick(found, source)
        return tuple(dict.fromkeys(name for name in (*usual, *self.needed, *self.wanted) if name in found))

    def rows(self, source: str | Path) -> Iterator[SourceRow]:
        """The rows of whatever `rows_of` reads, in order.

        TextsError for whatever is wrong with the source, and where it holds no row.
        """
        unseen = {*self.needed, *self.columns.named}
        first: tuple[str, ...] = ()
        for row in rows_of(source, self):
            if not first:
                first = tuple(row.fields)
                self._refuse_missing(
                    (*first, *self.needed)
                )  # of JSON lines only the text must be in the first
                if not self.texts:
                    self.choose(first)
            unseen -= row.fields.keys()
            yield row
        if not first:
            raise TextsError(f"{self.source} holds no texts: give a source with at least one.")
        if unseen:
            raise self._missing(min(unseen), first)

    def text_of(self, row: SourceRow, number: int) -> tuple[str, str]:
        """The column the text of a row stands in, and the text; TextsError where there is none."""
        if self.texts:
            column = next((name for name in self.texts if row.fields.get(name)), "")
            column = column or next((name for name in self.texts if name in row.fields), self.texts[0])
            self.chosen = (column,)
        return self.chosen[0], self.string(number, row)

    def _refuse_missing(self, found: Sequence[str]) -> None:
        for name in self.needed:
            if name not in found:
                raise self._missing(name, found)
        if self.texts and not any(name in found for name in self.texts):
            raise self._missing("' or '".join(self.texts), found)

    def _missing(self, name: str, found: Sequence[str]) -> TextsError:
        return TextsError(f"{self.source} has no column '{name}'; it has {listed(found)}: name another one.")


def first_of(fields: Mapping[str, object], names: Sequence[str]) -> object:
    """The first cell among some columns that holds anything, None where none does."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)


def named(value: object, where: str) -> str:
    """An id or a group as a string, "" where there is none; TextsError for a list or an object."""
    try:
        return name_of(value)
    except ValueError:
        raise TextsError(
            f"{where} holds {str(value)[:60]} where a name or a number was wanted: mend it."
        ) from None
