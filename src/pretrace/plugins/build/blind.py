"""How well words alone tell the two sides of a benchmark apart, for its card (Das, Zhang and Tramèr 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.baselines.blind import bag_of_words
from pretrace.baselines.classifiers import WIDENING
from pretrace.statistics.resampling import group_bootstrap
from pretrace.types import Estimate

_TELLING = 0.6
"""AUC from which on the two classes of a benchmark are said to be told apart by their words."""


@dataclass(frozen=True, slots=True)
class BlindBaseline:
    """The blind AUC with its 95% interval (None for too few texts), that of the texts' length, and a sentence."""

    auc: tuple[float, float, float] | None
    length_auc: tuple[float, float, float]
    sentence: str

    @property
    def apart(self) -> bool:
        return self.auc is not None and self.auc[1] > 0.5 and self.auc[0] >= _TELLING

    def plain(self) -> dict[str, object]:
        """For a card."""
        return {
            "bag_of_words_auc": None if self.auc is None else [round(value, 4) for value in self.auc],
            "text_length_auc": [round(value, 4) for value in self.length_auc],
            "tells_apart": self.apart,
            "says": self.sentence,
        }


def blind_baseline(rows: Sequence[Mapping[str, object]], *, seed: int, why: str) -> BlindBaseline:
    """How well words alone tell members from non-members of a benchmark (Das et al. 2024). `rows` have text, label
    (1: member), id and group; `why` is what to bear in mind where they do. TextsError where one side is missing."""
    texts, members = [str(row["text"]) for row in rows], np.array([row["label"] == 1 for row in rows])
    groups = [str(row["group"]) or str(row["id"]) for row in rows]
    judged = bag_of_words(texts, members, groups, seed=seed)
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    columns = [lengths] if judged.scores is None else [lengths, judged.scores]
    spread = group_bootstrap(np.column_stack(columns), members, groups=groups, seed=seed, resamples=200).auc
    auc = None if judged.scores is None else spread.widened(1, WIDENING).estimate(1)
    length = spread.estimate(0)
    known = None if auc is None else (auc.value, auc.low, auc.high)
    return BlindBaseline(known, (length.value, length.low, length.high), _sentence(auc, why))


def _sentence(auc: Estimate | None, why: str) -> str:
    if auc is None:
        return "Too few texts for a blind baseline: nobody can tell whether the two sides differ as texts."
    known = f"AUC {auc.value:.3f} [{auc.low:.2f}, {auc.high:.2f}]"
    if auc.low <= 0.5:
        return f"A bag of words that never saw a model was not shown to tell the two sides apart ({known})."
    if auc.value < _TELLING:
        return f"A bag of words that never saw a model tells the two sides apart, but hardly ({known})."
    return (
        f"A bag of words that never saw a model tells the two sides apart ({known}): {why} "
        "A membership score that does no better than this shows nothing about membership."
    )
