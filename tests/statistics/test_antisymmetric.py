"""Regressions on differences: the same whichever version comes first, and signs that hold their level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

from pretrace.statistics.antisymmetric import _logistic, first_odds, origin_prediction
from pretrace.statistics.signed_ranks import SignedRanks


def rows(number=40, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(number, columns)), rng.permutation(number) % 5, rng


def test_changing_places_turns_the_sign_of_what_is_left_and_nothing_else() -> None:
    x, folds, rng = rows()
    y = x @ np.array([1.0, -2.0, 0.0, 0.5]) + rng.normal(size=40)
    turned = rng.choice([-1.0, 1.0], 40)
    there = y - origin_prediction(y, x, folds)
    back = turned * y - origin_prediction(turned * y, turned[:, None] * x, folds)
    np.testing.assert_allclose(back, turned * there, atol=1e-9)


def test_what_predictors_say_is_taken_off() -> None:
    x, folds, rng = rows(200)
    y = x @ np.array([1.0, -2.0, 0.0, 0.5]) + 0.1 * rng.normal(size=200)
    left = y - origin_prediction(y, x, folds)
    assert left.std() < 0.12
    assert (origin_prediction(y, x[:, :0], folds) == 0).all()


def test_the_logistic_fit_is_the_minimum_of_its_loss() -> None:
    x, _, _ = rows(30, 3)

    def loss(weights):
        return np.logaddexp(0, -x @ weights).sum() + 0.5 * weights @ weights

    np.testing.assert_allclose(_logistic(x, 1.0), minimize(loss, np.zeros(3), tol=1e-12).x, atol=1e-3)


def test_odds_follow_what_tells_the_versions_apart_and_are_even_without() -> None:
    x, folds, rng = rows(200)
    told = x * np.where(rng.random(200) < 1 / (1 + np.exp(-3 * x[:, 0])), 1.0, -1.0)[:, None]
    assert np.corrcoef(first_odds(told, folds), told[:, 0])[0, 1] > 0.9
    assert np.abs(first_odds(x, folds)).mean() < 0.3
    assert (first_odds(x[:, :0], folds) == 0).all()


@pytest.mark.parametrize("leaning", [0.0, 1.0])
def test_signs_that_texts_predict_do_not_make_the_test_reject(leaning: float) -> None:
    """Published versions are told by a feature that the score follows: raw signs reject, corrected ones hardly."""
    runs, rejected, raw = 30, 0, 0
    for seed in range(runs):
        x, folds, rng = rows(80, 3, seed)
        first = np.where(rng.random(80) < 1 / (1 + np.exp(-leaning * x[:, 0])), 1.0, -1.0)
        x, y = first[:, None] * x, first * (leaning * x[:, 0] + rng.normal(size=80))
        left = y - origin_prediction(y, x, folds)
        q = 1 / (1 + np.exp(-np.sign(left) * first_odds(x, folds, seed=seed)))
        rejected += SignedRanks.of(left, q, draws=199, seed=seed).p() <= 0.05
        raw += SignedRanks.of(y, np.full(80, 0.5), draws=199, seed=seed).p() <= 0.05
    assert rejected <= binom.ppf(0.999, runs, 0.08)
    assert (raw > 0.5 * runs) == (leaning > 0)
