"""Labels from what a scan found: known members and non-members of a corpus, for an evaluation of scores.

A text that stands whole in one place is a member, one of which at most 5% stands there is a non-member, others neither.
"""

from __future__ import annotations

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
from pretrace.types import Text, Verdict


def _rows_of(verdict: Verdict) -> dict[str, dict[str, Any]]:
    """What a scan found of each text, by its id, without the control texts."""
    table = verdict.table("texts").columns
    rows = (dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True))
    return {str(row["id"]): row for row in rows if row["set"] == "texts"}


def labels_of(verdict: Verdict) -> Iterator[tuple[str, bool | None, int]]:
    """The id of each text of a scan, whether it is a member (None: neither), and the documents that hold it."""
    for name, row in _rows_of(verdict).items():
        yield name, {"whole": True, "no": False}.get(row["found"]), int(row["copies"] or row["documents"])


def _check_scanned(found: Path, verdict: Verdict, texts: Iterable[Text], source: str) -> Iterator[Text]:
    """The texts of `source`; TextsError for one that the scan in the folder `found` did not look for."""
    known, is_exact = _rows_of(verdict), verdict.settings["test"].get("match") == "exact"
    for text in texts:
        if text.id not in known:
            raise TextsError(say("scan.refused.not_looked", found=found, id=text.id, source=source))
        content = np.frombuffer(folded(text.text, exact=is_exact), dtype=np.uint8)
        if int(np.count_nonzero(content & 0xC0 != 0x80)) != known[text.id]["characters"]:
            raise TextsError(say("scan.refused.other_text", id=text.id, source=source, found=found))
        yield text


class _LabelledStream(TextStream):
    """The texts of a source that have a label by a scan, with their copies (`Text.copies`)."""

    def __init__(self, stream: TextStream, found: Path, verdict: Verdict) -> None:
        super().__init__(stream.name, stream.source)
        self.card, self._stream, self._found, self._verdict = stream.card, stream, found, verdict

    def texts(self, tell: OnUnreadable | None = None) -> Iterator[Text]:
        """The texts that have a label, in order; TextsError for one that the scan did not look for."""
        labels = {name: (member, copies) for name, member, copies in labels_of(self._verdict)}
        for text in _check_scanned(self._found, self._verdict, self._stream.texts(tell), self.source):
            member, copies = labels[text.id]
            if member is not None:
                yield replace(text, member=member, meta={**text.meta, "copies": str(copies)})
        kinds = [member for member, _ in labels.values()]
        numbers = dict(
            zip(("members", "nonmembers", "neither"), map(kinds.count, (True, False, None)), strict=True)
        )
        self.notes = (*self._stream.notes, say("scan.labelled", slight=SLIGHT, **numbers))


def labelled_by(found: Path, stream: TextStream) -> TextStream:
    """A source with the labels of the scan in `found`; TextsError where that holds none or could not read a file."""
    verdict = _opened_scan(found, "--labels")
    unread = [one["file"] for one in verdict.settings["searched"]["not read"] if one["unread"]]
    if unread:
        raise TextsError(say("scan.refused.unread_labels", found=found, files=listed(unread)))
    return _LabelledStream(stream, found, verdict)


def _opened_scan(found: Path, option: str) -> Verdict:
    """The result of a scan that an option names; TextsError where the folder holds none."""
    if not (found / RESULT).is_file():
        raise TextsError(f"{found} holds no result of a scan: {option} takes the --out of `pretrace scan`.")
    verdict = load_verdict(found)
    if verdict.test != "scan":
        raise TextsError(f"{found} holds a result of {verdict.test}: {option} takes one of `pretrace scan`.")
    return verdict


_MOST_BESIDE = 1000
"""Texts that are named in the result of a test, those of which most was found."""


def found_beside(found: Path, texts: Iterable[Text] | None, source: str = "") -> dict[str, Any]:
    """What the scan in `found` found of the texts of a test, as plain values for its settings. TextsError where it
    holds no scan, or one that did not look for one of the `texts` of `source`; None are not compared."""
    verdict = _opened_scan(found, "--found")
    for _ in _check_scanned(found, verdict, texts or (), source):
        pass
    known = _rows_of(verdict)
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
