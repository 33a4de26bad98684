"""The intervals of the error rates' plots."""

from __future__ import annotations

import pytest

from benchmarks.audits.error_plots import Rate


@pytest.mark.parametrize("k", [0, 1, 4, 79, 80])
def test_intervals_are_exact(k: int) -> None:
    from scipy.stats import binomtest

    rate = Rate.of([{"audits": 30, "rejections": 0}, {"audits": 50, "rejections": k}])
    exact = binomtest(k, 80).proportion_ci(method="exact")
    assert (rate.value, rate.audits) == (k / 80, 80)
    assert (rate.low, rate.high) == pytest.approx((exact.low, exact.high), abs=1e-4)
