"""The bootstrap against a slow one, and its promise: 95% intervals that hold the truth 95% of the time."""

from math import erf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from net.api import RankedScores, accuracy, auc, group_bootstrap, roc, tail_share, tpr_at_fpr


def documents(rng, *, docs, pieces, shift, shared):
    """A normal score of members and non-members, `shared` of its variance common to a document."""
    group = np.repeat(np.arange(2 * docs), pieces)
    members = group < docs
    noise = sqrt(shared) * rng.normal(size=2 * docs)[group] + sqrt(1 - shared) * rng.normal(size=len(group))
    return (shift * members + noise)[:, None], members, [f"d{g}" for g in group]


@pytest.mark.parametrize(
    ("docs", "pieces", "shared", "least"), [(40, 1, 0, 0.90), (20, 6, 0.5, 0.90), (6, 6, 0.5, 0.88)]
)
def test_intervals_hold_the_truth(docs, pieces, shared, least):
    shift, held = 0.8, 0
    truth = (1 + erf(shift / 2)) / 2  # AUC of two unit normals that far apart
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores, members, groups = documents(rng, docs=docs, pieces=pieces, shift=shift, shared=shared)
        interval = group_bootstrap(scores.T, members, groups=groups, seed=seed, resamples=200).auc.estimate(0)
        held += interval.low <= truth <= interval.high
    assert least <= held / 200 <= 0.99


weighted = st.lists(
    st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 3)), min_size=1, max_size=25
).map(lambda rows: [*rows, (0, True, 1), (0, False, 1)])


@given(weighted, st.sampled_from([0.0, 0.05, 0.2, 0.5]))
def test_a_weight_is_a_repeated_text(rows, fpr):
    scores = np.array([float(score) for score, _, _ in rows])
    members = np.array([member for _, member, _ in rows])
    weights = np.array([weight for _, _, weight in rows])
    fast = RankedScores.of(scores, members).figures(weights[None].astype(np.float32), (fpr,))[0]
    again, labels = np.repeat(scores, weights), np.repeat(members, weights)
    assert fast == pytest.approx((auc(again, labels), tpr_at_fpr(again, labels, fpr)), abs=1e-12)


def test_values_are_the_figures_of_the_texts_themselves():
    rng = np.random.default_rng(2)
    scores, members, groups = documents(rng, docs=1500, pieces=3, shift=1.0, shared=0.3)
    scores = np.column_stack((scores, np.round(scores), -scores))
    tested = rng.random(len(members)) < 0.7
    thresholds = np.array([0.2, 1.0, 0.0])
    calls = thresholds, tested
    found = group_bootstrap(scores.T, members, groups=groups, calls=calls, resamples=50, seed=1)
    for k in range(3):
        assert found.auc.value[k] == pytest.approx(auc(scores[:, k], members))
        assert found.tpr.value[k] == pytest.approx(tpr_at_fpr(scores[:, k], members, 0.05))
        wanted = accuracy(scores[tested, k], members[tested], thresholds[k])
        assert found.accuracy.value[k] == pytest.approx(wanted)
    assert found.low_tpr is None
    # The mirror image loses what the score wins, resample by resample: the resamples are the same ones.
    assert found.auc.drawn[:, 0] + found.auc.drawn[:, 2] == pytest.approx(1.0)
    assert found.auc.drawn.shape == found.accuracy.drawn.shape == (50, 3)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=2, max_size=12), st.integers(0, 9)
)
def test_every_resample_has_both_classes_however_groups_are_made(rows, seed):
    members = np.array([*(member for _, member in rows), True, False])
    groups = [*(group for group, _ in rows), "e", "f"]
    scores = np.arange(len(members), dtype=float)[:, None]
    tested = np.zeros(len(members), dtype=bool)
    tested[0] = True
    calls = np.zeros(1), tested
    found = group_bootstrap(scores.T, members, groups=groups, calls=calls, resamples=20, seed=seed)
    for spread in (found.auc, found.tpr, found.accuracy):
        assert np.isfinite(spread.drawn).all()
        estimate = spread.estimate(0)
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_a_low_rate_is_given_from_ten_thousand_nonmembers_on():
    rng = np.random.default_rng(0)
    members = np.arange(10_100) < 100
    scores = (rng.normal(size=10_100) + 3 * members)[:, None]
    groups = [str(i) for i in range(10_100)]
    found = group_bootstrap(scores.T, members, groups=groups, resamples=20)
    assert found.low_tpr.value[0] == pytest.approx(tpr_at_fpr(scores[:, 0], members, 0.001))
    assert group_bootstrap(scores[:-1].T, members[:-1], groups=groups[:-1], resamples=20).low_tpr is None


def test_a_large_matrix_gets_fewer_resamples_and_says_so(monkeypatch):
    monkeypatch.setattr(roc, "WORK", 40_000)
    scores, members, groups = documents(np.random.default_rng(0), docs=20, pieces=2, shift=1, shared=0)
    found = group_bootstrap(scores.T, members, groups=groups, resamples=1000)
    assert found.resamples == len(found.auc.drawn) == 500


def test_widening_moves_resamples_of_one_score_away_from_its_value():
    drawn = np.array([[0.4, 0.6], [0.6, 0.95], [0.5, 0.8]])
    spread = roc._Spread(np.array([0.5, 0.8]), drawn, tail=0.1)
    wide = spread.widened(1, 2.0)
    assert wide.drawn[:, 1] == pytest.approx([0.4, 1.0, 0.8])
    assert wide.drawn[:, 0].tolist() == drawn[:, 0].tolist()
    assert wide.tail == 0.1


def test_the_tail_gives_back_the_width_few_groups_lose():
    # Phi(-sqrt(n / (n - 1)) t): t from tables, 2.571 for 5 and 2.045 for 29 degrees of freedom.
    assert tail_share(6) == pytest.approx(0.5 * (1 - erf(sqrt(6 / 5) * 2.571 / sqrt(2))), rel=0.03)
    assert tail_share(30) == pytest.approx(0.5 * (1 - erf(sqrt(30 / 29) * 2.045 / sqrt(2))), rel=0.01)
    assert tail_share(1_000_000) == pytest.approx(0.025, rel=1e-3)
    assert tail_share(1) == 0
    assert 0 <= tail_share(2) < tail_share(3) < tail_share(10)
