"""Windows, jumps and their rank: naive loops, and simulated series without and with a drift."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from scipy.stats import binom

from pretrace.statistics.ranks import rank_p
from pretrace.statistics.ridge import Ridge
from pretrace.types import Doubles
from pretrace.verdicts.cutoff.checks import drift, enough, sizes
from pretrace.verdicts.cutoff.dates import day_of, shifted
from pretrace.verdicts.cutoff.jumps import Jumps, interval, jumps, left, trend
from pretrace.verdicts.cutoff.settings import CutoffSettings
from pretrace.verdicts.cutoff.windows import windows

CUTOFF = date(2019, 1, 1)


def days_of(months: int = 72, a_month: int = 4, begin: date = date(2016, 1, 1)) -> np.ndarray:
    found = [shifted(begin, month).toordinal() + 7 * i for month in range(months) for i in range(a_month)]
    return np.array(found, dtype=np.int64)


def test_windows_are_halves_of_months_that_do_not_overlap_the_cutoffs() -> None:
    days = days_of()
    found = windows(days, CUTOFF, 3, 5)
    for one in found.all:
        begin, end = shifted(one.day, -3).toordinal(), shifted(one.day, 3).toordinal()
        for i, day in enumerate(days.tolist()):
            assert one.before[i] == (begin <= day < one.day.toordinal())
            assert one.after[i] == (one.day.toordinal() <= day < end)
    assert all(not (one.inside & found.own.inside).any() for one in found.placebos)
    assert len(found.placebos) == 72 // 3 - 4
    assert sorted(one.k for one in found.placebos)[0] == -11


def test_a_window_with_few_documents_in_a_half_does_not_count() -> None:
    days = days_of()
    some = days[~((days >= date(2017, 1, 1).toordinal()) & (days < date(2017, 3, 10).toordinal()))]
    assert len(windows(some, CUTOFF, 3, 5).placebos) == 20 - 2


def test_the_jump_is_that_of_a_naive_loop() -> None:
    days = days_of()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(days), 2))
    y = x @ [1.0, -1.0] + rng.normal(size=len(days))
    found = windows(days, CUTOFF, 3, 5)
    made = jumps(y, x, found, 19)
    naive = []
    for one in found.all:
        outside = [i for i in range(len(days)) if not one.inside[i]]
        rest = y - Ridge.fitted(y[outside], x[outside]).predict(x)
        before = [rest[i] for i in range(len(days)) if one.before[i]]
        after = [rest[i] for i in range(len(days)) if one.after[i]]
        naive.append(sum(before) / len(before) - sum(after) / len(after))
    assert made.own == pytest.approx(naive[0])
    np.testing.assert_allclose(made.others, naive[1:])
    assert made.p == pytest.approx((1 + sum(other >= naive[0] for other in naive[1:])) / len(naive))
    assert made.breakdown == pytest.approx(abs(naive[0]) / max(map(abs, naive[1:])))
    assert jumps(y, x, found, 21).p is None


def noise(days: np.ndarray, rng: np.random.Generator) -> Doubles:
    """Documents with a mean that moves by the week, each week 0.5 of the last and a new part."""
    weeks = days // 7 - days.min() // 7
    level = np.zeros(int(weeks.max()) + 1)
    for week in range(1, len(level)):
        level[week] = 0.5 * level[week - 1] + 0.5 * rng.normal()
    return np.asarray(level[weeks] + rng.normal(size=len(days)))


def rejections(runs: int, added: Doubles | float = 0.0) -> tuple[int, int]:
    """Ranks that reject at 5% among simulated series, and those that hold with M* > 1 and without a drift."""
    days = days_of(96, 4, date(2015, 1, 1))
    found = windows(days, CUTOFF, 3, 5)
    rejected, held = 0, 0
    for seed in range(runs):
        values = noise(days, np.random.default_rng(seed)) + added
        own, *others = (float(one.jump(values)) for one in found.all)
        made = Jumps(own, np.array(others), rank_p(own, others))
        reached = made.p is not None and made.p <= 0.05
        rejected += reached
        held += reached and (made.breakdown or 0) > 1 and trend(found, made.others)[1] > 0.05
    return rejected, held


def test_a_stationary_series_rejects_at_most_at_the_level() -> None:
    rejected, held = rejections(200)
    assert rejected <= binom.ppf(0.999, 200, 0.05)
    assert held <= rejected


def test_a_steady_drift_is_in_every_jump_and_falls_out() -> None:
    days = days_of(96, 4, date(2015, 1, 1))
    rejected, _ = rejections(100, -0.002 * (days - days.min()))
    assert rejected <= binom.ppf(0.999, 100, 0.05)


def test_a_step_at_the_cutoff_is_found_whatever_made_it() -> None:
    days = days_of(96, 4, date(2015, 1, 1))
    step = np.where(days < CUTOFF.toordinal(), 3.0, 0.0)
    rejected, held = rejections(20, step)
    assert rejected == 20
    assert held >= 15


def test_a_drift_that_bends_fails_its_check() -> None:
    days = days_of(96, 4, date(2015, 1, 1))
    found = windows(days, CUTOFF, 3, 5)
    bent = -((days - days.min()) ** 2) / 4e5 + 0.1 * np.random.default_rng(0).normal(size=len(days))
    made = jumps(bent, np.zeros((len(days), 1)), found, 19)
    assert drift(found, made, 0.05).status == "failed"
    flat = jumps(noise(days, np.random.default_rng(1)), np.zeros((len(days), 1)), found, 19)
    assert drift(found, flat, 0.05).status == "passed"


def test_the_interval_draws_weeks_and_not_documents() -> None:
    days = np.repeat(days_of(72, 4), 10)  # ten documents a week
    found = windows(days, CUTOFF, 3, 5)
    rng = np.random.default_rng(2)
    by_week = np.repeat(rng.normal(size=len(days) // 10), 10)
    alike, apart = (
        interval(values, days, found.own, seed=0) for values in (by_week, rng.permutation(by_week))
    )
    assert alike.low < alike.value < alike.high
    assert alike.high - alike.low > 2 * (apart.high - apart.low)


def test_fewer_documents_at_the_cutoff_than_elsewhere_fail_their_check() -> None:
    days = days_of(96, 8, date(2015, 1, 1))
    own = windows(days, CUTOFF, 3, 5).own.inside
    thin = days[~own | (np.arange(len(days)) % 4 == 0)]
    assert sizes(windows(thin, CUTOFF, 3, 5)).status == "failed"
    assert sizes(windows(days, CUTOFF, 3, 5)).status == "passed"


def test_a_level_takes_its_number_of_dates() -> None:
    found = windows(days_of(), CUTOFF, 3, 5)
    assert enough(found, CutoffSettings(cutoff="2019-01"), None).status == "passed"
    check = enough(found, CutoffSettings(cutoff="2019-01", level=0.01), None)
    assert (check.status, check.figures["wanted"]) == ("failed", 99)
    assert "79 are missing" in check.words


def test_without_other_dates_there_is_no_breakdown() -> None:
    assert Jumps(1.0, np.zeros(0), None).breakdown is None


def test_few_documents_outside_leave_the_scores_as_they_are() -> None:
    days = np.array([(CUTOFF + timedelta(days=i)).toordinal() for i in range(-40, 40)], dtype=np.int64)
    values = np.random.default_rng(0).normal(size=80)
    own = windows(days, CUTOFF, 3, 5).own
    np.testing.assert_array_equal(left(values, values[:, None], own), values)


@pytest.mark.parametrize(
    "written", ["", "2024", "2024-13", "2024-02-30", "24-02-03", "2024/02/03", "March 2024", "2024-3-1"]
)
def test_what_is_no_date_is_none(written: str) -> None:
    assert day_of(written) is None
