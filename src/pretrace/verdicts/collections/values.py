"""The values of documents and the means of collections, such that every collection enters in the same way.

A rank is exact only where the means are exchangeable, and that needs two things: the collections themselves are, and
what turns texts into means treats all of them alike. So the regression that predicts a document's score from what
other models say of it is fitted, for every collection, on all others: for collection 0 on the controls, and for a
control on collection 0 and the other controls. Swap two collections, and their two means are swapped and no other
changes. Fitting on the controls alone would break this: each control would then be predicted by a fit on one
collection fewer than the suspect one, from which its residuals differ a little more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.statistics.ranks import Triple
from pretrace.statistics.ridge import Ridge, ridge_residuals
from pretrace.types import Doubles


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The `target` score of each document [documents], NaN where it has none, the `predictors` of it
    [documents, k] or None where the score counts as it is, and each document's collection, `codes` [documents], of
    `units` collections."""

    target: Doubles
    predictors: Doubles | None
    codes: npt.NDArray[np.int64]
    units: int

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which documents have all that is needed, [documents]."""
        found = np.isfinite(self.target)
        return found if self.predictors is None else found & np.isfinite(self.predictors).all(axis=1)

    def values(self) -> Doubles:
        """What each document counts with, [documents]: its score, or what is left of it beyond the prediction of a
        fit on all other collections. NaN for a document that cannot be used."""
        good = self.usable
        if self.predictors is None:
            return np.where(good, self.target, np.nan)
        left = np.full(len(good), np.nan)
        left[good] = ridge_residuals(self.target[good], self.predictors[good], self.codes[good])
        return left

    def left_out(self) -> Callable[[Triple], Doubles]:
        """What gives the means of three collections after a fit on all others alone, for `leave_two_out`."""
        known, fitted = self.means(self.values()), self.predictors
        if fitted is None:
            return lambda triple: known[list(triple)]
        good = self.usable
        predictors: Doubles = fitted

        def means(triple: Triple) -> Doubles:
            inside = np.isin(self.codes, triple)
            learnt, asked = good & ~inside, good & inside
            values = np.full(len(good), np.nan)
            fit = Ridge.fitted(self.target[learnt], predictors[learnt])
            values[asked] = self.target[asked] - fit.predict(predictors[asked])
            return np.array([self._mean(values, unit) for unit in triple])

        return means

    def means(self, values: Doubles) -> Doubles:
        """The mean value of each collection's documents, [units], summed without rounding, so that no order of
        documents changes it; NaN for a collection without any."""
        return np.array([self._mean(values, unit) for unit in range(self.units)])

    def counted(self) -> npt.NDArray[np.int64]:
        """How many documents of each collection count, [units]."""
        return np.bincount(self.codes[self.usable], minlength=self.units)

    def _mean(self, values: Doubles, unit: int) -> float:
        some = values[self.codes == unit]
        some = some[np.isfinite(some)]
        return math.fsum(some.tolist()) / len(some) if len(some) else math.nan


def document_means(values: Doubles, documents: Sequence[int], number: int) -> Doubles:
    """The mean over the pieces of each of `number` documents, [number]; pieces without a value are left out, and a
    document of such pieces alone is NaN."""
    sums: list[list[float]] = [[] for _ in range(number)]
    for value, document in zip(values.tolist(), documents, strict=True):
        if math.isfinite(value):
            sums[document].append(value)
    return np.array([math.fsum(some) / len(some) if some else math.nan for some in sums])
