"""The rank of collection 0 among all means, what is shown beside it, and the checks that rest on ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pretrace.statistics.ranks import LeftTwoOut, leave_two_out, rank_p
from pretrace.types import Check, Doubles, Estimate, Null
from pretrace.verdicts.collections.gathering import Gathered
from pretrace.verdicts.collections.settings import FEWEST_DOCUMENTS
from pretrace.verdicts.collections.values import Scored
from pretrace.verdicts.outcome import null_histogram
from pretrace.verdicts.record import listed

MOST_WORK = 50_000_000
"""Pairs of controls times documents above which leave-two-out, a fit a pair, is not made."""
STATISTIC = "mean value of the collection, in standard deviations of the controls' means above their mean"


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """The `means` of all collections [units], the suspect one first, and the rank `p` of that. Shown beside it and
    deciding nothing: `effect`, its mean less that of the controls with a prediction interval; `left_two_out`, None
    where there would be too many fits; and `calibrated`, its p under a normal law with the controls' mean and spread,
    None where they do not vary."""

    means: Doubles
    p: float
    effect: Estimate
    standardised: float | None
    null: Null
    left_two_out: LeftTwoOut | None
    calibrated: float | None
    notes: tuple[str, ...] = ()

    @property
    def own(self) -> float:
        """The mean of the suspect collection."""
        return float(self.means[0])

    @property
    def others(self) -> Doubles:
        """The means of the controls."""
        return self.means[1:]

    @property
    def above(self) -> int:
        """How many controls are at least as high as the suspect collection."""
        return int(np.count_nonzero(self.others >= self.own))


def ranked(scored: Scored, level: float) -> Ranked:
    """The rank of collection 0 and what is shown beside it. The means must be finite."""
    means = scored.means(scored.values())
    own, others = float(means[0]), means[1:]
    effect = prediction(own, others)
    spread = float(others.std(ddof=1))
    varied = spread > 1e-12 * max(1.0, float(np.abs(means).max()))
    unit = spread if varied else 1.0
    null = null_histogram(
        (others - others.mean()) / unit,
        float(own - others.mean()) / unit,
        (critical(others, level) - float(others.mean())) / unit,
        STATISTIC,
    )
    pairs = len(others) * (len(others) - 1) // 2
    fits = scored.predictors is not None
    made, notes = None, ()
    if not fits or pairs * len(scored.codes) <= MOST_WORK:
        made = leave_two_out(scored.left_out(), len(means)) if len(means) > 2 else None
    else:
        notes = ("Leave-two-out was not made: so many collections would take too many fits.",)  # type: ignore[assignment]
    above = effect.value / spread if varied else None
    calibrated = NormalDist().cdf(-above) if above is not None else None
    return Ranked(means, rank_p(own, others), effect, above, null, made, calibrated, notes)


def prediction(own: float, others: Doubles) -> Estimate:
    """`own` less the mean of `others` [m], with the 95% interval of what such a difference is for one more of them:
    Student's with m - 1 degrees of freedom, sqrt(1 + 1 / m) times their standard deviation."""
    from scipy.special import stdtrit

    m = len(others)
    away = own - float(others.mean())
    half = float(stdtrit(m - 1, 0.975)) * float(others.std(ddof=1)) * math.sqrt(1 + 1 / m)
    return Estimate(away, away - half, away + half)


def critical(others: Doubles, level: float) -> float:
    """The value above which a mean is ranked within the level among `others` [m]: the k-th highest of them, for the
    largest k with k / (m + 1) at most the level; infinite where there is none."""
    place = math.floor(level * (len(others) + 1) + 1e-9)
    return float(np.sort(others)[-place]) if place else math.inf


def placebo_check(name: str, number: int, found: Ranked, level: float) -> Check:
    """Whether the same rank finds nothing in a model that cannot have seen the collection."""
    title = f"{name}, which cannot have seen the texts, does not rank them as high"
    label = "placebo" if number == 1 else f"placebo {number}"
    figures = {"p": found.p, "effect": found.effect.value}
    words = f"The same test with {name} in place of the model gives p = {found.p:.3g}."
    if found.p > level:
        return Check(label, title, "passed", words, figures=figures)
    words += " So the collection is easier than the others for a model that never read it."
    cure = "Choose control collections that are as easy for such a model, or give reference models."
    return Check(label, title, "failed", words, cure, figures)


def enough_check(scored: Scored, together: Gathered) -> Check:
    """Whether every collection has enough documents that count."""
    counted = scored.counted()
    few = [name for name, count in zip(together.names, counted, strict=True) if count < FEWEST_DOCUMENTS]
    title = "Every collection has enough documents with a score"
    figures = {"fewest": int(counted.min()), "most": int(counted.max())}
    if few:
        words = f"Fewer than {FEWEST_DOCUMENTS} documents could be scored of {listed(few)}."
        cure = "Give longer documents, or leave such collections out before looking at a result."
        return Check("documents", title, "failed", words, cure, figures)
    words = f"Each collection has {counted.min()} to {counted.max()} documents with a score."
    return Check("documents", title, "passed", words, figures=figures)
