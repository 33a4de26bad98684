"""Windows, jumps, their standard errors, their rank, and what a jump must stand out from: naive loops and simulated
series."""

from __future__ import annotations

from contextlib import suppress
from datetime import date

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.designs.conditional import SERIES, Outcome, by_cutoff, by_cutoff_before, cutoffs, dated
from pretrace.errors import TextsError
from pretrace.statistics.ridge import Ridge
from pretrace.types import Corpus, Text
from pretrace.verdicts.cutoff import (
    FEWEST,
    Jumps,
    Series,
    Windows,
    _windows,
    allowed_cutoffs,
    apart,
    apart_check,
    day_of,
    everywhere,
    fewest_steps,
    jumps,
    shifted,
    sizes_check,
    squared_error,
    windows,
)

CUTOFF = date(2019, 1, 1)


def days_of(months: int = 72, a_month: int = 4, begin: date = date(2016, 1, 1)) -> np.ndarray:
    found = [shifted(begin, month).toordinal() + 7 * i + 1 for month in range(months) for i in range(a_month)]
    return np.array(found, dtype=np.int64)


def series_of(days: np.ndarray) -> Series:
    names = tuple(map(str, range(len(days))))
    return Series(Corpus("texts", ()), np.arange(len(days)), names, names, np.sort(days))


def found_windows(days: np.ndarray, level: float = 0.05) -> Windows:
    return windows(series_of(days), CUTOFF, level)


def test_windows_are_halves_of_months_that_do_not_overlap_the_cutoffs() -> None:
    days = days_of()
    found = found_windows(days)
    assert found.months == 3  # with 4 months there are 14 other dates, and the level takes 19
    for one in found.all:
        begin, end = shifted(one.day, -3).toordinal(), shifted(one.day, 3).toordinal()
        for i, day in enumerate(days.tolist()):
            assert (one.begin <= i < one.middle) == (begin <= day < one.day.toordinal())
            assert (one.middle <= i < one.end) == (one.day.toordinal() <= day < end)
    assert all(one.end <= found.own.begin or one.begin >= found.own.end for one in found.placebos)
    assert sorted(found.places.tolist()) == [*range(-11, -1), *range(2, 12)]


def test_the_months_follow_from_the_dates_and_the_level_alone() -> None:
    assert found_windows(days_of(200, 4, date(2010, 1, 1))).months == 6
    assert found_windows(days_of(96, 4, date(2015, 1, 1))).months == 4
    assert found_windows(days_of(60, 9, date(2016, 7, 1)), 0.05).months == 2
    assert found_windows(days_of(200, 9, date(2010, 1, 1)), 0.01).months == 1


def test_a_window_with_few_documents_or_few_weeks_in_a_half_does_not_count() -> None:
    days = days_of()
    gap = (days >= date(2017, 1, 1).toordinal()) & (days < date(2017, 3, 10).toordinal())
    crowded = np.where(gap, date(2017, 1, 3).toordinal(), days)  # as many documents, most of one day
    crowded[(days >= date(2017, 3, 10).toordinal()) & (days < date(2017, 4, 1).toordinal())] = crowded[gap][0]
    for some in (days[~gap], crowded):
        found = _windows(series_of(some), CUTOFF, 3)
        assert set(range(-11, 12)) - {-1, 0, 1} - set(found.places.tolist()) == {-8, -7}


@pytest.mark.parametrize(
    ("cutoff", "missing"), [(date(2016, 9, 1), "are missing"), (date(2021, 9, 1), "are missing")]
)
def test_there_must_be_other_dates_on_both_sides(cutoff: date, missing: str) -> None:
    with pytest.raises(TextsError, match=missing):
        windows(series_of(days_of(a_month=2)), cutoff, 0.05)


@pytest.mark.parametrize(
    ("months", "a_month", "able"),
    [(23, 5, True), (22, 5, False), (23, 4, False), (46, 3, True), (45, 4, False)],
)
def test_what_can_be_tested_is_what_some_cutoff_can_be_tested_with(
    months: int, a_month: int, able: bool
) -> None:
    begins = [shifted(date(2015, 1, 1), month).toordinal() for month in range(months)]
    days = np.array([begin + 5 * i + 1 for begin in begins for i in range(a_month)], dtype=np.int64)
    texts = [
        Text(f"t{i}", f"text {i}", meta={"when": str(date.fromordinal(int(day)))})
        for i, day in enumerate(days)
    ]
    found = allowed_cutoffs(Corpus("c", tuple(texts)), "when", 0.05)
    tried = [date(2015 + k // 12, k % 12 + 1, 1) for k in range(1, months)]
    good = []
    for day in tried:
        with suppress(TextsError):
            windows(series_of(days), day, 0.05)
            good.append(day)
    assert found == ((good[0], good[-1]) if good else None)
    assert (
        bool(good)
        == able
        == (months >= fewest_steps(0.05) * min(h for h in (1, 2, 3) if h * a_month >= FEWEST))
    )


def test_a_date_that_stands_for_none_makes_no_long_search() -> None:
    texts = [
        Text(f"t{i}", f"text {i}", meta={"when": day}) for i, day in enumerate(["2015-01-01", "9999-12-31"])
    ]
    assert allowed_cutoffs(Corpus("c", tuple(texts)), "when", 0.05) is None
    assert allowed_cutoffs(Corpus("c", tuple(texts)), "elsewhere", 0.05) is None


def test_the_jump_is_that_of_a_naive_loop() -> None:
    days = days_of()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(days), 2))
    y = x @ [1.0, -1.0] + rng.normal(size=len(days))
    found = found_windows(days)
    weeks = days // 7
    made = jumps(y, x, weeks, found)
    naive, studentised = [], []
    for one in found.all:
        outside = [i for i in range(len(days)) if not one.begin <= i < one.end]
        rest = y - Ridge.fitted(y[outside], x[outside]).predict(x)
        halves = [range(one.begin, one.middle), range(one.middle, one.end)]
        means = [np.mean([rest[i] for i in half]) for half in halves]
        naive.append(means[0] - means[1])
        variance = 0.0
        for half, mean in zip(halves, means, strict=True):
            clusters = {
                week: [rest[i] - mean for i in half if weeks[i] == week] for week in set(weeks[list(half)])
            }
            sums = [sum(some) for some in clusters.values()]
            variance += sum(one**2 for one in sums) / len(half) ** 2 * len(sums) / (len(sums) - 1)
        studentised.append(naive[-1] / np.sqrt(variance))
    np.testing.assert_allclose(made.values, naive)
    np.testing.assert_allclose(made.studentised, studentised)
    own, *others = studentised
    assert made.p == pytest.approx((1 + sum(other >= own for other in others)) / len(studentised))
    assert made.breakdown == pytest.approx(own / max(map(abs, others)))
    np.testing.assert_allclose(
        everywhere(y, x, found.own)[found.own.begin : found.own.end],
        np.concatenate([one for one, _ in made.halves]),
    )


def test_a_week_counts_as_one() -> None:
    rng = np.random.default_rng(1)
    weeks = np.repeat(np.arange(30), 20)
    together = rng.normal(size=30)[weeks] + 0.1 * rng.normal(size=600)
    assert squared_error(together, weeks) == pytest.approx(1 / 30, rel=0.5)
    assert squared_error(together, np.arange(600)) < 0.1 / 30
    assert squared_error(together[:20], weeks[:20]) > 0  # one week alone: its documents


def test_a_change_must_stand_out_on_each_side_and_in_its_season() -> None:
    found = found_windows(days_of())
    rng = np.random.default_rng(2)
    noise = 0.5 * rng.normal(size=len(found.placebos))
    assert apart(5.0, noise, found).p < 0.001
    later = np.where(found.places > 0, 5.0, 0.0) + noise  # a drift that began to bend at the cut-off
    assert apart(5.0, later, found).before < 0.001
    assert apart(5.0, later, found).after > 0.2
    seasonal = np.where((found.places * 3) % 12 == 0, 5.0, 0.0) + noise
    assert apart(5.0, seasonal, found).season > 0.2
    check = apart_check(apart(5.0, seasonal, found), 0.05)
    assert (check.status, "at its time of year" in check.words) == ("failed", True)


def test_few_documents_at_the_cutoff_are_told() -> None:
    days = days_of(96, 30, date(2015, 1, 1))
    near = np.abs(days - CUTOFF.toordinal()) < 130
    thin = days[~near | (np.arange(len(days)) % 10 == 0)]
    assert sizes_check(found_windows(thin)).status == "failed"
    assert sizes_check(found_windows(days)).status == "passed"


def test_a_document_without_a_score_takes_no_part() -> None:
    days = days_of()
    rng = np.random.default_rng(3)
    y, x = rng.normal(size=len(days)), rng.normal(size=(len(days), 1))
    found = found_windows(days)
    lost = y.copy()
    lost[found.own.begin] = np.nan
    made = jumps(lost, x, days // 7, found)
    assert np.isfinite(made.values).all()
    assert len(made.halves[0][0]) == found.own.sizes[0] - 1
    lost[found.own.begin : found.own.middle] = np.nan
    with pytest.raises(TextsError, match="no documents left"):
        jumps(lost, x, days // 7, found)


def test_nothing_that_varies_is_no_jump() -> None:
    days = days_of()
    found = found_windows(days)
    made = jumps(np.full(len(days), -2.0), np.zeros((len(days), 1)), days // 7, found)
    assert (made.p, made.breakdown) == (1.0, 0.0)
    assert Jumps(np.array([1.0, 0.0]), np.zeros(2), made.halves).studentised.tolist() == [0.0, 0.0]


NASTY = (
    "stationary", "strong quadratic drift", "spread rises fivefold", "strong kink before a late cut-off",
    "strong season",
    "event that both models see", "event that the target sees twice as clearly",
)  # fmt: skip
RUNS = 150


def outcomes(kind: str, jump: float = 0.0) -> list[tuple[Outcome, Outcome]]:
    rng = np.random.default_rng(sum(map(ord, kind)))
    return [one for _ in range(3) for one in cutoffs(SERIES[kind], rng, RUNS // 3, jump)]


def test_the_simulation_passes_over_no_series_that_rejects() -> None:
    rng = np.random.default_rng(5)
    series, cut, target, second = dated(SERIES["stationary"], rng, 60, 0.4)
    whole = [
        (by_cutoff(series, cut, *one), by_cutoff_before(series, cut, *one))
        for one in zip(target, second, strict=True)
    ]
    assert cutoffs(SERIES["stationary"], np.random.default_rng(5), 60, 0.4) == whole


@pytest.mark.parametrize("kind", NASTY)
def test_series_that_nobody_read_are_accused_within_the_level(kind: str) -> None:
    accused = sum(after.accused for after, _ in outcomes(kind))
    assert accused <= binom.ppf(0.999, RUNS, 0.05)


def test_a_real_drop_is_found() -> None:
    assert sum(after.accused for after, _ in outcomes("stationary", 2.0)) > 0.7 * RUNS


def test_days_are_read_strictly() -> None:
    assert day_of("2024-02-30") is None
    assert day_of("24-02-03") is None
    assert day_of(" 2024-02-03T10:00 ") == (date(2024, 2, 3), False)
