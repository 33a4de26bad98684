"""Cross-fitting of text-only classifiers: every text is scored by one that did not learn from it.

Folds are of whole documents. All text-only classifiers of the package are cross-fitted here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pretrace.registry import require
from pretrace.statistics.documents import Grouping, Groups, Numbers, grouped_folds, grouped_split
from pretrace.types import Bools, Doubles

Split = int | Literal["halves"]
Fit = Callable[[Bools], Callable[[Bools], Doubles]]
"""From the texts to learn from, bool [texts], to what gives the log-odds of others, bool [texts] to float64."""

WIDENING = math.sqrt(2)
"""Factor on the interval of a cross-fitted figure.

Every pair of texts from different folds enters it twice: each teaches the classifier that judges the
other. Without signal the variance is therefore twice what resampling fixed predictions shows. With a
strong signal the factor is cautious.
"""

FOLDS = 5
FEWEST_TEXTS = 10
"""Of each class; with fewer there is nothing to learn from."""
LEARNT_TEXTS = 20_000
LEARNT_CHARACTERS = 40_000_000
"""The most the classifiers learn from, by whole documents; every text is judged all the same."""
READ_CHARACTERS = 20_000
"""Characters read of one text: some 4,000 tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """The fold of each text, [texts]; the `order` of the folds that are scored; the texts that may be `learnt` from,
    bool [texts]: all, or whole documents up to the bounds above."""

    fold: Numbers
    order: tuple[int, ...]
    learnt: Bools

    @classmethod
    def of(
        cls, texts: Sequence[str], labels: Bools, groups: Groups, *, seed: int, split: Split = FOLDS
    ) -> CrossFit | None:
        """The division of the documents, `groups`, into `split` folds, fewer where a label has fewer documents, or
        into "halves": learn from one, score the other. None where a part of it would lack one of the labels."""
        require(
            split == "halves" or (isinstance(split, int) and split >= 2),
            f"gap: split must be 2 folds or more, or 'halves', found {split!r}.",
        )
        if isinstance(split, int):
            grouping = Grouping.of(groups, labels)
            folds = min(split, grouping.fewest)
            fold, order = grouped_folds(grouping, folds, seed), tuple(range(folds))
        else:
            fold = (~grouped_split(groups, 0.5, seed, labels=labels)).astype(np.int64)
            order = (1,)
        learnt = _learnt(texts, labels, groups, seed)
        parts = [*(learnt & (fold != k) for k in order), np.isin(fold, order)]
        return cls(fold, order, learnt) if all(len(np.unique(labels[part])) == 2 for part in parts) else None

    @property
    def tested(self) -> Numbers:
        """The rows that are scored."""
        return np.flatnonzero(np.isin(self.fold, self.order))

    def scores(self, fit: Fit) -> Doubles:
        """The log-odds of each text, 0 where it is not scored, float64 [texts].

        They are centred a fold: a fold with more texts of a label than its training part had would be judged low as
        a whole, and pooled AUCs would fall below 0.5 by chance alone.
        """
        scores = np.zeros(len(self.fold))
        for k in self.order:
            mine = self.fold == k
            odds = fit(self.learnt & ~mine)(mine)
            scores[mine] = odds - odds.mean()
        return scores


def _learnt(texts: Sequence[str], labels: Bools, groups: Groups, seed: int) -> Bools:
    characters = sum(min(len(text), READ_CHARACTERS) for text in texts)
    share = min(LEARNT_TEXTS / len(texts), LEARNT_CHARACTERS / max(1, characters))
    if share >= 1:
        return np.ones(len(texts), dtype=bool)
    return grouped_split(groups, share, seed, labels=labels)
