"""Conformal p-values: uniform for non-members, in documents too, and few false discoveries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from net.api import adjusted, by_document, drawn_pieces, flagged, needed, p_values, resolution


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


def hierarchical(rng, documents, pieces):
    """Scores of documents with a strong effect of their own."""
    group = np.repeat(np.arange(documents), pieces)
    return rng.normal(size=documents)[group] + 0.2 * rng.normal(size=len(group)), [f"d{g:03}" for g in group]


def small_ones(draw, runs=1500, level=0.1):
    """How often a text of a new document gets a p-value of at most the level."""
    rng = np.random.default_rng(3)
    hits = 0
    for seed in range(runs):
        # ten documents; one of them is cut into as many pieces as all others together
        known, groups = hierarchical(rng, 10, rng.permutation([1, 1, 2, 2, 3, 3, 4, 4, 5, 25]))
        text, _ = hierarchical(rng, 1, 1)
        rows = draw(groups, seed)
        hits += p_values(text, known[rows])[0] <= level
    return hits / runs


def test_one_piece_a_document_keeps_the_level():
    alone = small_ones(lambda groups, seed: drawn_pieces(groups, seed, each=1))
    assert alone <= 0.1 + 3 * np.sqrt(0.09 / 1500)


def test_all_pieces_would_break_it():
    assert small_ones(lambda groups, seed: np.ones(len(groups), dtype=bool)) > 0.13


def test_as_many_pieces_of_each_document_are_drawn_whatever_the_order():
    groups = ["b", "a", "b", "c", "a", "b", "c"]
    drawn = drawn_pieces(groups, 7)
    assert sorted(np.array(groups)[drawn]) == ["a", "a", "b", "b", "c", "c"]
    assert sorted(np.array(groups)[drawn_pieces(groups, 7, each=1)]) == ["a", "b", "c"]
    counts = sum(drawn_pieces(groups, seed, each=1).astype(int) for seed in range(600))
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


def discoveries(method, *, pieces, runs, fdr=0.2, share=0.3):
    """The mean false discovery proportion where a share of the documents are members."""
    rng = np.random.default_rng(11)
    false = []
    for _ in range(runs):
        known = rng.normal(size=100)
        scores, groups = hierarchical(rng, 60 // pieces, pieces)
        members = np.array([int(g[1:]) < share * 60 / pieces for g in groups])
        known = known * np.sqrt(1.04)  # the spread that the texts have
        chosen = flagged(adjusted(p_values(scores + 2.5 * members, known), method), fdr)
        false.append((chosen & ~members).sum() / max(1, chosen.sum()))
    return float(np.mean(false))


def test_false_discoveries_stay_below_the_nominal_rate():
    found = discoveries("bh", pieces=1, runs=800)
    assert 0.10 < found <= 0.2 * 0.7 + 0.02  # the rate times the share of non-members


def lengthy(rng, number):
    """Documents that nobody saw: 3% have 80 pieces and score 2 to 3.5 deviations higher, the others have one."""
    long = rng.random(number) < 0.03
    centre = np.where(long, rng.uniform(2, 3.5, number), rng.normal(size=number))
    rows = np.repeat(np.arange(number), np.where(long, 80, 1))
    scores = centre[rows] + np.where(long, 0.5, 0.0)[rows] * rng.normal(size=len(rows))
    return scores, [f"d{row:03}" for row in rows]


def any_flag(of_sides, method, runs=400):
    """How often anything is flagged at a rate of 20% where nothing was seen."""
    rng, hits = np.random.default_rng(17), 0
    for seed in range(runs):
        p = of_sides(*lengthy(rng, 100), *lengthy(rng, 400), seed)
        hits += flagged(adjusted(p, method), 0.2).any()
    return hits / runs


def every_piece(asked, _, known, groups, seed):
    return p_values(asked, known[drawn_pieces(groups, seed, each=1)])


def one_value(asked, names, known, groups, seed):
    both = [*(f"a{name}" for name in names), *(f"k{name}" for name in groups)]
    drawn = drawn_pieces(both, seed)
    kept = [name for name, taken in zip(both, drawn, strict=True) if taken]
    found, values = by_document(np.concatenate((asked, known))[drawn], kept)
    first = np.array([name.startswith("a") for name in found])
    return p_values(values[first], values[~first])


def test_every_piece_against_documents_drawn_once_breaks_even_the_stricter_procedure():
    """Version 0.1: where long documents score higher; 38% in evidence/flagging_sets.csv."""
    assert any_flag(every_piece, "by") > 0.3


@pytest.mark.parametrize("method", ["bh", "by"])
def test_one_value_a_document_keeps_the_rate_there(method):
    assert any_flag(one_value, method) < 0.14  # 6% measured


def test_asked_documents_may_be_cut_into_more_pieces_than_known_ones():
    """A value of one drawn text has the same law however many pieces a document has."""
    rng, hits = np.random.default_rng(19), 0
    for seed in range(600):
        asked, names = hierarchical(rng, 20, rng.integers(1, 40, 20))
        known, groups = hierarchical(rng, 100, 1)
        hits += flagged(adjusted(one_value(asked, names, known, groups, seed)), 0.2).any()
    assert hits / 600 <= 0.2 + 3 * np.sqrt(0.16 / 600)


def test_without_members_any_flag_is_rarer_than_the_rate():
    rng = np.random.default_rng(13)
    draws = (p_values(rng.normal(size=40), rng.normal(size=200)) for _ in range(1500))
    any_flag = [flagged(adjusted(p), 0.1).any() for p in draws]
    assert np.mean(any_flag) <= 0.1 + 3 * np.sqrt(0.09 / 1500)


@pytest.mark.parametrize("method", ["bh", "by"])
@pytest.mark.parametrize(
    ("known", "texts", "fdr"), [(20, 50, 0.05), (19, 1, 0.05), (200, 100, 0.1), (9, 4, 0.05)]
)
def test_resolution_says_what_can_be_flagged(known, texts, fdr, method):
    found = resolution(known, texts, fdr, method)

    def can(n, k):
        p = np.array([1 / (n + 1)] * k + [1.0] * (texts - k))
        return bool(flagged(adjusted(p, method), fdr).any())

    flaggable = [k for k in range(1, texts + 1) if can(known, k)]
    assert found.together == (flaggable[0] if flaggable else None)
    assert can(found.needed, texts)
    assert not can(found.needed - 1, texts)
    assert can(found.needed_alone, 1)
    assert found.needed_alone == 1 or not can(found.needed_alone - 1, 1)
    assert found.smallest == 1 / (known + 1)
    half = needed(texts // 2, texts, fdr, method)
    assert can(half, max(1, texts // 2))
    assert half == 1 or not can(half - 1, max(1, texts // 2))
