"""Ranks of one unit among others of its kind: exact tests where the units are exchangeable.

Where nothing sets unit 0 apart, it is as likely as any other to have the largest value, whatever the values' law and
however they depend on each other, as long as all units are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.statistics.documents import checked
from pretrace.types import Doubles

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class JointRank:
    """How unusual a unit is in any of several features: `p` is the rank of its largest deviation among all units,
    `deviations` [features] are its own, and `which` is the feature of the largest."""

    p: float
    deviations: Doubles
    which: int


@dataclass(frozen=True, slots=True)
class LeftTwoOut:
    """The leave-two-out test: the `share` of pairs of other units in which unit 0 is not the largest of the three, and
    the `p` that this share guarantees."""

    share: float
    p: float


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


def leave_two_out(values: Callable[[Triple], npt.ArrayLike], units: int) -> LeftTwoOut:
    """The leave-two-out test that unit 0 has the largest value of `units` (Lei and Sudijono 2024, arXiv 2401.07152).

    `values((0, i, j))` gives the values of the three units [3] after all that is fitted was fitted on the others
    alone. Unit 0 loses the pair {i, j} unless its value is strictly the largest. Were the units exchangeable, the
    probability of a share of lost pairs of at most a is at most s(a) / units (`guaranteed`). TextsError for fewer
    than three units.
    """
    if units < 3:
        raise TextsError(f"leaving two out takes three units or more, found {units}.")
    lost = 0
    for i, j in combinations(range(1, units), 2):
        own, *others = np.asarray(values((0, i, j)), dtype=np.float64).tolist()
        lost += not own > max(others)
    return LeftTwoOut(lost / _pairs(units), guaranteed(lost, units))


def guaranteed(lost: int, units: int) -> float:
    """The p-value of a unit that loses so many pairs of others: s / units, with s the most units that can all lose no
    more than that.

    A triple has at most one winner. So s such units lose together at least twice in each triple among them, and once
    in each triple of two of them and another: s (s - 1) (s - 2) / 3 + s (s - 1) (units - s) / 2 in all, of at most
    s times `lost`. This grows with s, so the largest s is the last that satisfies it.

    >>> guaranteed(0, 20), guaranteed(171, 20)
    (0.05, 1.0)
    """
    most = 1
    while most < units and (most * (3 * units - (most + 1) - 4)) <= 6 * lost:
        most += 1
    return most / units


def _pairs(units: int) -> int:
    return (units - 1) * (units - 2) // 2
