"""Regressions on differences between two versions that do not depend on which version is called the first.

A pair enters as a difference x_i = x(first) - x(second), so changing places turns its sign. A least-squares fit
through the origin rests on sums of x_i x_i' and x_i y_i, which stay the same when any pairs change places. What it
leaves of y_i then turns its sign with the pair, and its size stays. A fit with an intercept would not have this.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pretrace.types import Doubles

Numbers = npt.NDArray[np.int64]
PENALTIES = (np.inf, 1.0, 0.1, 0.01)
"""Penalties on squared weights that are tried, in units of the number of rows; the first says nothing at all."""
SHRINKING = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
"""The same for the regression on values."""
INNER = 3
_ROUNDS = 30


def origin_prediction(target: Doubles, predictors: Doubles, folds: Numbers) -> Doubles:
    """What a ridge regression through the origin on the rows of the other folds predicts of `target` [n] from
    `predictors` [n, k]; zeros where there are none, float64 [n].

    The penalty has the smallest error by generalised cross-validation (Golub, Heath and Wahba 1979) on the rows that
    are learnt from; it too stays the same when pairs change places.
    """
    found = np.zeros(len(target))
    if not predictors.shape[1]:
        return found
    for mine in _parts(folds):
        scale = _scales(predictors[~mine])
        found[mine] = predictors[mine] / scale @ _ridge(predictors[~mine] / scale, target[~mine])
    return found


def first_odds(differences: Doubles, folds: Numbers, *, seed: int = 0) -> Doubles:
    """The log-odds that the first version of each pair is the first, from differences [n, k], float64 [n].

    A logistic regression without intercept (for the pair the other way round it gives the same with the sign turned),
    learnt on the rows of the other folds. Its penalty is the one with the smallest log-loss by cross-validation within
    those rows; where nothing predicts better than a coin, that is the one under which all log-odds are 0.
    """
    found = np.zeros(len(differences))
    if not differences.shape[1]:
        return found
    for mine in _parts(folds):
        x = differences[~mine]
        scale = _scales(x)
        x = x / scale
        found[mine] = differences[mine] / scale @ _logistic(x, _penalty(x, seed) * len(x))
    return found


def _parts(folds: Numbers) -> Iterator[npt.NDArray[np.bool_]]:
    for one in np.unique(folds):
        yield folds == one


def _scales(rows: Doubles) -> Doubles:
    """The root of the mean square of each column, 1 for one that is 0: not centred, so that it keeps the symmetry."""
    found = np.sqrt((rows**2).mean(axis=0))
    return np.where(found > 0, found, 1.0)


def _ridge(rows: Doubles, target: Doubles) -> Doubles:
    """Weights through the origin, with the penalty that generalised cross-validation chooses; zeros are one choice."""
    values, vectors = np.linalg.eigh(rows.T @ rows)
    along, number = vectors.T @ (rows.T @ target), len(rows)
    best, smallest = np.zeros(rows.shape[1]), float((target**2).sum()) / number**2
    for penalty in SHRINKING:
        shrunk = values.clip(min=0.0) + penalty * number
        weights = vectors @ (along / shrunk)
        free = number - float((values.clip(min=0.0) / shrunk).sum())
        error = float(((target - rows @ weights) ** 2).sum()) / free**2
        if free > 1 and error < smallest:
            best, smallest = weights, error
    return best


def _penalty(rows: Doubles, seed: int) -> float:
    """The penalty whose fits lose least on rows they did not see."""
    folds = np.random.default_rng(seed).permutation(len(rows)) % min(INNER, len(rows))
    losses = dict.fromkeys(PENALTIES, 0.0)
    for mine in _parts(folds):
        for penalty in PENALTIES:
            weights = _logistic(rows[~mine], penalty * (len(rows) - int(mine.sum())))
            losses[penalty] += float(np.logaddexp(0, -rows[mine] @ weights).sum())
    return min(PENALTIES, key=lambda penalty: losses[penalty])


def _logistic(rows: Doubles, penalty: float) -> Doubles:
    """Weights w with the smallest sum of log(1 + exp(-x w)) plus penalty / 2 times w w, by Newton's method."""
    weights = np.zeros(rows.shape[1])
    if not len(rows) or np.isinf(penalty):
        return weights
    loss = _loss(rows, weights, penalty)
    for _ in range(_ROUNDS):
        missed = 1 / (1 + np.exp(np.clip(rows @ weights, -500, 500)))
        slope = rows.T @ missed - penalty * weights
        bend = (rows * (missed * (1 - missed))[:, None]).T @ rows + penalty * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        before, size = loss, 1.0
        while (loss := _loss(rows, weights + size * step, penalty)) > before and size > 1e-4:
            size /= 2
        weights = weights + size * step
        if before - loss < 1e-8 * max(1.0, before):
            break
    return weights


def _loss(rows: Doubles, weights: Doubles, penalty: float) -> float:
    return float(np.logaddexp(0, -rows @ weights).sum() + penalty / 2 * (weights @ weights))
