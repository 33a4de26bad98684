"""What the report of a recitation has of its own."""

from __future__ import annotations

from typing import Any

from pretrace.plugins.recite import MOST_TRIES
from pretrace.registry import test_pages
from pretrace.report.frame import section
from pretrace.report.verdict import TestPage, when
from pretrace.results.folder import mapping
from pretrace.types import Verdict

LONGEST = 1_000
"""Characters of a continuation that are shown."""
_SHOWN = (("texts", "The texts", 6), ("controls", "The control documents", 3))
"""The sets, their titles, and how many windows of each are shown in full."""


@section("What the model prints", "recited", "recited.html", package=__package__)
def _show_recitations(verdict: Verdict) -> dict[str, Any]:
    """Show beginning, text and what was printed of it side by side, common runs marked."""
    columns = verdict.table("windows").columns
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {
        "verdict": verdict,
        "date": when(verdict.settings.get("time")),
        "asked": mapping(verdict.settings.get("asked")),
        "sets": [(title, [row for row in rows if row["set"] == kind][:most]) for kind, title, most in _SHOWN],
        "marked": _marked,
        "longest": LONGEST,
        "most": MOST_TRIES,
    }


def _marked(text: str, runs: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is one of the runs, which are written "start-end start-end"."""
    pieces, at = [], 0
    for run in runs.split():
        start, _, end = run.partition("-")
        pieces += [(text[at : int(start)], False), (text[int(start) : int(end)], True)]
        at = int(end)
    return [piece for piece in (*pieces, (text[at:], False)) if piece[0]]


@test_pages.add("recite")
class _RecitePage(TestPage):
    """The windows, and what was printed of them."""

    sections = (_show_recitations,)
