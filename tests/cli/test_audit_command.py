"""audit and gap as a user calls them: output, files, exit codes, messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny import MORE_WORDS

from pretrace.cli import main
from pretrace.runs import load_audit

Call = Callable[..., tuple[str, str]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls the command line; gives what it printed and said, `code` being how it must leave."""

    def called(*arguments: object, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["pretrace", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        assert (left.value.code or 0) == code, (said.out, said.err)
        return said.out, said.err

    return called


def written(path: Path, number: int, *, seed: int, words: int = 60) -> Path:
    rng = np.random.default_rng(seed)
    rows = [{"id": f"{path.stem}{i}", "text": " ".join(rng.choice(MORE_WORDS, words))} for i in range(number)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def timetable(path: Path) -> Path:
    """Documents that say much the same, each with its own numbers."""
    line = "The {0} train left platform {1} at {2} and reached the valley on time. "
    rows = [
        {"id": f"d{i}", "text": "".join(line.format(i, j + i, 17 * i % 59 + j) for j in range(8))}
        for i in range(30)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_planted_texts_are_found_and_the_exit_code_says_so(
    ask: Call, tmp_path: Path, model_folder: Path
) -> None:
    posts = timetable(tmp_path / "posts.jsonl")
    ask("plant", posts, "--model", model_folder, "--epochs", 1, "--out", tmp_path / "target")
    models = ("--model", tmp_path / "target", "--placebo", model_folder)
    writing = ("--generator", model_folder, "--generator-dtype", "float32", "--tokens", 16)
    out = tmp_path / "AUDIT"
    said, _ = ask("audit", posts, *models, *writing, "--out", out, code=3)
    assert "consistent with training" in " ".join(said.split())
    assert f"Report: {out / 'report.html'}" in said.replace("\n", "")
    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["outcome"] == "consistent"
    assert verdict["exit_code"] == 3
    assert verdict["settings"]["command"]["placebo"] == str(model_folder)
    before = (out / "report.html").read_text()
    (out / "report.html").unlink()
    ask("report", out)
    assert (out / "report.html").read_text() == before
    # the other way round: what the model knew before is held against what it learnt
    swapped = ("--model", model_folder, "--placebo", tmp_path / "target")
    said, _ = ask("audit", posts, *swapped, *writing, "--out", out, "--also", "original", code=4)
    assert "Inconclusive" in said
    assert [one.procedure for one in load_audit(out).variants] == ["original"]


def test_two_sets_of_texts_are_compared_without_a_model(ask: Call, tmp_path: Path) -> None:
    a, b = written(tmp_path / "a.jsonl", 60, seed=1), written(tmp_path / "b.jsonl", 60, seed=2)
    said, _ = ask("gap", a, b)
    assert "words" in said
    assert "0.5: no classifier of texts can tell A from B" in " ".join(said.split())
    other = tmp_path / "c.jsonl"
    other.write_text("".join(json.dumps({"text": f"quite other words {i} here"}) + "\n" for i in range(60)))
    assert "1.000 [1.000, 1.000]" in ask("gap", a, other)[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--procedure", "magic"),
            "no procedure is called 'magic'; there are pretrace, calibrated, paper, original.",
        ),
        (("--level", 0.7), "the level of a test is between 0 and 0.5, found 0.7."),
        (("--tokens", 4), "a snippet has at least 8 tokens, found 4."),
        (("--temperature", -1), "temperature"),
        (("--classifiers", "wrods"), "no text classifier is called 'wrods'; did you mean words?"),
        (("--method", "lorra"), "no tuning method is called 'lorra'"),
        (("--placebo", "MODEL"), "is the target itself"),
        (("--heldout", "TEXTS"), "held-out texts are among the suspect ones"),
        (("--power", "--procedure", "paper"), "power is measured for tests on documents"),
        (("--tokens", 200), "at least 20 snippets of 200 tokens"),
        (("--heldout", "nowhere.jsonl"), "nowhere.jsonl"),
    ],
)
def test_errors_name_the_cure_and_nothing_is_left(
    ask: Call, tmp_path: Path, model_folder: Path, options: tuple[object, ...], message: str
) -> None:
    texts = written(tmp_path / "texts.jsonl", 30, seed=1)
    given = [{"MODEL": model_folder, "TEXTS": texts}.get(str(option), option) for option in options]
    common = ("--model", model_folder, "--generator", model_folder, "--out", tmp_path / "AUDIT")
    _, error = ask("audit", texts, *common, *given, code=2)
    assert message in error
    assert error.startswith("pretrace: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "AUDIT").exists()
