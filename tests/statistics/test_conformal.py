"""Conformal p-values: uniform for non-members, in documents too, and few false discoveries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from net.api import adjusted, drawn_pieces, flagged, least_together, needed, p_values


def test_the_formula_with_ties_counted_against_the_text():
    found = p_values([5.0, 3.0, 0.0, 9.0], [1.0, 3.0, 3.0, 7.0])
    assert found.tolist() == [2 / 5, 4 / 5, 1.0, 1 / 5]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.lists(st.integers(-3, 3), min_size=1))
def test_ties_broken_by_lot_lie_between_the_extremes(scores, known):
    worst = p_values(scores, known)
    drawn = p_values(scores, known, randomised=True, seed=1)
    best = [(1 + sum(k > s for k in known)) / (len(known) + 1) for s in scores]
    assert all(low <= p <= high for low, p, high in zip(best, drawn, worst, strict=True))
    assert np.array_equal(drawn, p_values(scores, known, randomised=True, seed=1))


def test_p_is_uniform_for_non_members_when_ties_are_broken_by_lot():
    rng = np.random.default_rng(0)
    found = [
        p_values(rng.integers(0, 3, 1), rng.integers(0, 3, 9), randomised=True, seed=seed)[0]
        for seed in range(4000)
    ]
    counts = np.bincount(np.round(np.array(found) * 10).astype(int), minlength=11)[1:]
    assert np.abs(counts - 400).max() < 4.5 * np.sqrt(400)


def test_as_many_pieces_of_each_document_are_drawn_whatever_the_order():
    groups = ["b", "a", "b", "c", "a", "b", "c"]
    drawn = drawn_pieces(groups, 7)
    assert sorted(np.array(groups)[drawn]) == ["a", "a", "b", "b", "c", "c"]
    counts = sum(drawn_pieces([*groups, "d"], seed).astype(int) for seed in range(600))
    assert counts[[1, 4]].sum() == counts[[3, 6]].sum() == counts[7] == 600  # one of each
    assert abs(counts[0] - 200) < 60  # each piece of "b" a third of the time
    turned = drawn_pieces([*["a"] * 2, *["b"] * 3, *["c"] * 2], 7)
    assert np.flatnonzero(drawn[[1, 4, 0, 2, 5, 3, 6]]).tolist() == np.flatnonzero(turned).tolist()


@pytest.mark.parametrize("method", ["bh", "by"])
def test_adjusted_p_values_against_a_naive_loop(method):
    p = np.random.default_rng(5).integers(1, 40, 30) / 40
    m = len(p)
    factor = sum(1 / i for i in range(1, m + 1)) if method == "by" else 1.0
    for rate in (0.05, 0.2, 0.6):
        ranked = np.sort(p)
        passing = [k for k in range(1, m + 1) if ranked[k - 1] <= k * rate / (m * factor) + 1e-12]
        limit = ranked[passing[-1] - 1] if passing else -1
        assert flagged(adjusted(p, method), rate).tolist() == (p <= limit).tolist()
    assert adjusted([], method).tolist() == []


def test_false_discoveries_stay_below_the_nominal_rate():
    """The mean false discovery proportion where 30% of 60 documents are members."""
    rng, false, members = np.random.default_rng(11), [], np.arange(60) < 18
    for _ in range(800):
        known, scores = rng.normal(size=100), rng.normal(size=60)
        chosen = flagged(adjusted(p_values(scores + 2.5 * members, known)), 0.2)
        false.append((chosen & ~members).sum() / max(1, chosen.sum()))
    assert 0.10 < np.mean(false) <= 0.2 * 0.7 + 0.02  # the rate times the share of non-members


@pytest.mark.parametrize("method", ["bh", "by"])
@pytest.mark.parametrize(
    ("known", "texts", "fdr"), [(20, 50, 0.05), (19, 1, 0.05), (200, 100, 0.1), (9, 4, 0.05)]
)
def test_what_can_be_flagged_is_known_beforehand(known, texts, fdr, method):
    def can(n, k):
        p = np.array([1 / (n + 1)] * k + [1.0] * (texts - k))
        return bool(flagged(adjusted(p, method), fdr).any())

    flaggable = [k for k in range(1, texts + 1) if can(known, k)]
    assert least_together(known, texts, fdr, method) == (flaggable[0] if flaggable else None)
    for above in (texts, max(1, texts // 2), 1):
        least = needed(above, texts, fdr, method)
        assert can(least, above)
        assert least == 1 or not can(least - 1, above)
