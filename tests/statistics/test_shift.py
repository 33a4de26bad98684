"""The test of the whole set: exact whatever the law and the documents, and it sees what it was made for."""

from itertools import combinations

import numpy as np
import pytest
from net.api import by_document, conformal, drawn_pieces, p_values, set_shift
from scipy.stats import chisquare


def documents(rng, number):
    """Documents that nobody saw: with an effect of their own, and the longer ones score higher; tied in part."""
    sizes = np.where(rng.random(number) < 0.2, 30, rng.integers(2, 5, number))
    rows = np.repeat(np.arange(number), sizes)
    effect = rng.standard_t(3, number) + 3.0 * (sizes == 30)
    return np.round(effect[rows] + 0.3 * rng.normal(size=len(rows)), 1), rows


def test_p_is_uniform_without_members_where_texts_depend_on_each_other():
    rng, found = np.random.default_rng(0), []
    for seed in range(1500):
        scores, rows = documents(rng, 60)
        names = [f"{'a' if row < 15 else 'k'}{row:02}" for row in rows]
        drawn = drawn_pieces(names, seed)
        kept = [name for name, taken in zip(names, drawn, strict=True) if taken]
        values = by_document(scores[drawn], kept)[1]
        found.append(set_shift(values[:15], values[15:], seed=seed, permutations=199).p)
    for level in (0.02, 0.05, 0.2, 0.5, 0.8):
        share = np.mean(np.array(found) <= level)
        assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / 1500), level


def test_few_choices_are_all_gone_through():
    asked, known = [2.0, 9.0], [1.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    ranks = {value: rank for rank, value in enumerate(sorted([*asked, *known], reverse=True), 1)}

    def statistic(chosen):
        sums = []
        for score in (lambda u: 1 - u, lambda u: np.log(u) ** 2):
            every = [score(ranks[v] / 9) for v in ranks]
            some = sum(score(ranks[v] / 9) for v in chosen)
            spread = np.sqrt(np.var(every) * 2 * 6 / 7)
            sums.append((some - 2 * np.mean(every)) / spread)
        return max(sums)

    dealt = [statistic(chosen) for chosen in combinations([*asked, *known], 2)]
    found = set_shift(asked, known)
    assert found.permutations == len(dealt) == 28
    assert found.p == np.mean(np.array(dealt) >= statistic(asked) - 1e-9)
    assert set_shift([9.0], np.arange(1.0, 9.0)).p == 1 / 9


def test_the_larger_side_may_be_the_one_that_is_asked_about():
    rng = np.random.default_rng(1)
    for asked, known in ((300, 40), (40, 300)):
        assert set_shift(rng.normal(size=asked) + 1, rng.normal(size=known), permutations=199).p == 1 / 200
        assert set_shift(rng.normal(size=asked) - 1, rng.normal(size=known), permutations=199).p > 0.9


def test_from_how_many_on_it_would_have_rejected():
    rng = np.random.default_rng(3)
    asked, known = rng.normal(size=40), np.sort(rng.normal(size=150))
    least = set_shift(asked, known, level=0.05).least
    assert least is not None
    even = np.quantile(known, (np.arange(40 - least) + 0.5) / (40 - least))
    assert set_shift(np.concatenate((10.0 + np.arange(least), even)), known).p <= 0.06
    fewer = np.quantile(known, (np.arange(41 - least) + 0.5) / (41 - least))
    assert set_shift(np.concatenate((10.0 + np.arange(least - 1), fewer)), known).p > 0.04
    assert set_shift([0.0], np.arange(20.0), level=0.01).least is None
    assert set_shift([0.0], np.arange(20.0), level=0.05).least == 1


def test_many_documents_are_chosen_as_evenly_as_a_few():
    scores = np.stack((2.0 ** np.arange(8), np.ones(8)))  # a sum says which were chosen
    sums = conformal._sums_of_many(scores, 3, 5600, np.random.default_rng(0))
    assert (sums[1] == 3).all()
    counts = np.unique(sums[0], return_counts=True)[1]
    assert len(counts) == 56
    assert chisquare(counts).pvalue > 0.01


def test_p_of_many_documents_is_that_of_a_few(monkeypatch):
    rng = np.random.default_rng(4)
    for asked, known in ((600, 80), (80, 600)):
        values = rng.normal(size=asked) + 0.1, rng.normal(size=known)
        few = set_shift(*values, permutations=4_999)
        monkeypatch.setattr(conformal, "LARGE", 0)
        many = set_shift(*values, permutations=5 * 4_999)
        monkeypatch.undo()
        assert few.permutations == many.permutations == 5_000
        assert 0.02 < few.p < 0.9
        assert many.p == pytest.approx(few.p, abs=4 * np.sqrt(2 * few.p * (1 - few.p) / 5_000))
        assert many.p != few.p, "they are drawn in another way"


def test_scores_that_do_not_differ():
    assert set_shift(np.zeros(5), np.zeros(30)).p == 1.0
    assert p_values(np.zeros(5), np.zeros(30)).tolist() == [1.0] * 5


def test_a_drift_below_one_is_found():
    rng = np.random.default_rng(5)
    found = set_shift(rng.normal(0.5, 1, 60), rng.normal(0, 1, 60))
    assert found.p <= found.level
    assert 0 < found.explained < 1
    assert found.p_after(found.explained) <= found.level < found.p_after(found.explained + 0.01)
