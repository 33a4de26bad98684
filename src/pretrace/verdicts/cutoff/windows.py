"""The cut-off and the placebo cut-offs: windows of h months before and after a date, on a grid with steps of h.

Cut-off k lies k h months after the stated one, k = 0, and compares the halves [c - h, c) and [c, c + h). Placebo
cut-offs are k = ±2, ±3, …, so that no window overlaps that of k = 0. Windows of neighbouring placebo cut-offs share one
half, which is "after" in one and "before" in the other: where documents are independent their jumps correlate by -1/2.
The largest of negatively correlated values is larger, not smaller, than that of independent ones, so the rank of k = 0
errs on the cautious side. A finer grid would give more placebo cut-offs, but ones that are alike: many would be large
together, and the rank would promise more than it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.types import Bools, Doubles
from pretrace.verdicts.cutoff.dates import shifted

Days = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A candidate cut-off: its place `k` on the grid, its day, and the documents `before` and `after` it, bool
    [documents]."""

    k: int
    day: date
    before: Bools
    after: Bools

    @property
    def inside(self) -> Bools:
        """The documents of both halves."""
        return np.asarray(self.before | self.after)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many documents lie before and after it."""
        return int(self.before.sum()), int(self.after.sum())

    @property
    def weight(self) -> float:
        """The number of documents that a difference of two means rests on: 1 / (1 / before + 1 / after)."""
        first, second = self.sizes
        return first * second / max(1, first + second)

    def jump(self, values: Doubles) -> Doubles:
        """The mean of `values` [documents, …] before the cut-off less that after it."""
        return np.asarray(values[self.before].mean(axis=0) - values[self.after].mean(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The window of the stated cut-off, and those of the placebo cut-offs whose halves have enough documents."""

    own: Window
    placebos: tuple[Window, ...]

    @property
    def all(self) -> tuple[Window, ...]:
        """The stated cut-off first."""
        return self.own, *self.placebos


def windows(days: Days, cutoff: date, months: int, fewest: int) -> Windows:
    """All windows of `months` before and after a cut-off; `days` [documents] as `date.toordinal`.

    A placebo cut-off counts with `fewest` documents in each half. TextsError for a stated cut-off outside the series,
    or without a document in one of its halves.
    """
    first, last = (date.fromordinal(int(one)) for one in (days.min(), days.max()))
    own = _window(days, cutoff, months, 0)
    if not first < cutoff <= last:
        raise TextsError(
            f"the cut-off {cutoff} lies outside the texts, which are dated from {first} to {last}."
        )
    for side, number in zip(("before", "after"), own.sizes, strict=True):
        if not number:
            raise TextsError(
                f"no text is dated within {months} months {side} the cut-off {cutoff}; the texts are dated from "
                f"{first} "
                f"to {last}: give more --months, or texts of that time."
            )
    return Windows(own, tuple(one for one in _others(days, cutoff, months) if min(one.sizes) >= fewest))


def most_months(days: Days, cutoff: date, wanted: int, fewest: int, below: int) -> int | None:
    """The largest number of months below `below` with which so many placebo cut-offs count; None where none has."""
    for months in range(below - 1, 0, -1):
        own = _window(days, cutoff, months, 0)
        if min(own.sizes) < fewest:
            continue
        if sum(min(one.sizes) >= fewest for one in _others(days, cutoff, months)) >= wanted:
            return months
    return None


def _others(days: Days, cutoff: date, months: int) -> Iterator[Window]:
    """The windows that do not overlap that of the stated cut-off and lie within the series."""
    first, last = int(days.min()), int(days.max())
    span = (last - first) // 28 // months + 2
    for k in (*range(-span, -1), *range(2, span + 1)):
        try:
            found = _window(days, cutoff, months, k)
        except ValueError:  # before the year 1 or after 9999
            continue
        if min(found.sizes) > 0:
            yield found


def _window(days: Days, cutoff: date, months: int, k: int) -> Window:
    begin, day, end = (shifted(cutoff, months * (k + i)) for i in (-1, 0, 1))
    before = (days >= begin.toordinal()) & (days < day.toordinal())
    after = (days >= day.toordinal()) & (days < end.toordinal())
    return Window(k, day, before, after)
