"""The time left of a job, with a clock of its own."""

import pytest
from tiny import make_model, make_tokenizer

from pretrace.backends import open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.naming import ModelSettings
from pretrace.scoring.evidence import Progress, Traces, trace
from pretrace.scoring.outlook import Stage, TimeEstimate, Watch, guessed_seconds
from pretrace.testing import Memory
from pretrace.types import Quantity
from pretrace.verdicts.audit.checks import slowness


@pytest.fixture
def now():
    """The time of a clock that is set by hand."""
    return [0.0]


STORIES = {
    "before anything ran the guesses count": """
        left 60, step 0/3, begin training, at 4, left 56, step 1/3,
        at 20, left 55""",  # longer than guessed, and nothing said about it: a quarter more, at least
    "a finished stage corrects the guesses of the others": """
        begin training, at 30, end, left 150, begin writing, at 60, end, left 60, begin reading, end, left 0""",
    "a stage under way is judged by its pace, and those ahead": """
        begin training, at 50, share 0.5, left 550, at 60, left 540""",
    "a pace that is hardly known counts in part": "begin training, at 2, share 0.05, left 73",
    "stages are skipped and entered again": """
        begin training, end, begin reading, end, step 3/3, left 0, begin reading, step 3/3""",
    "a stage may be added, of which nothing is known": """
        begin training, end, begin reading, end, begin a surprise, step 4/4, left None, plan planting:40,
        end, step 4/5, left 0""",
    "tests and the report come after the stages and between them": """
        after 10, left 70, begin training, at 10, end, at 14, left 56, begin writing, at 34, end, begin reading,
        at 64, end, left 10, at 78, left 3.5, done 0.9571, at 82, done 0.9571""",  # longer than foretold; never back
    "a stage ahead that nobody knows makes the whole unknown": """
        plan training:0 reading:0, done 0, begin training, at 5, share 0.5, left None, done 0.5, end, begin reading,
        left None, at 8, waited, at 10, share 0.25, left 6""",  # texts were tokenised: no part of the pace
}


@pytest.mark.parametrize("story", STORIES)
def test_the_time_left(story, now):
    outlook = TimeEstimate(lambda: now[0])
    assert (outlook.left(), outlook.done) == (None, 0)
    outlook.plan([Stage("training", 10), Stage("writing", 20), Stage("reading", 30)], 0.0)
    for event in STORIES[story].split(","):
        word, _, value = event.strip().partition(" ")
        if word == "at":
            now[0] = float(value)
        elif word == "plan":
            named = (one.split(":") for one in value.split())
            outlook.plan([Stage(name, float(seconds)) for name, seconds in named])
        elif word == "after":
            outlook.after = float(value)
        elif word in ("begin", "end", "waited"):
            getattr(outlook, word)(*([value] if value else []))
        elif word == "share":
            outlook.advance(float(value))
        elif word == "step":
            assert f"{outlook.begun}/{len(outlook.stages)}" == value
        else:
            found = outlook.left() if word == "left" else outlook.done
            assert found == (None if value == "None" else pytest.approx(float(value), abs=1e-4)), event


def test_a_model_is_timed_where_its_weights_are_here(model_folder):
    model = open_model(str(model_folder))
    guess = guessed_seconds(model, "reading", 1)
    assert 0 < slowness(model) * guess < 1  # seconds a token
    assert slowness(Memory()) == 1.0


def test_seconds_are_noted_under_the_stage_also_after_an_error(now):
    def fail():
        now[0] += 1
        raise KeyError

    watch = Watch(lambda: now[0])
    with watch.passes("reading"):
        now[0] = 2.004
    with watch.training("training") as on_step:
        assert on_step is None
        now[0] = 5
    with pytest.raises(KeyError), watch.passes("reading"):
        fail()
    assert watch.seconds == {"reading": 3.0, "training": 3.0}


class Told(Progress):
    """Remembers how much was done when."""

    def __init__(self):
        super().__init__()
        self.shares = []

    def advance(self, texts, tokens, seconds, fresh):
        super().advance(texts, tokens, seconds, fresh)
        if fresh:
            done, of = self.sizes
            self.shares.append(done / of)


def test_batches_of_other_back_ends_count_by_their_tokens():
    told = Told()
    texts = ["a" * 7, "b" * 5, "c" * 2, "d" * 3, "e" * 9]
    trace(Memory(), texts, Quantity.LOGP, store=Traces(None), progress=told)
    assert told.shares == [17 / 26, 1.0]


def test_all_is_done_at_the_end_and_never_less_than_before():
    told = Told()
    settings = ModelSettings(token_budget=64)
    model = HuggingFace(make_model("llama"), make_tokenizer(), name="m", weights="w", settings=settings)
    texts = ["the cat sat on the mat " * (1 + i % 5) + str(i) for i in range(30)]
    trace(model, texts, Quantity.LOGP, store=Traces(None), progress=told)
    assert told.shares == sorted(told.shares)
    assert told.shares[-1] == pytest.approx(1.0)
    assert 8 * 100 < model.work([8] * 100) < model.work([800])  # of a long text a token is more work
