"""What an audit shows of its stages: which step of how many and the time left, on a terminal and without one."""

from __future__ import annotations

import sys
import threading

import pytest

from pretrace.auditing.watch import Outlook, Stage
from pretrace.cli import progress
from pretrace.cli.progress import Stages
from pretrace.tuning.plan import TrainingStep


def stages(now: list[float]) -> Stages:
    made = Stages(Outlook(lambda: now[0]))
    made.plan([Stage("training the generator", 100), Stage("writing continuations", 200)])
    return made


def test_the_line_names_the_step_and_the_time_left_of_the_whole() -> None:
    now = [0.0]
    shown = stages(now)
    with shown.training("training the generator") as on_step:
        assert on_step is not None
        assert shown.line("training the generator") == (
            "step 1 of 2 · training the generator · 5 min 0 s left of the whole"
        )
        now[0] = 30.0
        on_step(TrainingStep(step=2, steps=4, epoch=1, epochs=1, loss=1.0, tokens_per_second=1.0))
        assert "3 min 50 s left" in shown.line("training the generator")
        now[0] = 50.0
    with shown.passes("writing continuations") as passes:
        passes.begin(6)
        passes.begin(2)
        now[0] = 130.0
        passes.advance(6, 100, 80.0, True)
        assert shown.line("writing") == "step 2 of 2 · writing · 27 s left of the whole"


def test_without_a_terminal_a_plain_line_comes_by_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the stage reports nothing; and none sooner than its time."""
    now = [0.0]
    shown, told = stages(now), threading.Event()
    waits = []

    def line(stage: str) -> str:
        told.set()
        return f"line of {stage}"

    monkeypatch.setattr(shown, "line", line)
    with shown.passes("reading"):
        pass
    assert capsys.readouterr().err == ""
    repeated = progress._repeated

    def noted(act: object, *, first: float, every: float) -> object:
        waits.append((first, every))
        return repeated(act, first=0.0, every=3600.0)  # type: ignore[arg-type]

    monkeypatch.setattr(progress, "_repeated", noted)
    now[0] = 12.0
    with shown.passes("reading"):
        assert told.wait(60)
    assert capsys.readouterr().err == "line of reading\n"
    assert waits == [(18.0, 30.0)]


def test_on_a_terminal_a_bar_shows_the_same_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    shown, told = stages([0.0]), threading.Event()
    own = shown.line
    monkeypatch.setattr(shown, "line", lambda stage: (told.set(), own(stage))[1])
    with shown.passes("writing continuations"):
        assert told.wait(60)
    assert "step 2 of 2 · writing continuations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (100, "1 min 40 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_are_told_in_two_units_at_most(seconds: float, told: str) -> None:
    assert progress._duration(seconds) == told


def test_the_thread_is_gone_after_an_error() -> None:
    before = threading.active_count()
    with pytest.raises(KeyError), stages([0.0]).passes("reading"):
        raise KeyError
    assert threading.active_count() == before


def test_classifiers_that_are_trained_are_announced(capsys: pytest.CaptureFixture[str]) -> None:
    progress.announce_training(("words", "embeddings"))
    assert capsys.readouterr().err == ""
    progress.announce_training(("words", "pretrained"))
    assert "note: pretrained: trained on the texts first" in capsys.readouterr().err
