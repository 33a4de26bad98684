"""The core works without each plug-in: its folder is deleted from a copy of the sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pretrace.plugins import COMMANDS

ROOT = Path(__file__).parents[1]
PLUGINS = ROOT / "src" / "pretrace" / "plugins"
NAMES = sorted(one.name for one in PLUGINS.iterdir() if (one / "__init__.py").exists())
EVERYTHING = """
import pkgutil, importlib, pretrace
for one in pkgutil.walk_packages(pretrace.__path__, "pretrace."):
    if not one.name.endswith("__main__"):
        importlib.import_module(one.name)
"""
TRIED = """
import sys
from pretrace.cli import main
for words in sys.argv[1:]:
    sys.argv = ["pretrace", *words.split()]
    try:
        main()
    except SystemExit as left:
        print("left with", left.code or 0, file=sys.stderr)
"""
CORE = [ROOT / "tests" / one for one in ("test_golden.py", "scores", "verdicts/test_conclusions.py")]


@pytest.fixture
def without(tmp_path):
    """Python where the sources lack these plug-ins."""

    def copy(*names):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src" / "pretrace", tmp_path / "pretrace", ignore=skipped)
        for name in names:
            shutil.rmtree(tmp_path / "pretrace" / "plugins" / name)
        seen = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}

        def run(*words):
            command = [sys.executable, *map(str, words)]
            return subprocess.run(command, cwd=ROOT, env=seen, capture_output=True, text=True)

        return run

    return copy


@pytest.mark.parametrize("name", NAMES)
def test_the_core_works_without_a_plugin(without, name):
    own = [words for words, place in COMMANDS.items() if f".{name}." in place][:1]
    done = without(name)("-c", TRIED, "list", *(f"{words} --help" for words in own))
    codes = [line[-1] for line in done.stderr.splitlines() if line.startswith("left with")]
    assert codes == ["0", *("2" for _ in own)], done
    assert done.stderr.count("not installed here") == len(own)


def test_the_core_passes_its_tests_without_any(without):
    run = without(*NAMES)
    assert not run("-c", EVERYTHING).stderr
    found = run("-m", "pytest", "-q", "-n", "0", "-m", "not slow", *CORE)
    assert found.returncode == 0, found.stdout[-2000:]
