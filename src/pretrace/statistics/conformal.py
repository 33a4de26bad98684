"""Which documents stand out from known non-members, with a promise on how many of those are false.

The conformal p-value of a document with value s, against n known non-members, is

    p = (1 + #{non-members that score at least s}) / (n + 1)

If the document is one more like them, its rank among them is anything equally likely, so P(p <= a) <= a, whatever
the law of the score: nothing is assumed but that it could have stood among them (exchangeability). Documents
whose p-values pass the step-up procedure of Benjamini and Hochberg (1995) at a rate q are flagged; of the
flagged, a share of at most q is false, on average over repetitions.

**One value a document, by one rule on both sides.** Fifty pieces of two books are two books. Of every document,
asked or known, the same number of pieces is drawn (`drawn_pieces`), as many as the document with the fewest has,
and their mean is the document's value. Where documents are exchangeable (hierarchical exchangeability: Dunn,
Wasserman and Ramdas 2023; Lee, Barber and Willett 2023), so are these values, however many pieces each document
has and even where that number goes with its score. Flags are of documents.

Were every piece of the asked documents counted, documents of 80 pieces that score higher, 3% of all, and nothing seen,
would make Benjamini and Yekutieli's procedure at a rate of 20% flag something in 19 to 38% of sets; one value a
document with Benjamini and Hochberg's in 4 to 18% (2,000 sets of each of four sizes, evidence/flagging_sets.csv).

**p-values that share their known documents are dependent**, positively (PRDS), for which the procedure keeps its
promise: Bates, Candès, Lei, Romano and Sesia 2023, "Testing for outliers with conformal p-values", theorems 2
and 3. That theorem wants independent documents to be judged. Where documents depend on each other, the procedure
of Benjamini and Yekutieli (2001) keeps the rate as long as each p-value by itself is valid, at the price of a
factor 1 + 1/2 + … + 1/m on the rate.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.statistics.documents import Grouping, Groups, check_values
from pretrace.types import Bools, Doubles

Method = Literal["bh", "by"]
METHODS: tuple[Method, ...] = ("bh", "by")

_ROUNDING = 1e-12
"""A rate that is met exactly is met, in whatever order its factors were multiplied."""


def p_values(
    scores: npt.ArrayLike, known: npt.ArrayLike, *, randomised: bool = False, seed: int = 0
) -> Doubles:
    """The conformal p-value of each score, one an asked document, against those of known non-members, one a document.

    A tie counts as if the known text scored higher, which is conservative. With `randomised` all ties are
    broken at random, one draw a text, so that p is uniform on 1/(n + 1), …, 1 and the texts' joint law is that of
    scores without ties. TextsError without known texts, and for a score that is not finite.
    """
    values = check_values(scores, "the scores of the texts", fewest=0)
    calibration = check_values(known, "the scores of known non-members")
    if randomised:  # ranks by score, then at random: as if no two texts had scored the same
        order = np.random.default_rng(seed).random(len(values) + len(calibration))
        rank = np.empty(len(order))
        rank[np.lexsort((order, np.concatenate((values, calibration))))] = np.arange(len(order))
        values, calibration = rank[: len(values)], rank[len(values) :]
    ordered = np.sort(calibration)
    reached = len(ordered) - np.searchsorted(ordered, values, side="left")
    return np.asarray((1.0 + reached) / (len(ordered) + 1))


def drawn_pieces(groups: Groups, seed: int) -> Bools:
    """Which texts are drawn, of every document as many as the one with the fewest has, all pieces with the same chance;
    bool [texts]. Depends on the seed, the documents and their sizes alone."""
    drawn = np.zeros(len(groups), dtype=bool)
    if not len(groups):
        return drawn
    grouping = Grouping.of(groups)
    rows, sizes = np.argsort(grouping.codes, kind="stable"), grouping.sizes
    first = np.cumsum(sizes) - sizes
    number = int(sizes.min())
    if number == sizes.max():
        return np.ones(len(groups), dtype=bool)
    rng = np.random.default_rng(seed)
    drawn[rows[first[sizes == 1]]] = True  # one piece alone is not drawn
    several = sizes > 1
    for start, size in zip(first[several].tolist(), sizes[several].tolist(), strict=True):
        drawn[rng.permutation(rows[start : start + size])[:number]] = True
    return drawn


def adjusted(p: npt.ArrayLike, method: Method = "bh") -> Doubles:
    """The least false discovery rate at which each text would be flagged ("q-value"), float64 [texts]. "bh" is
    Benjamini and Hochberg's, "by" Benjamini and Yekutieli's (`scipy.stats.false_discovery_control`)."""
    from scipy.stats import false_discovery_control

    require(method in METHODS, f"false discoveries are controlled by 'bh' or 'by', found {method!r}.")
    values = np.asarray(p, dtype=np.float64)
    if not len(values):
        return values
    return np.asarray(false_discovery_control(values, method=method), dtype=np.float64)


def flagged(q: npt.ArrayLike, fdr: float) -> Bools:
    """Which texts are flagged at a false discovery rate, bool [texts]."""
    return np.asarray(np.asarray(q, dtype=np.float64) <= fdr * (1 + _ROUNDING))


def least_together(known: int, asked: int, fdr: float, method: Method = "bh") -> int | None:
    """The asked documents that have to stand above all known ones before any of them is flagged at a rate: with k
    above all n, all k are where 1 / (n + 1) <= k · rate / asked. None where not even all would be enough."""
    together = _ceil(asked / (_rate(asked, fdr, method) * (known + 1)))
    return together if together <= asked else None


def needed(together: int, asked: int, fdr: float, method: Method = "bh") -> int:
    """The known documents with which so many of the asked documents, above all of these, are flagged."""
    return _ceil(max(1, asked) / (_rate(asked, fdr, method) * max(1, together))) - 1


def _rate(asked: int, fdr: float, method: Method) -> float:
    return fdr if method == "bh" else fdr / (math.fsum(1 / i for i in range(1, asked + 1)) or 1.0)


def _ceil(value: float) -> int:
    """The next whole number, a hair above one taken for rounding."""
    return max(1, math.ceil(value * (1 - _ROUNDING)))
