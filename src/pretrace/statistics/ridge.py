"""What other numbers predict of a value, by ridge regression, and what is left of the value beyond that.

The penalty is chosen by generalised cross-validation (Golub, Heath and Wahba 1979) on the rows that are fitted alone.
Rows are put in the order of their values before anything is summed, so the same rows in another order give the same
fit to the last bit: a rank of units that are treated alike must not depend on which of them comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.types import Doubles

PENALTIES: Doubles = np.logspace(-6, 2, 33)
"""The penalties that are tried, in units of the number of rows; predictors have a standard deviation of 1."""
FEWEST = 3
"""Rows below which nothing is fitted."""


@dataclass(frozen=True, slots=True, eq=False)
class Ridge:
    """A fit: `means` and `scales` [predictors] of the rows it learnt from, `weights` [predictors] of the standardised
    predictors, the `intercept`, and the `penalty` in units of the number of rows."""

    means: Doubles
    scales: Doubles
    weights: Doubles
    intercept: float
    penalty: float

    @classmethod
    def fitted(cls, target: npt.ArrayLike, predictors: npt.ArrayLike) -> Ridge:
        """The fit of `target` [n] on `predictors` [n, k]; TextsError for fewer than 3 rows, or one that is not
        finite."""
        y, x = _checked(target, predictors)
        if len(y) < FEWEST:
            raise TextsError(
                f"a regression takes {FEWEST} rows or more, found {len(y)}: give more documents."
            )
        order = np.lexsort((*x.T, y))
        y, x = y[order], x[order]
        means, scales = x.mean(axis=0), x.std(axis=0)
        # what is constant up to rounding says nothing
        scales = np.where(scales > 1e-12 * np.maximum(1, np.abs(means)), scales, np.inf)
        weights, penalty = _weights((x - means) / scales, y - y.mean())
        return cls(means, scales, weights, float(y.mean()), penalty)

    def predict(self, predictors: npt.ArrayLike) -> Doubles:
        """The prediction for each row of `predictors` [n, k], each row by itself."""
        x = (np.asarray(predictors, dtype=np.float64) - self.means) / self.scales
        return np.asarray(self.intercept + (x * self.weights).sum(axis=1))


def ridge_residuals(target: npt.ArrayLike, predictors: npt.ArrayLike, folds: npt.ArrayLike) -> Doubles:
    """`target` [n] less what a fit on the rows of all other folds predicts of it from `predictors` [n, k]; [n].

    `folds` [n] are whole numbers. Rows with NaN are the caller's to leave out: TextsError for one, and where all
    other folds together have fewer than 3 rows.
    """
    y, x = _checked(target, predictors)
    fold = np.asarray(folds)
    if fold.shape != y.shape:
        raise TextsError(f"wanted a fold for each of {len(y)} rows, found an array of shape {fold.shape}.")
    left = np.empty(len(y))
    for one in np.unique(fold):
        mine = fold == one
        left[mine] = y[mine] - Ridge.fitted(y[~mine], x[~mine]).predict(x[mine])
    return left


def _checked(target: npt.ArrayLike, predictors: npt.ArrayLike) -> tuple[Doubles, Doubles]:
    y, x = np.asarray(target, dtype=np.float64), np.asarray(predictors, dtype=np.float64)
    if y.ndim != 1 or x.ndim != 2 or len(y) != len(x) or not x.shape[1]:
        raise TextsError(
            f"wanted n values and predictors of shape [n, k] for a regression, found {y.shape}, {x.shape}."
        )
    odd = int(np.count_nonzero(~(np.isfinite(y) & np.isfinite(x).all(axis=1))))
    if odd:
        raise TextsError(f"wanted finite rows for a regression, found {odd:,} of {len(y):,} with NaN.")
    return y, x


def _weights(x: Doubles, y: Doubles) -> tuple[Doubles, float]:
    """The weights with the penalty that has the smallest error by generalised cross-validation, for centred rows."""
    number = len(y)
    values, vectors = np.linalg.eigh(x.T @ x)
    values = values.clip(min=0.0)
    along = vectors.T @ (x.T @ y)
    # in the directions of the predictors all penalties at once: [penalties, k]
    shrunk = 1 / (values + PENALTIES[::-1, None] * number)
    spent = 1 + (values * shrunk).sum(axis=1)  # the intercept is one
    rest = (y**2).sum() - (along**2 * shrunk * (2 - values * shrunk)).sum(axis=1)
    free = np.where(spent < number, number - spent, np.nan)
    error = np.where(np.isnan(free), np.inf, rest.clip(min=0.0) / free**2)
    best = int(error.argmin())  # of equal ones the largest penalty
    return np.asarray(vectors @ (along * shrunk[best])), float(PENALTIES[::-1][best])
