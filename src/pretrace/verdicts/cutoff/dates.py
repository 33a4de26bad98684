"""Dates of texts, read strictly: 2024-03-01 (a time behind it is left away), or 2024-03 for a month."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.types import Corpus, Skipped
from pretrace.verdicts.record import listed

_WRITTEN = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2})(?:[T ]\d{2}:\d{2}.*)?)?")
UNDATED = "it has no usable date"
_FORMS = "2024-03-01 or 2024-03"


@dataclass(frozen=True, slots=True, eq=False)
class Dated:
    """The texts that have a date, `days` [texts] since the year 1 (`date.toordinal`), and those that were left out.
    A month stands for its first day."""

    corpus: Corpus
    days: npt.NDArray[np.int64]
    skipped: tuple[Skipped, ...] = ()


def day_of(written: str) -> tuple[date, bool] | None:
    """The day, and whether only its month was given; None for what is no such date.

    >>> day_of("2024-03"), day_of("2024-03-01T10:00:00Z"), day_of("1 March 2024")
    ((datetime.date(2024, 3, 1), True), (datetime.date(2024, 3, 1), False), None)
    """
    found = _WRITTEN.fullmatch(written.strip())
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3] or 1)), found[3] is None
    except ValueError:
        return None


def cutoff_day(written: str) -> date:
    """The day of a cut-off; TextsError for what is no date."""
    found = day_of(written)
    if found is None:
        raise TextsError(f"--cutoff is a date such as {_FORMS}, found {written!r}.")
    return found[0]


def dated(corpus: Corpus, column: str, cutoff: date, *, skip_undated: bool = False) -> Dated:
    """The texts with their dates from a further column (`Columns.more`).

    TextsError where the column was not read, for texts without a usable date unless they are to be skipped, and where
    a date that is a month alone could lie on both sides of the cut-off.
    """
    if any(column not in text.meta for text in corpus.texts):
        raise TextsError(f"the texts were read without the column {column!r}, which holds the dates.")
    found = [day_of(text.meta[column]) for text in corpus.texts]
    without = [i for i, one in enumerate(found) if one is None]
    if without and (not skip_undated or len(without) == len(found)):
        first = corpus.texts[without[0]]
        raise TextsError(
            f"{len(without)} of {len(found)} texts have no usable date in the column {column!r}: "
            f"{listed([corpus.texts[i].id for i in without])}; {first.id!r} has {first.meta[column]!r}. Write dates as "
            f"{_FORMS}"
            + ("." if len(without) == len(found) else ", or leave such texts out with --skip-undated.")
        )
    if cutoff.day != 1 and any(one is not None and one[1] for one in found):
        raise TextsError(
            f"some dates are months alone, such as 2024-03, and the cut-off {cutoff} lies within a month: give a "
            "cut-off on the first of a month, or dates with a day."
        )
    kept = tuple(text for text, one in zip(corpus.texts, found, strict=True) if one is not None)
    days = np.array([one[0].toordinal() for one in found if one is not None], dtype=np.int64)
    gone = tuple(Skipped(corpus.texts[i].id, UNDATED, 0) for i in without)
    return Dated(replace(corpus, texts=kept), days, gone)


def shifted(day: date, months: int) -> date:
    """The day so many months later; the last of a month where that has no such day. ValueError beyond all years.

    >>> shifted(date(2024, 3, 31), -1)
    datetime.date(2024, 2, 29)
    """
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
