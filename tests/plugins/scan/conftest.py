"""The command line in this process."""

import pytest

from pretrace.cli import _called


@pytest.fixture
def command(capsys):
    """Exit code and output of a command."""

    def run(*words):
        code, error = _called([*map(str, words)])
        return code, " ".join((capsys.readouterr().out + error).split())

    return run


@pytest.fixture
def call(command):
    """The same of `scan`."""
    return lambda *words: command("scan", *words)
