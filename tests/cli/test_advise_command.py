"""advise as a user calls it: options, a file, questions at a terminal, JSON, exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from pretrace.cli.advising import _QUESTIONS, AdviseSettings, advise
from pretrace.cli.options import command_of
from pretrace.errors import ExpressionError
from pretrace.types import Situation

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command_of(advise))
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Calls the command; gives the exit code and what it printed and said."""

    def called(*arguments: object) -> tuple[int, str, str]:
        code = app([str(argument) for argument in arguments], standalone_mode=False)
        said = capsys.readouterr()
        return code or 0, said.out, said.err

    return called


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "t.jsonl"
    made = [
        {"text": f"Letter {i}", "day": f"20{10 + i // 72}-{i // 6 % 12 + 1:02d}-{1 + 4 * (i % 6):02d}"}
        for i in range(150)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    return path


def test_every_field_of_a_situation_is_an_option() -> None:
    told = {one.name for one in fields(Situation)} - {"windowed"}  # which is seen in the texts alone
    assert {one.name for one in fields(AdviseSettings)} == told
    assert {*_QUESTIONS, "checkpoint", "access", "parameters", "training_tokens"} == told


def test_what_applies_is_told_with_its_command(ask: Ask) -> None:
    code, out, err = ask("--unseen", 30, "--model", "my/model")
    assert (code, err) == (0, "")
    now, _, later = out.partition("This could be made:")
    assert "This can be made now:\n  Control documents (conditional)" in now
    assert "$ pretrace audit TEXTS.jsonl --heldout CONTROLS.jsonl --model my/model --out AUDIT" in now
    assert "missing: 20 rows of a set that was published in random order" in later
    assert out.endswith("A verdict is possible. The strongest test that applies: Control documents.\n")


def test_no_verdict_is_exit_code_4_and_names_the_easiest(ask: Ask) -> None:
    code, out, _ = ask("--unseen", 0)
    assert code == 4
    assert out.endswith("Most easily had: Control documents. Missing: 20 control documents.\n")
    code, out, _ = ask("--rows", 8, "--access", "logprobs")
    assert code == 4
    assert "Missing: 12 more rows" in out.splitlines()[-1]


def test_an_earlier_checkpoint_alone_accuses_nobody(ask: Ask) -> None:
    code, out, _ = ask("--checkpoint", "--documents", 50)
    assert code == 0
    assert "No test can accuse with this" in out
    assert ask("--checkpoint", "--access", "logprobs")[0] == 4


def test_a_file_is_looked_at_and_options_come_before_it(ask: Ask, texts: Path) -> None:
    code, out, _ = ask(texts)
    assert code == 4
    assert out.startswith("150 texts of 150 documents.\n")
    code, out, _ = ask(texts, "--rows", 12)
    assert code == 4
    assert "missing: 8 more rows" in out


def test_json_stands_alone_on_standard_output(ask: Ask, texts: Path) -> None:
    code, out, err = ask(texts, "--unseen", 12, "--rows", 20, "--access", "logprobs", "--json")
    made: dict[str, Any] = json.loads(out)
    assert (code, err) == (0, "")
    assert made["possible"]
    assert made["situation"]["documents"] == 150
    assert made["seen"][0] == "150 texts of 150 documents."
    states = {one["name"]: one["state"] for one in made["tests"]}
    assert states["controls"] == "cannot"
    flag = next(one for one in made["tests"] if one["name"] == "flag")
    assert flag["missing"] == "8 more control documents"
    assert flag["commands"] == [
        f"pretrace flag {texts} --nonmembers CONTROLS.jsonl --model MODEL --out FLAGS"
    ]
    code, out, _ = ask("--documents", 5, "--json")
    assert code == 4
    assert json.loads(out)["easiest"] == "controls"


def test_without_an_option_and_a_terminal_the_whole_table_is_printed(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    code, out, _ = ask()
    assert code == 0
    assert (
        out.count("    needs: ") == out.count("    $ pretrace ") - 3 == 10
    )  # marks take two commands, triggers three
    assert "missing" not in out
    assert json.loads(ask("--json")[1])["tests"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--access", "none"), "--access is one of weights, logprobs, text, found none."),
        (("--unseen", -1), "0"),
    ],
)
def test_bad_input_is_refused(ask: Ask, arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(Exception, match=words) as refused:
        ask(*arguments)
    assert isinstance(refused.value, ExpressionError | typer.BadParameter.__mro__[1])


def at_a_terminal(answers: str) -> tuple[int, str]:
    """Standard output and the exit code of `pretrace advise` at a terminal with these keys."""
    keyboard, terminal = pty.openpty()
    program = "from pretrace.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "advise"], stdin=terminal, stderr=terminal, stdout=subprocess.PIPE
    ) as process:
        os.close(terminal)
        os.write(keyboard, answers.encode())
        assert process.stdout is not None
        out = process.stdout.read().decode()
        code = process.wait()
    os.close(keyboard)
    return code, out


def test_at_a_terminal_it_asks() -> None:
    # 60 documents, "many" refused and asked again, 40 of them unseen; the rest by Enter
    code, out = at_a_terminal("60\nmany\n40\n" + "\n" * 4 + "y\n\n" + "CORPUS\n")
    assert code == 0
    assert "This can be made now:\n  Control documents and an earlier checkpoint (conditional)" in out
    assert "$ pretrace scan TEXTS.jsonl --corpus CORPUS --out FOUND" in out


def test_enter_alone_means_none() -> None:
    code, out = at_a_terminal("\n" * 9)
    assert code == 4
    assert "No verdict is possible with this." in out


def test_the_end_of_input_stops_without_a_traceback() -> None:
    code, out = at_a_terminal("60\n\x04")
    assert (code, out.strip()) == (130, "")  # a prompt leaves a blank on standard output


def test_with_training_data_that_can_be_read_a_search_is_advised(ask: Ask, texts: Path) -> None:
    code, out, _ = ask(texts, "--corpus", "A B", "--corpus", "C", "--access", "text", "--json")
    told = json.loads(out)
    assert (code, told["search"]) == (0, f"pretrace scan {texts} --corpus 'A B' --corpus C --out FOUND")
    code, out, _ = ask(texts, "--access", "text", "--corpus", "C")
    assert code == 0
    assert "First, without a model:" in out
