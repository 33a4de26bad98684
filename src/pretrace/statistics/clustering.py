"""How much alike the pieces of one document are, and how many independent pieces they are worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pretrace.statistics.permutation import by_document
from pretrace.statistics.splits import Grouping
from pretrace.types import Doubles


def intraclass(values: npt.ArrayLike, documents: Sequence[str]) -> float:
    """The share of the variance of pieces that lies between documents, 0 … 1.

    From a one-way analysis of variance: (B - W) / (B + (m - 1) W), with B and W the mean squares between and
    within documents and m the mean number of pieces, corrected for unequal numbers (Donner 1986, section 2);
    0 where that is negative or no document has two pieces. A single document tells nothing of it, and
    counts as 1. TextsError without values, with one that is not finite or where the numbers do not agree.
    """
    names, means = by_document(values, documents)
    grouping = Grouping.of(documents)
    found = np.asarray(values, dtype=np.float64)
    pieces, number = len(found), len(names)
    if number == 1:
        return 1.0
    if pieces == number:
        return 0.0
    between = float(grouping.sizes @ (means - found.mean()) ** 2) / (number - 1)
    within = float(np.sum((found - means[grouping.codes]) ** 2)) / (pieces - number)
    size = (pieces - _spread(grouping.sizes.astype(np.float64))) / (number - 1)
    total = between + (size - 1) * within
    return max(0.0, (between - within) / total) if total > 0 else 0.0


def effective(values: npt.ArrayLike, documents: Sequence[str]) -> float:
    """How many independent pieces a mean over all these pieces is worth, 1 … pieces.

    Pieces over the design effect 1 + (m' - 1) r, with r the `intraclass` correlation and m' = Σ n² / Σ n for
    documents of n pieces (Kish 1965, section 5.4). Errors as there.
    """
    alike = intraclass(values, documents)
    sizes = Grouping.of(documents).sizes.astype(np.float64)
    return float(sizes.sum() / (1 + (_spread(sizes) - 1) * alike))


def _spread(sizes: Doubles) -> float:
    """The mean number of pieces in the document of a random piece."""
    return float(sizes @ sizes / sizes.sum())
