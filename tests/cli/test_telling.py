"""What is shown while a command runs: a bar on a terminal, elsewhere a line every 30 seconds, and the progress file."""

import json
import sys
import threading
import time

import pytest

from pretrace.cli import VARIABLE, said_at, silenced, telling
from pretrace.cli.telling import Activity, Stages, _Passes, command, doing, shown
from pretrace.scoring.outlook import Stage, TimeEstimate
from pretrace.tuning.plan import TrainingStep

STEP = TrainingStep(step=20, steps=80, loss=3.214, tokens_per_second=512.4)


@pytest.fixture
def now():
    """The time, set by hand."""
    return [100.0]


@pytest.fixture
def look(monkeypatch, now):
    """The look that a command takes every half second, taken by hand."""
    monkeypatch.setattr(telling, "EVERY", 3600.0)
    said_at[0] = now[0]
    return lambda: telling._look(lambda: now[0])


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What stands in the progress file."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setattr(telling, "EVERY", 0.01)
    return lambda: json.loads((tmp_path / "progress.json").read_text())


def begun(stage, now):
    """An outlook of one stage, which has begun."""
    outlook = TimeEstimate(lambda: now[0])
    outlook.plan([Stage(stage, 0.0)], 0.0)
    outlook.begin(stage)
    return outlook


def test_a_line_says_texts_done_speed_and_time_left(now):
    reading = _Passes("reading", begun("reading", now))
    assert reading.line() == ""
    reading.begin(30_000)
    assert reading.line() == "reading · 0 of 30,000 texts"
    reading.advance(10_000, 400_000, 0.0, False)  # from the cache: at once, which says nothing of the rest
    assert reading.line() == "reading · 10,000 of 30,000 texts"
    now[0] = 110.0
    reading.advance(1_000, 50_000, 10.0, True)
    assert reading.line() == "reading · 11,000 of 30,000 texts · 5,000 tokens/s · 3 min 10 s left"


def test_the_time_left_is_counted_in_tokens_where_texts_were_weighed(now):
    """The longest texts are read first: ten of a hundred texts are done, and half of the tokens."""
    reading = _Passes("reading", begun("reading", now))
    reading.begin(200)
    reading.weigh(100, 2_000)
    now[0] = 150.0
    reading.worked(1_000)
    reading.advance(10, 1_000, 50.0, True)
    assert "10 of 200 texts" in reading.line()
    assert reading.line().endswith("2 min 30 s left")  # 3,000 tokens: the other hundred texts count as these
    reading.weigh(100, 0)  # which are all in the store
    assert reading.line().endswith("50 s left")


def test_a_stage_names_the_step_and_the_time_left_of_the_whole(now, look, capsys):
    stages = Stages(TimeEstimate(lambda: now[0]))
    stages.plan([Stage("training the generator", 100), Stage("writing", 200)], 0.0)
    with stages.training("training the generator") as on_step:
        now[0] = 130.0
        look()
        assert on_step is not None
        on_step(STEP)
        now[0] = 160.0
        look()
    with stages.passes("writing") as passes:
        passes.begin(8)
        now[0] = 200.0
        passes.advance(6, 100, 40.0, True)
        look()
    assert capsys.readouterr().err.splitlines() == [
        "step 1 of 2 · training the generator · 4 min 30 s left of the whole",
        "step 1 of 2 · training the generator · 5 min 0 s left of the whole",
        "step 2 of 2 · writing · 13 s left of the whole",
    ]


def test_a_line_comes_wherever_nothing_was_said_for_30_seconds(now, look, capsys):
    def said(at):
        now[0] = at
        look()
        return capsys.readouterr().err

    with command("score", lambda: now[0]):
        now[0] = 120.0
        with doing("opening the models", clock=lambda: now[0]):
            found = [said(120.0), said(130.0), said(130.0)]
            assert found == ["", "opening the models · 10 s so far\n", ""]
        reading = _Passes("reading", begun("reading", now))
        with shown(Activity("reading", reading.line)), doing("writing a part"):
            reading.begin(3)
            assert said(200.0) == "reading · 0 of 3 texts\n"
        assert said(230.0) == "pretrace score · 2 min 10 s so far\n"
        with silenced(True):
            assert said(time.monotonic() + 300) == ""


def test_on_a_terminal_a_bar_shows_the_line_and_no_line_is_said(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(telling, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(telling, "EVERY", 0.01)
    with command("score"), telling.watched("reading") as passes, telling.trained() as steps:
        passes.begin(7)
        time.sleep(0.5)
        assert steps is not None
    said = capsys.readouterr().err
    assert "reading · 0 of 7 texts" in said
    assert "so far" not in said


def test_the_thread_is_gone_after_an_error():
    before = set(threading.enumerate())  # of other tests, too, which may end meanwhile
    with pytest.raises(KeyError), command("audit"), Stages().passes("reading"):
        raise KeyError
    assert set(threading.enumerate()) <= before


def test_the_file_follows_passes_over_texts(told):
    with command("score"):
        assert told() == {"share": 0.0, "left": None, "said": "reading the texts"}
        with telling.watched("reading", 0.0) as passes:
            assert soon(told, said="reading") == {"share": 0.0, "left": None, "said": "reading"}
            passes.begin(4)
            passes.weigh(4, 18)
            passes.advance(1, 9, 0.0, False)
            assert soon(told, said="reading")["left"] is None  # what is kept says nothing of the speed
            passes.worked(9)
            passes.advance(1, 9, 0.1, True)
            assert soon(told, left=float)["share"] > 0
        assert soon(told, said="")  # the result is written
    assert telling._job() is not telling._job()  # no command runs


def soon(told, **wanted):
    """What stands in the file as soon as it has these values, or values of these kinds."""
    for _ in range(3000):
        found = told()
        if all(found[k] == v or (isinstance(v, type) and isinstance(found[k], v)) for k, v in wanted.items()):
            return found
        time.sleep(0.02)
    raise AssertionError(found)


def test_the_file_follows_stages_and_training(told):
    with command("audit"):
        stages = Stages()
        stages.plan([Stage("one", 1000.0), Stage("two", 3000.0)], 1000.0)
        with stages.passes("one"):
            found = soon(told, said="step 1 of 2 · one")
    assert found["said"] == "step 1 of 2 · one"
    assert 4900 < found["left"] <= 5000
    with command("evaluate"), telling.trained("tuning") as show:
        assert soon(told, said="tuning")
        assert show is not None
        show(STEP)
        assert soon(told, share=0.25)["left"] is None  # texts are read afterwards, nobody knows how long


def test_the_command_says_how_it_ended(told, request):
    assert request.getfixturevalue("command")("runs", "report", "/nowhere").wait() == 2
    assert told()["ended"] == 2
    assert told()["message"].startswith("/nowhere is not a pretrace run")
