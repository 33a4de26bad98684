"""Each formula against the definition written as loops, on scores with ties and constants."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from net.api import accuracy, allowance, auc, best_threshold, roc_curve, tpr_at_fpr

labelled = st.lists(st.tuples(st.integers(-4, 4).map(float), st.booleans()), min_size=2, max_size=40)
rates = st.sampled_from([0.0, 0.001, 0.05, 0.1, 0.29, 1 / 3, 0.5, 1.0])


def both_classes(pairs):
    scores, members = (list(side) for side in zip(*pairs, strict=True))
    assume(any(members) and not all(members))
    return scores, members


def naive_auc(scores, members):
    positive = [s for s, m in zip(scores, members, strict=True) if m]
    negative = [s for s, m in zip(scores, members, strict=True) if not m]
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return wins / (len(positive) * len(negative))


def naive_points(scores, members):
    """(false positives, true positives, threshold) of every threshold that matters."""
    points = []
    for threshold in [*set(scores), max(scores) + 1]:
        called = [s >= threshold for s in scores]
        false = sum(c and not m for c, m in zip(called, members, strict=True))
        true = sum(c and m for c, m in zip(called, members, strict=True))
        points.append((false, true, threshold))
    return points


def naive_tpr(scores, members, fpr):
    negatives, positives = members.count(False), members.count(True)
    return max(t / positives for f, t, _ in naive_points(scores, members) if f / negatives <= fpr)


@given(labelled)
def test_auc_is_the_share_of_pairs_won(pairs):
    scores, members = both_classes(pairs)
    assert auc(scores, members) == pytest.approx(naive_auc(scores, members), abs=1e-12)


@given(labelled, rates)
def test_tpr_is_the_largest_among_allowed_thresholds(pairs, fpr):
    scores, members = both_classes(pairs)
    assert tpr_at_fpr(scores, members, fpr) == pytest.approx(naive_tpr(scores, members, fpr), abs=1e-12)


@given(labelled)
def test_curve_holds_every_threshold_and_its_area_is_the_auc(pairs):
    scores, members = both_classes(pairs)
    curve = roc_curve(scores, members)
    assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
    assert list(curve.fpr) == sorted(curve.fpr)
    assert list(curve.tpr) == sorted(curve.tpr)
    negatives, positives = members.count(False), members.count(True)
    truth = {(f / negatives, t / positives) for f, t, _ in naive_points(scores, members)}
    assert set(zip(curve.fpr, curve.tpr, strict=True)) <= truth
    assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(auc(scores, members), abs=1e-12)
    # A tie is one straight step: no threshold lies off the curve.
    for f, t in truth:
        on = np.isclose(curve.fpr, f)
        height = np.asarray(curve.tpr)[on] if on.any() else [np.interp(f, curve.fpr, curve.tpr)]
        assert min(height) - 1e-9 <= t <= max(height) + 1e-9


@given(labelled)
def test_best_threshold_has_the_highest_accuracy_and_calls_fewest_members(pairs):
    scores, members = both_classes(pairs)
    reached = {t: accuracy(scores, members, t) for _, _, t in naive_points(scores, members)}
    best = max(reached.values())
    chosen = best_threshold(scores, members)
    assert accuracy(scores, members, chosen) == best
    highest = max(t for t, share in reached.items() if share == best)
    called = [s >= chosen for s in scores]
    assert called == [s >= highest for s in scores]


def test_a_false_positive_rate_that_floats_cannot_hold_is_met_exactly():
    assert allowance(100, 0.29) == 29, "0.29 * 100 is 28.999999999999996"
    assert allowance(30, 0.1) == 3
    assert allowance(19, 0.05) == 0
    assert allowance(20, 0.05) == 1
    assert allowance(10_000, 0.001) == 10
    assert allowance(7, 1.0) == 7


def test_a_long_curve_is_thinned_and_stays_true_at_the_low_end():
    rng = np.random.default_rng(1)
    members = rng.random(200_000) < 0.3
    scores = rng.normal(size=200_000) + members
    curve = roc_curve(scores, members)
    assert 100 < len(curve.fpr) <= 400
    assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(auc(scores, members), abs=5e-4)
    for fpr in (0.0005, 0.001, 0.01, 0.05):
        below = [t for f, t in zip(curve.fpr, curve.tpr, strict=True) if f <= fpr]
        exact = tpr_at_fpr(scores, members, fpr)
        assert max(below) == (pytest.approx(exact, abs=0.006) if fpr == 0.0005 else exact)
    assert sum(0 < f <= 0.01 for f in curve.fpr) > 30


def test_infinite_scores_have_their_place():
    assert auc([float("-inf"), 0.0, float("inf")], [False, False, True]) == 1.0
