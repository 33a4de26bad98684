"""What is noted of each stage of a test."""

from __future__ import annotations

import pytest

from pretrace.scoring.outlook import Timed, Unwatched


class Hands:
    """A clock whose time is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def jump_and_fail(self) -> None:
        self.now += 1
        raise KeyError


def test_seconds_are_noted_under_the_stage_also_after_an_error() -> None:
    clock = Hands()
    watch = Timed(Unwatched(), clock)
    with watch.passes("reading"):
        clock.now = 2.004
    with watch.training("training") as on_step:
        assert on_step is None
        clock.now = 5
    with pytest.raises(KeyError), watch.passes("reading"):
        clock.jump_and_fail()
    assert watch.seconds == {"reading": 3.0, "training": 3.0}
