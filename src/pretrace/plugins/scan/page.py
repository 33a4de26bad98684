"""What the report of a search has of its own."""

from __future__ import annotations

from typing import Any

from pretrace.registry import test_pages
from pretrace.report.frame import section
from pretrace.report.verdict import TestPage
from pretrace.results.wording import named
from pretrace.types import Verdict

DOCUMENTS = 5
"""Documents that are named below a text."""
_COLUMNS = ("id", "set", "file", "document", "document id", "url", "date")


@section("What was found", "found", "found.html", package=__package__)
def show_passages(verdict: Verdict) -> dict[str, Any]:
    """Show the texts of a search with their passages marked, and the documents that hold most of each."""
    marked, hits = verdict.table("marked").columns, verdict.table("hits").columns
    shown: dict[str, tuple[str, list[tuple[str, int]]]] = {}
    columns = (marked[one] for one in ("id", "found", "passage", "documents"))
    for name, state, passage, documents in zip(*columns, strict=True):
        shown.setdefault(str(name), (str(state), []))[1].append((str(passage), int(documents)))
    where: dict[str, list[tuple[str, str]]] = {name: [] for name in shown}
    for name, kind, file, document, known, url, date in zip(*(hits[one] for one in _COLUMNS), strict=True):
        if kind == "texts" and name in where and len(where[name]) < DOCUMENTS:
            about = ", ".join(str(one) for one in (url, known, date) if one)
            place = f"{file}, document {int(document) + 1:,}"
            where[name].append((named(place, 200), named(about, 200)))
    return {"texts": [(named(name), state, some, where[name]) for name, (state, some) in shown.items()]}


@test_pages.add("scan")
class ScanPage(TestPage):
    """The passages that were found."""

    sections = (show_passages,)
