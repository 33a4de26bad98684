"""The power of an audit's test: the probability that it rejects, for an effect that was planted and measured.

Planted documents give pairs: `noise` is a document's value where the model was not trained on it, `shift` how
much training on it added.

A simulated audit draws documents with replacement, their noise centred on 0 and the shift added. Both are
spread by sqrt(k / (k - 1)) for k planted documents, since a sample varies less about its own mean than what
it was drawn from.

The statistic of the permutation test is held against Student's t instead of permuting: thousands of tests
become one array. From about 15 documents a side on, rates of rejection agree with those of the permutation
tests to about 0.03; with fewer and a long tail they were up to 0.1 apart.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.statistics.documents import check_values, satterthwaite, share_interval
from pretrace.statistics.permutation import skew_corrected
from pretrace.statistics.roc import tail_share
from pretrace.types import Doubles, Estimate

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
            values = _drawn(self, documents, rows)
            first = _cumulants(values)
            if self.heldout is None:
                critical = _flip_quantile(values, self.level)
            else:
                second = _cumulants(_row_by_row(self.heldout, controls, (self.seed, 4, *rows)))
                critical = _student(satterthwaite(first[1], second[1], sizes), self.level)
                first = first[0] - second[0], first[1] + second[1], first[2] - second[2]
            rejected += int(np.count_nonzero(skew_corrected(*first) >= critical))
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


def _drawn(planted: PlantedValues, documents: int, block: tuple[int, int]) -> Doubles:
    """Values of the trained documents of a block of audits, [documents, audits]."""
    if planted._paired:
        return _row_by_row(planted.noise + planted.shift, documents, (planted.seed, 2, *block))
    noise = _row_by_row(planted.noise, documents, (planted.seed, 2, *block))
    return noise + _row_by_row(planted.shift, documents, (planted.seed, 3, *block))


def _row_by_row(values: Doubles, rows: int, key: tuple[int, ...]) -> Doubles:
    """Draws with replacement, [rows, last of the key]: the first rows are the same however many there are."""
    return values[np.random.default_rng(key).integers(0, len(values), (rows, key[-1]))]


def _cumulants(values: Doubles) -> tuple[Doubles, Doubles, Doubles]:
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
