"""What is compared: the items of a log, right or wrong, on the side that a flagging puts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from pretrace.harnesses.sample_logs import Part, SampleLog
from pretrace.registry import require
from pretrace.settings import TEXTS, option
from pretrace.statistics.documents import by_document
from pretrace.statistics.intervals import score_difference
from pretrace.types import Bools, Corpus, Doubles, Estimate, Verdict

_ACCURACY = "Accuracy"
"""The group of options on what is compared."""


SUSPECT, CLEAN, TOTAL, KNOWN = "suspect items", "clean items", "items in all", "known non-members"
"""The sides whose accuracy stands side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesSettings:
    """What is read of a log and what is compared; ExpressionError for a value out of its range."""

    task: str | None = option(None, "Task of the log, where it has several.", panel=TEXTS, essential=True)
    metric: str | None = option(
        None,
        "Metric that says whether an item is right, such as acc; the first of the log unless given.",
        panel=_ACCURACY,
    )
    filter: str | None = option(
        None,
        "Filter by which answers were read, where the log has several; the first unless given.",
        panel=_ACCURACY,
    )
    part: Part = option(
        "item",
        "What is read of a request: item (the item and its right answer, without the examples in front of it), "
        "question (the same without the answer) or prompt (all that the model was given, and the right answer).",
        panel=TEXTS,
    )
    group_field: str = option(
        "",
        "Field of an item's document that names what items belong together, such as a passage.",
        panel=TEXTS,
    )
    suspect_p: float | None = option(
        None,
        "Compare items with a p-value of at most this, instead of the flagged ones. Of items that were not seen, this "
        "share is among them.",
        panel=_ACCURACY,
    )

    def __post_init__(self) -> None:
        require(self.part in get_args(Part), f"--part is item, question or prompt, found {self.part!r}.")
        p = self.suspect_p
        require(p is None or 0 < p < 1, f"--suspect-p lies between 0 and 1, found {p}.")


@dataclass(frozen=True, slots=True, eq=False)
class KnownItems:
    """Known non-members: as texts, and their log where they were evaluated too."""

    corpus: Corpus
    log: SampleLog | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Right and wrong of every judged item, in the flagging's order; `suspect` is None where none may be called so.

    `known` has one figure a document of known non-members that were evaluated too. `line` is the p-value up to which
    items are suspect, None where those are that were flagged.
    """

    log: SampleLog
    flagged: Verdict
    metric: str
    right: Doubles
    suspect: Bools | None
    known: Doubles | None
    line: float | None

    @classmethod
    def of(
        cls, log: SampleLog, known: KnownItems, flagged: Verdict, metric: str, line: float | None
    ) -> Compared:
        figures = {item.id: item.figures[metric] for item in log.items}
        texts, others = flagged.table("flags"), flagged.table("known")
        told = flagged.outcome != "refused"
        right = np.array([figures[name] for name in texts["id"]])
        chosen = texts["p"] <= line if line is not None and told else np.ma.filled(texts["flagged"], False)
        beside = None
        if known.log is not None:
            own = {item.id: item.figures[metric] for item in known.log.items}
            values = np.array([own[name] for name in others["id"]])
            beside = by_document(values, others["document"])[1]
        return cls(log, flagged, metric, right, chosen if told else None, beside, line)

    @property
    def sides(self) -> dict[str, Doubles]:
        """One figure a document of each side that has any, by name."""
        names = np.array(self.flagged.table("flags")["document"], dtype=object)
        chosen = {TOTAL: np.ones(len(names), dtype=bool)}
        if self.suspect is not None:
            chosen |= {SUSPECT: self.suspect, CLEAN: ~self.suspect}
        found = {
            name: by_document(self.right[rows], names[rows].tolist())[1]
            for name, rows in chosen.items()
            if rows.any()
        }
        return found | ({} if self.known is None else {KNOWN: self.known})

    @property
    def difference(self) -> Estimate | None:
        """Accuracy of suspect less that of clean items; None unless there are both."""
        sides = self.sides
        return score_difference(sides[SUSPECT], sides[CLEAN]) if {SUSPECT, CLEAN} <= sides.keys() else None

    @property
    def beside(self) -> Estimate | None:
        """Accuracy of all items less that of the known non-members; None where those were not evaluated."""
        return None if self.known is None else score_difference(self.sides[TOTAL], self.known)
