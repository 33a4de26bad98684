"""Progress for the program that started a command: what stands in the file while it runs and when it is over."""

from __future__ import annotations

import json
import threading

import pytest

from pretrace.cli.progress import PassesLine, Stages, command, doing, trained, watched
from pretrace.cli.streams import VARIABLE
from pretrace.verdicts.audit.watch import Outlook, Stage


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What stands in the file."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "progress.json"))
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    return lambda: json.loads((tmp_path / "progress.json").read_text())


def test_passes_over_texts(told):
    with watched("reading") as progress:
        assert told() == {"share": 0.0, "left": None, "said": "reading"}
        progress.begin(4)
        assert told()["said"] == "reading: tokenising 4 texts"
        progress.weigh(4, 9)
        assert told() == {"share": 0.0, "left": None, "said": "reading: the first batch is computed"}
        progress.advance(1, 9, 0.0, False)
        assert (told()["share"], told()["left"]) == (0.25, None)  # what is kept says nothing of the speed
        progress.advance(3, 9, 0.1, True)
        assert (told()["share"], told()["left"]) == (1.0, 0.0)


def test_what_a_command_does_before_it_opens_a_model(told):
    with command("flag"):
        assert told() == {"share": 0.0, "left": None, "said": "reading the texts"}
        with doing("opening the models"):
            assert told()["said"] == "opening the models"


def test_stages_name_the_step_and_the_time_left_of_the_whole(told):
    stages = Stages(Outlook(lambda: 0.0))
    stages.plan([Stage("one", 10.0), Stage("two", 30.0)])
    seen = threading.Event()
    with stages.passes("one") as progress:
        while not seen.wait(0.01):
            try:
                found = told()
                seen.set()
            except FileNotFoundError:
                continue
        progress.begin(1)
    assert found == {"share": 0.0, "left": 40.0, "said": "step 1 of 2 · one"}


def test_training(told):
    class Step:
        step, steps = 3, 4

    with trained("tuning") as show:
        show(Step())
    assert told() == {"share": 0.75, "left": None, "said": "tuning"}


def test_nothing_is_written_where_nobody_asks(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    with watched("reading") as progress:
        assert isinstance(progress, PassesLine)


def test_the_command_says_how_it_ended(told, command):
    assert command("runs", "report", "/nowhere").wait() == 2
    assert told()["ended"] == 2
    assert told()["message"].startswith("/nowhere is not a pretrace run")
