"""What the benchmark of estimates takes for one that holds."""

from __future__ import annotations

import pytest

from benchmarks.speed.estimates import judged


def test_estimates_are_judged_from_a_fifth_of_a_job_on() -> None:
    found = judged([(1, 900.0), (25, 75.0), (50, 70.0), (95, 900.0)], 100.0)
    assert found["looks"] == 2  # the first and the last stand outside
    assert found["within"] == 1.0
    assert found["worst"] == pytest.approx(1.4)
    assert found["holds"]


def test_too_little_is_as_wrong_as_too_much() -> None:
    assert judged([(40, 30.0)], 100.0)["worst"] == judged([(40, 120.0)], 100.0)["worst"] == 2.0
    assert not judged([(40, 30.0)], 100.0)["holds"]


def test_a_job_without_an_estimate_does_not_hold() -> None:
    assert not judged([(1, 99.0)], 100.0)["holds"]
