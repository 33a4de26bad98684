"""The resamples of the AUC alone: those of the bootstrap of all figures, to the last bit, and of a slow loop."""

import numpy as np
import pytest

from pretrace.errors import ExpressionError, TextsError
from pretrace.statistics import resampling as module
from pretrace.statistics.documents import Grouping
from pretrace.statistics.resampling import auc_bootstrap, group_bootstrap, group_draws
from pretrace.statistics.roc import auc


def texts(seed, members, others, *, tied):
    """A score, labels and groups of one to nine texts; some groups hold both labels, some numbers have none."""
    rng = np.random.default_rng(seed)
    number = members + others
    scores = rng.normal(size=number)
    return (
        np.round(scores) if tied else scores,
        rng.permutation(number) < members,
        rng.integers(3, number // 3, number),
    )


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("members", "others"), [(300, 60), (60, 300), (12, 12)])
@pytest.mark.parametrize("cells", [1, 4_000, 4_000_000])
def test_they_are_those_of_the_bootstrap_of_all_figures(monkeypatch, members, others, tied, cells):
    monkeypatch.setattr(module, "CELLS", cells)
    scores, labels, groups = texts(members, members, others, tied=tied)
    slow = group_bootstrap(scores[:, None], labels, groups=groups, seed=3, resamples=41).auc
    fast = auc_bootstrap(scores, labels, groups=groups, seed=3, resamples=41)
    assert np.array_equal(fast.value, slow.value)
    assert np.array_equal(fast.drawn, slow.drawn)
    assert fast.tail == slow.tail


def test_a_document_that_is_drawn_twice_is_there_twice():
    scores, labels, groups = texts(5, 40, 50, tied=True)
    fast = auc_bootstrap(scores, labels, groups=groups, seed=7, resamples=20)
    grouping = Grouping.of(groups, labels)
    for times, drawn in zip(group_draws(grouping, 20, 7), fast.drawn[:, 0], strict=True):
        often = times[grouping.codes].astype(int)
        assert drawn == pytest.approx(auc(np.repeat(scores, often), np.repeat(labels, often)), abs=1e-14)
    assert len(np.unique(fast.drawn)) > 10


def test_a_large_matrix_gets_as_few_resamples_as_it_did(monkeypatch):
    monkeypatch.setattr("pretrace.statistics.resampling.WORK", 90_000)
    scores, labels, groups = texts(0, 200, 100, tied=False)
    slow = group_bootstrap(scores[:, None], labels, groups=groups, resamples=2000).auc
    assert len(slow.drawn) == 300
    assert np.array_equal(auc_bootstrap(scores, labels, groups=groups, resamples=2000).drawn, slow.drawn)


def test_what_cannot_be_resampled_is_refused():
    labels, groups = np.array([True, False]), np.array([0, 1])
    with pytest.raises(ExpressionError, match="NaN"):
        auc_bootstrap(np.array([1.0, np.nan]), labels, groups=groups)
    with pytest.raises(TextsError, match="add known non-members"):
        auc_bootstrap(np.ones(2), np.array([True, True]), groups=groups)
