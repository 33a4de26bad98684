"""What one who never saw a model makes of a benchmark: whether its two sides differ as texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.building.writing import Row
from pretrace.types import Measured, Run

TELLING = 0.6
"""AUC from which on the two sides are said to be told apart by their words."""


@dataclass(frozen=True, slots=True)
class Told:
    """The blind bag-of-words AUC with its 95% interval, None where there are too few texts, and a sentence."""

    auc: tuple[float, float, float] | None
    length_auc: tuple[float, float, float] | None
    sentence: str

    @property
    def apart(self) -> bool:
        """Whether words tell the two sides apart, clearly."""
        return self.auc is not None and self.auc[1] > 0.5 and self.auc[0] >= TELLING

    def plain(self) -> dict[str, object]:
        """For a card."""
        return {
            "bag_of_words_auc": None if self.auc is None else [round(value, 4) for value in self.auc],
            "text_length_auc": None
            if self.length_auc is None
            else [round(value, 4) for value in self.length_auc],
            "tells_apart": self.apart,
            "says": self.sentence,
        }


def told_apart(rows: Sequence[Row], *, seed: int, why: str) -> Told:
    """How well words alone tell members from non-members (Das et al. 2024); `why` is what the reader should
    bear in mind where they do."""
    from pretrace.scoring.evaluation import evaluate

    run = Run(
        corpus="",
        ids=tuple(str(row["id"]) for row in rows),
        groups=tuple(str(row["group"]) for row in rows),
        members=tuple(row["label"] == 1 for row in rows),
        tokens=np.ones(len(rows), dtype=np.int32),
        cut=np.zeros(len(rows), dtype=np.int32),
        scores=(),
        matrix=np.empty((len(rows), 0)),
    )
    found = evaluate(run, [str(row["text"]) for row in rows], seed=seed, resamples=200, validation=0.0)
    figures = {row.name: row for row in found.rows}
    bag, length = figures.get("bag of words"), figures.get("text length")
    return Told(_figures(bag), _figures(length), _sentence(bag, why))


def _figures(row: Measured | None) -> tuple[float, float, float] | None:
    return None if row is None else (row.auc.value, row.auc.low, row.auc.high)


def _sentence(bag: Measured | None, why: str) -> str:
    if bag is None:
        return "Too few texts for a blind baseline: nobody can tell whether the two sides differ as texts."
    known = f"AUC {bag.auc.value:.3f} [{bag.auc.low:.2f}, {bag.auc.high:.2f}]"
    if bag.auc.low <= 0.5:
        return f"A bag of words that never saw a model was not shown to tell the two sides apart ({known})."
    if bag.auc.value < TELLING:
        return f"A bag of words that never saw a model tells the two sides apart, but hardly ({known})."
    return (
        f"A bag of words that never saw a model tells the two sides apart ({known}): {why} "
        "A membership score that does no better than this shows nothing about membership."
    )
