"""What is made of the result of a scan: its report, and labels for an evaluation of scores.

A text that stands whole in one place is a known member of the corpus, one of which at most 5% stands there is a known
non-member, others are neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pretrace.corpora import TextStream
from pretrace.corpora.opening import OnUnreadable
from pretrace.errors import TextsError
from pretrace.plugins.scan.folding import FoldedTexts
from pretrace.plugins.scan.searching import SLIGHT
from pretrace.registry import test_pages
from pretrace.report.frame import section
from pretrace.report.verdict import TestPage
from pretrace.results.atomic import RESULT
from pretrace.results.wording import listed, named, say
from pretrace.runs import load_verdict
from pretrace.types import Text, Verdict

DOCUMENTS = 5
"""Documents that are named below a text."""
_COLUMNS = ("id", "set", "file", "document", "document id", "url", "date")


@section("What was found", "found", "found.html", package=__package__)
def _show_passages(verdict: Verdict) -> dict[str, Any]:
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
class _ScanPage(TestPage):
    """The passages that were found."""

    sections = (_show_passages,)


class LabelledStream(TextStream):
    """The texts of a source that have a label by the scan in a folder, with their copies (`Text.copies`); TextsError
    where that holds no scan, or one that could not read a file."""

    def __init__(self, stream: TextStream, folder: Path) -> None:
        super().__init__(stream.name, stream.source)
        self.card, self._stream, self._folder = stream.card, stream, folder
        verdict = load_verdict(folder) if (folder / RESULT).is_file() else None
        if verdict is None or verdict.test != "scan":
            holds = f"a result of {verdict.test}" if verdict else "no result of a scan"
            raise TextsError(f"{folder} holds {holds}: --labels takes the --out of `pretrace scan`.")
        unread = [one["file"] for one in verdict.settings["searched"]["not read"] if one["unread"]]
        if unread:
            raise TextsError(say("scan.refused.unread_labels", found=folder, files=listed(unread)))
        self._is_exact = verdict.settings["test"].get("match") == "exact"
        table = verdict.table("texts").columns
        rows = (dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True))
        self._rows: dict[str, dict[str, Any]] = {str(row["id"]): row for row in rows if row["set"] == "texts"}

    def texts(self, tell: OnUnreadable | None = None) -> Iterator[Text]:
        """The texts that have a label, in order; TextsError for one that the scan did not look for."""
        members = {"whole": True, "no": False}
        for text in self._stream.texts(tell):
            where = {"found": self._folder, "id": text.id, "source": self.source}
            if (row := self._rows.get(text.id)) is None:
                raise TextsError(say("scan.refused.not_looked", **where))
            content = FoldedTexts([text.text.encode("utf-8", "surrogatepass")], exact=self._is_exact)
            if len(content.letters(0)) - 1 != row["characters"]:  # another text of this id
                raise TextsError(say("scan.refused.other_text", **where))
            if (member := members.get(row["found"])) is not None:
                copies = str(int(row["copies"] or row["documents"]))
                yield replace(text, member=member, meta={**text.meta, "copies": copies})
        kinds = Counter(members.get(row["found"]) for row in self._rows.values())
        numbers = {"members": kinds[True], "nonmembers": kinds[False], "neither": kinds[None]}
        self.notes = (*self._stream.notes, say("scan.labelled", slight=SLIGHT, **numbers))
