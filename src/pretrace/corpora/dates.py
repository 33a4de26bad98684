"""Dates in the forms in which texts bring them."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date

from pretrace.errors import ExpressionError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.?"
_YEAR = r"(?P<year>(?:1[0-9]|20)\d\d)"
_TIME = r"(?:[T ,]+\d{1,2}:\d\d.*)?"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_YEAR}(?:[-/.](?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}){_TIME})?)?",
        rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d)(?:T?\d{{4}}(?:\d\d)?Z?)?",
        rf"{_YEAR}\s*年(?:\s*(?P<month>\d{{1,2}})\s*月(?:\s*(?P<day>\d{{1,2}})\s*日.*)?)?",
        rf"(?:[a-z]+,\s*)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ -]{_MONTH}[ ,-]+{_YEAR}{_TIME}",
        rf"(?:[a-z]+,\s*)?{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}{_TIME}",
        rf"{_MONTH}\s+{_YEAR}",
    )
)


@dataclass(frozen=True, slots=True)
class Days:
    """The days a date may mean, both ends included: "2015-07" is all of July."""

    first: date
    last: date

    def __str__(self) -> str:
        return self.first.isoformat() + ("" if self.first == self.last else f"/{self.last.isoformat()}")


def days(written: str | None) -> Days | None:
    """The days that a cell may mean, as they are written, whatever their time zone; None where it holds no date.

    Read are ISO dates and times, RFC 2822, Chinese and English dates, months and years alone. Which of two small
    numbers is the month nobody can tell: "03/04/2015" is none.

    >>> str(days("2015-07")), str(days("Fri, 31 Jul 2015 23:30:00 -0500")), str(days("20150703"))
    ('2015-07-01/2015-07-31', '2015-07-31', '2015-07-03')
    >>> str(days("2015年7月3日")), str(days("3rd Sept. 2015")), days("03/04/2015"), days("yesterday")
    ('2015-07-03', '2015-09-03', None, None)
    """
    written = (written or "").strip()
    found = next(filter(None, (form.fullmatch(written) for form in _FORMS)), None)
    if found is None:
        return None
    parts = found.groupdict()
    year, named, day = int(parts["year"]), parts.get("month"), parts.get("day")
    first, last = 1, 12
    if named is not None:
        first = last = int(named) if named.isdigit() else 1 + _MONTHS.index(named[:3].lower())
    try:
        if day is not None:
            only = date(year, first, int(day))
            return Days(only, only)
        return Days(date(year, first, 1), date(year, last, monthrange(year, last)[1]))
    except ValueError:  # the 31st of June
        return None


def cutoff_day(value: str, name: str) -> date:
    """The day an option names; ExpressionError where it is not one single day."""
    found = days(value)
    if found is None or found.first != found.last:
        raise ExpressionError(f"{name} wants a day such as 2023-03-01, found {value[:60]!r}.")
    return found.first
