"""Progress for the program that started a command: what stands in the file while it runs and when it is over."""

from __future__ import annotations

import json
import time

import pytest

from pretrace.cli.progress import Stages, command, doing, job, trained, watched
from pretrace.cli.streams import VARIABLE
from pretrace.scoring.outlook import Stage


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What stands in the file."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    monkeypatch.setattr("pretrace.cli.progress.EVERY", 0.01)
    return lambda: json.loads((tmp_path / "progress.json").read_text())


def test_passes_over_texts(told):
    with command("score"):
        with watched("reading", 0.0) as progress:
            assert told() == {"share": 0.0, "left": None, "said": "reading"}
            progress.begin(4)
            assert soon(told, said="reading: tokenising 4 texts")["left"] is None
            progress.weigh(4, 18)
            assert soon(told, said="reading: the first batch is computed")["left"] is None
            progress.advance(1, 9, 0.0, False)
            assert soon(told, said="reading")["left"] is None  # what is kept says nothing of the speed
            progress.worked(9)
            progress.advance(1, 9, 0.1, True)
            assert soon(told, left=float)["share"] > 0
        assert told()["said"] == ""  # the result is written
    assert job() is not job()  # no command runs


def soon(told, **wanted):
    """What stands in the file as soon as it has these values, or values of these kinds."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = told()
        if all(found[k] == v or (isinstance(v, type) and isinstance(found[k], v)) for k, v in wanted.items()):
            return found
        time.sleep(0.02)
    raise AssertionError(found)


def test_what_a_command_does_before_it_opens_a_model(told):
    with command("flag"):
        assert told() == {"share": 0.0, "left": None, "said": "reading the texts"}
        with doing("opening the models"):
            assert told()["said"] == "opening the models"


def test_stages_name_the_step_and_the_time_left_of_the_whole(told):
    with command("audit"):
        stages = Stages()
        stages.plan([Stage("one", 1000.0), Stage("two", 3000.0)], 1000.0)
        with stages.passes("one"):
            found = told()
    assert found["said"] == "step 1 of 2 · one"
    assert 4900 < found["left"] <= 5000


def test_training(told):
    class Step:
        step, steps = 3, 4

    with command("evaluate"), trained("tuning") as show:
        assert told()["said"] == "tuning"
        show(Step())
        assert soon(told, share=0.75)["left"] is None  # texts are read afterwards, nobody knows how long


def test_nothing_is_written_where_nobody_asks(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    monkeypatch.chdir(tmp_path)
    with command("score"), watched("reading") as progress:
        progress.begin(1)
    assert not list(tmp_path.iterdir())


def test_the_command_says_how_it_ended(told, request):
    command = request.getfixturevalue("command")
    assert command("runs", "report", "/nowhere").wait() == 2
    assert told()["ended"] == 2
    assert told()["message"].startswith("/nowhere is not a pretrace run")
