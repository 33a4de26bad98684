"""Dates in the forms in which texts bring them."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pretrace.errors import ExpressionError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.?"
_YEAR = r"(?P<year>(?:1[0-9]|20)\d\d)"
_TIME = r"(?:[T ,]+\d{1,2}:\d\d.*)?"
_FORMS = tuple(
    re.compile(form + r"\s*", re.IGNORECASE)
    for form in (
        rf"{_YEAR}(?:[-/.](?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}){_TIME})?)?",
        rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d)(?:T?\d{{4}}(?:\d\d)?Z?)?",
        rf"{_YEAR}\s*年(?:\s*(?P<month>\d{{1,2}})\s*月(?:\s*(?P<day>\d{{1,2}})\s*日.*)?)?",
        rf"(?:[a-z]+,\s*)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ -]{_MONTH}[ ,-]+{_YEAR}{_TIME}",
        rf"(?:[a-z]+,\s*)?{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}{_TIME}",
        rf"{_MONTH}\s+{_YEAR}",
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

    Read are ISO dates and times, RFC 2822, seconds or milliseconds since 1970 (from 1973 on), Chinese and English
    dates, months and years alone. An instant with a zone counts by its day in UTC. "03/04/2015" is both the 3rd of
    April and the 4th of March, and all between.

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
    if _NUMBER.fullmatch(written):
        number = float(written)
        return _instant(datetime.fromtimestamp(number / 1000 if number >= 1e11 else number, UTC))
    if _ZONED.fullmatch(written):  # an instant, whose day in UTC may be another than the one written
        from email.utils import parsedate_to_datetime

        for read in (datetime.fromisoformat, parsedate_to_datetime):
            with suppress(ValueError, TypeError, IndexError):
                return _instant(read(written))
    return _written(written)


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


def _written(written: str) -> Days | None:
    for found in filter(None, (form.fullmatch(written) for form in _FORMS)):
        parts = found.groupdict()
        year, month, day = int(parts["year"]), parts.get("month"), parts.get("day")
        named = month is not None and not month.isdigit()
        number = None if month is None else _MONTHS.index(month[:3].lower()) + 1 if named else int(month)
        return _span(year, number, None if day is None else int(day))
    if (either := _EITHER_ORDER.fullmatch(written)) is None:
        return None
    year, first, second = (int(either[name]) for name in ("year", "first", "second"))
    read = [some for some in (_span(year, first, second), _span(year, second, first)) if some]
    return Days(min(one.first for one in read), max(one.last for one in read)) if read else None


def _span(year: int, month: int | None, day: int | None) -> Days | None:
    try:
        if month is None:
            return Days(date(year, 1, 1), date(year, 12, 31))
        if day is None:
            return Days(date(year, month, 1), date(year, month, monthrange(year, month)[1]))
        return Days(date(year, month, day), date(year, month, day))
    except ValueError:  # the 31st of June
        return None
