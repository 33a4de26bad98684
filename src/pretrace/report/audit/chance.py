"""The average that an audit found, beside those that chance gives: what its first figure shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrace.types import Audit, Doubles, Estimate

_DRAWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """The average that was found and where it would fall by chance: `drawn` are averages after the sides of
    each document (or the documents of both sides) were dealt out anew, and beyond `bound` lie as many of them as
    the level allows."""

    found: Estimate
    drawn: Doubles
    bound: float


def chance(audit: Audit) -> Chance:
    """The average of the audit's documents, or the difference of the two averages, against chance."""
    values, others = audit.values, audit.heldout_values
    rng = np.random.default_rng(0)
    if len(others):
        both, size = np.concatenate([values, others]), len(values)
        shuffled = (rng.permutation(both) for _ in range(_DRAWS))
        drawn = np.array([one[:size].mean() - one[size:].mean() for one in shuffled])
        mean = float(values.mean() - others.mean())
        error = float(np.sqrt(_squared_error(values) + _squared_error(others)))
    else:
        signs = (rng.integers(0, 2, len(values)) * 2.0 - 1 for _ in range(_DRAWS))
        drawn = np.array([float(one @ values) / len(values) for one in signs])
        mean, error = float(values.mean()), float(np.sqrt(_squared_error(values)))
    found = Estimate(mean, mean - 1.96 * error, mean + 1.96 * error)
    stated = audit.answer.effect
    if stated is not None and abs(stated.value - mean) <= 1e-9 + 1e-6 * abs(mean):
        found = stated  # the same figure, with the interval that the test gave
    return Chance(found, drawn, float(np.quantile(drawn, 1 - audit.level)))


def _squared_error(values: Doubles) -> float:
    return float(values.var(ddof=1) / len(values)) if len(values) > 1 else 0.0
