"""What other numbers predict of a value, by ridge regression, and what is left of the value beyond that.

The penalty is chosen by generalised cross-validation (Golub, Heath and Wahba 1979) on the rows that are fitted alone.
Rows are put in the order of their values before anything is summed, so the same rows in another order give the same
fit to the last bit: a rank of units that are treated alike must not depend on which of them comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


def residuals_inside(
    target: npt.ArrayLike, predictors: npt.ArrayLike, spans: Sequence[tuple[int, int]]
) -> list[Doubles]:
    """For each span of rows [start, end): what is left of `target` there after a fit on the rows outside it.

    The same fits as `Ridge.fitted` makes, up to rounding, all spans at once from sums of products. TextsError for a
    span with fewer than 3 rows outside.
    """
    y, x = _checked(target, predictors)
    starts, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    rows = np.column_stack([np.ones(len(y)), x - x.mean(axis=0), y - y.mean()])
    sums = np.concatenate(
        [np.zeros((1, *2 * rows.shape[1:])), np.cumsum(rows[:, :, None] * rows[:, None], axis=0)]
    )
    outside = sums[-1] - (sums[ends] - sums[starts])
    number, means = outside[:, 0, 0], outside[:, 0, 1:] / outside[:, 0, :1]
    if (number < FEWEST).any():
        raise TextsError(f"a regression takes {FEWEST} rows or more: give more documents.")
    products = outside[:, 1:, 1:] - number[:, None, None] * means[:, :, None] * means[:, None, :]
    k = x.shape[1]
    scales = np.sqrt(np.einsum("wii->wi", products[:, :k, :k]).clip(min=0.0) / number[:, None])
    whole = x.std(axis=0) + np.abs(x.mean(axis=0))
    scales = np.where(scales > 1e-9 * np.maximum(1, whole), scales, np.inf)
    square = products[:, :k, :k] / (scales[:, :, None] * scales[:, None, :])
    values, vectors = np.linalg.eigh(square)
    values = values.clip(min=0.0)
    along = np.einsum("wij,wi->wj", vectors, products[:, :k, k] / scales)
    chosen, _ = _best(values, along, products[:, k, k], number)
    weights = np.einsum("wij,wj->wi", vectors, chosen) / scales
    return [
        np.asarray(rows[start:end, -1] - means[i, k] - (rows[start:end, 1:-1] - means[i, :k]) @ weights[i])
        for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
    ]


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
    values, vectors = np.linalg.eigh(x.T @ x)
    along = (vectors.T @ (x.T @ y))[None]
    chosen, penalty = _best(values.clip(min=0.0)[None], along, np.array([(y**2).sum()]), np.array([len(y)]))
    return np.asarray(vectors @ chosen[0]), float(penalty[0])


def _best(
    values: Doubles, along: Doubles, squares: Doubles, number: npt.NDArray[Any]
) -> tuple[Doubles, Doubles]:
    """For each fit, the weights along the directions of the predictors [fits, k] and the penalty, that whose error is
    smallest: `values` [fits, k] are the squares along each direction, `along` [fits, k] its products with the target,
    `squares` [fits] those of the target, and `number` [fits] the rows."""
    # all penalties at once: [fits, penalties, k]
    values, along, rows = values[:, None], along[:, None], number[:, None].astype(np.float64)
    shrunk = 1 / (values + PENALTIES[::-1, None] * rows[:, :, None])
    spent = 1 + (values * shrunk).sum(axis=2)  # the intercept is one
    rest = squares[:, None] - (along**2 * shrunk * (2 - values * shrunk)).sum(axis=2)
    free = np.where(spent < rows, rows - spent, np.nan)
    error = np.where(np.isnan(free), np.inf, rest.clip(min=0.0) / free**2)
    best = error.argmin(axis=1)  # of equal ones the largest penalty
    chosen = along[:, 0] * shrunk[np.arange(len(best)), best]
    return np.asarray(chosen), PENALTIES[::-1][best]
