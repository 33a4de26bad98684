"""The time left of a job, with a clock of its own."""

import pytest
from tiny import make_model, make_tokenizer

from pretrace.backends import open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.scoring.evidence import Work, open_store, trace
from pretrace.scoring.outlook import Stage, Timed, TimeEstimate, Watch, guessed_seconds
from pretrace.testing import Memory
from pretrace.types import Progress, Quantity
from pretrace.verdicts.audit.checks import slowness


class Hands:
    """A clock whose time is set by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Hands()


def planned(clock, after=0.0):
    outlook = TimeEstimate(clock)
    outlook.plan([Stage("training", 10), Stage("writing", 20), Stage("reading", 30)], after)
    return outlook


def test_before_anything_ran_the_guesses_count(clock):
    outlook = planned(clock)
    assert outlook.left() == 60
    assert outlook.step == (0, 3)
    outlook.begin("training")
    clock.now = 4
    assert outlook.left() == 6 + 50
    assert outlook.step == (1, 3)
    clock.now = 20
    # longer than guessed, and nothing said about it: a quarter more, at least
    assert outlook.left() == 5 + 50


def test_a_finished_stage_corrects_the_guesses_of_the_others(clock):
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


def test_a_stage_under_way_is_judged_by_its_pace(clock):
    outlook = planned(clock)
    outlook.begin("training")
    clock.now = 50
    outlook.advance(0.5)
    assert outlook.left() == pytest.approx(50 + 10 * 50)  # ten times the guess, and so for the stages ahead
    clock.now = 60
    assert outlook.left() == pytest.approx(40 + 10 * 50)  # the next batch is under way
    outlook.end()


def test_stages_are_skipped_added_and_entered_again(clock):
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
    assert outlook.left() is None  # nothing is known of it
    outlook.plan([Stage("planting", 40)])
    outlook.end()
    assert outlook.step == (4, 5)
    assert outlook.left() == 0  # so far no time has passed at all, and that is all that is known


def test_tests_and_the_report_come_after_the_stages_and_between_them(clock):
    outlook = planned(clock, after=10)
    assert outlook.left() == 70
    outlook.begin("training")
    clock.now = 10
    outlook.end()
    clock.now = 14
    assert outlook.left() == 50 + 6
    outlook.begin("writing")
    clock.now = 34
    outlook.end()
    outlook.begin("reading")
    clock.now = 64
    outlook.end()
    assert outlook.left() == 10
    clock.now = 78
    assert outlook.left() == 0.25 * 14  # longer than foretold
    assert outlook.done == pytest.approx(78 / 81.5)
    clock.now = 82
    assert outlook.done == pytest.approx(78 / 81.5)  # never back


def test_a_stage_ahead_that_nobody_knows_makes_the_whole_unknown(clock):
    outlook = TimeEstimate(clock)
    assert outlook.left() is None
    assert outlook.done == 0
    outlook.plan([Stage("training", 0), Stage("reading", 0)], 0)
    outlook.begin("training")
    clock.now = 5
    outlook.advance(0.5)
    assert outlook.left() is None
    assert outlook.done == 0.5  # of the stage under way
    outlook.end()
    outlook.begin("reading")
    assert outlook.left() is None
    clock.now = 8
    outlook.waited()  # texts were tokenised: no part of the pace
    clock.now = 10
    outlook.advance(0.25)
    assert outlook.left() == 6


def test_a_model_is_timed_where_its_weights_are_here(model_folder):
    model = open_model(str(model_folder))
    guess = guessed_seconds(model, "reading", 1)
    assert 0 < slowness(model) * guess < 1  # seconds a token
    assert slowness(Memory()) == 1.0


def test_seconds_are_noted_under_the_stage_also_after_an_error(clock):
    def fail():
        clock.now += 1
        raise KeyError

    watch = Timed(Watch(), clock)
    with watch.passes("reading"):
        clock.now = 2.004
    with watch.training("training") as on_step:
        assert on_step is None
        clock.now = 5
    with pytest.raises(KeyError), watch.passes("reading"):
        fail()
    assert watch.seconds == {"reading": 3.0, "training": 3.0}


class Told(Progress):
    """Progress that remembers how much was done when."""

    def __init__(self):
        self.work = Work()
        self.begin, self.weigh, self.worked = self.work.begin, self.work.weigh, self.work.worked
        self.shares = []

    def advance(self, texts, tokens, seconds, fresh):
        self.work.advance(texts, fresh=fresh)
        if fresh:
            done, of = self.work.sizes
            self.shares.append(done / of)


def test_batches_of_other_back_ends_count_by_their_tokens():
    told = Told()
    texts = ["a" * 7, "b" * 5, "c" * 2, "d" * 3, "e" * 9]
    trace(Memory(), texts, Quantity.LOGP, store=open_store(None), progress=told)
    assert told.shares == [17 / 26, 1.0]


def test_all_is_done_at_the_end_and_never_less_than_before():
    told = Told()
    settings = ModelSettings(token_budget=64)
    model = HuggingFace(make_model("llama"), make_tokenizer(), name="m", weights="w", settings=settings)
    texts = ["the cat sat on the mat " * (1 + i % 5) + str(i) for i in range(30)]
    trace(model, texts, Quantity.LOGP, store=open_store(None), progress=told)
    assert told.shares == sorted(told.shares)
    assert told.shares[-1] == pytest.approx(1.0)
    assert 8 * 100 < model.work([8] * 100) < model.work([800])  # of a long text a token is more work
