"""The changes that docs/extending.md shows, docs/changes/*.diff: each is applied to a copy of the sources, and what it
brings is used there. One process runs them all."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import pretrace

ROOT = Path(__file__).parents[2]
CHANGES = sorted((ROOT / "docs" / "changes").glob("*.diff"))
MOST_FILES, MOST_LINES = 2, 150

USED = """
import contextlib, doctest, io, json, sys

from pretrace.cli.commands import call
from pretrace.scores import median

assert doctest.testmod(median) == (0, 2)
said = {}
for line in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = call(line)
    said[line[0]] = [code, out.getvalue()]
print(json.dumps(said))
"""
MODELS = ("--model", "letters:fox.txt", "--placebo", "letters:rare.txt", "--plugin", "letters.py")
COMMANDS = (
    ("list",),
    ("score", "texts.jsonl", *MODELS[:2], *MODELS[4:], "--scores", "loss,median", "--out", "RUN"),
    ("lone", "texts.jsonl", *MODELS, "--suspect", "t0", "--out", "LONE"),
)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the sources in which the changes were made, and what their commands read."""
    desk = tmp_path_factory.mktemp("changes")
    # with their times, so that what was compiled of them still holds
    shutil.copytree(ROOT / "src" / "pretrace", desk / "src" / "pretrace")
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(desk.parent)}  # in no repository
    for path in CHANGES:
        done = subprocess.run(
            ["git", "apply", str(path)], cwd=desk, env=alone, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{path.name} does not fit the sources any more: {done.stderr}"
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = re.search(r"```python\n(# letters\.py\n.*?)```", page, re.DOTALL)
    assert shown
    (desk / "letters.py").write_text(shown[1], encoding="utf-8")
    (desk / "fox.txt").write_text(
        "the quick brown fox zzzzzzzzzzzz jumps over the lazy dog", encoding="utf-8"
    )
    (desk / "rare.txt").write_text("letters of the fox, quick and brown: z is rare", encoding="utf-8")
    notes = [f"Note number {i} of the {('green', 'red', 'blue')[i % 3]} book." for i in range(1, 24)]
    rows = [{"id": f"t{i}", "text": text} for i, text in enumerate(["zzzz zzz zzzzz zzzzzz", *notes])]
    (desk / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return desk


@pytest.fixture(scope="module")
def said(changed: Path) -> dict[str, tuple[int, str]]:
    """The exit code of each command in the changed copy, and what it printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(changed / "src"),
        "PRETRACE_CACHE": str(changed / "cache"),
        "COLUMNS": "200",
    }
    done = subprocess.run(
        [sys.executable, "-c", USED, json.dumps(COMMANDS)],
        cwd=changed,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_change_is_small() -> None:
    assert [path.stem for path in CHANGES] == ["page", "score", "test"]
    for path in CHANGES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert sum(line.startswith("+++ ") for line in lines) <= MOST_FILES, path.name
        assert sum(bool(re.match(r"[+-](?!\+\+ |-- )", line)) for line in lines) <= MOST_LINES, path.name


def test_the_score_is_listed_and_computed(said: dict[str, tuple[int, str]], changed: Path) -> None:
    code, listed = said["list"]
    assert code == 0
    assert re.search(r"^  median +Median log-probability a token", listed, re.MULTILINE)
    code, printed = said["score"]
    assert code == 0, printed
    run = pretrace.load_run(changed / "RUN")
    sample, text = (changed / "fox.txt").read_text(encoding="utf-8"), "Note number 1 of the red book."
    logp = [math.log((sample.count(char) + 1) / (0x110000 + len(sample))) for char in text[1:]]
    assert math.isclose(run.column("median")[1], statistics.median(logp), abs_tol=1e-5)


def test_the_test_accuses_beside_its_controls(said: dict[str, tuple[int, str]], changed: Path) -> None:
    code, printed = said["lone"]
    assert code == 3, printed
    assert "p = 0.042" in printed
    result = json.loads((changed / "LONE" / "result.json").read_bytes())
    assert {one["name"]: one["status"] for one in result["checks"]} == {
        "documents": "passed",
        "second": "passed",
    }
    assert "ranked among 23 others" in (changed / "LONE" / "report.html").read_text(encoding="utf-8")


def test_page_one_says_when_a_result_counts(said: dict[str, tuple[int, str]], changed: Path) -> None:
    page = (changed / "LONE" / "report.html").read_text(encoding="utf-8")
    assert said["lone"][0] == 3
    assert "in at most 5% of such tests; this was settled before the test." in page
