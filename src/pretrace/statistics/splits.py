"""Whole documents to one side or the other: splits and folds that never cut a group in two.

Groups are numbered by sorted name before anything is drawn, so a split depends on the seed and on which
texts there are, and not on the order of the rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from pretrace.registry import require
from pretrace.statistics.documents import Grouping, Labels, Numbers
from pretrace.types import Bools


def grouped_split(groups: Sequence[str], share: float, seed: int, labels: Labels | None = None) -> Bools:
    """Which texts a random draw of whole groups takes, about `share` of them; bool [texts].

    With labels the draw is made apart among groups of members, of non-members and of both, so that
    either side gets its share of each. Of two groups of a kind or more it takes at least one and
    leaves at least one; a group that is the only one of its kind is left. ExpressionError unless
    0 < share < 1.
    """
    require(0 < share < 1, f"a split takes a share between 0 and 1 of the texts, found {share}.")
    grouping = Grouping.of(groups, labels)
    rng = np.random.default_rng(seed)
    taken = np.zeros(len(grouping), dtype=bool)
    for stratum in grouping.strata:
        order = rng.permutation(stratum)
        taken[_drawn(order, grouping.sizes[order], share)] = True
    return np.asarray(taken[grouping.codes])


def grouped_folds(grouping: Grouping, folds: int, seed: int) -> Numbers:
    """The fold of each text, 0 … folds - 1, shape [texts]: groups whole, sizes and kinds spread evenly.

    Within each kind the groups are dealt in random order, large ones first, each to the fold that has
    the least of that kind so far.
    """
    rng = np.random.default_rng(seed)
    fold = np.zeros(len(grouping), dtype=np.int64)
    totals = [0] * folds
    for stratum in grouping.strata:
        order = rng.permutation(stratum)
        order = order[np.argsort(-grouping.sizes[order], kind="stable")]
        heap = [(0, totals[k], k) for k in range(folds)]
        heapq.heapify(heap)
        for group in order.tolist():
            load, _, k = heap[0]
            fold[group] = k
            size = int(grouping.sizes[group])
            totals[k] += size
            heapq.heapreplace(heap, (load + size, totals[k], k))
    return np.asarray(fold[grouping.codes])


def _drawn(order: Numbers, sizes: Numbers, share: float) -> Numbers:
    """The groups to take: going through them in order, each that brings the number of texts nearer."""
    target: float = float(sizes.sum()) * share
    if len(order) < 2:
        return order[:0]
    took, picked = 0, []
    for place, size in enumerate(sizes.tolist()):
        if abs(took + size - target) < abs(took - target):
            took += size
            picked.append(place)
    if not picked:
        picked = [int(np.argmin(sizes))]
    if len(picked) == len(order):
        picked.pop()
    return order[picked]
