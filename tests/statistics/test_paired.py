"""Paired comparisons: the draws of an evaluation, a naive loop, and the level under the null."""

import numpy as np
import pytest
from made import run_of
from net.api import auc, evaluate, for_few, holm, tail_share


def scored(matrix, members, groups=None, scores=None):
    names = scores or ["loss", *(f"other{k}" for k in range(1, matrix.shape[1]))]
    return run_of(matrix, members, scores=tuple(names), **({"groups": tuple(groups)} if groups else {}))


def compared(run, **how):
    """The comparisons of an evaluation."""
    return evaluate(run, [""] * len(run.ids), blind=False, **how).comparisons


def correlated(rng, docs=60, pieces=2, shift=(0.7, 0.7), correlation=0.8):
    """Two scores that share most of their noise, in documents of several texts."""
    group = np.repeat(np.arange(2 * docs), pieces)
    members = group < docs
    shared = rng.normal(size=2 * docs)[group] * 0.5 + rng.normal(size=len(group))
    own = rng.normal(size=(len(group), 2))
    noise = np.sqrt(correlation) * shared[:, None] + np.sqrt(1 - correlation) * own
    return noise + members[:, None] * np.array(shift), members, [f"d{g}" for g in group]


def test_it_agrees_with_a_naive_loop_over_the_same_draws():
    rng = np.random.default_rng(0)
    matrix, members, groups = correlated(rng, docs=12)
    (found,) = compared(scored(matrix, members, groups), seed=3, resamples=300)
    # the loop: groups of members and of non-members drawn apart, every text as often as its group
    names = sorted(set(groups))
    draws = np.random.default_rng(3)
    mine = [i for i, n in enumerate(names) if members[groups.index(n)]]
    theirs = [i for i, n in enumerate(names) if not members[groups.index(n)]]
    apart = []
    for _ in range(300):
        rows = []
        for stratum in (mine, theirs):
            for pick in draws.integers(0, len(stratum), len(stratum)):
                rows += [r for r, g in enumerate(groups) if g == names[stratum[pick]]]
        apart.append(auc(matrix[rows, 1], members[rows]) - auc(matrix[rows, 0], members[rows]))
    apart = np.array(apart)
    tail = tail_share(12)
    low, high = np.quantile(apart, (tail, 1 - tail))
    assert found.difference.value == pytest.approx(auc(matrix[:, 1], members) - auc(matrix[:, 0], members))
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high))
    raw = min(1.0, 2 * (1 + min((apart <= 0).sum(), (apart >= 0).sum())) / 301)
    assert found.p == pytest.approx(for_few(raw, 12))


@pytest.mark.parametrize("docs", [15, 60])
def test_equal_scores_are_called_different_in_a_twentieth_of_runs(docs):
    rejected = 0
    for seed in range(120):
        matrix, members, groups = correlated(np.random.default_rng(seed), docs=docs)
        (found,) = compared(scored(matrix, members, groups), seed=seed, resamples=200)
        rejected += found.p <= 0.05
    assert 1 <= rejected <= 13  # 99.7% of binomial(120, 0.05)


def test_a_better_score_is_found_and_a_copy_is_not():
    matrix, members, groups = correlated(np.random.default_rng(2), shift=(0.3, 1.3))
    matrix = np.column_stack([matrix, np.exp(matrix[:, 0])])
    better, copy = compared(scored(matrix, members, groups))
    assert better.shown
    assert better.difference.low > 0.1
    assert not copy.shown
    assert (copy.p, copy.difference.value) == (1.0, 0.0)


def test_the_baseline_is_loss_or_the_first():
    matrix, members, _ = correlated(np.random.default_rng(3))
    three = np.column_stack([matrix, matrix[:, 0]])
    found = compared(scored(three, members, scores=["zlib", "loss", "min_k"]), resamples=200)
    assert [(one.score, one.baseline) for one in found] == [("zlib", "loss"), ("min_k", "loss")]
    without = scored(matrix, members, scores=["zlib", "min_k"])
    assert compared(without, resamples=200)[0].baseline == "zlib"
    assert compared(scored(matrix[:, :1], members)) == ()


def test_holm_against_its_definition():
    p = [0.2, 0.001, 0.03, 0.03, 0.9]
    order = sorted(range(5), key=lambda i: p[i])
    expected = [0.0] * 5
    for rank, place in enumerate(order):
        expected[place] = min(1.0, max((5 - r) * p[order[r]] for r in range(rank + 1)))
    assert holm(p) == pytest.approx(expected)
    assert holm([]) == []


def test_the_p_of_few_documents_belongs_to_their_interval():
    for groups in (5, 10, 30, 1000):
        assert for_few(2 * tail_share(groups), groups) == pytest.approx(0.05, rel=0.02)
    assert for_few(0.01, 1) == 1.0


def test_the_least_corrected_p_is_what_the_clearest_difference_gets():
    for docs, copies in ((8, 1), (60, 3)):
        matrix, members, groups = correlated(np.random.default_rng(6), docs=docs, shift=(0.0, 30.0))
        matrix = np.column_stack([matrix[:, 0], *[matrix[:, 1]] * copies])
        found = compared(scored(matrix, members, groups), resamples=200)
        assert found[0].adjusted == pytest.approx(found[0].least)
    more = scored(np.column_stack([matrix, *[matrix[:, 1]] * 3]), members, groups)
    assert not compared(more, resamples=200)[0].shown
