"""The calibration: outliers and scales of the training half, the layer's slope and where it leads."""

import math

import numpy as np
import pytest
from net.api import DualClassifier, ExpressionError, LinearLayer, Normaliser, gradient, outlier_share


def problem(seed, n=80, k=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)), (rng.random(n) < 0.4).astype(np.float64)


def test_the_papers_outlier_shares_between_and_beyond_its_sizes():
    for parameters, share in ((410e6, 0.2), (1e9, 0.15), (1.4e9, 0.1), (2.8e9, 0.05), (6.9e9, 0.01)):
        assert outlier_share(int(parameters)) == pytest.approx(share)
    assert outlier_share(int(math.sqrt(1e9 * 1.4e9))) == pytest.approx(0.125)
    assert outlier_share(135_000_000) == outlier_share(1) == 0.2
    assert outlier_share(70_000_000_000) == pytest.approx(0.01)
    with pytest.raises(ExpressionError, match="at least one parameter"):
        outlier_share(0)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.9])
def test_the_normaliser_equals_its_loop(share):
    rng = np.random.default_rng(1)
    train, test = rng.gamma(1.0, 3.0, (61, 3)), rng.gamma(1.0, 4.0, (50, 3))
    normaliser = Normaliser.learn(train, outliers=share)
    for column in range(3):
        values = sorted(train[:, column].tolist())
        cut = int(61 * share / 2)
        kept = values[cut : 61 - cut]
        mean = sum(kept) / len(kept)
        tamed = [v if kept[0] <= v <= kept[-1] else mean for v in train[:, column].tolist()]
        centre = sum(tamed) / 61
        spread = math.sqrt(sum((v - centre) ** 2 for v in tamed) / 61)
        assert sum(a != b for a, b in zip(tamed, train[:, column].tolist(), strict=True)) == 2 * cut
        for rows in (train, test):
            values = (v if kept[0] <= v <= kept[-1] else mean for v in rows[:, column].tolist())
            wanted = [(v - centre) / spread for v in values]
            assert normaliser(rows)[:, column] == pytest.approx(wanted)


def test_features_that_do_not_vary_or_run_away_stay_finite():
    train = np.column_stack([np.full(20, 0.1), np.append(np.zeros(19), -1e304), np.arange(20.0)])
    for share in (0.0, 0.2):
        normaliser = Normaliser.learn(train, outliers=share)
        assert np.isfinite(normaliser(train)).all()
        assert np.isfinite(normaliser(np.full((2, 3), -1e306))).all()
        assert normaliser(train)[:, 0] == pytest.approx(np.zeros(20), abs=1e-12)


def loss(values, inputs, targets):
    """The cross-entropy, row by row."""
    weights = [1 / (1 + math.exp(-v)) for v in values[:-1]]
    total = 0.0
    for row, target in zip(inputs.tolist(), targets.tolist(), strict=True):
        p = 1 / (1 + math.exp(-(sum(w * x for w, x in zip(weights, row, strict=True)) + values[-1])))
        total -= math.log(p if target else 1 - p) / len(targets)
    return total


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_the_slope_of_the_loss(seed):
    inputs, targets = problem(seed)
    values = np.random.default_rng(seed).normal(0, 2, 5)
    for step, slope in zip(1e-5 * np.eye(5), gradient(values, inputs, targets), strict=True):
        sides = (loss(values + sign * step, inputs, targets) for sign in (1, -1))
        assert slope == pytest.approx(next(sides) / 2e-5 - next(sides) / 2e-5, abs=1e-8)


def test_it_learns_by_adam():
    inputs, targets = problem(4)
    values, first, second = [0.0] * 5, [0.0] * 5, [0.0] * 5
    for step in range(1, 31):
        slope = gradient(np.array(values), inputs, targets)
        for i in range(5):
            first[i] = 0.9 * first[i] + 0.1 * slope[i]
            second[i] = 0.999 * second[i] + 0.001 * slope[i] ** 2
            fair = first[i] / (1 - 0.9**step), second[i] / (1 - 0.999**step)
            values[i] -= 0.01 * fair[0] / (math.sqrt(fair[1]) + 1e-8)
    layer = LinearLayer.fit(inputs, targets > 0, epochs=30)
    wanted = [1 / (1 + math.exp(-v)) for v in values[:4]]
    assert layer.weights == pytest.approx(wanted)
    assert layer.bias == pytest.approx(values[4])


def test_the_dual_classifier_takes_scores_that_are_higher_for_members():
    rng = np.random.default_rng(2)
    heldout = np.arange(600) >= 300
    features = rng.normal(size=(600, 3)) + np.where(heldout, 0.0, 1.0)[:, None]
    said = np.full(600, 0.5)
    dual = DualClassifier.fit(features, said, heldout, outliers=0.1)
    combined, text = dual.judge(features, said)
    assert combined[heldout].mean() > combined[~heldout].mean() + 0.2
    assert text == pytest.approx(np.full(600, 0.5), abs=0.05)
    assert dual.text.weights.shape == (1,)
    assert dual.combined.weights.shape == (4,)
