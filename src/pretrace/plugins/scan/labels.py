"""Labels from what a scan found: known members and non-members of a corpus, for an evaluation of scores.

A text that stands whole in one place is a member, one of which at most 5% stands there is a non-member, others neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.corpora import TextStream
from pretrace.corpora.opening import OnUnreadable
from pretrace.errors import TextsError
from pretrace.plugins.scan.folding import folded
from pretrace.plugins.scan.scan import SLIGHT
from pretrace.results.folder import file_hash
from pretrace.results.output_checks import RESULT
from pretrace.results.rounding import listed
from pretrace.results.verdicts import load_verdict
from pretrace.results.wording import say
from pretrace.types import Text


class _ScanFound:
    """What a scan found of each text, by its id and without the control texts; TextsError where the folder that an
    option names holds no scan."""

    def __init__(self, folder: Path, option: str) -> None:
        if not (folder / RESULT).is_file():
            raise TextsError(
                f"{folder} holds no result of a scan: {option} takes the --out of `pretrace scan`."
            )
        self.folder, self.verdict = folder, load_verdict(folder)
        if self.verdict.test != "scan":
            raise TextsError(
                f"{folder} holds a result of {self.verdict.test}: {option} takes one of `pretrace scan`."
            )
        table = self.verdict.table("texts").columns
        rows = (dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True))
        self.rows: dict[str, dict[str, Any]] = {str(row["id"]): row for row in rows if row["set"] == "texts"}

    def check(self, texts: Iterable[Text], source: str) -> Iterator[Text]:
        """The texts of `source`; TextsError for one that the scan did not look for."""
        is_exact = self.verdict.settings["test"].get("match") == "exact"
        for text in texts:
            if text.id not in self.rows:
                raise TextsError(say("scan.refused.not_looked", found=self.folder, id=text.id, source=source))
            content = np.frombuffer(folded(text.text, exact=is_exact), dtype=np.uint8)
            if int(np.count_nonzero(content & 0xC0 != 0x80)) != self.rows[text.id]["characters"]:
                raise TextsError(say("scan.refused.other_text", found=self.folder, id=text.id, source=source))
            yield text


class _LabelledStream(TextStream):
    """The texts of a source that have a label by a scan, with their copies (`Text.copies`)."""

    def __init__(self, stream: TextStream, found: _ScanFound) -> None:
        super().__init__(stream.name, stream.source)
        self.card, self._stream, self._found = stream.card, stream, found

    def texts(self, tell: OnUnreadable | None = None) -> Iterator[Text]:
        """The texts that have a label, in order; TextsError for one that the scan did not look for."""
        rows, members = self._found.rows, {"whole": True, "no": False}
        for text in self._found.check(self._stream.texts(tell), self.source):
            member = members.get((row := rows[text.id])["found"])
            if member is not None:
                copies = str(int(row["copies"] or row["documents"]))
                yield replace(text, member=member, meta={**text.meta, "copies": copies})
        kinds = Counter(members.get(row["found"]) for row in rows.values())
        numbers = {"members": kinds[True], "nonmembers": kinds[False], "neither": kinds[None]}
        self.notes = (*self._stream.notes, say("scan.labelled", slight=SLIGHT, **numbers))


def labelled_by(found: Path, stream: TextStream) -> TextStream:
    """A source with the labels of the scan in `found`; TextsError where that holds none or could not read a file."""
    known = _ScanFound(found, "--labels")
    unread = [one["file"] for one in known.verdict.settings["searched"]["not read"] if one["unread"]]
    if unread:
        raise TextsError(say("scan.refused.unread_labels", found=found, files=listed(unread)))
    return _LabelledStream(stream, known)


_MOST_BESIDE = 1000
"""Texts that are named in the result of a test, those of which most was found."""


def found_beside(found: Path, texts: Iterable[Text] | None, source: str = "") -> dict[str, Any]:
    """What the scan in `found` found of the texts of a test, as plain values for its settings. TextsError where it
    holds no scan, or one that did not look for one of the `texts` of `source`; None are not compared."""
    scan = _ScanFound(found, "--found")
    for _ in scan.check(texts or (), source):
        pass
    verdict, known = scan.verdict, scan.rows
    rows = [
        {"id": name, "found": row["found"], "share": row["coverage"]}
        | {number: int(row[number]) for number in ("longest", "documents", "copies")}
        for name, row in known.items()
        if row["coverage"]
    ]
    rows.sort(key=lambda row: -row["share"])
    return {
        "scan": str(found),
        "sha256": file_hash(found / RESULT),
        "corpus": [Path(one).name or one for one in verdict.settings["searched"]["sources"]],
        "outcome": verdict.outcome,
        "statement": verdict.statement,
        "texts": len(known),
        "counts": dict(verdict.figures["found"]),
        "rows": rows[:_MOST_BESIDE],
        "more rows": max(0, len(rows) - _MOST_BESIDE),
    }
