"""What so many documents in question and known ones can show, before a model is asked and after."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.results.rounding import p_value
from pretrace.statistics.conformal import Method, Resolution, needed, resolution

FEWEST_KNOWN = 20
"""Known documents; with 19 a text could be flagged at 5% only if all of the texts are."""
CLEARING = 0.1
"""That nothing stands out is a result only where this share of the asked documents, read in training, would have been
noticed: flagged, or seen by the test of the set (`verdicts.flag.power`)."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """How discoveries are controlled, how many documents are `asked` about and `known`, the `unit` that is flagged
    ("text", or "document" where one has several), and what there is to say."""

    method: Method
    resolution: Resolution
    asked: int
    known: int
    unit: str
    notes: tuple[str, ...]

    def noticed(self, least: int | None) -> int | None:
        """From how many documents on that stand above all known ones something is said: they are flagged, or the
        test of the set, which rejects from `least` on, does; None where neither ever would."""
        found = [number for number in (self.resolution.together, least) if number is not None]
        return min(found, default=None)

    def coarse(self, least: int | None) -> bool:
        """Whether a tenth of the documents could not have been noticed, however much they stood out."""
        noticed = self.noticed(least)
        return noticed is None or noticed > self.tenth

    @property
    def tenth(self) -> int:
        """A tenth of the documents in question, at least one."""
        return max(1, math.ceil(CLEARING * self.asked))

    def enough(self, fdr: float) -> int:
        """The known documents with which a tenth of those asked about could be flagged."""
        return needed(self.tenth, self.asked, fdr, self.method)

    def scored(self, known: int, asked: int, fdr: float) -> Prospect:
        """The same for the known and asked documents that could be scored, where some could not."""
        if (known, asked) == (self.known, self.asked):
            return self
        about_documents = self.notes[len(_resolved(self, fdr)) :]
        found = resolution(known, asked, fdr, self.method)
        made = replace(self, resolution=found, known=known, asked=asked)
        return replace(made, notes=(*_resolved(made, fdr), *about_documents))


def prospect(
    asked: npt.ArrayLike,
    known: npt.ArrayLike,
    *,
    fdr: float,
    method: Method,
    name: str,
    more: tuple[str, ...] = (),
) -> Prospect:
    """What can be flagged, from the number of texts of each document in question and of each known one.

    TextsError where known documents, those of `name`, are fewer than 20. Where no text could be flagged at this rate
    the notes say so; `more` are notes on how documents were put together.
    """
    mine, others = (np.asarray(side, dtype=np.int64) for side in (asked, known))
    held, number = len(others), len(mine)
    if held < FEWEST_KNOWN:
        raise TextsError(
            f"{name} holds {held} documents ({others.sum()} texts), and flagging takes known non-members from at "
            f"least {FEWEST_KNOWN} documents; add some (pieces of one document, and near copies, count once)."
        )
    found = resolution(held, number, fdr, method)
    unit = "text" if number == mine.sum() else "document"
    made = Prospect(method, found, number, held, unit, ())
    return replace(made, notes=(*_resolved(made, fdr), *_drawing(mine, others), *more))


def _resolved(made: Prospect, fdr: float) -> tuple[str, ...]:
    """What the numbers allow, in a sentence; nothing where a single text could be flagged."""
    found, unit = made.resolution, made.unit
    if found.together == 1:
        return ()
    among = f"among {made.asked:,} {unit}s at a rate of {100 * fdr:g}%"
    least = f"With {made.known:,} known documents no p-value is below {p_value(found.smallest)}"
    if found.together is None:
        return (
            f"{least}, and no {unit} can be flagged {among}: at least {found.needed:,} known non-members are needed, "
            f"{found.needed_alone:,} for one {unit} alone. The set as a whole is still tested.",
        )
    return (
        f"{least}: {among} at least {found.together:,} must stand above all of them before any is flagged. For one "
        f"{unit} alone {found.needed_alone:,} known non-members would be needed.",
    )


def _drawing(asked: npt.NDArray[np.int64], known: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """How documents with several texts are counted; nothing where there are none."""
    if max(asked.max(), known.max()) == 1:
        return ()
    each = int(min(asked.min(), known.min()))
    value = "one of its texts" if each == 1 else f"the mean of {each:,} of its texts"
    return (
        f"The {asked.sum():,} texts come from {len(asked):,} documents and the {known.sum():,} known ones from "
        f"{len(known):,}. A document counts once, by {value}: as many as the document with the fewest has, drawn "
        "by lot. Whole documents are flagged.",
    )
