"""The site of the docs is built without a broken link, and its made pages hold every command, score and name."""

import subprocess
import sys
from pathlib import Path

import pytest

import pretrace
from pretrace.cli.commands import places
from pretrace.scores import scores

ROOT = Path(__file__).parents[2]


def test_every_page_command_and_public_name_is_there_and_takes_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("material", reason="mkdocs-material (the extra `docs`) is not installed")
    site = tmp_path / "site"
    asked = [sys.executable, ROOT / "scripts/site", "--site-dir", site]
    ran = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for page in (ROOT / "docs").glob("*.md"):
        made = (site / "docs" / f"{page.stem}.html").read_text(encoding="utf-8")
        assert not [line for line in made.splitlines() if 'src="http' in line or '.css" href="http' in line]
    assert "Was this text used to train" in (site / "index.html").read_text(encoding="utf-8")
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    for words in places():
        assert f'id="{words.replace(" ", "-")}"' in commands
    assert "--controls" in commands
    formulas = (site / "reference/scores.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in formulas for name in scores)
    names = (site / "reference/python.html").read_text(encoding="utf-8")
    for name in pretrace.__all__:
        assert name.startswith("_") or f".{name}" in names, name
