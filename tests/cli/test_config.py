"""Options from a file: a table for each command or flat, what is given wins, and a wrong name is told its neighbour."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from made import call_function

from pretrace.cli.commands import RawOptions
from pretrace.corpora import Columns
from pretrace.corpora.opening import Source
from pretrace.verdicts.audit.data import AuditSettings


def taken(*arguments: object) -> tuple[AuditSettings, RawOptions, Columns]:
    """What a command called `audit` is given, with the texts as its argument."""
    found = []

    def audit(source: Source, settings: AuditSettings, given: RawOptions) -> None:
        found.append((settings, given, source.columns))

    call_function(audit, *arguments, name="audit")
    return found[0]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "audit.toml"


def test_a_file_gives_options_the_command_line_wins_and_all_are_recorded(config: Path) -> None:
    config.write_text(
        'texts = "posts.jsonl"\nlevel = 0.1\n\n[audit]\nlevel = 0.2\nsnippets = {most = 3, pairs = 7}\n'
        'classifiers = ["words", "embeddings"]\n',
        encoding="utf-8",
    )
    settings, given, _ = taken("--config", config)
    assert (settings.snippets.pairs, settings.snippets.most, settings.level) == (7, 3, 0.2)
    assert settings.classifiers == ("words", "embeddings")
    assert given["texts"] == "posts.jsonl"
    assert {"config", "json", "quiet"}.isdisjoint(given)
    settings, given, _ = taken("mine.jsonl", "--snippets", "pairs=1", "--config", config)
    assert (settings.snippets.pairs, given["texts"], settings.snippets.most) == (1, "mine.jsonl", 3)


@pytest.mark.parametrize(
    "written",
    [
        '[audit.columns]\ntext = "body"\nid = "a,b=c"',
        """[audit]\ncolumns = 'text=body,id="a,b=c"'""",
        """[audit]\ncolumns = ['text=body', "id='a,b=c'"]""",
        'columns = {text = "body", id = "a,b=c"}',
    ],
)
def test_an_option_with_keys_is_a_table_or_as_it_is_typed_and_what_is_given_wins_by_key(
    config: Path, written: str
) -> None:
    config.write_text(written, encoding="utf-8")
    assert taken("posts.jsonl", "--config", config)[2] == Columns(text="body", id="a,b=c")
    given = ("--columns", "id=key,label=", "--columns", "group=book", "--config", config)
    assert taken("posts.jsonl", *given)[2] == Columns(text="body", id="key", label="", group="book")


def test_a_file_has_tables_for_commands_that_were_not_imported(config: Path) -> None:
    """A command is imported when it is called, so a new Python knows no other."""
    config.write_text("[flag]\nfdr = 0.1\n", encoding="utf-8")
    words = ["score", "nowhere.jsonl", "--model", "smollm2", "--out", "OUT", "--config", config]
    done = subprocess.run([sys.executable, "-m", "pretrace", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert "there is no option" not in done.stderr
    assert "nowhere.jsonl" in done.stderr
