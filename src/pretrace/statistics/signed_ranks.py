"""Wilcoxon's signed-rank test where a sign is positive with a known chance, and with any odds up to Γ times as high.

Pair i has a difference D_i and the chance q_i that it lies above 0 if the texts were not used. At Γ = 1 the signs are
drawn with these chances. At Γ > 1 the odds of every pair are Γ times as high, the worst case of a bias that was not
modelled: p(Γ) is the largest p-value that such a bias could leave. With q_i = 1/2 for all pairs this is the bound of
Rosenbaum 2002, *Observational Studies*, section 4.3.3 (`sensitivity.wilcoxon_bound`), drawn instead of counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.statistics.documents import checked
from pretrace.statistics.permutation import chunks, share_reached
from pretrace.types import Doubles

DRAWS = 10_000
STEPS = 20
"""Halvings of the interval a Γ lies in: a millionth of it is left."""
WIDEST = 1e6
"""No larger Γ is looked for."""
FINEST = 1e-9
"""A chance is kept this far from 0 and 1."""


@dataclass(frozen=True, slots=True, eq=False)
class SignedRanks:
    """The ranks of the sizes of the differences that are not 0, the chance of each to lie above 0, and the sum of the
    ranks of those that do. `draws` and `seed` say how p is drawn: with the same numbers at every Γ, so that p never
    falls as Γ grows."""

    ranks: Doubles
    chances: Doubles
    observed: float
    draws: int
    seed: int

    @classmethod
    def of(
        cls, differences: npt.ArrayLike, chances: npt.ArrayLike, *, draws: int = DRAWS, seed: int = 0
    ) -> SignedRanks:
        """From one difference a pair and its chance to lie above 0, both [pairs].

        Differences of 0 take no part; equal sizes share their average rank. TextsError for values that are not finite
        or of another number, ExpressionError for a chance outside 0 to 1 or no draws.
        """
        from scipy.stats import rankdata

        require(draws > 0, f"a test by drawn signs takes at least one draw, found {draws}.")
        found, likely = checked(differences, "a signed-rank test"), checked(chances, "chances of signs")
        if len(found) != len(likely):
            raise TextsError(f"wanted a chance for each of {len(found)} differences, found {len(likely)}.")
        require(bool(((likely >= 0) & (likely <= 1)).all()), "a chance of a sign lies between 0 and 1.")
        there = found != 0
        ranks = np.asarray(rankdata(np.abs(found[there])), dtype=np.float64)
        observed = float(ranks[found[there] > 0].sum())
        return cls(ranks, likely[there].clip(FINEST, 1 - FINEST), observed, draws, seed)

    def drawn(self, gamma: float = 1.0) -> Doubles:
        """The sum of ranks in every draw at this Γ, [draws]; ExpressionError below 1."""
        require(gamma >= 1, f"a sensitivity parameter Γ is a number from 1 on, found {gamma}.")
        if not len(self.ranks):
            return np.zeros(self.draws)
        odds = gamma * self.chances / (1 - self.chances)
        rng = np.random.default_rng(self.seed)
        parts = [
            (rng.random((rows, len(self.ranks))) < odds / (1 + odds)) @ self.ranks
            for rows in chunks(self.draws, len(self.ranks))
        ]
        return np.concatenate(parts)

    def p(self, gamma: float = 1.0) -> float:
        """(1 + draws that reach the observed sum) / (1 + draws) at this Γ; 1 where every difference is 0."""
        return share_reached(self.drawn(gamma), np.float64(self.observed)) if len(self.ranks) else 1.0

    def breakdown(self, level: float) -> float | None:
        """Γ*, the largest Γ with p(Γ) <= level, to a millionth of itself and 1e6 at most; None where p(1) is above."""
        require(0 < level < 1, f"a test takes a level between 0 and 1, found {level}.")
        if self.p(1.0) > level:
            return None
        low, high = 1.0, 2.0
        while high < WIDEST and self.p(high) <= level:
            low, high = high, 2 * high
        if high >= WIDEST and self.p(WIDEST) <= level:
            return WIDEST
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.p(middle) <= level else (low, middle)
        return low
