"""Tests of a choice that was made by lot: for each unit one alternative out of several was drawn, and is known.

Where the draw was fair, the alternative that was realised could have been any other, whatever the values are and
however units depend on each other. So the null distribution is known: draw every unit's alternative anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.statistics.documents import check_values
from pretrace.statistics.permutation import PermutationTest, chunks, share_reached
from pretrace.types import Doubles

DRAWS = 10_000


def lot_test(values: Sequence[npt.ArrayLike], *, draws: int = DRAWS, seed: int = 0) -> PermutationTest:
    """The one-sided test that realised alternatives have higher values than those that were not drawn.

    `values` holds one array a unit, [alternatives of that unit], the realised one first; at least two each. The
    statistic is Σ_i (v_i0 − mean_k v_ik), in units of its standard deviation over draws. p = (1 + draws that reach
    it) / (1 + draws), exact for any values. TextsError without units or with a value that is not finite,
    ExpressionError for a unit with one alternative.
    """
    require(draws > 0, f"a test by lot takes at least one draw, found {draws}.")
    rows = [centre_values(row) for row in values]
    check_values([row[0] for row in rows], "a test by lot")
    unit = math.sqrt(sum(float(np.mean(row**2)) for row in rows))
    if unit == 0:
        return PermutationTest(1.0, 0.0, np.zeros(draws))
    observed = sum(float(row[0]) for row in rows) / unit
    null = np.concatenate(list(_drawn([row / unit for row in rows], draws, seed)))
    return PermutationTest(share_reached(null, np.float64(observed)), observed, null)


def centre_values(alternatives: npt.ArrayLike) -> Doubles:
    """The values of a unit's alternatives less their mean."""
    row = check_values(alternatives, "a test by lot")
    require(len(row) > 1, "a test by lot takes at least two alternatives a unit, found one.")
    return np.asarray(row - row.mean())


def lot_effects(values: Sequence[npt.ArrayLike]) -> Doubles:
    """For each unit the realised alternative's value less the mean of those that were not drawn, [units]."""
    rows = [check_values(row, "a test by lot") for row in values]
    return np.array([row[0] - row[1:].mean() for row in rows], dtype=np.float64)


def chance_of_hits(chances: Sequence[float]) -> Doubles:
    """The distribution of the number of hits, [units + 1], of independent draws with these chances each: the
    Poisson-binomial law, added up unit by unit (binomial where all chances are equal)."""
    found = np.ones(1)
    for chance in chances:
        require(0 <= chance <= 1, f"a chance lies between 0 and 1, found {chance}.")
        found = np.append(found, 0.0) * (1 - chance) + np.insert(found, 0, 0.0) * chance
    return np.asarray(found)


def _drawn(rows: Sequence[Doubles], draws: int, seed: int) -> Iterator[Doubles]:
    """The statistic of fresh draws, in pieces; units with as many alternatives are drawn together."""
    rng = np.random.default_rng(seed)
    sizes: dict[int, list[Doubles]] = {}
    for row in rows:
        sizes.setdefault(len(row), []).append(row)
    blocks = [np.stack(some) for _, some in sorted(sizes.items())]
    for number in chunks(draws, len(rows)):
        total = np.zeros(number)
        for block in blocks:
            chosen = rng.integers(block.shape[1], size=(number, len(block)))
            total += block[np.arange(len(block)), chosen].sum(axis=1)
        yield total
