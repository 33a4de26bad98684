"""The command line in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pretrace.cli import _called


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Exit code and output of a command."""

    def run(*words: object) -> tuple[int, str]:
        code, error = _called([*map(str, words)])
        return code, " ".join((capsys.readouterr().out + error).split())

    return run


@pytest.fixture
def call(command: Callable[..., tuple[int, str]]) -> Callable[..., tuple[int, str]]:
    """The same of `scan`."""
    return lambda *words: command("scan", *words)
