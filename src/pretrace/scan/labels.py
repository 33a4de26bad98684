"""Labels from what a scan found: known members and non-members of a corpus, for an evaluation of scores.

A text of which 80% or more stands in the corpus is a member, one of which at most 5% does is a non-member. What lies
between, stands in common passages alone, or was too short to be looked for, is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from pretrace.corpora import TextStream
from pretrace.corpora.columns import USUAL
from pretrace.corpora.streams import Tell
from pretrace.errors import TextsError
from pretrace.results.output_checks import RESULT
from pretrace.results.verdicts import load_verdict
from pretrace.scan.folding import folded
from pretrace.scan.scan import SLIGHT, WHOLE
from pretrace.types import Text, Verdict


def labels_of(verdict: Verdict) -> Iterator[tuple[str, bool | None, int]]:
    """The id of each text of a scan, whether it is a member by what was found (None: neither), and its copies: the
    documents that hold it whole, or a part where none does."""
    table = verdict.table("texts").columns
    rows = zip(
        *(table[name] for name in ("id", "set", "found", "coverage", "copies", "documents")), strict=True
    )
    for name, kind, state, coverage, copies, documents in rows:
        if kind == "texts":
            member = None if state in ("too short", "common") else True if coverage >= WHOLE else None
            if state != "too short" and coverage <= SLIGHT:
                member = False
            yield str(name), member, int(copies or documents)


class LabelledStream(TextStream):
    """The texts of a source that have a label by a scan, with their copies (`Text.copies`)."""

    def __init__(self, stream: TextStream, found: Path, verdict: Verdict) -> None:
        super().__init__(stream.name, stream.source, USUAL, lambda reading: iter(()))
        self.card, self._stream, self._from = stream.card, stream, found
        self._labels = {name: (member, copies) for name, member, copies in labels_of(verdict)}
        table = verdict.table("texts").columns
        rows = zip(table["id"], table["set"], table["characters"], strict=True)
        self._characters = {name: int(number) for name, kind, number in rows if kind == "texts"}
        self._exact = verdict.settings["test"].get("match") == "exact"
        kinds = [member for member, _ in self._labels.values()]
        self._note = (
            f"Labels by what a scan found: {kinds.count(True):,} members, of which {WHOLE:.0%} or more stands in the "
            f"corpus; {kinds.count(False):,} non-members, of which at most {SLIGHT:.0%} does; "
            f"{kinds.count(None):,} texts are neither and were left out."
        )

    def texts(self, tell: Tell | None = None) -> Iterator[Text]:
        """The texts that have a label, in order; TextsError for one that the scan did not look for."""
        for text in self._stream.texts(tell):
            if text.id not in self._labels:
                raise TextsError(
                    f"the scan in {self._from} did not look for the text {text.id!r} of {self.source}: give the texts "
                    "that were scanned, or scan these."
                )
            member, copies = self._labels[text.id]
            if member is None:
                continue
            content = np.frombuffer(folded(text.text, exact=self._exact), dtype=np.uint8)
            if int(np.count_nonzero(content & 0xC0 != 0x80)) != self._characters[text.id]:
                raise TextsError(
                    f"the text {text.id!r} of {self.source} is not the one that the scan in {self._from} looked for "
                    "under this id: scan these texts."
                )
            yield replace(text, member=member, meta={**text.meta, "copies": str(copies)})
        self.notes = (*self._stream.notes, self._note)


def labelled_by(found: Path, stream: TextStream) -> LabelledStream:
    """A source with the labels that the result of a scan gives its texts. TextsError where `found` holds no
    scan, or one that could not read a file of its corpus."""
    if not (found / RESULT).is_file():
        raise TextsError(f"{found} holds no result of a scan: --labels takes the --out of `pretrace scan`.")
    verdict = load_verdict(found)
    if verdict.test != "scan":
        raise TextsError(f"{found} holds a result of {verdict.test}: --labels takes one of `pretrace scan`.")
    unread = [one["file"] for one in verdict.settings["searched"]["not read"] if one["unread"]]
    if unread:
        more = f" and {len(unread) - 1:,} more files" if len(unread) > 1 else ""
        raise TextsError(
            f"the scan in {found} could not read {unread[0]}{more}, so a text that was not found may stand there: mend "
            "the corpus, and run the same scan again."
        )
    return LabelledStream(stream, found, verdict)
