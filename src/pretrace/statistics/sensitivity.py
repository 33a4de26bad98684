"""How far the assumption behind a test could fail before the test no longer rejects.

A sign-flip test assumes that a document the model never saw is as likely to lie above 0 as below. Rosenbaum's
Γ allows that chance to be as high as Γ / (1 + Γ) for every document (odds of Γ to 1): Γ* is the largest Γ
at which even the worst case still rejects. Γ* = 1 means that any departure could explain the result; Γ* = 3
that it stands even if three in four such documents lie above 0. Rosenbaum 2002, *Observational Studies*,
sections 4.3.2 (sign test) and 4.3.3 (Wilcoxon's signed-rank test). The two-sample test has a bound of
its own: the constant by which suspect documents the model never saw could lie above the held-out ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.statistics.documents import check_values
from pretrace.statistics.permutation import (
    last_rejected,
    permuted,
    share_reached,
    two_sample_test,
    welch_corrected,
)
from pretrace.types import Doubles

EXACT_RANKS = 200
"""Up to so many documents the distribution of the signed-rank sum is exact; above it is taken as normal."""
STEPS = 20
"""Halvings of the interval that a Γ or a shift lies in, which leave a millionth of it."""
_WIDEST = 1e9
"""No Γ above it is looked for."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much hidden bias a result withstands; None where the test does not reject, or has no such bound.

    `gamma_sign` and `gamma_wilcoxon` are Rosenbaum's Γ*: the odds at which an innocent document may lie above 0
    before the sign test, or Wilcoxon's, no longer rejects. `shift` is what can be taken from every suspect
    document, in the effect's unit, before the two-sample test no longer rejects. `left_out` is how many control
    documents can be left out, those that the model knows least first, before it no longer rejects.
    """

    gamma_sign: float | None = None
    gamma_wilcoxon: float | None = None
    shift: float | None = None
    left_out: int | None = None


def sensitivity(
    values: npt.ArrayLike,
    heldout: npt.ArrayLike | None = None,
    *,
    level: float = 0.05,
    permutations: int = 10_000,
    seed: int = 0,
) -> Sensitivity:
    """How much hidden bias a result of one value a document withstands at `level`, against 0 or `heldout` documents."""
    if heldout is None:
        return Sensitivity(sign_gamma(values, level), wilcoxon_gamma(values, level), None)
    shift = two_sample_shift(values, heldout, level, permutations=permutations, seed=seed)
    return Sensitivity(None, None, shift)


def sign_bound(values: npt.ArrayLike, gamma: float) -> float:
    """The largest p-value of the sign test for values [documents] above 0 at this Γ >= 1: P(Bin(n, Γ / (1 + Γ)) >= k),
    n not 0, k above. TextsError without values or with one not finite, ExpressionError for another Γ."""
    from scipy.special import betainc  # heavy, and only needed once there is something to report

    above, number = _signs(values)
    return float(betainc(above, number - above + 1, _chance(gamma))) if above else 1.0


def sign_gamma(values: npt.ArrayLike, level: float) -> float | None:
    """The largest Γ >= 1 with `sign_bound` <= level; None where the sign test does not reject at Γ = 1."""
    from scipy.special import betaincinv

    above, number = _signs(values)
    if sign_bound(values, 1) > level:
        return None
    chance = float(betaincinv(above, number - above + 1, level))
    return max(1.0, chance / (1 - chance))


def wilcoxon_bound(values: npt.ArrayLike, gamma: float) -> float:
    """The largest p-value of Wilcoxon's signed-rank test for values above 0 at this Γ >= 1: of the sum of ranks above
    0, equal sizes sharing their average rank, every sign positive with the chance Γ / (1 + Γ). Exact up to 200
    documents (by convolution), above that normal with half a rank taken off. Errors as in `sign_bound`."""
    return _rank_tail(*_ranks(values), _chance(gamma))


def wilcoxon_gamma(values: npt.ArrayLike, level: float) -> float | None:
    """The largest Γ >= 1 with `wilcoxon_bound` <= level, to a millionth of itself; None where Γ = 1 does not reject."""
    ranks, reached = _ranks(values)

    def rejects(gamma: float) -> bool:
        return _rank_tail(ranks, reached, _chance(gamma)) <= level

    if not rejects(1):
        return None
    high = 2.0
    while high < _WIDEST and rejects(high):
        high *= 2
    return last_rejected(rejects, high / 2, high, STEPS)


def two_sample_shift(
    suspect: npt.ArrayLike, heldout: npt.ArrayLike, level: float, *, permutations: int = 10_000, seed: int = 0
) -> float | None:
    """The largest constant that can be taken from every suspect value with `two_sample_test` still rejecting, rounded
    down to a millionth of the range. All shifts have its permutations, so that p rises with them. None where the test
    does not reject as it is. Errors as in `two_sample_test`."""
    first, second = (np.sort(check_values(side, "a two-sample test")) for side in (suspect, heldout))
    values = np.concatenate((first, second))
    values -= values.mean()
    unit = float(np.abs(values).max())
    if unit == 0:
        return None
    p = _shifted_p(values / unit, (len(first), len(second)), permutations, seed)

    def rejects(shift: float) -> bool:
        return p(shift) <= level

    if not rejects(0.0):
        return None
    # Past the range every suspect value lies below every other.
    return unit * last_rejected(rejects, 0.0, float(first[-1] - second[0]) / unit, STEPS)


def controls_left_out(
    suspect: npt.ArrayLike, heldout: npt.ArrayLike, level: float, *, permutations: int = 10_000, seed: int = 0
) -> int | None:
    """How many held-out documents can be left out, the lowest first, with the two-sample test rejecting. Those of
    another kind lie low, since the model knows it less: if at most k are, a result that stands with any number up to k
    left out does not come from them. Above 40 documents in steps of a fortieth, at most half. None where the test does
    not reject as it is."""
    second, left_out = np.sort(check_values(heldout, "a two-sample test")), None
    for number in range(0, len(second) // 2 + 1, max(1, len(second) // 40)):
        if two_sample_test(suspect, second[number:], permutations=permutations, seed=seed).p > level:
            break
        left_out = number
    return left_out


def _shifted_p(
    values: Doubles, sizes: tuple[int, int], permutations: int, seed: int
) -> Callable[[float], float]:
    """The p-value of the two-sample test for any constant c taken from the suspect values, which come first. With z = 1
    for suspect documents and 0 for others, a document is worth x - c z. What is summed over documents, [6,
    permutations] for those that a permutation calls suspect and [6, 1] else: x, x², x³, z, xz and x²z."""
    marks = np.repeat((1.0, 0.0), sizes)
    terms = np.stack((values, values**2, values**3, marks, values * marks, values**2 * marks))
    whole, observed = (some.sum(axis=1, keepdims=True) for some in (terms, terms[:, : sizes[0]]))
    places = permuted(np.arange(len(values)), permutations, min(sizes), np.random.default_rng(seed))
    drawn = np.concatenate([terms[:, some].sum(axis=2) for some in places], axis=1)
    drawn = drawn if sizes[0] <= sizes[1] else whole - drawn

    def p(shift: float) -> float:
        every, found, null = (_moved(sums, shift) for sums in (whole, observed, drawn))
        reached = float(welch_corrected(found, every, sizes)[0])
        return share_reached(welch_corrected(null, every, sizes), reached)

    return p


def _moved(sums: Doubles, shift: float) -> Doubles:
    """Sums [3, n] of x - c z, of its square and its cube, from the six sums [6, n]."""
    x, xx, xxx, z, xz, xxz = sums
    first, second = x - shift * z, xx - 2 * shift * xz + shift**2 * z
    return np.stack((first, second, xxx - 3 * shift * xxz + 3 * shift**2 * xz - shift**3 * z))


def _signs(values: npt.ArrayLike) -> tuple[int, int]:
    found = check_values(values, "a sensitivity analysis")
    return int(np.count_nonzero(found > 0)), int(np.count_nonzero(found))


def _ranks(values: npt.ArrayLike) -> tuple[Doubles, float]:
    """Ranks of the sizes of the values that are not 0, and the sum of those above 0."""
    from scipy.stats import rankdata

    found = check_values(values, "a sensitivity analysis")
    found = found[found != 0]
    ranks = np.asarray(rankdata(np.abs(found)), dtype=np.float64)
    return ranks, float(ranks[found > 0].sum())


def _rank_tail(ranks: Doubles, reached: float, chance: float) -> float:
    """P(sum of the ranks that are drawn >= reached), each drawn with this chance."""
    if len(ranks) > EXACT_RANKS:
        from scipy.special import ndtr

        deviation = math.sqrt(chance * (1 - chance) * float(ranks @ ranks))
        return float(ndtr((chance * float(ranks.sum()) - reached + 0.5) / deviation))
    # Average ranks may be halves: doubled they are whole numbers.
    scale = 1 if np.array_equal(ranks, np.rint(ranks)) else 2
    steps = np.rint(scale * ranks).astype(np.int64)
    law = np.zeros(int(steps.sum()) + 1)
    law[0] = 1.0
    for step in steps:
        moved = chance * law[: len(law) - step]
        law *= 1 - chance
        law[step:] += moved
    return min(1.0, float(law[round(scale * reached) :].sum()))


def _chance(gamma: float) -> float:
    require(1 <= gamma < math.inf, f"a sensitivity parameter Γ is a number from 1 on, found {gamma}.")
    return gamma / (1 + gamma)
