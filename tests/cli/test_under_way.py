"""A command that is silent for long says what it is doing, wherever it is and whatever it does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pretrace.cli import progress
from pretrace.cli.streams import said_at, silenced


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """The looks that a command would take once a second, to be taken by hand."""
    found: list[Callable[[], None]] = []
    repeated = progress.repeated

    def noted(act: Callable[[], None], *, first: float, every: float) -> Any:
        assert (first, every) == (31.0, 1.0)
        found.append(act)
        return repeated(lambda: None, first=3600.0, every=3600.0)

    monkeypatch.setattr(progress, "repeated", noted)
    return found


def test_a_line_names_what_is_done_once_nothing_was_said_for_30_seconds(
    look: list[Callable[[], None]], capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    with progress.command("score", lambda: now[0]):
        said_at[0] = 100.0
        now[0] = 120.0
        with progress.doing("opening the models", clock=lambda: now[0]):
            look[0]()
            assert capsys.readouterr().err == ""  # not yet
            now[0] = 131.0
            look[0]()
            assert capsys.readouterr().err == "opening the models · 11 s so far\n"
            now[0] = 150.0
            look[0]()
            assert capsys.readouterr().err == ""  # counted from the last line
        said_at[0] = 160.0  # a stage with a line of its own
        now[0] = 190.0
        look[0]()
        assert capsys.readouterr().err == ""
        now[0] = 200.0
        look[0]()
        assert capsys.readouterr().err == "pretrace score · 1 min 40 s so far\n"
        now[0] = 300.0
        with silenced(True):
            look[0]()
        assert capsys.readouterr().err == ""


def test_an_audit_that_says_its_own_lines_says_no_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[Callable[[], None]] = []
    repeated = progress.repeated

    def noted(act: Callable[[], None], *, first: float, every: float) -> Any:
        acts.append(act)
        return repeated(lambda: None, first=3600.0, every=3600.0)

    monkeypatch.setattr(progress, "repeated", noted)
    with progress.command("audit"), progress.Stages().passes("reading"):
        whole_command, stage = acts
        said_at[0] -= 40.0
        stage()
        whole_command()
    assert capsys.readouterr().err.count("\n") == 1


def test_on_a_terminal_nothing_is_added(monkeypatch: pytest.MonkeyPatch, look: list[Any]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.command("score"):
        assert not look


def test_the_page_is_told_what_is_done_before_a_text_is_read(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress.json"
    monkeypatch.setenv("PRETRACE_PROGRESS", str(path))
    with progress.command("score"), progress.doing("opening the models"):
        assert json.loads(path.read_text()) == {"share": 0.0, "left": None, "said": "opening the models"}
