"""A group of documents that one side holds alone is found, and by chance alone seldom."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from pretrace.errors import ExpressionError
from pretrace.statistics.permutation import _surprises, own_group


def cosines(rows):
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def test_the_surprise_of_a_group_is_that_of_a_plain_count():
    rng = np.random.default_rng(0)
    groups, sides = (
        rng.random((5, 30)) < 0.3,
        np.array([rng.permutation(np.arange(30) < 12) for _ in range(4)]),
    )
    found = _surprises(groups, sides)
    for draw, side in enumerate(sides):
        for number, group in enumerate(groups):
            inside = sum(1 for a, b in zip(side, group, strict=True) if a and b)
            chance = sum(hypergeom.pmf(k, 30, 12, int(group.sum())) for k in range(inside, 31))
            assert found[draw, number] == pytest.approx(-np.log(chance))


def test_strangers_among_the_controls_are_found_and_named():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(100, 40))
    rows[90:, :4] += 6
    p, group = own_group(cosines(rows), np.arange(100) >= 50)
    assert p < 0.02
    assert group[90:].sum() >= 8
    assert group[:90].sum() <= 2


def test_without_strangers_it_keeps_its_level():
    """Fewer than 12 of 100 at 5% (a chance of 0.4% to fail if the level holds)."""
    rng, found = np.random.default_rng(2), 0
    for seed in range(100):
        side = rng.permutation(np.arange(40) < 20)
        found += own_group(cosines(rng.normal(size=(40, 8))), side, permutations=99, seed=seed)[0] <= 0.05
    assert found < 12


def test_few_documents_make_no_group_and_odd_input_is_refused():
    p, group = own_group(np.eye(4), np.array([True, True, False, False]))
    assert (p, group.any()) == (1.0, False)
    with pytest.raises(ExpressionError, match="both sides need a document"):
        own_group(np.eye(4), np.ones(4, dtype=bool))
    with pytest.raises(ExpressionError, match="a likeness of 3 documents"):
        own_group(np.eye(4), np.array([True, True, False]))
