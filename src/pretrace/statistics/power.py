"""What an audit would see: the chance that its test rejects, for an effect that was planted and measured.

Planted documents give pairs: `noise` is a document's value where the model was not trained on it, `shift` how
much training on it added. Audits of such documents are simulated (`pretrace.statistics.simulation`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.statistics.intervals import share_interval
from pretrace.statistics.resampling import tail_share
from pretrace.statistics.simulation import Plan, Planted, rejections
from pretrace.types import Estimate

AUDITS = 2000
"""Simulated audits a probability is counted on: 0.8 is then known to within 0.02."""
RESAMPLES, PART = 200, 200
"""Resamples of the planted documents, and audits simulated for each, behind an interval."""
MOST = 10_000_000
"""Where 80% would take more documents than this, no number is named."""


def power(
    noise: npt.ArrayLike,
    shift: npt.ArrayLike,
    documents: int,
    *,
    level: float = 0.05,
    audits: int = AUDITS,
    seed: int = 0,
) -> Estimate:
    """The probability that `sign_flip` rejects at `level` on so many documents that were trained on.

    `noise` and `shift` are one value a planted document. The 95% interval resamples the planted documents: it
    says how well their effect is known. TextsError for fewer than two of either or one that is not finite.
    """
    return _estimate(Planted.of(noise, shift), Plan(documents, 0, level, seed), audits)


def power_two_sample(
    noise: npt.ArrayLike,
    shift: npt.ArrayLike,
    heldout: npt.ArrayLike,
    documents: int,
    *,
    level: float = 0.05,
    seed: int = 0,
) -> Estimate:
    """The probability that `two_sample` rejects for so many documents that were trained on.

    They are held against as many held-out documents as `heldout` has values; otherwise as `power`.
    """
    planted = Planted.of(noise, shift, heldout)
    assert planted.heldout is not None
    return _estimate(planted, Plan(documents, len(planted.heldout), level, seed), AUDITS)


def curve(
    noise: npt.ArrayLike,
    shift: npt.ArrayLike,
    sizes: Sequence[int],
    *,
    heldout: npt.ArrayLike | None = None,
    level: float = 0.05,
    seed: int = 0,
) -> tuple[tuple[int, float], ...]:
    """Pairs of a number of documents and the probability of a rejection there, in the order of `sizes`.

    With `heldout` values the test is `two_sample`, and the number that of the documents on each side.
    TextsError as in `power`.
    """
    planted = Planted.of(noise, shift, heldout)
    return tuple((size, rejections(planted, _alike(planted, size, level, seed), AUDITS)) for size in sizes)


def needed(
    noise: npt.ArrayLike,
    shift: npt.ArrayLike,
    *,
    heldout: npt.ArrayLike | None = None,
    power: float = 0.8,
    level: float = 0.05,
    seed: int = 0,
) -> int | None:
    """The fewest documents at which the probability of a rejection is at least `power`.

    None where no number would do: the planted documents have no effect above 0, or one so small that it
    would take more than ten million. `heldout` as in `curve`, TextsError as in `power`.
    """
    require(0 < power < 1, f"a power lies between 0 and 1, found {power}.")
    planted = Planted.of(noise, shift, heldout)
    if planted.shift.mean() <= 0:
        return None

    def enough(size: int) -> bool:
        return rejections(planted, _alike(planted, size, level, seed), AUDITS) >= power

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _estimate(planted: Planted, plan: Plan, audits: int) -> Estimate:
    require(audits > 0, f"a probability takes at least one simulated audit, found {audits}.")
    value = rejections(planted, plan, audits)
    rng = np.random.default_rng([plan.seed, 1])
    drawn = [rejections(planted.resampled(rng), plan, PART) for _ in range(RESAMPLES)]
    sides = planted.noise, planted.shift, planted.heldout
    tail = tail_share(min(len(side) for side in sides if side is not None))
    low, high = np.quantile(drawn, (tail, 1 - tail))
    # Where every resample says the same, what is left to doubt is the count of simulated audits.
    counted = share_interval(round(value * audits), audits)
    return Estimate(value, min(float(low), counted.low), max(float(high), counted.high))


def _alike(planted: Planted, size: int, level: float, seed: int) -> Plan:
    """So many documents on each side there is."""
    return Plan(size, 0 if planted.heldout is None else size, level, seed)
