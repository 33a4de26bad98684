"""Ridge regression against the formula, against scikit-learn, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Known

from pretrace.errors import TextsError
from pretrace.statistics.ridge import PENALTIES, Ridge, residuals_inside, ridge_residuals


def drawn(n=40, k=3, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, k)) * [1, 20, 0.01][:k] + [5, -3, 0][:k]
    return x @ np.array([1.0, -0.1, 30.0][:k]) + rng.normal(size=n) * noise, x


def naive(y, x):
    """The weights by the formula, for the penalty with the smallest error of generalised cross-validation."""
    n = len(y)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    found = []
    for penalty in PENALTIES:
        inverse = np.linalg.inv(z.T @ z + penalty * n * np.eye(z.shape[1]))
        hat = z @ inverse @ z.T + 1 / n
        error = ((y - hat @ y) ** 2).mean() / (1 - np.trace(hat) / n) ** 2
        found.append((error, penalty))
    return min(found)[1]


def test_the_fit_is_the_formula_and_that_of_scikit_learn():
    y, x = drawn(noise=3.0)
    fit = Ridge.fitted(y, x)
    assert fit.penalty == naive(y, x)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    known = Known(alpha=fit.penalty * len(y)).fit(z, y)
    assert fit.weights == pytest.approx(known.coef_, abs=1e-9)
    assert fit.predict(x) == pytest.approx(known.predict(z), abs=1e-9)


def test_residuals_are_of_fits_on_the_other_folds():
    y, x = drawn(noise=1.0)
    folds = np.arange(40) % 7
    expected = np.empty(40)
    for fold in range(7):
        rows = [i for i in range(40) if i % 7 != fold]
        for i in range(fold, 40, 7):
            expected[i] = y[i] - Ridge.fitted(y[rows], x[rows]).predict(x[i : i + 1])[0]
    assert ridge_residuals(y, x, folds) == pytest.approx(expected, abs=1e-12)


def test_a_fold_never_enters_its_own_fit():
    y, x = drawn()
    folds = np.arange(40) // 10
    before = ridge_residuals(y, x, folds)
    raised = y + np.where(folds == 2, 7.0, 0.0)
    assert ridge_residuals(raised, x, folds)[folds == 2] == pytest.approx(before[folds == 2] + 7.0)


def test_the_order_of_rows_changes_no_bit():
    y, x = drawn(60, noise=2.0)
    folds = np.arange(60) % 6
    order = np.random.default_rng(1).permutation(60)
    moved = ridge_residuals(y[order], x[order], 5 - folds[order])
    assert np.array_equal(moved, ridge_residuals(y, x, folds)[order])


def test_what_predicts_well_leaves_only_noise_and_what_does_not_leaves_all():
    y, x = drawn(200, noise=0.01)
    folds = np.arange(200) % 10
    assert ridge_residuals(y, x, folds).std() < 0.02
    noise = np.random.default_rng(3).normal(size=200)
    assert ridge_residuals(noise, x, folds).std() == pytest.approx(noise.std(), rel=0.1)


def test_a_constant_predictor_says_nothing():
    y, x = drawn()
    more = np.column_stack([x, np.full(40, 0.1)])
    assert Ridge.fitted(y, more).predict(more) == pytest.approx(Ridge.fitted(y, x).predict(x))
    other = more + np.array([0, 0, 0, 9.0])
    assert Ridge.fitted(y, more).predict(other) == pytest.approx(Ridge.fitted(y, x).predict(x))


def test_what_cannot_be_fitted_is_refused():
    y, x = drawn()
    with pytest.raises(TextsError, match="1 of 40 with NaN"):
        ridge_residuals(np.where(np.arange(40) == 3, np.nan, y), x, np.zeros(40))
    with pytest.raises(TextsError, match="3 rows or more, found 0"):
        ridge_residuals(y, x, np.zeros(40))
    with pytest.raises(TextsError, match="a fold for each"):
        ridge_residuals(y, x, np.zeros(39))
    with pytest.raises(TextsError, match="shape"):
        Ridge.fitted(y, x[:, :0])


def test_many_windows_at_once_are_fitted_as_each_alone():
    y, x = drawn(60)
    x = np.column_stack([x, np.full(60, 7.0)])  # what is constant says nothing
    spans = [(0, 9), (20, 31), (50, 60)]
    for (start, end), found in zip(spans, residuals_inside(y, x, spans), strict=True):
        outside = np.r_[0:start, end:60]
        known = y[start:end] - Ridge.fitted(y[outside], x[outside]).predict(x[start:end])
        np.testing.assert_allclose(found, known, atol=1e-9)
    with pytest.raises(TextsError, match="3 rows or more"):
        residuals_inside(y, x, [(0, 58)])
