"""Every page: hostile names stay text, nothing leads out of it, and another process gives the same bytes."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from report import audits
from report.test_flagging_report import made as flagging
from report.test_report_html import HIDDEN, Page, check_safe

from pretrace.report import audit, flags, notebook, run, side_by_side
from pretrace.report.wording import named
from pretrace.scoring.side_by_side import side_by_side as beside
from pretrace.types import Run

BAD = "<script>alert(1)</script>\u202e$x^2${{ 7*7000 }}"


def hostile_flagging(outcome):
    ids = (BAD, *(f"text {i}" for i in range(1, 60)))
    said = {"corpus": BAD, "nonmembers": BAD, "model": BAD, "score": BAD, "notes": (BAD,), "reasons": (BAD,)}
    return flags.render(flagging(outcome, columns={"ids": ids}, **said))


PAGES: dict[str, Callable[[Run, Callable[..., Run]], str]] = {
    "run": lambda hostile, controlled: run.render(hostile),
    "controls": lambda hostile, controlled: run.render(controlled((BAD, "$x^2$", "a\u202eb"))),
    "audit": lambda hostile, controlled: audit.render(audits.hostile()),
    "flagged": lambda hostile, controlled: hostile_flagging("flagged"),
    "none": lambda hostile, controlled: hostile_flagging("none"),
    "refused": lambda hostile, controlled: hostile_flagging("refused"),
    "side by side": lambda hostile, controlled: side_by_side.render(
        beside([("R1", hostile), ("R2", hostile)], hostile.scores[:4])
    ),
}


@pytest.mark.parametrize("kind", PAGES)
def test_hostile_names_stay_text(kind, hostile, controlled):
    source = PAGES[kind](hostile, controlled)
    source.encode("utf-8")
    page = Page(source)
    check_safe(page)
    assert not HIDDEN.search(source)
    assert "49000" not in page.text
    assert source == PAGES[kind](hostile, controlled)
    for text in hostile.scores if kind == "run" else ():
        assert named(text) in page.text


def test_hostile_names_are_text_in_a_notebook(hostile):
    for shown in (notebook.html(hostile), notebook.html(audits.hostile())):
        assert "<script" not in shown
        assert "<img" not in shown


@pytest.mark.parametrize(
    ("module", "file", "make"), [("audit", audits.__file__, "controls"), ("run", "conftest.py", "labelled")]
)
def test_another_process_gives_the_same_bytes(module, file, make, labelled):
    own = audit.render(audits.controls()) if module == "audit" else run.render(labelled())
    script = (
        "import hashlib, runpy, sys\n"
        f"from pretrace.report.{module} import render\n"
        f"made = runpy.run_path(sys.argv[1])[{make!r}]()\n"
        "print(hashlib.sha256(render(made).encode()).hexdigest(), 'matplotlib.pyplot' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    place = str(Path(__file__).with_name(Path(file).name))
    done = subprocess.run(
        [sys.executable, "-c", script, place], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split() == [hashlib.sha256(own.encode()).hexdigest(), "False"]
