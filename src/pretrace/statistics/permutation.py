"""Permutation tests over documents: their p-values, what these withstand, and their power.

The unit of every test is the document: pieces of one document are alike, and counted one by one they reject
far too often. Both tests use the same statistic, a mean over its standard error with the skewness taken out
(`_skew_corrected`). A permutation test is exact whatever statistic it uses where its symmetry holds: values as
likely above as below 0 (`sign_flip_test`), or both sides of one law (`two_sample_test`). The correction decides what
happens where it does not hold. Rejections of a true null at a nominal 5%, 4,000 simulated audits each:

    sign_flip_test, unguarded                      documents   mean    corrected
    normal, or as noisy as their pieces are few        20      .047    .048
    Student, 3 degrees of freedom                      50      .055    .053
    exponential, long tail below                       20      .118    .085
    exponential, long tail below                       50      .088    .055
    log-normal (0.8), long tail below                 200      .084    .052
    exponential, long tail above                      200      .042    .054

    two_sample_test: suspect and held-out documents, the fewer have twice the spread (2,500 audits)
                                                           difference   Welch   corrected
    40 and 20, normal                                         .086       .058     .051
    40 and 20, exponential, long tail above                   .136       .091     .071
    20 and 60, exponential, long tail below                   .148       .079     .057
    100 and 50, gamma (0.3), long tail above                  .132       .081     .060

What it costs: at 40 documents and power .88 for normal values nothing, for Student's .54 where the mean has .58.
Dividing the mean by its standard error alone changes no sign-flip test: flips leave the sum of squares as it
is, so t is a rising function of the mean and p the same.

Where documents are few the correction is too small for a long tail below. `sign_flip_test` is guarded against it
(evidence/audit_null.json, 10,000 audits a cell; rejections at 5%, without and with the guard):

    law of the values                     20 documents   50            100           200
    normal                                .050  .050     .053  .053    .052  .052    .047  .047
    Student, 3 degrees of freedom         .050  .050     .051  .051    .050  .051    .049  .049
    exponential, long tail below          .085  .043     .059  .029    .050  .034    .047  .036
    gamma (0.5), long tail below          .090  .035     .060  .017    .052  .026    .050  .035
    log-normal (1), long tail below       .123  .055     .080  .031    .067  .036    .055  .038
    Pareto (3), long tail below           .138  .060     .089  .037    .074  .038    .067  .046
    2% of the documents at -5             .281  .274     .277  .277    .131  .131    .018  .015
    power, normal                         .768  .746     .792  .790    .788  .788    .805  .806
    power, Student                        .799  .729     .785  .745    .788  .765    .793  .780

At 1% the guarded test rejects up to .034 of the long tails with 20 documents, and up to .010 from 50 on.
Nothing mends rare documents far below (here 2% at -5, the others 0.3 apart around 0.1): none of them is among
20 documents in 67% of the audits, among 50 in 36%. What is then seen is a sample of normal values above 0. Whatever
test or check lets these pass has no power for normal values, so there is no check of that kind here.

**How far the assumption could fail.** A sign-flip test assumes that a document the model never saw is as likely to lie
above 0 as below. Rosenbaum's Γ allows that chance to be as high as Γ / (1 + Γ) for every document (odds of Γ to 1): Γ*
is the largest Γ at which even the worst case still rejects. Γ* = 1 means that any departure could explain the result;
Γ* = 3 that it stands even if three in four such documents lie above 0. Rosenbaum 2002, *Observational Studies*,
sections 4.3.2 (sign test) and 4.3.3 (Wilcoxon's signed-rank test). The two-sample test has a bound of its own: the
constant by which suspect documents the model never saw could lie above the held-out ones.

**Power**: the probability that the test rejects, for an effect that was planted and measured. Planted documents give
pairs: `noise` is a document's value where the model was not trained on it, `shift` how much training on it added. A
simulated audit draws documents with replacement, their noise centred on 0 and the shift added. Both are spread by
sqrt(k / (k - 1)) for k planted documents, since a sample varies less about its own mean than what it was drawn from.
The statistic of the permutation test is held against Student's t instead of permuting: thousands of tests become one
array. From about 15 documents a side on, rates of rejection agree with those of the permutation tests to about 0.03;
with fewer and a long tail they were up to 0.1 apart.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.statistics.documents import check_values, satterthwaite, share_interval
from pretrace.statistics.roc import tail_share
from pretrace.types import Bools, Doubles, Estimate

EXACT = 13
"""Up to so many documents all flips of signs are gone through."""
CELLS = 250_000
"""Values held at once while flipping or permuting: 2 MB an array, which a processor keeps close by."""
STEEPEST = 1e4
"""Above it a ratio of mean to standard error is rounding: values that do not vary have none."""
_LOWER_TAIL = 9.0
"""A guarded sign-flip test takes skewness towards low values 1 + 9 / sqrt(documents) times. Chosen on simulated
laws alone: it keeps the long tails of the table above at 6% for 20 documents and below 5% from 50 on."""
TIE = 1e-9
"""Statistics this close are equal: the same sum in another order differs in the last places."""


@dataclass(frozen=True, slots=True, eq=False)
class PermutationTest:
    """A permutation test with its null distribution: `null` [draws] holds the statistic of every draw.

    `observed` is the statistic of the values themselves, in the same units as `null`: a mean over its standard
    error with the skewness taken out. `exact` is whether `null` holds every flip there is, the observed one among
    them, so that p = k / draws where k of them reach the observed statistic; else p = (1 + k) / (1 + draws).
    """

    p: float
    observed: float
    null: Doubles
    exact: bool = False

    def critical(self, level: float) -> float:
        """What the statistic has to reach for p <= level: every one at or above it has, the next lower value of the
        null has not. Infinite where draws or documents are too few. ExpressionError for a level outside 0 to 1."""
        require(0 < level < 1, f"a test takes a level between 0 and 1, found {level}.")
        drawn, total = np.sort(self.null), len(self.null) + (not self.exact)
        allowed = int(level * total) + 1
        while allowed / total > level:
            allowed -= 1
        if allowed == 0:
            return math.inf
        beaten = float(drawn[-1 - (allowed if self.exact else allowed - 1)])
        return beaten + 2 * TIE * max(1.0, abs(beaten))


def sign_flip_test(
    values: npt.ArrayLike, *, flips: int = 10_000, seed: int = 0, guarded: bool = True
) -> PermutationTest:
    """The one-sided test of a mean above 0, from flipping the signs of one value a document, [documents], in any order:
    over all flips up to 13 documents, else (1 + those that reach the statistic) / (1 + flips). Fewer than 5 never reach
    5%. `guarded` takes skewness towards low values 1 + 9 / sqrt(documents) times, against a long tail below, which few
    values underrate; the test stays exact for symmetric values, as the null has the same statistic. TextsError without
    finite values."""
    require(flips > 0, f"a permutation test takes at least one flip, found {flips}.")
    found = np.sort(check_values(values, "a sign-flip test"))
    exact = len(found) <= EXACT
    size = math.sqrt(float(np.mean(_scaled(found) ** 2)))
    if size == 0:
        return PermutationTest(1.0, 0.0, np.zeros(2 ** len(found) if exact else flips), exact)
    unit = _scaled(found) / size
    powers = np.stack((unit, unit**3), axis=1)
    observed = _flipped(powers.sum(axis=0)[None], len(unit), guarded)[0]
    every = np.arange(2 ** len(unit))[:, None] >> np.arange(len(unit)) & 1 if exact else np.zeros(0)
    parts = [every * 2.0 - 1.0] if exact else _random_signs(len(unit), flips, seed)
    null = np.concatenate([_flipped(part @ powers, len(unit), guarded) for part in parts])
    return PermutationTest(share_reached(null, observed, exact=exact), float(observed), null, exact)


def two_sample_test(
    suspect: npt.ArrayLike, heldout: npt.ArrayLike, *, permutations: int = 10_000, seed: int = 0
) -> PermutationTest:
    """The one-sided test of the mean of `suspect` above that of `heldout`, one value a document, from permuting these:
    (1 + those that reach the statistic) / (1 + permutations). Welch's t less its skewness keeps the level where sides
    differ in number and spread (Janssen 1997; Chung and Romano 2013). Errors as in `sign_flip_test`."""
    require(permutations > 0, f"a permutation test takes at least one permutation, found {permutations}.")
    first, second = (np.sort(check_values(side, "a two-sample test")) for side in (suspect, heldout))
    both = np.concatenate((first, second))
    both = _scaled(both - both.mean())
    if not both.any():
        return PermutationTest(1.0, 0.0, np.zeros(permutations))
    sizes = len(first), len(second)
    sums = _power_sums(both[None])
    observed = _welch_corrected(_power_sums(both[None, : sizes[0]]), sums, sizes)[0]
    drawn = []
    for some in permuted(both, permutations, min(sizes), np.random.default_rng(seed)):
        # The smaller side alone is summed; what is left is the other.
        part = _power_sums(some)
        part = part if sizes[0] <= sizes[1] else sums - part
        drawn.append(_welch_corrected(part, sums, sizes))
    null = np.concatenate(drawn)
    return PermutationTest(share_reached(null, observed), float(observed), null)


def _skew_corrected(mean: Doubles, variance: Doubles, third: Doubles) -> Doubles:
    """A mean over its standard error without skewness; any shape. `variance` and `third` are cumulants of the mean (or
    difference) itself. With t = mean / sqrt(variance) and a = third / variance^1.5: t + a t²/3 + a² t³/27 + a/6, which
    rises with t (Hall 1992, "On the removal of skewness by transformation", section 2)."""
    floor = (mean / STEEPEST) ** 2
    flat = variance <= floor
    safe = np.where(flat, np.maximum(floor, 1e-200), variance)
    t = mean / np.sqrt(safe)
    a = np.where(flat, 0.0, third) / safe / np.sqrt(safe)
    return np.asarray(t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6)


def share_reached(null: Doubles, observed: float, *, exact: bool = False) -> float:
    """The share of the null [draws] that reaches the observed statistic, ties too; itself a draw unless `exact`."""
    slack = TIE * max(1.0, abs(float(observed)))
    reached = int(np.count_nonzero(null >= observed - slack))
    return reached / len(null) if exact else (1 + reached) / (1 + len(null))


def _welch_corrected(part: Doubles, sums: Doubles, sizes: tuple[int, int]) -> Doubles:
    """The statistic of a two-sample test, [rows], from power sums (of values, squares and cubes) of the documents
    on its first side, `part` [3, rows], and of all documents, `sums` [3, 1 or rows]; `sizes` are their numbers."""
    first, second = (_cumulants(side, n) for side, n in zip((part, sums - part), sizes, strict=True))
    return _skew_corrected(first[0] - second[0], first[1] + second[1], first[2] - second[2])


def last_rejected(rejects: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """The largest value found to reject, between one that does and one that does not, by so many halvings."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low


def _chunks(rows: int, width: int) -> Iterator[int]:
    """Numbers of rows that add up to `rows`, each few enough to be held at once."""
    most = max(1, CELLS // width)
    while rows > 0:
        yield min(rows, most)
        rows -= most


def permuted(values: Any, draws: int, few: int, rng: np.random.Generator) -> Iterator[Any]:
    """Yield the first `few` of every one of so many random permutations of the values, in blocks [rows, few]."""
    for rows in _chunks(draws, len(values)):
        yield rng.permuted(np.broadcast_to(values, (rows, len(values))), axis=1)[:, :few]


def _scaled(values: Doubles) -> Doubles:
    """The values over the largest of them, so that no cube overflows."""
    largest = float(np.abs(values).max())
    return values / largest if largest else values


def _random_signs(documents: int, flips: int, seed: int) -> Iterator[Doubles]:
    """Signs [rows, documents], one random bit each, until there are as many rows as flips."""
    rng = np.random.default_rng(seed)
    for rows in _chunks(flips, documents):
        packed = rng.integers(0, 256, (rows, -(-documents // 8)), dtype=np.uint8)
        yield np.asarray(np.unpackbits(packed, axis=1, count=documents) * 2.0 - 1.0, dtype=np.float64)


def _flipped(sums: Doubles, documents: int, guarded: bool) -> Doubles:
    """The statistic from sums [rows, 2] of flipped values and of their cubes, the mean square being 1."""
    mean = sums[:, 0] / documents
    variance = np.maximum(1 - mean**2, 0) / max(1, documents - 1)
    third = (sums[:, 1] / documents - 3 * mean + 2 * mean**3) / documents**2
    if guarded:
        third = np.where(third < 0, third * (1 + _LOWER_TAIL / math.sqrt(documents)), third)
    return _skew_corrected(mean, variance, third)


def _power_sums(values: Doubles) -> Doubles:
    """Sums of the values of each row, of their squares and of their cubes, [3, rows]."""
    squares = values * values
    return np.stack((values.sum(axis=1), squares.sum(axis=1), (squares * values).sum(axis=1)))


def _cumulants(sums: Doubles, number: int) -> tuple[Doubles, Doubles, Doubles]:
    """Mean, its variance and its third cumulant, from sums [3, rows] of values, squares and cubes."""
    mean, square, cube = sums / number
    variance = np.maximum(square - mean**2, 0) / max(1, number - 1)
    return mean, variance, (cube - 3 * mean * square + 2 * mean**3) / number**2


# Whether one side of two sets holds a group of its own: a scan over the groups of a tree that sees no sides.
#
# Documents of another kind are like each other, so they stand together in a tree of likeness (average linkage). The
# statistic is the most surprising group: the smallest chance (hypergeometric) that so many or more of its documents are
# of one side. Its null comes from dealing the sides out anew over the same tree, so the p-value is exact where the
# documents of both sides are exchangeable. Our own; a scan statistic in the manner of Kulldorff 1997.

FEWEST = 3
"""Documents of a group that counts; the largest holds half of all."""


def own_group(
    alike: npt.ArrayLike, side: npt.ArrayLike, *, permutations: int = 1000, seed: int = 0
) -> tuple[float, Bools]:
    """The p-value that documents of this `side` [documents] form groups of their own by chance, and the most surprising
    group, by a likeness of at most 1, `alike` [documents, documents]: (1 + the deals that surprise as much) /
    (permutations + 1); 1.0 and an empty group where no group of the tree counts."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    likeness, mine = np.asarray(alike, dtype=np.float64), np.asarray(side, dtype=bool)
    count = len(mine)
    require(likeness.shape == (count, count), f"a likeness of {count} documents by as many is wanted.")
    require(bool(mine.any() and not mine.all()), "both sides need a document.")
    far = np.sqrt(np.maximum(2 - likeness - likeness.T, 0.0))
    np.fill_diagonal(far, 0.0)
    inside = list(np.eye(count, dtype=bool))
    for first, second, *_ in linkage(squareform(far, checks=False), "average"):
        inside.append(inside[int(first)] | inside[int(second)])
    groups = np.array([one for one in inside if FEWEST <= one.sum() <= count // 2])
    if not len(groups):
        return 1.0, np.zeros(count, dtype=bool)
    dealt = np.random.default_rng(seed).permuted(np.broadcast_to(mine, (permutations, count)), axis=1)
    surprise = _surprises(groups, np.concatenate([mine[None], dealt]))
    reached = int(np.count_nonzero(surprise[1:].max(1) >= surprise[0].max() - 1e-12))
    return (1 + reached) / (permutations + 1), groups[int(surprise[0].argmax())]


def _surprises(groups: Bools, sides: Bools) -> Doubles:
    """Of each group [draws, groups] minus the logarithm of the chance of so many or more of the side."""
    from scipy.stats import hypergeom

    sizes, held = np.unique(groups.sum(1), return_inverse=True)
    inside = (sides.astype(np.float64) @ groups.T.astype(np.float64)).round().astype(np.int64)
    numbers = np.tile(np.arange(int(sizes.max()) + 1), (len(sizes), 1))
    # scipy takes an array of one size for a number: each number has its size beside it
    drawn = np.broadcast_to(sizes[:, None], numbers.shape)
    table = -hypergeom.logsf(numbers - 1, sides.shape[1], int(sides[0].sum()), drawn)
    return np.asarray(table[held[None], inside])


DRAWS = 10_000


def randomisation_test(
    values: Sequence[npt.ArrayLike], *, draws: int = DRAWS, seed: int = 0
) -> PermutationTest:
    """The one-sided test that realised alternatives have higher values than those that were not drawn: where the draw
    was fair, any other could have been realised, so the null is every unit's alternative drawn anew.

    `values` holds one array a unit, [alternatives of that unit], the realised one first; at least two each. The
    statistic is Σ_i (v_i0 − mean_k v_ik), in units of its standard deviation over draws. p = (1 + draws that reach
    it) / (1 + draws), exact for any values. TextsError without units or with a value that is not finite,
    ExpressionError for a unit with one alternative.
    """
    require(draws > 0, f"a randomisation test takes at least one draw, found {draws}.")
    rows = [centre_values(row) for row in values]
    check_values([row[0] for row in rows], "a randomisation test")
    unit = math.sqrt(sum(float(np.mean(row**2)) for row in rows))
    if unit == 0:
        return PermutationTest(1.0, 0.0, np.zeros(draws))
    observed = sum(float(row[0]) for row in rows) / unit
    null = np.concatenate(list(_drawn([row / unit for row in rows], draws, seed)))
    return PermutationTest(share_reached(null, np.float64(observed)), observed, null)


def centre_values(alternatives: npt.ArrayLike) -> Doubles:
    """The values of a unit's alternatives less their mean."""
    row = check_values(alternatives, "a randomisation test")
    require(len(row) > 1, "a randomisation test takes at least two alternatives a unit, found one.")
    return np.asarray(row - row.mean())


def realised_effects(values: Sequence[npt.ArrayLike]) -> Doubles:
    """For each unit the realised alternative's value less the mean of those that were not drawn, [units]."""
    rows = [check_values(row, "a randomisation test") for row in values]
    return np.array([row[0] - row[1:].mean() for row in rows], dtype=np.float64)


def chance_of_hits(chances: Sequence[float]) -> Doubles:
    """The law of the number of hits, [units + 1], of independent draws with these chances: Poisson-binomial."""
    found = np.ones(1)
    for chance in chances:
        found = np.append(found, 0.0) * (1 - chance) + np.insert(found, 0, 0.0) * chance
    return np.asarray(found)


def _drawn(rows: Sequence[Doubles], draws: int, seed: int) -> Iterator[Doubles]:
    """The statistic of fresh draws, in pieces; units with as many alternatives are drawn together."""
    rng = np.random.default_rng(seed)
    sizes: dict[int, list[Doubles]] = {}
    for row in rows:
        sizes.setdefault(len(row), []).append(row)
    blocks = [np.stack(some) for _, some in sorted(sizes.items())]
    for number in _chunks(draws, len(rows)):
        total = np.zeros(number)
        for block in blocks:
            chosen = rng.integers(block.shape[1], size=(number, len(block)))
            total += block[np.arange(len(block)), chosen].sum(axis=1)
        yield total


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
        return Sensitivity(_sign_gamma(values, level), _wilcoxon_gamma(values, level), None)
    shift = _two_sample_shift(values, heldout, level, permutations=permutations, seed=seed)
    return Sensitivity(None, None, shift)


def _sign_bound(values: npt.ArrayLike, gamma: float) -> float:
    """The largest p-value of the sign test for values [documents] above 0 at this Γ >= 1: P(Bin(n, Γ / (1 + Γ)) >= k),
    n not 0, k above. TextsError without values or with one not finite, ExpressionError for another Γ."""
    from scipy.special import betainc  # heavy, and only needed once there is something to report

    above, number = _signs(values)
    return float(betainc(above, number - above + 1, _chance(gamma))) if above else 1.0


def _sign_gamma(values: npt.ArrayLike, level: float) -> float | None:
    """The largest Γ >= 1 with `_sign_bound` <= level; None where the sign test does not reject at Γ = 1."""
    from scipy.special import betaincinv

    above, number = _signs(values)
    if _sign_bound(values, 1) > level:
        return None
    chance = float(betaincinv(above, number - above + 1, level))
    return max(1.0, chance / (1 - chance))


def _wilcoxon_bound(values: npt.ArrayLike, gamma: float) -> float:
    """The largest p-value of Wilcoxon's signed-rank test for values above 0 at this Γ >= 1: of the sum of ranks above
    0, equal sizes sharing their average rank, every sign positive with the chance Γ / (1 + Γ). Exact up to 200
    documents (by convolution), above that normal with half a rank taken off. Errors as in `_sign_bound`."""
    return _rank_tail(*_ranks(values), _chance(gamma))


def _wilcoxon_gamma(values: npt.ArrayLike, level: float) -> float | None:
    """The largest Γ >= 1 with `_wilcoxon_bound` <= level, to a millionth of it; None where Γ = 1 does not reject."""
    ranks, reached = _ranks(values)

    def rejects(gamma: float) -> bool:
        return _rank_tail(ranks, reached, _chance(gamma)) <= level

    if not rejects(1):
        return None
    high = 2.0
    while high < _WIDEST and rejects(high):
        high *= 2
    return last_rejected(rejects, high / 2, high, STEPS)


def _two_sample_shift(
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
        reached = float(_welch_corrected(found, every, sizes)[0])
        return share_reached(_welch_corrected(null, every, sizes), reached)

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


AUDITS = 2000
"""Simulated audits a probability is counted on: 0.8 is then known to within 0.02."""
RESAMPLES, PART = 200, 200
"""Resamples of the planted documents, and audits simulated for each, behind an interval."""
MOST = 10_000_000
"""Where 80% would take more documents than this, no number is named."""

BLOCK = 100
"""Audits simulated at once; a block draws from its own generator."""
LARGE = 2000
"""Documents from which on a mean is taken to be normal, and nothing is simulated."""


@dataclass(frozen=True, slots=True, eq=False)
class PlantedValues:
    """The values of documents without training (`noise`, mean 0) and what training adds (`shift`), drawn together if of
    equal length; `heldout` (mean 0) of held-out documents for a two-sample test, None for a sign-flip test. With the
    same `seed` all sizes draw the same documents first."""

    noise: Doubles
    shift: Doubles
    heldout: Doubles | None = None
    level: float = 0.05
    seed: int = 0

    @classmethod
    def of(
        cls, noise: npt.ArrayLike, shift: npt.ArrayLike, heldout: npt.ArrayLike | None = None, **how: Any
    ) -> PlantedValues:
        """From one measured value a document, with `level` and `seed`; TextsError for fewer than two on a side or one
        that is not finite."""
        beside = None if heldout is None else _widened(heldout, "held-out values", centred=True)
        added = _widened(shift, "shift", centred=False)
        return cls(_widened(noise, "noise", centred=True), added, beside, **how)

    @property
    def _paired(self) -> bool:
        return len(self.noise) == len(self.shift)

    def _alike(self, size: int) -> tuple[int, int]:
        """So many documents on each side that the test has."""
        return size, 0 if self.heldout is None else size

    def _resampled(self, rng: np.random.Generator) -> PlantedValues:
        """The same measured on other documents, drawn from these."""
        first = rng.integers(0, len(self.noise), len(self.noise))
        shift = self.shift[first] if self._paired else rng.choice(self.shift, len(self.shift))
        beside = None if self.heldout is None else rng.choice(self.heldout, len(self.heldout))
        return PlantedValues.of(self.noise[first], shift, beside, level=self.level, seed=self.seed)

    def power(self, documents: int, audits: int = AUDITS) -> Estimate:
        """The probability that a sign-flip test rejects on so many documents that were trained on, or a two-sample test
        against as many as `heldout` has. The 95% interval resamples the planted documents."""
        sizes = documents, 0 if self.heldout is None else len(self.heldout)
        rng = np.random.default_rng([self.seed, 1])
        value = self._rejections(sizes, audits)
        drawn = [self._resampled(rng)._rejections(sizes, PART) for _ in range(RESAMPLES)]
        sides = self.noise, self.shift, self.heldout
        tail = tail_share(min(len(side) for side in sides if side is not None))
        low, high = np.quantile(drawn, (tail, 1 - tail))
        # Where every resample says the same, what is left to doubt is the count of simulated audits.
        counted = share_interval(round(value * audits), audits)
        return Estimate(value, min(float(low), counted.low), max(float(high), counted.high))

    def curve(self, sizes: Sequence[int]) -> tuple[tuple[int, float], ...]:
        """Pairs of a number of documents, of each side, and the probability of a rejection there."""
        return tuple((size, self._rejections(self._alike(size))) for size in sizes)

    def needed(self) -> int | None:
        """The fewest documents, of each side, at which the probability of a rejection is at least 0.8; None where more
        than ten million would not do, or training adds nothing."""
        if self.shift.mean() <= 0:
            return None
        return _fewest(lambda size: self._rejections(self._alike(size)) >= 0.8, 1)

    def _rejections(self, sizes: tuple[int, int], audits: int = AUDITS) -> float:
        """The share of simulated audits that reject, with so many suspect and held-out documents (0 for a sign-flip
        test)."""
        documents, controls = sizes
        # No values at all could reach the level; 64 documents have more ways than any level asks for.
        few, beside = min(documents, 64), min(controls, 64)
        if 1 / (math.comb(few + beside, beside) if controls else 2**few) > self.level:
            return 0.0
        if max(sizes) > LARGE:
            return _limit(self, sizes)
        rejected = 0
        for rows in ((start // BLOCK, min(BLOCK, audits - start)) for start in range(0, audits, BLOCK)):
            values = _audits_drawn(self, documents, rows)
            first = _mean_cumulants(values)
            if self.heldout is None:
                critical = _flip_quantile(values, self.level)
            else:
                second = _mean_cumulants(_row_by_row(self.heldout, controls, (self.seed, 4, *rows)))
                critical = _student(satterthwaite(first[1], second[1], sizes), self.level)
                first = first[0] - second[0], first[1] + second[1], first[2] - second[2]
            rejected += int(np.count_nonzero(_skew_corrected(*first) >= critical))
        return rejected / audits


def _fewest(enough: Callable[[int], bool], first: int) -> int | None:
    """The fewest documents, from `first` on, that are enough, where more always are; None where MOST are not."""
    low, high = first - 1, first
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    return low + 1 + bisect_left(range(low + 1, high), True, key=enough)


def auc_power(auc: float, documents: int, controls: int, *, level: float = 0.05) -> float:
    """The probability that a one-sided two-sample test of one value a document rejects, from the AUC of documents.

    Both sides are normal with one spread (binormal), so that they lie d = sqrt(2) * quantile(AUC) standard deviations
    apart; Student's t of n and m documents then has the noncentrality d / sqrt(1/n + 1/m), and the power is the share
    of that noncentral t above the quantile of t at 1 - level. A permutation test of the mean agrees with Student's.
    """
    from scipy.special import nctdtr  # heavy, and only needed once there is something to foresee

    require(0 < auc < 1, f"an AUC lies between 0 and 1, found {auc}.")
    enough = min(documents, controls) >= 2
    require(enough, f"a test takes two documents a side, found {documents} and {controls}.")
    apart = math.sqrt(2) * NormalDist().inv_cdf(auc) / math.sqrt(1 / documents + 1 / controls)
    freedom = documents + controls - 2
    critical = float(_student(freedom, level))
    if freedom > LARGE:
        return NormalDist().cdf(apart - critical)
    if apart > critical + 8:
        return 1.0
    return float(1 - nctdtr(freedom, apart, critical))


def auc_documents(auc: float) -> int | None:
    """The fewest documents on each side at which `auc_power` reaches 0.8; None where ten million would not do."""
    return _fewest(lambda size: auc_power(auc, size, size) >= 0.8, 2)


def _limit(planted: PlantedValues, sizes: tuple[int, int]) -> float:
    """The same for so many documents that means are normal."""
    together = planted.noise + planted.shift if planted._paired else planted.shift
    trained = together.var() + (0.0 if planted._paired else planted.noise.var())
    beside = 0.0 if planted.heldout is None else planted.heldout.var() / sizes[1]
    effect, variance = float(planted.shift.mean()), float(trained / sizes[0] + beside)
    if variance == 0:
        return float(effect > 0)
    normal = NormalDist()
    return normal.cdf(effect / math.sqrt(variance) - normal.inv_cdf(1 - planted.level))


def _audits_drawn(planted: PlantedValues, documents: int, block: tuple[int, int]) -> Doubles:
    """Values of the trained documents of a block of audits, [documents, audits]."""
    if planted._paired:
        return _row_by_row(planted.noise + planted.shift, documents, (planted.seed, 2, *block))
    noise = _row_by_row(planted.noise, documents, (planted.seed, 2, *block))
    return noise + _row_by_row(planted.shift, documents, (planted.seed, 3, *block))


def _row_by_row(values: Doubles, rows: int, key: tuple[int, ...]) -> Doubles:
    """Draws with replacement, [rows, last of the key]: the first rows are the same however many there are."""
    return values[np.random.default_rng(key).integers(0, len(values), (rows, key[-1]))]


def _mean_cumulants(values: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Mean over the first axis, its variance and its third cumulant."""
    number = len(values)
    mean = values.mean(axis=0)
    away = values - mean
    squares = away * away
    variance = squares.sum(axis=0) / (number * max(1, number - 1))
    return mean, variance, (squares * away).sum(axis=0) / number**3


def _flip_quantile(values: Doubles, level: float) -> Doubles:
    """What the statistic of values [documents, audits] must reach in a sign-flip test: Student's quantile, moved by
    their tails, as t and the skewness a of the flipped mean have Cov(a, t) = (kurtosis - 3) / n."""
    number = len(values)
    squares = values**2
    total = squares.sum(axis=0)
    fourth = np.divide((squares**2).sum(axis=0), total**2, out=np.zeros_like(total), where=total > 0)
    together = fourth * (number + 2) / number - 3 / number  # of normal values 0 on average, whatever n is
    t = _student(max(1, number - 1), level)
    return np.asarray(t + t * together * (t**2 / 3 + 1 / 6))


def _student(freedom: npt.ArrayLike, level: float) -> Doubles:
    from scipy.special import stdtrit  # heavy, and only needed once there is something to report

    return np.asarray(stdtrit(freedom, 1 - level))


def _widened(values: npt.ArrayLike, what: str, *, centred: bool) -> Doubles:
    found = check_values(values, f"the {what} of a power analysis", fewest=2)
    away = (found - found.mean()) * math.sqrt(len(found) / (len(found) - 1))
    return np.asarray(away if centred else found.mean() + away)
