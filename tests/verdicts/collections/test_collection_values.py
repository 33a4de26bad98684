"""Means of collections: against loops, exchangeable to the last bit, and with the level of a rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.designs.conditional import COLLECTIONS, by_collections, by_collections_before, collected
from pretrace.statistics.ranks import rank_p
from pretrace.statistics.ridge import Ridge
from pretrace.verdicts.collections import Scored, document_means, prediction, ranked


def drawn(rng, units=20, documents=6, *, lift=0.0, spread=0.3, digits=8):
    """Documents of exchangeable collections: what both models like, and a lean of each collection's own."""
    codes = np.repeat(np.arange(units), documents)
    shared = rng.normal(size=len(codes)) + rng.normal(size=units)[codes]
    reference = shared + 0.3 * rng.normal(size=len(codes))
    length = rng.normal(size=len(codes))
    own = rng.normal(size=units)[codes] * spread
    target = 0.8 * shared + 0.2 * length + own + 0.3 * rng.normal(size=len(codes)) + lift * (codes == 0)
    return Scored(np.round(target, digits), np.column_stack([reference, length]), codes, units)


def test_a_value_is_the_score_less_the_fit_on_all_other_collections():
    scored = drawn(np.random.default_rng(0), units=5)
    expected = []
    for target, row, code in zip(scored.target, scored.predictors, scored.codes, strict=True):
        others = scored.codes != code
        fit = Ridge.fitted(scored.target[others], scored.predictors[others])
        expected.append(target - fit.predict(row[None])[0])
    assert scored.values() == pytest.approx(np.array(expected), abs=1e-12)
    means = [np.mean([v for v, c in zip(expected, scored.codes, strict=True) if c == u]) for u in range(5)]
    assert scored.means(scored.values()) == pytest.approx(np.array(means), abs=1e-12)


def test_permuted_collections_have_permuted_means_to_the_last_bit():
    rng = np.random.default_rng(1)
    scored = drawn(rng, units=8)
    means = scored.means(scored.values())
    for _ in range(5):
        names = rng.permutation(8)
        order = rng.permutation(len(scored.codes))
        moved = Scored(scored.target[order], scored.predictors[order], names[scored.codes][order], 8)
        found = moved.means(moved.values())
        assert np.array_equal(found[names], means)


def test_a_document_without_a_score_is_left_out_of_fits_and_means():
    scored = drawn(np.random.default_rng(2), units=4)
    target, predictors = scored.target.copy(), scored.predictors.copy()
    target[0], predictors[7, 0] = np.nan, np.nan
    keep = np.setdiff1d(np.arange(24), [0, 7])
    fewer = Scored(scored.target[keep], scored.predictors[keep], scored.codes[keep], 4)
    odd = Scored(target, predictors, scored.codes, 4)
    assert np.array_equal(odd.values()[keep], fewer.values())
    assert np.isnan(odd.values()[[0, 7]]).all()
    assert np.array_equal(odd.means(odd.values()), fewer.means(fewer.values()))
    assert odd.counted().tolist() == [5, 5, 6, 6]


def test_the_mean_of_pieces_passes_over_those_without_a_value():
    found = document_means(np.array([1.0, 3.0, np.nan, np.nan, 5.0]), [0, 0, 0, 1, 3], 4)
    assert found[[0, 3]].tolist() == [2.0, 5.0]
    assert np.isnan(found[[1, 2]]).all()


@pytest.mark.parametrize("digits", [8, 0])
def test_p_is_uniform_where_collections_are_exchangeable(digits):
    """400 nulls, 19 controls, residuals cross-fitted; with scores rounded to whole numbers p is larger at most."""
    rng = np.random.default_rng(4)
    p = []
    for _ in range(400):
        means = (scored := drawn(rng, digits=digits, documents=5)).means(scored.values())
        p.append(rank_p(means[0], means[1:]))
    p = np.array(p)
    counts = np.bincount(np.rint(p * 20).astype(int) - 1, minlength=20).cumsum() / 400
    away = counts - np.arange(1, 21) / 20
    assert away.max() < 1.63 / np.sqrt(400)  # Kolmogorov and Smirnov on the discrete law, at 0.01
    assert digits == 0 or -away.min() < 1.63 / np.sqrt(400)
    for level in (0.05, 0.1, 0.2):
        assert (p <= level + 1e-12).sum() <= binom.ppf(0.9999, 400, level)


def test_whole_tables_of_equal_scores_reject_nothing():
    found = ranked(np.full(100, -2.5), np.repeat(np.arange(20), 5), 20)
    assert found.p == 1.0
    assert (found.studentised == 0).all()
    raised = ranked(np.repeat([-1.0, *[-2.5] * 19], 5), np.repeat(np.arange(20), 5), 20)
    assert raised.p == 0.05
    assert np.isfinite(raised.studentised).all()


def test_what_is_ranked_is_the_mean_over_its_standard_deviation():
    rng = np.random.default_rng(9)
    codes = np.repeat(np.arange(6), 7)
    values = rng.normal(size=42) + rng.normal(size=6)[codes]
    values[3] = np.nan
    found = ranked(values, codes, 6)
    some = [values[(codes == unit) & np.isfinite(values)] for unit in range(6)]
    for unit, own in enumerate(some):
        others = [one for k, one in enumerate(some) if k != unit]
        means = np.array([one.mean() for one in others])
        between = means.var(ddof=1) - np.mean([one.var(ddof=1) / len(one) for one in others])
        error = np.sqrt(max(0, between) + own.var(ddof=1) / len(own))
        assert found.studentised[unit] == pytest.approx((own.mean() - means.mean()) / error)
    assert found.counted.tolist() == [6, 7, 7, 7, 7, 7]


def test_permuted_collections_have_permuted_ranks_to_the_last_bit():
    rng = np.random.default_rng(10)
    codes, values = np.repeat(np.arange(9), 5), rng.normal(size=45)
    first = ranked(values, codes, 9).studentised
    for _ in range(5):
        names, order = rng.permutation(9), rng.permutation(45)
        assert np.array_equal(ranked(values[order], names[codes][order], 9).studentised[names], first)


NASTY = (
    "exchangeable", "documents vary twice as much", "documents vary twice as much for the target alone",
    "half of the documents count", "groups of five alike, not seen in texts", "half of an easier kind",
    "half of an easier kind, for the target twice as much", "skewed",
)  # fmt: skip


@pytest.mark.parametrize("kind", NASTY)
def test_collections_that_nobody_read_are_accused_within_the_level(kind):
    rng = np.random.default_rng(sum(map(ord, kind)))
    accused = sum(by_collections(*collected(COLLECTIONS[kind], rng)).accused for _ in range(200))
    assert accused <= binom.ppf(0.999, 200, 0.05)


def test_a_collection_whose_documents_vary_twice_as_much_was_accused_and_is_no_longer():
    rng = np.random.default_rng(11)
    made = [collected(COLLECTIONS["documents vary twice as much"], rng) for _ in range(300)]
    assert sum(by_collections_before(*one).accused for one in made) > binom.ppf(0.999, 300, 0.05)
    assert sum(by_collections(*one).rejected for one in made) <= binom.ppf(0.999, 300, 0.05)


def test_a_raised_collection_is_found():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(40):
        means = (scored := drawn(rng, lift=2.0)).means(scored.values())
        found.append(rank_p(means[0], means[1:]) <= 0.05)
    assert np.mean(found) > 0.9


def test_taking_the_prediction_off_sees_more():
    """What makes a collection easy for every model hides a lift; beyond the prediction it shows."""
    rng = np.random.default_rng(6)
    hits = np.zeros(2)
    for _ in range(40):
        scored = drawn(rng, lift=1.0, spread=0.1)
        for place, one in enumerate((scored, Scored(scored.target, None, scored.codes, scored.units))):
            means = one.means(one.values())
            hits[place] += rank_p(means[0], means[1:]) <= 0.05
    assert hits[0] > 30
    assert hits[1] < 25


def test_the_interval_holds_one_more_control_as_often_as_it_says():
    rng = np.random.default_rng(7)
    values = rng.normal(size=(2000, 20))
    inside = [prediction(row[0], row[1:]) for row in values]
    held = sum(one.low <= 0 <= one.high for one in inside)
    assert binom.ppf(0.001, 2000, 0.95) <= held <= binom.ppf(0.999, 2000, 0.95)
