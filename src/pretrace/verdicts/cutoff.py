"""Does what a model knows of dated texts drop at its stated training cut-off, as at no other date?

The file reads from top to bottom: settings, dates, the series, windows, jumps, what a jump must stand out from, checks,
sentences, the test. What every test does stands in `verdicts.frame`.

What is counted. A jump is the mean of what is left of the scores before a date less that after it, over its standard
error from weeks: so a time of few or of scattered documents has no larger jumps by chance than another. Its rank among
the jumps at placebo cut-offs, at which nothing happened, is p. That rank is exact where the jumps come from one law,
and dated texts need not do so. So the jump must also stand out from the placebo cut-offs *before* it alone, from those
*after* it alone, and from those at the *same time of year* alone, each at half the level. A drift that bends anywhere,
or grows, leaves one of the two sides alike with the cut-off; a season leaves the third.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.backends.serving.address import called
from pretrace.baselines.classifiers import surface_features, topic_components
from pretrace.errors import TextsError
from pretrace.results.rounding import p_value
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.settings import option
from pretrace.statistics.documents import linked
from pretrace.statistics.permutation import chunks, critical
from pretrace.statistics.ranks import fewest_others, joint_extremeness, rank_p, stands_out
from pretrace.statistics.ridge import Ridge, residuals_inside
from pretrace.types import (
    Backend,
    Bools,
    Check,
    Corpus,
    Doubles,
    Estimate,
    Power,
    Situation,
    Skipped,
    Table,
    Verdict,
)
from pretrace.verdicts.frame import Beyond, Shown, Test, Tested, Words, beyond_by_rank, verdict, watched
from pretrace.verdicts.outcome import null_histogram
from pretrace.verdicts.planting import planted_shift, rank_power
from pretrace.verdicts.reading import Reader, check_references, score_of_all
from pretrace.verdicts.record import listed
from pretrace.verdicts.settings import ALONE, TEST, TestSettings

Days = npt.NDArray[np.int64]

# Settings

MONTHS = (6, 4, 3, 2, 1)
"""Months before and after a date that may be compared, the first with which there are enough placebo cut-offs. They
divide a year, so that each date has others at its time of year. How many are taken follows from the dates alone."""
FEWEST, CLUSTERS = 5, 3
"""Documents, and weeks with a document, that each half of a window must have to count."""
SIDE, SEASON = 4, 3
"""Placebo cut-offs on each side of the stated one, and at its time of year, at least."""
COMPONENTS = 2
"""Directions of the words of all texts that are watched for a change at the cut-off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoffSettings(TestSettings):
    """How dated texts are compared around a cut-off; ExpressionError for a value out of its range."""

    date: str = option(
        "date", "Column of the date: 2024-03-01, or 2024-03.", name="date-column", panel=TEST, essential=True
    )
    cutoff: str = option(
        help="The model's training cut-off, as its makers state it: 2024-03-01, or 2024-03 for its first day.",
        panel=TEST,
        essential=True,
    )
    skip_undated: bool = option(
        False, "Leave texts without a usable date out, and count them.", panel=TEST, essential=True
    )
    score: str = option(
        "loss",
        "The score that reads every text, chosen before any result is seen; one expression, see `pretrace list`.",
        panel=TEST,
    )


# Dates, read strictly: 2024-03-01 (a time behind it is left away), or 2024-03 for a month

_WRITTEN = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2})(?:[T ]\d{2}:\d{2}.*)?)?")
_UNDATED = "it has no usable date"
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
    gone = tuple(Skipped(corpus.texts[i].id, _UNDATED, 0) for i in without)
    return Dated(replace(corpus, texts=kept), days, gone)


def shifted(day: date, months: int) -> date:
    """The day so many months later; the last of a month where that has no such day. ValueError beyond all years.

    >>> shifted(date(2024, 3, 31), -1)
    datetime.date(2024, 2, 29)
    """
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


# The series

BLIND = 2
"""How many columns of the surface features are taken: log length and zlib ratio."""
_WEEK = 7


@dataclass(frozen=True, eq=False)
class Series:
    """Documents in the order of their dates, one row each: `names`, `texts` (their pieces joined), `days` (sorted), and
    the document of each piece of `corpus`, `codes` [pieces]. Pieces of a document with the same date are one row."""

    corpus: Corpus
    codes: npt.NDArray[np.int64]
    names: tuple[str, ...]
    texts: tuple[str, ...]
    days: Days
    skipped: tuple[Skipped, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def means(self, values: Doubles) -> Doubles:
        """The mean of the pieces' values by document, [documents]; NaN for a document with no value."""
        there = np.isfinite(values)
        sums = np.bincount(self.codes[there], weights=values[there], minlength=len(self))
        sizes = np.bincount(self.codes[there], minlength=len(self))
        return np.asarray(np.divide(sums, sizes, out=np.full(len(self), np.nan), where=sizes > 0))

    @cached_property
    def surface(self) -> Doubles:
        """Log length and zlib ratio of every document, [documents, 2]."""
        return surface_features(self.texts)[:, :BLIND]

    @cached_property
    def weeks(self) -> Days:
        """The cluster of each document, [documents]: its week, since news and moods come by the week; or, where all
        dates are months alone, the document itself."""
        first = [date.fromordinal(int(day)).day == 1 for day in self.days]
        return np.arange(len(self)) if all(first) else np.asarray(self.days // _WEEK)


def series(found: Dated) -> Series:
    """The texts gathered by date and document, in an order that depends on dates and texts alone."""
    texts = found.corpus.texts
    owner = linked(texts)
    pieces: dict[tuple[int, str], list[int]] = {}
    for place, (day, text) in enumerate(zip(found.days.tolist(), texts, strict=True)):
        pieces.setdefault((day, owner[text.document]), []).append(place)
    whole = {key: "\n\n".join(texts[i].text for i in some) for key, some in pieces.items()}
    keys = sorted(pieces, key=lambda key: (key[0], whole[key]))
    codes = np.empty(len(texts), dtype=np.int64)
    for code, key in enumerate(keys):
        codes[pieces[key]] = code
    return Series(
        found.corpus,
        codes,
        tuple(name for _, name in keys),
        tuple(whole[key] for key in keys),
        np.array([day for day, _ in keys], dtype=np.int64),
        found.skipped,
    )


# Windows: so many months before and after a date, on a grid with steps of as many
#
# Cut-off k lies k h months after the stated one, k = 0, and compares the halves [c - h, c) and [c, c + h). Placebo
# cut-offs are k = ±2, ±3, …, so that no window overlaps that of k = 0. Windows of neighbouring placebo cut-offs share
# one half, which is "after" in one and "before" in the other: where documents are independent their jumps correlate by
# -1/2. The largest of negatively correlated values is larger, not smaller, than that of independent ones, so the rank
# of k = 0 errs on the cautious side. A finer grid would give more placebo cut-offs, but ones that are alike: many would
# be large together, and the rank would promise more than it holds.


@dataclass(frozen=True, slots=True)
class Window:
    """A candidate cut-off: its place `k` on the grid, its day, and where the documents before it begin, the cut-off
    lies, and those after it end, in the sorted series."""

    k: int
    day: date
    begin: int
    middle: int
    end: int

    @property
    def sizes(self) -> tuple[int, int]:
        """How many documents lie before and after it."""
        return self.middle - self.begin, self.end - self.middle

    @property
    def weight(self) -> float:
        """The number of documents that a difference of two means rests on: 1 / (1 / before + 1 / after)."""
        first, second = self.sizes
        return first * second / max(1, first + second)

    def jump(self, values: Doubles) -> Doubles:
        """The mean of `values` [documents, …] before the cut-off less that after it."""
        before, after = values[self.begin : self.middle], values[self.middle : self.end]
        return np.asarray(before.mean(axis=0) - after.mean(axis=0))

    def counts(self, weeks: Days) -> bool:
        """Whether both halves have enough documents, in enough weeks."""
        halves = weeks[self.begin : self.middle], weeks[self.middle : self.end]
        # weeks are sorted, as the documents are
        return all(
            len(half) >= FEWEST and np.count_nonzero(half[1:] != half[:-1]) + 1 >= CLUSTERS for half in halves
        )


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The window of the stated cut-off, and those of the placebo cut-offs, with `months` on each side."""

    months: int
    own: Window
    placebos: tuple[Window, ...]

    @property
    def all(self) -> tuple[Window, ...]:
        """The stated cut-off first."""
        return self.own, *self.placebos

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """Where the placebo cut-offs lie on the grid, [placebos]."""
        return np.array([one.k for one in self.placebos], dtype=np.int64)

    def missing(self, level: float) -> int:
        """How many placebo cut-offs the level takes more than there are: in all, on each side, in the same season."""
        sides = [int((self.places < 0).sum()), int((self.places > 0).sum())]
        season = int(self.season.sum())
        return max(fewest_others(level) - sum(sides), *(SIDE - side for side in sides), SEASON - season, 0)

    @property
    def season(self) -> Bools:
        """Which placebo cut-offs lie within a month of the stated one's time of year, [placebos]."""
        away = (self.places * self.months) % 12
        return np.asarray(np.minimum(away, 12 - away) <= 1)


def windows(found: Series, cutoff: date, level: float) -> Windows:
    """The windows with the most `MONTHS` that leave as many placebo cut-offs as the level takes.

    TextsError for a stated cut-off outside the series, without documents enough around it, or with too few placebo
    cut-offs whatever the months.
    """
    first, last = (date.fromordinal(int(one)) for one in (found.days[0], found.days[-1]))
    if not first < cutoff <= last:
        raise TextsError(
            f"the cut-off {cutoff} lies outside the texts, which are dated from {first} to {last}: give one within."
        )
    made: list[Windows] = []
    for months in MONTHS:
        made.append(_windows(found, cutoff, months))
        if made[-1].own.counts(found.weeks) and not made[-1].missing(level):
            return made[-1]
    able = [one for one in made if one.own.counts(found.weeks)]
    if not able:
        before, after = made[0].own.sizes
        raise TextsError(
            f"in the {MONTHS[0]} months before the cut-off {cutoff} lie {before:,} documents and in those after it "
            f"{after:,}; each takes {FEWEST}, in {CLUSTERS} weeks: give more texts of that time."
        )
    best = min(able, key=lambda one: one.missing(level))
    raise TextsError(
        f"a level of {level:g} takes {fewest_others(level)} other dates at which nothing happened, {SIDE} or more on "
        f"each side of the cut-off and {SEASON} or more at its time of year, each with {FEWEST} documents in the "
        f"{best.months} months before and after it; this series has {len(best.placebos)}, so {best.missing(level)} are "
        "missing: give texts of a longer time."
    )


_CENTURIES = 2400
"""Months beyond which the dates of a series are no record of anything: 9999-12-31 stands for a date that is missing."""
_LOOKED_AT = 48
"""Months of a series, at most, that are tried as its cut-off."""


def fewest_steps(level: float) -> int:
    """Steps of equal length, each with documents enough, that a series takes before any cut-off can be tested: there is
    another date between any two, apart from those whose windows overlap that of the stated one.

    >>> fewest_steps(0.05)
    23
    """
    return fewest_others(level) + 4


def allowed_cutoffs(corpus: Corpus, column: str, level: float) -> tuple[date, date] | None:
    """The first and the last cut-off, of those on the first of a month, that can be tested with these dates; None where
    there is none, also where no text has a date that is read here."""
    try:
        found = series(dated(corpus, column, date(1, 1, 1), skip_undated=True))
    except TextsError:
        return None
    if int(found.days[-1]) - int(found.days[0]) > _CENTURIES * _MONTH:
        return None
    months = sorted({date.fromordinal(day).replace(day=1) for day in found.days.tolist()})
    good = []
    for day in months[:: max(1, len(months) // _LOOKED_AT)]:
        with suppress(TextsError):
            windows(found, day, level)
            good.append(day)
    return (good[0], good[-1]) if good else None


def _windows(found: Series, cutoff: date, months: int) -> Windows:
    """The windows of so many months that do not overlap that of the stated cut-off, lie in the series, and count."""
    span = (int(found.days[-1]) - int(found.days[0])) // 28 // months + 2
    edges = {k: day for k in range(-span - 1, span + 2) if (day := _shifted(cutoff, months * k)) is not None}
    if not {-1, 0, 1} <= edges.keys():
        raise TextsError(
            f"{months} months before or after the cut-off {cutoff} lie outside the calendar, which has the years 1 to "
            "9999: give another cut-off."
        )
    places = np.searchsorted(found.days, [day.toordinal() for day in edges.values()])
    at = dict(zip(edges, places.tolist(), strict=True))
    made = {
        k: Window(k, edges[k], at[k - 1], at[k], at[k + 1])
        for k in edges
        if k - 1 in at and k + 1 in at and (k == 0 or at[k - 1] < at[k] < at[k + 1])
    }
    if 0 not in made:
        raise TextsError(
            f"{months} months before or after the cut-off {cutoff} lie outside the calendar, which has the years 1 to "
            "9999: give dates as they are."
        )
    others = [one for k, one in made.items() if abs(k) > 1 and one.counts(found.weeks)]
    return Windows(months, made[0], tuple(others))


def _shifted(day: date, months: int) -> date | None:
    """The day so many months later; None before the year 1 or after 9999."""
    try:
        return shifted(day, months)
    except ValueError:
        return None


# Jumps

RESAMPLES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Jumps:
    """The jump at every cut-off, the stated one first, [cut-offs], and its standard error from weeks; `halves` are what
    is left of the documents' values before and after the stated cut-off, each with its weeks."""

    values: Doubles
    errors: Doubles
    halves: tuple[tuple[Doubles, Days], tuple[Doubles, Days]]

    @property
    def studentised(self) -> Doubles:
        """Each jump over its standard error, [cut-offs]; 0 where nothing varies."""
        return np.divide(self.values, self.errors, out=np.zeros(len(self.values)), where=self.errors > 0)

    @property
    def p(self) -> float:
        """The rank of the stated cut-off."""
        return rank_p(self.studentised[0], self.studentised[1:])

    @property
    def breakdown(self) -> float:
        """M*: the jump over the largest at a placebo cut-off, up or down, both in standard errors."""
        own, largest = self.studentised[0], float(np.abs(self.studentised[1:]).max())
        return float(own / largest) if largest > 0 else 0.0


def jumps(scores: Doubles, predictors: Doubles, weeks: Days, found: Windows) -> Jumps:
    """The jump of the scores [documents] at every cut-off, less what a ridge regression on the documents outside its
    window predicts of them from `predictors` [documents, k]. It is fitted for each cut-off anew, so the stated one is
    treated as all others are. Documents without a score take no part."""
    there = np.isfinite(scores) & np.isfinite(predictors).all(axis=1)
    place = np.concatenate([[0], np.cumsum(there)])
    scores, predictors, weeks = scores[there], predictors[there], weeks[there]
    edges = [(int(place[one.begin]), int(place[one.middle]), int(place[one.end])) for one in found.all]
    if min(min(middle - begin, end - middle) for begin, middle, end in edges) < 2:
        raise TextsError("some dates have no documents left that a model can score: give longer texts.")
    rest = residuals_inside(scores, predictors, [(begin, end) for begin, _, end in edges])
    halves = [
        ((left[: middle - begin], weeks[begin:middle]), (left[middle - begin :], weeks[middle:end]))
        for (begin, middle, end), left in zip(edges, rest, strict=True)
    ]
    values = np.array([before[0].mean() - after[0].mean() for before, after in halves])
    errors = np.array([np.sqrt(sum(squared_error(*half) for half in pair)) for pair in halves])
    return Jumps(values, errors, halves[0])


def squared_error(values: Doubles, clusters: Days) -> float:
    """The squared standard error of the mean of `values` [n], whose clusters are drawn together (the ratio estimator of
    cluster sampling, Cochran 1977, section 9A); that of single values where they are all in one cluster."""
    codes = _codes(clusters)
    if codes[-1] == 0:
        codes = np.arange(len(values))
    sums = np.bincount(codes, weights=values - values.mean())
    return float(sums @ sums / len(values) ** 2 * len(sums) / (len(sums) - 1))


def _codes(clusters: Days) -> npt.NDArray[np.int64]:
    """The place of each cluster among all, for sorted clusters, [n]."""
    return np.concatenate([[0], np.cumsum(clusters[1:] != clusters[:-1])])


@dataclass(frozen=True, slots=True)
class _JumpBesideOthers:
    """How far the jump at the stated cut-off lies above those of some placebo cut-offs alone, as p-values."""

    before: float
    after: float
    season: float

    @property
    def p(self) -> float:
        """The largest."""
        return max(self.before, self.after, self.season)


def apart(own: float, others: Doubles, found: Windows) -> _JumpBesideOthers:
    """The jump `own` against the placebo cut-offs before, after, and at the same time of year; `others` [placebos]."""
    k = found.places
    earlier, later = others[k < 0], others[k > 0]
    times = (k * found.months) % 12
    return _JumpBesideOthers(
        before=stands_out(own, earlier, [earlier, later]),
        after=stands_out(own, later, [earlier, later]),
        season=stands_out(own, others[found.season], [others[times == one] for one in np.unique(times)]),
    )


def interval(found: Jumps, *, seed: int) -> Estimate:
    """The jump at the stated cut-off less the mean jump elsewhere, with a 95% interval from weeks drawn with
    replacement within each half."""
    rng, usual = np.random.default_rng(seed), float(found.values[1:].mean())
    first, second = (_resampled(*half, rng) for half in found.halves)
    low, high = np.quantile(first - second, (0.025, 0.975))
    return Estimate(float(found.values[0]) - usual, float(low) - usual, float(high) - usual)


def _resampled(values: Doubles, clusters: Days, rng: np.random.Generator) -> Doubles:
    """Means of resampled clusters, [RESAMPLES]."""
    codes = _codes(clusters)
    sums, sizes = np.bincount(codes, weights=values), np.bincount(codes)
    parts = []
    for rows in chunks(RESAMPLES, len(sums)):
        drawn = rng.integers(len(sums), size=(rows, len(sums)))
        parts.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    return np.concatenate(parts)


# Checks

ACCUSING = ("apart", "breakdown", "sizes")
"""Checks that withhold only "consistent with training"."""
_MULTIPLE = 4.0
"""How many times as far as the second model the model in question must drop: an event at that date, which both see, may
be twice as clear to one of them, and both drops are uncertain."""
SMALLEST = 0.5
"""The documents at the cut-off that a difference rests on, over the median at placebo cut-offs; below it, the standard
error of the jump at the cut-off is clearly less certain than theirs."""


def _dates_check(found: Windows, level: float) -> Check:
    """How many placebo cut-offs there are; with too few no test is made (`windows`)."""
    sides = int((found.places < 0).sum()), int((found.places > 0).sum())
    words = (
        f"{len(found.placebos)} other dates at which nothing is known to have happened, {sides[0]} before the cut-off "
        f"and {sides[1]} after it, with {FEWEST} documents or more in the {found.months} months on each side; a level "
        f"of {level:g} takes {fewest_others(level)}."
    )
    figures = {
        "placebo cut-offs": len(found.placebos),
        "before": sides[0],
        "after": sides[1],
        "months": found.months,
    }
    return Check(
        "dates", "Are there enough other dates to compare the cut-off with?", "passed", words, "", figures
    )


def _texts_check(found: Windows, features: Doubles, level: float) -> Check:
    """Whether the texts themselves change at the cut-off more than at other dates."""
    ranked = joint_extremeness(np.array([one.jump(features) for one in found.all]))
    return Check(
        "texts",
        "Do the texts stay as they are at the cut-off?",
        "failed" if ranked.p <= level else "passed",
        "The length of the texts, how well they compress and their main subjects were compared before and after every "
        f"date. The largest change at the cut-off has rank p = {p_value(ranked.p)} among all dates"
        + ("; the texts themselves change at the cut-off." if ranked.p <= level else "."),
        "Use texts of one source and kind, whose length, layout and subjects did not change around the cut-off.",
        {"p": ranked.p},
    )


def apart_check(found: _JumpBesideOthers, level: float) -> Check:
    """Whether the change at the cut-off stands out from those on each side alone, and in its season alone."""
    parts = {"before it": found.before, "after it": found.after, "at its time of year": found.season}
    alike = [name for name, p in parts.items() if p > level / 2]
    shown = ", ".join(f"{name} p = {p_value(p)}" for name, p in parts.items())
    words = f"The change at the cut-off was compared with those of one part of the series alone: {shown}."
    if alike:
        words += (
            f" It does not stand out from the changes {' and '.join(alike)} (p above {level / 2:g}). A drift that "
            "bends or grows, or a season, brings such a change as well."
        )
    return Check(
        "apart",
        "Does the change stand out from earlier ones, later ones and those of its season, each alone?",
        "failed" if alike else "passed",
        words,
        "Give texts of a longer time on both sides of the cut-off, or reference models with other cut-offs: "
        "they take off what makes texts of one time easier. [--reference-model]",
        {"before": found.before, "after": found.after, "season": found.season},
    )


def breakdown_check(own: Jumps) -> Check:
    """Whether the jump at the cut-off is larger than the largest, up or down, at any other date."""
    return Check(
        "breakdown",
        "Is the change at the cut-off larger than every change at another date, in either direction?",
        "passed" if own.breakdown > 1 else "failed",
        f"The change at the cut-off is {own.breakdown:.2f} times the largest change at another date, in standard "
        "errors (M*). A trend that bends by that much more than it ever did elsewhere could explain it.",
        "Add reference models with other cut-offs: they take off what makes texts of one time easier. "
        "[--reference-model]",
        {"M": own.breakdown},
    )


def sizes_check(found: Windows) -> Check:
    """Whether the jump at the cut-off rests on about as many documents as the others."""
    usual = float(np.median([one.weight for one in found.placebos]))
    before, after = found.own.sizes
    return Check(
        "sizes",
        "Are there about as many documents around the cut-off as around other dates?",
        "passed" if found.own.weight >= SMALLEST * usual else "failed",
        f"{before:,} documents lie before and {after:,} after the cut-off; with far fewer than elsewhere, a large "
        "change comes by chance more easily.",
        "Give more documents of the time around the cut-off.",
        {"cut-off": found.own.weight, "median": usual},
    )


# Sentences

ASSUMPTION = (
    "Apart from training, nothing happened at the cut-off that makes the texts harder for the model: the change there "
    "comes from the law of the changes before it alone, or after it alone, or at the same time of other years."
)


def _unit_of(score: str) -> str:
    """The unit of a jump."""
    return "nats a token" if score == ALONE else f"of the score {score}"


def _ranked_words(own: Jumps) -> str:
    """The rank and M* in one sentence; neither is told without the other."""
    others = len(own.values) - 1
    larger = round(own.p * (others + 1)) - 1
    return (
        f"Of {others:,} other dates, {larger:,} show a drop at least as large as the cut-off (p = {p_value(own.p)}), "
        f"and the change at the cut-off is {own.breakdown:.2f} times the largest change elsewhere, each in its "
        f"standard errors (M* = {own.breakdown:.2f})."
    )


def trust(own: Jumps, level: float) -> tuple[str, ...]:
    """How far the answer can be trusted, in plain words."""
    said = [_ranked_words(own)]
    if own.p <= level:
        said.append(
            "The result would stand even if something else changed the texts at the cut-off, as long as that was less "
            f"than {own.breakdown:.2f} times the largest change at any other date."
        )
    said.append(
        "An event at that very date, such as a new editor or new software, looks the same as training. The second "
        "model, which cannot have read the texts, shows it as far as it reads them as the model in question does."
    )
    return tuple(said)


# The test


def cutoff(
    corpus: Corpus,
    models: Models | Backend,
    settings: CutoffSettings,
    *,
    references: Sequence[Backend] = (),
    watch: Watch | None = None,
    statements: Mapping[str, str] | None = None,
) -> Verdict:
    """Whether what the model knows of dated texts drops at its stated training cut-off as at no other date.

    `corpus` is read with `settings.date` among its further columns (`Columns.more`). `references` are models with
    other cut-offs, whose scores predict the target's. `models.placebos` are models that cannot have read the texts:
    without one nobody is accused. TextsError for texts without a date, a cut-off outside the series and a series that
    is too short, ModelError for a reference that is the target or a placebo, and otherwise as for reading and planting.
    """
    models = models if isinstance(models, Models) else Models(models)
    references = (*((models.reference,) if models.reference else ()), *references)
    check_references(models, references)
    score = score_of_all(settings.score, models, references)
    models = replace(models, reference=None)
    found, chosen = prepared(corpus, settings)
    timed = watched(watch)
    reader = Reader(models, score, timed, settings.cache)
    predictors = [found.means(_read_of(found, reader, one, f"reading with {one.name}")) for one in references]
    test = _Cutoff(
        corpus=corpus,
        models=models,
        settings=settings,
        watch=timed,
        score=score,
        series=found,
        windows=chosen,
        reader=reader,
        predictors=np.column_stack([*predictors, found.surface]),
        references=references,
    )
    return verdict(test, statements=statements)


def prepared(corpus: Corpus, settings: CutoffSettings) -> tuple[Series, Windows]:
    """The series and its windows, before any model is asked; TextsError as for `cutoff`."""
    day = cutoff_day(settings.cutoff)
    found = series(dated(corpus, settings.date, day, skip_undated=settings.skip_undated))
    return found, windows(found, day, settings.level)


def _read_of(found: Series, reader: Reader, model: Backend, stage: str) -> Doubles:
    """The score of every piece under a model, [pieces], NaN where it has none."""
    texts = [text.text for text in found.corpus.texts]
    return reader.read(texts, under=model, stage=stage).values


@dataclass(frozen=True, eq=False, kw_only=True)
class _Cutoff(Test[Doubles]):
    """The test: the series, its windows, and what predicts a document's score without the target."""

    settings: CutoffSettings
    series: Series
    windows: Windows
    reader: Reader
    predictors: Doubles
    references: tuple[Backend, ...] = ()
    _known: dict[int, tuple[Doubles, Jumps]] = field(default_factory=dict)

    name = "cutoff"
    accusing = ACCUSING

    @property
    def matters(self) -> Mapping[str, Any]:
        return {
            "score": self.score,
            "cutoff": str(self.windows.own.day),
            "references": sorted(one.fingerprint for one in self.references),
        }

    def read(self, model: Backend, stage: str) -> Doubles:
        """The mean score of the pieces of every document, [documents]."""
        return self.series.means(_read_of(self.series, self.reader, model, stage))

    def jumps(self, values: Doubles) -> Jumps:
        """The jumps of these values; they are computed once."""
        if id(values) not in self._known:
            self._known[id(values)] = values, jumps(values, self.predictors, self.series.weeks, self.windows)
        return self._known[id(values)][1]

    def apart(self, values: Doubles) -> _JumpBesideOthers:
        """How far the jump stands out from parts of the series."""
        found = self.jumps(values).studentised
        return apart(float(found[0]), found[1:], self.windows)

    def tested(self, values: Doubles) -> Tested:
        own = self.jumps(values)
        drawn = own.studentised[1:]
        return Tested(
            p=own.p,
            units=sum(self.windows.own.sizes),
            null=null_histogram(
                drawn, float(own.studentised[0]), critical(drawn, self.settings.level), self.statistic
            ),
            effect=interval(own, seed=self.seed),
            reasons=(_ranked_words(own),),
        )

    def beyond(self, own: Doubles, other: Doubles) -> Beyond:
        """The rank of the cut-off in what the target shows beyond a multiple of what the second model shows."""
        first, second = (self.jumps(one).studentised for one in (own, other))
        return beyond_by_rank(first, second, own, other, multiple=_MULTIPLE)

    def power(self, values: Doubles) -> Power:
        """The power, with the shift that training on half of the documents before the cut-off brings."""
        window, own = self.windows.own, self.jumps(values)
        places = slice(window.begin, window.middle)
        texts = list(self.series.texts[places])

        def again(copy: Backend) -> Doubles:
            return self.read(copy, "the trained copy reads the texts")[places]

        shift = planted_shift(
            self.models.target, texts, values[places], again, self.settings, self.watch, seed=self.seed
        )
        level, others = self.settings.level, own.studentised[1:]

        def found(value: float) -> bool:
            return rank_p(value, others) <= level and apart(value, others, self.windows).p <= level / 2

        return rank_power(others, shift, self.settings, found=found, error=float(own.errors[0]))

    @property
    def statistic(self) -> str:
        """What is ranked."""
        months = self.windows.months
        return (
            f"mean score in the {months} months before a date less that in the {months} months after it, over its "
            "standard error"
        )

    def words(self, values: Doubles) -> Words:
        model, day, months = called(self.models.target.name), self.windows.own.day, self.windows.months
        inside, others = sum(self.windows.own.sizes), len(self.windows.placebos)
        off = "reference models, " if self.references else ""
        return Words(
            unit="document",
            of=f"the texts dated before {day}",
            question=f"Was {model} trained on these texts until {day}?",
            compared=(
                f"The makers of {model} state {day} as the end of its training data. Where it was trained on these "
                "texts, it should know those dated before that day and not those after it: what it knows should drop "
                "there, as at no other date.",
                f"{inside:,} documents dated within {months} months of the cut-off were read with the score "
                f"{self.score}, less what {off}length and compressibility predict. The drop at the cut-off was "
                f"compared with the change at {others:,} other dates of the same series, all measured in the same way.",
            ),
            hypothesis=f"The change at {day} is one of those that the series shows at any date.",
            assumption=ASSUMPTION,
            statistic=self.statistic,
            effect_unit=_unit_of(self.score),
            trust=trust(self.jumps(values), self.settings.level),
            exact=False,
            preferred="what is dated before the cut-off",
        )

    def checks(self, values: Doubles) -> tuple[Check, ...]:
        level, found = self.settings.level, self.series
        topics = topic_components(found.texts, COMPONENTS)
        features = np.column_stack([found.surface, topics]) if len(topics) else found.surface
        return (
            _dates_check(self.windows, level),
            _texts_check(self.windows, features, level),
            apart_check(self.apart(values), level),
            breakdown_check(self.jumps(values)),
            sizes_check(self.windows),
        )

    def shown(self, values: Doubles) -> Shown:
        own, found = self.jumps(values), self.series
        rest = everywhere(values, self.predictors, self.windows.own)
        figures = {
            "M": own.breakdown,
            "jump at the cut-off": float(own.values[0]),
            "largest jump elsewhere": float(np.abs(own.values[1:]).max()),
            "mean jump elsewhere": float(own.values[1:].mean()),
            "placebo cut-offs": len(self.windows.placebos),
            "months": self.windows.months,
            "cut-off": str(self.windows.own.day),
        }
        notes = [
            "The effect is the change at the cut-off less the mean change at the other dates; its interval draws weeks "
            "with replacement."
        ]
        undated = sum(one.reason == _UNDATED for one in found.skipped)
        if undated:
            notes.insert(
                0, f"{undated:,} texts without a usable date were left out; {len(found):,} documents remain."
            )
        unscored = tuple(
            Skipped(found.names[i], "no text of it has a score", 0)
            for i in np.flatnonzero(~np.isfinite(rest)).tolist()
        )
        months = float(np.ptp(found.days)) / _MONTH
        return Shown(
            figures=figures,
            tables=(
                _cutoffs_table(self.windows, own),
                _over_time(found, rest),
                documents_table(found, values, rest),
            ),
            skipped=(*found.skipped, *unscored),
            notes=tuple(notes),
            situation=Situation(
                documents=len(found),
                dated=len(found),
                months=round(months, 1),
                testable=True,
                checkpoint=bool(self.models.placebos),
            ),
            recorded={"references": {one.name: dict(one.facts) for one in self.references}},
        )


# Tables

_MONTH = 30.44
_MONTHLY = 730
"""Days of a series from which on its means are shown by the month, and not by the week."""


def everywhere(scores: Doubles, predictors: Doubles, window: Window) -> Doubles:
    """What is left of the scores of all documents after the fit on those outside the window; NaN without a score."""
    there = np.isfinite(scores) & np.isfinite(predictors).all(axis=1)
    outside = there.copy()
    outside[window.begin : window.end] = False
    fit = Ridge.fitted(scores[outside], predictors[outside])
    return np.where(there, scores - fit.predict(np.nan_to_num(predictors)), np.nan)


def _cutoffs_table(found: Windows, own: Jumps) -> Table:
    """The jump at every date: in the unit of the score and in standard errors."""
    rows = sorted(
        zip(found.all, own.values.tolist(), own.studentised.tolist(), strict=True), key=lambda row: row[0].k
    )
    return Table(
        "cutoffs",
        {
            "cut-off": tuple(str(one.day) for one, *_ in rows),
            "kind": tuple("stated" if one.k == 0 else "placebo" for one, *_ in rows),
            "jump": np.array([jump for _, jump, _ in rows]),
            "standard errors": np.array([value for *_, value in rows]),
            "before": np.array([float(one.sizes[0]) for one, *_ in rows]),
            "after": np.array([float(one.sizes[1]) for one, *_ in rows]),
        },
    )


def documents_table(found: Series, scores: Doubles, rest: Doubles) -> Table:
    """One row a document."""
    days = tuple(str(date.fromordinal(day)) for day in found.days.tolist())
    return Table("documents", {"document": found.names, "date": days, "score": scores, "left": rest})


def _over_time(found: Series, rest: Doubles) -> Table:
    """Means of what is left by the month, or by the week for a series of less than two years, for the figure."""
    monthly = np.ptp(found.days) >= _MONTHLY
    gathered: dict[date, list[float]] = {}
    for number, value in zip(found.days.tolist(), rest.tolist(), strict=True):
        if np.isfinite(value):
            day = date.fromordinal(number)
            begin = day.replace(day=1) if monthly else day - timedelta(days=day.weekday())
            gathered.setdefault(begin, []).append(value)
    begins = sorted(gathered)
    return Table(
        "series",
        {
            "from": tuple(map(str, begins)),
            "mean": np.array([float(np.mean(gathered[one])) for one in begins]),
            "documents": np.array([float(len(gathered[one])) for one in begins]),
        },
    )
