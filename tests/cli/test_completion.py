"""A shell completes commands, options and the names of scores."""

import pytest

from pretrace.cli.commands import app
from pretrace.scores import scores


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_commands_and_options(shell: str) -> None:
    written = app().generate_completion(shell=shell)
    for word in ("runs", "verify", "cache", "clear", "controls-note", "placebo-note", "windows"):
        assert word in written


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("score", "--scores", "loss,min_k_p"), {"loss,min_k_plus_plus"}),
        (("flag", "--score", "zl"), {"zlib"}),
        (("score", "--scores", ""), set(scores)),
        (("audit", "--controls", ""), set()),
    ],
)
def test_names_of_scores_are_completed(words, expected, call):
    code, written, _ = call("__complete", *words)
    assert code == 0
    assert set(written.replace("\x1fbegin", "").split()) == expected
