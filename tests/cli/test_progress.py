"""What an audit shows of its stages: which step of how many and the time left, on a terminal and without one."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from pretrace.cli import progress
from pretrace.cli.progress import BytesLine, Passes, Stages, TrainingLine, duration
from pretrace.cli.streams import silenced
from pretrace.scoring.outlook import Outlook, Stage
from pretrace.tuning.plan import TrainingStep


def stages(now: list[float]) -> Stages:
    made = Stages(Outlook(lambda: now[0]))
    made.plan([Stage("training the generator", 100), Stage("writing continuations", 200)], 0.0)
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
        assert "2 min 30 s left" in shown.line("training the generator")  # faster than guessed, all of it
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
    repeated = progress.repeated

    def noted(act: object, *, first: float, every: float) -> object:
        waits.append((first, every))
        return repeated(act, first=0.0, every=3600.0)  # type: ignore[arg-type]

    monkeypatch.setattr(progress, "repeated", noted)
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
    assert duration(seconds) == told


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


def begun(stage: str, now: list[float]) -> Outlook:
    """An outlook of one stage, which has begun."""
    outlook = Outlook(lambda: now[0])
    outlook.plan([Stage(stage, 0.0)], 0.0)
    outlook.begin(stage)
    return outlook


def test_a_line_says_texts_done_speed_and_time_left() -> None:
    now = [100.0]
    reading = Passes("reading", begun("reading", now))
    assert reading.line() == ""
    reading.begin(30_000)
    assert reading.line() == "reading · 0 of 30,000 texts"
    reading.advance(10_000, 400_000, 0.0, False)  # from the cache: at once, which says nothing of the rest
    assert reading.line() == "reading · 10,000 of 30,000 texts"
    now[0] = 110.0
    reading.advance(1_000, 50_000, 10.0, True)
    assert reading.line() == "reading · 11,000 of 30,000 texts · 5,000 tokens/s · 3 min 10 s left"


def test_the_time_left_is_counted_in_tokens_where_texts_were_weighed() -> None:
    """The longest texts are read first: ten of a hundred texts are done, and half of the tokens."""
    now = [0.0]
    reading = Passes("reading", begun("reading", now))
    reading.begin(200)
    reading.weigh(100, 2_000)
    now[0] = 50.0
    reading.worked(1_000)
    reading.advance(10, 1_000, 50.0, True)
    assert "10 of 200 texts" in reading.line()
    assert reading.line().endswith("2 min 30 s left")  # 3,000 tokens: the other hundred texts count as these
    reading.weigh(100, 0)  # which are all in the store
    assert reading.line().endswith("50 s left")


def test_training_and_counting_have_their_lines() -> None:
    now = [0.0]
    training = TrainingLine("training", lambda: now[0])
    assert training.line() == ""
    now[0] = 20.0
    training(TrainingStep(step=20, steps=80, epoch=1, epochs=2, loss=3.214, tokens_per_second=512.4))
    assert training.line() == "training · step 20 of 80 · loss 3.21 · 512 tokens/s · 1 min 0 s left"
    counting = BytesLine(lambda: now[0])
    counting(1_000, 50_000_000)  # counted before it was resumed
    now[0] = 30.0
    counting(1_200, 250_000_000)
    assert counting.line() == "counting · 1,200 texts, 250 MB, 20 MB/s"


LONG: dict[str, Any] = {
    "reading": lambda: progress.watched("reading"),
    "training": progress.trained,
    "counting": progress.counted_bytes,
}


STEP = TrainingStep(step=2, steps=4, epoch=1, epochs=1, loss=1.0, tokens_per_second=1.0)
BEGUN: dict[str, Any] = {
    "reading": lambda shown: shown.begin(3),
    "training": lambda shown: shown(STEP),
    "counting": lambda shown: shown(3, 100),
}


@pytest.mark.parametrize("stage", LONG)
def test_every_long_stage_says_a_line_every_30_seconds_without_a_terminal(
    stage: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted from the last line of any stage; with --quiet none of them."""
    acts: list[object] = []
    repeated = progress.repeated

    def noted(act: object, *, first: float, every: float) -> object:
        acts.append((act, first, every))
        return repeated(lambda: None, first=3600.0, every=3600.0)

    monkeypatch.setattr(progress, "repeated", noted)
    monkeypatch.setattr(progress, "said_at", [0.0])
    monkeypatch.setattr(progress.said.__wrapped__, "__defaults__", (lambda: 12.0,))
    with LONG[stage]() as shown:
        [(act, first, every)] = acts
        act()  # type: ignore[operator]
        assert progress.said_at == [0.0]  # nothing has begun, so there was nothing to say
        BEGUN[stage](shown)
        act()  # type: ignore[operator]
    assert (first, every) == (18.0, 30.0)
    assert progress.said_at == [12.0]
    said = capsys.readouterr().err
    assert said.startswith(f"{stage} · ")
    assert said.count("\n") == 1
    with silenced(True), LONG[stage](), stages([0.0]).passes("reading"):
        assert len(acts) == 1
    assert capsys.readouterr().err == ""
