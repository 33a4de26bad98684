"""Every page: hostile names stay text, nothing leads out of it, and another process gives the same bytes."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from report import audits
from report.test_flagging_report import made as flagging
from report.test_report_html import HIDDEN, Page, check_safe, render

from pretrace.results.wording import named

BAD = "<script>alert(1)</script>\u202e$x^2${{ 7*7000 }}"


def hostile_flagging(outcome):
    ids = (BAD, *(f"text {i}" for i in range(1, 60)))
    said = {"corpus": BAD, "nonmembers": BAD, "model": BAD, "score": BAD, "notes": (BAD,), "reasons": (BAD,)}
    return render(flagging(outcome, columns={"ids": ids}, **said))


PAGES = {
    "run": lambda hostile, controlled: render(hostile),
    "controls": lambda hostile, controlled: render(controlled((BAD, "$x^2$", "a\u202eb"))),
    "audit": lambda hostile, controlled: render(audits.hostile()),
    "flagged": lambda hostile, controlled: hostile_flagging("flagged"),
    "none": lambda hostile, controlled: hostile_flagging("none"),
    "refused": lambda hostile, controlled: hostile_flagging("refused"),
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


MAKERS = (
    *(audits.placebos, audits.nothing, audits.inconclusive, audits.controls, audits.missed),
    *(audits.without_placebo, audits.bare),
)


@pytest.mark.parametrize(
    "make", [*MAKERS, "labelled", "unlabelled"], ids=lambda make: getattr(make, "__name__", make)
)
def test_a_page_is_whole_and_leads_nowhere(make, request):
    is_run = isinstance(make, str)
    source = render(request.getfixturevalue(make)() if is_run else make())
    page = Page(source)
    check_safe(page)
    assert source.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?:|//\w+\.", source.replace("EleutherAI/", ""))
    assert is_run or not re.search(r"\bpro(of|ve)|jinja|None", page.text)


def test_another_process_gives_the_same_bytes(labelled):
    own = render(audits.controls()), render(labelled())
    script = (
        "import hashlib, runpy, sys\n"
        "from pretrace.report import run, verdict\n"
        "for name, kind, file in zip(('controls', 'labelled'), (verdict, run), sys.argv[1:]):\n"
        "    page, _ = kind.pages(runpy.run_path(file)[name]())\n"
        "    print(hashlib.sha256(page('').encode()).hexdigest())\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    asked = [sys.executable, "-c", script, audits.__file__, str(Path(__file__).with_name("conftest.py"))]
    done = subprocess.run(asked, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == [*(hashlib.sha256(one.encode()).hexdigest() for one in own), "False"]
