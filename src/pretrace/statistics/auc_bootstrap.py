"""The resamples of the AUC alone, quickly for very many texts: number for number those of `resampling.group_bootstrap`.

The AUC of a resample is one sum of whole and half numbers over another. Such sums are exact in any order, so texts
are first counted: members by document and by the non-members that they beat, non-members by document and by the
members that beat them. A block of resamples is then two products of these sparse counts with how often each document
was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrace.statistics.documents import Grouping, Groups, Numbers
from pretrace.statistics.resampling import Spread, affordable, group_draws, tail_share
from pretrace.statistics.roc import RankedScores
from pretrace.types import Bools, Doubles

CELLS = 4_000_000
"""Values of a block of resamples that are held at once: 32 MB."""
_WIDEST = 16  # resamples of a block: more are no faster


def auc_bootstrap(
    scores: Doubles, members: Bools, *, groups: Groups, seed: int = 0, resamples: int = 1000
) -> Spread:
    """The AUC of one score [texts] with its resamples, as `group_bootstrap` of this score alone draws them.

    Above `resampling.WORK` look-ups fewer resamples are made. TextsError when a class is missing, ExpressionError on a
    NaN.
    """
    grouping = Grouping.of(groups, members)
    counts = _Counts.of(RankedScores.of(scores, members), grouping.codes)
    made = affordable(resamples, texts=len(scores), scores=1)
    value = counts.auc(np.ones((1, len(grouping))))
    drawn, draws = np.empty(made), group_draws(grouping, made, seed)
    wide = min(_WIDEST, max(1, CELLS // counts.cells))
    for begin in range(0, made, wide):
        times = np.empty((min(wide, made - begin), len(grouping)))
        for row in times:
            row[:] = next(draws)
        drawn[begin : begin + wide] = counts.auc(times)
    return Spread(value, drawn[:, None], tail_share(grouping.fewest))


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """`beating` [levels, groups] counts the members of each level, those with the same `below` and `upto` [levels]:
    the bins of non-members that score less, and not more. `beaten` [bins, groups] counts non-members."""

    beating: Any
    below: Numbers
    upto: Numbers
    beaten: Any

    @classmethod
    def of(cls, ranked: RankedScores, codes: Numbers) -> _Counts:
        """From the order of the texts, and the group of each."""
        number = int(codes.max()) + 1
        both = (
            ranked.below.astype(np.int64) + ranked.upto
        )  # rises with the score, and stays only where both stay
        levels, first, level = np.unique(both, return_index=True, return_inverse=True)
        below, upto = ranked.below[first], ranked.upto[first]
        cuts = np.unique(np.concatenate((below, upto, [0])))
        places = np.searchsorted(cuts, np.arange(len(ranked.nonmembers)), side="right") - 1
        return cls(
            beating=_counted(level, codes[ranked.members], (len(levels), number)),
            below=np.searchsorted(cuts, below),
            upto=np.searchsorted(cuts, upto),
            beaten=_counted(places, codes[ranked.nonmembers], (len(cuts), number)),
        )

    @property
    def cells(self) -> int:
        """Values that one resample takes."""
        return int(sum(self.beating.shape) + self.beaten.shape[0])

    def auc(self, times: Doubles) -> Doubles:
        """The AUC where each group counts so many `times` [resamples, groups], [resamples]."""
        columns = np.ascontiguousarray(times.T)
        gained, bins = self.beating @ columns, self.beaten @ columns
        passed = np.zeros((len(bins) + 1, len(times)))
        np.cumsum(bins, axis=0, out=passed[1:])
        lower = (passed[self.below] + passed[self.upto]) / 2
        won = np.einsum("lr,lr->r", gained, lower)
        return np.asarray(won / (gained.sum(axis=0) * passed[-1]))


def _counted(rows: Numbers, columns: Numbers, shape: tuple[int, int]) -> Any:
    """How often each row comes with each column, sparse, by columns: documents are then gone through in order."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsc()
