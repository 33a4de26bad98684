"""Ranks of one unit among others of its kind: exact tests where the units are exchangeable.

Where nothing sets unit 0 apart, it is as likely as any other to have the largest value, whatever the values' law and
however they depend on each other, as long as all units are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.statistics.documents import checked
from pretrace.types import Doubles

FEWEST = 3
"""Values below which nothing is said of their law."""


@dataclass(frozen=True, slots=True, eq=False)
class JointRank:
    """How unusual a unit is in any of several features: `p` is the rank of its largest deviation among all units,
    `deviations` [features] are its own, and `which` is the feature of the largest."""

    p: float
    deviations: Doubles
    which: int


def rank_p(value: float, others: npt.ArrayLike) -> float:
    """(1 + how many of `others` are at least `value`) / (1 + how many there are).

    At or below each level with at most that probability where all are exchangeable; ties count against a rejection.
    TextsError without others, or with a value that is not finite.
    """
    found = checked(others, "a rank")
    checked([value], "a rank")
    return (1 + int(np.count_nonzero(found >= value))) / (1 + len(found))


def fewest_others(level: float) -> int:
    """How many others a rank takes to be able to reach the level: 19 for 5%.

    >>> fewest_others(0.05), fewest_others(0.01), fewest_others(0.3)
    (19, 99, 3)
    """
    require(0 < level < 1, f"a test takes a level between 0 and 1, found {level}.")
    return int(np.ceil(1 / level - 1e-9)) - 1


def joint_extremeness(features: npt.ArrayLike, unit: int = 0) -> JointRank:
    """The rank of a unit among all in how far it lies from the middle in any feature; `features` is [units, k].

    A deviation is the distance from the median of all units, in units of their median absolute deviation (infinite
    where that is 0 and the unit is not at the median). A unit's extremeness is its largest deviation over the
    features. All units enter alike, so p is exact where they are exchangeable, and one level covers all features.
    TextsError for a value that is not finite, or fewer than two units.
    """
    table = np.asarray(features, dtype=np.float64)
    if table.ndim != 2 or len(table) < 2 or not table.shape[1] or not np.isfinite(table).all():
        raise TextsError(
            f"wanted finite features of two units or more, found an array of shape {table.shape}."
        )
    away = np.abs(table - np.median(table, axis=0))
    spread = np.median(away, axis=0)
    beyond = np.where(away > 0, np.inf, 0.0)
    deviations = np.divide(away, spread, out=beyond, where=spread > 0)
    largest = deviations.max(axis=1)
    at_least = int(np.count_nonzero(largest >= largest[unit]))
    return JointRank(at_least / len(table), deviations[unit], int(deviations[unit].argmax()))


def stands_out(value: float, own: Doubles, parts: Sequence[Doubles]) -> float:
    """The one-sided p of `value` against the mean of `own` [m], by Student's t for one more of them.

    The standard deviation is pooled within `parts`, each of which has a mean of its own. 1 with fewer than three of
    `own`, or fewer than three degrees of freedom: nothing can be said.
    """
    from scipy.special import stdtr

    several = [part for part in parts if len(part) > 1]
    free = sum(len(part) - 1 for part in several)
    if len(own) < FEWEST or free < FEWEST:
        return 1.0
    variance = sum(float(((part - part.mean()) ** 2).sum()) for part in several) / free
    away = value - float(own.mean())
    if variance <= 0:
        return 0.0 if away > 0 else 1.0
    return float(stdtr(free, -away / np.sqrt(variance * (1 + 1 / len(own)))))
