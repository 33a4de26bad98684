"""The time left of a plan of stages, with a clock of its own, and what is noted of each stage."""

from __future__ import annotations

import pytest

from pretrace.verdicts.audit.watch import Outlook, Stage, Timed, Unwatched, guessed_seconds


class Hands:
    """A clock whose time is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def jump_and_fail(self) -> None:
        self.now += 1
        raise KeyError


@pytest.fixture
def clock() -> Hands:
    return Hands()


def planned(clock: Hands) -> Outlook:
    outlook = Outlook(clock)
    outlook.plan([Stage("training", 10), Stage("writing", 20), Stage("reading", 30)])
    return outlook


def test_before_anything_ran_the_guesses_count(clock: Hands) -> None:
    outlook = planned(clock)
    assert outlook.left() == 60
    assert outlook.step == (0, 3)
    outlook.begin("training")
    clock.now = 4
    assert outlook.left() == 6 + 50
    assert outlook.step == (1, 3)
    clock.now = 15
    assert outlook.left() == 50  # longer than guessed, and nothing said about it: not less than nothing


def test_a_finished_stage_corrects_the_guesses_of_the_others(clock: Hands) -> None:
    outlook = planned(clock)
    outlook.begin("training")
    clock.now = 30
    outlook.end()
    assert outlook.left() == 3 * 50
    outlook.begin("writing")
    clock.now += 30
    outlook.end()
    assert outlook.left() == 2 * 30  # 60 seconds for what was guessed at 30
    outlook.begin("reading")
    outlook.end()
    assert outlook.left() == 0


def test_a_stage_under_way_is_judged_by_its_pace(clock: Hands) -> None:
    outlook = planned(clock)
    outlook.begin("training")
    clock.now = 50
    outlook.advance(0.5)
    assert outlook.left() == pytest.approx(50 + 10 * 50)  # ten times the guess, and so for the stages ahead
    clock.now = 2
    outlook.advance(0.05)  # half of a tenth: its pace (38 s left) and the guess (8 s left) count alike
    assert outlook.left() == pytest.approx((38 + 8) / 2 + 2 * 50)
    outlook.end()
    outlook.begin("writing")  # a fifth of the guess was measured: the guesses ahead are divided by five
    outlook.advance(0.5)
    clock.now += 20
    assert outlook.left() == pytest.approx(20 + 30 * 22 / 20)  # 22 seconds for what was guessed at 20


def test_stages_are_skipped_added_and_entered_again(clock: Hands) -> None:
    outlook = planned(clock)
    outlook.begin("training")
    outlook.end()
    outlook.begin("reading")  # the writing came from the cache
    outlook.end()
    assert outlook.step == (3, 3)
    assert outlook.left() == 0
    outlook.begin("reading")
    assert outlook.step == (3, 3)
    outlook.begin("a surprise")
    assert outlook.step == (4, 4)
    outlook.plan([Stage("planting", 40)])
    outlook.end()
    assert outlook.step == (4, 5)
    assert outlook.left() == 0  # so far no time has passed at all, and that is all that is known


def test_seconds_are_noted_under_the_stage_also_after_an_error(clock: Hands) -> None:
    watch = Timed(Unwatched(), clock)
    with watch.passes("reading"):
        clock.now = 2.004
    with watch.training("training") as on_step:
        assert on_step is None
        clock.now = 5
    with pytest.raises(KeyError), watch.passes("reading"):
        clock.jump_and_fail()
    assert watch.seconds == {"reading": 3.0, "training": 3.0}


def test_guesses_grow_with_the_work_and_a_gpu_is_faster() -> None:
    one = guessed_seconds("training", parameters=10**8, tokens=10**4)
    assert guessed_seconds("training", parameters=3 * 10**8, tokens=2 * 10**4) == pytest.approx(6 * one)
    assert guessed_seconds("reading", parameters=10**8, tokens=10**4) < one
    assert guessed_seconds("training", parameters=10**8, tokens=10**4, device="cuda") < one / 10
