"""A shell completes commands, options and the names of scores."""

import sys

import pytest

from pretrace.cli import main
from pretrace.scores import scores


@pytest.mark.parametrize(
    ("words", "number", "expected"),
    [
        ("pretrace ru", 1, {"runs"}), ("pretrace runs ver", 2, {"verify"}),
        ("pretrace cache cl", 2, {"clear"}), ("pretrace score --wind", 2, {"--windows"}),
        ("pretrace audit --model m --controls-n", 4, {"--controls-note"}),
        ("pretrace audit mine.jsonl --help-", 3, {"--help-all"}),
        ("pretrace audit --placebo a --placebo-n", 4, {"--placebo-note"}),
        ("pretrace score --scores loss --model m --mode", 6, set()),
        ("pretrace audit --controls ", 3, set()),
        ("pretrace score --scores loss,min_k_p", 3, {"loss,min_k_plus_plus"}),
        ("pretrace flag --score zl", 3, {"zlib"}), ("pretrace score --scores ", 3, set(scores)),
    ],
)  # fmt: skip
def test_bash_is_told_how_a_word_goes_on(words, number, expected, monkeypatch, capsys):
    monkeypatch.setenv("_PRETRACE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(number))
    monkeypatch.setattr(sys, "argv", ["pretrace"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    assert set(capsys.readouterr().out.split()) == expected
