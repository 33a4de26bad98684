"""Wilcoxon's test with chances of signs: against a naive loop, Rosenbaum's bound, and simulated nulls."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom, rankdata

from pretrace.errors import ExpressionError, TextsError
from pretrace.statistics.sensitivity import wilcoxon_bound, wilcoxon_gamma
from pretrace.statistics.signed_ranks import SignedRanks


def counted(values: list[float], chances: list[float], gamma: float) -> float:
    """P(sum of ranks >= observed) over all signs, written from the definition."""
    ranks = rankdata(np.abs(values))
    observed = sum(rank for rank, value in zip(ranks, values, strict=True) if value > 0)
    total = 0.0
    for signs in itertools.product((False, True), repeat=len(values)):
        probability, reached = 1.0, 0.0
        for sign, rank, q in zip(signs, ranks, chances, strict=True):
            likely = gamma * q / (gamma * q + 1 - q)
            probability *= likely if sign else 1 - likely
            reached += rank if sign else 0.0
        total += probability if reached >= observed else 0.0
    return total


@pytest.mark.parametrize("gamma", [1.0, 2.0, 5.0])
def test_p_is_the_counted_probability(gamma: float) -> None:
    values = [1.3, -0.2, 2.0, 0.2, 0.9, -0.5, 1.1, 3.0]
    chances = [0.5, 0.3, 0.7, 0.6, 0.4, 0.5, 0.8, 0.45]
    drawn = SignedRanks.of(values, chances, draws=40_000, seed=1).p(gamma)
    assert drawn == pytest.approx(counted(values, chances, gamma), abs=0.01)


@pytest.mark.parametrize("gamma", [1.0, 1.5, 3.0])
def test_with_even_chances_it_is_rosenbaums_bound(gamma: float) -> None:
    values = np.random.default_rng(3).normal(0.6, 1.0, 40)
    ours = SignedRanks.of(values, np.full(40, 0.5), draws=40_000)
    bound = wilcoxon_bound(values, gamma)
    assert ours.p(gamma) == pytest.approx(bound, abs=4 * np.sqrt(bound * (1 - bound) / 40_000) + 1e-4)
    assert ours.breakdown(0.05) == pytest.approx(wilcoxon_gamma(values, 0.05), rel=0.03)


def test_p_never_falls_as_gamma_grows() -> None:
    rng = np.random.default_rng(4)
    ranks = SignedRanks.of(rng.normal(0.3, 1, 30), rng.uniform(0.2, 0.8, 30), draws=500)
    found = [ranks.p(gamma) for gamma in np.geomspace(1, 50, 60)]
    assert all(one <= other for one, other in itertools.pairwise(found))


def test_the_breakdown_is_where_p_passes_the_level() -> None:
    ranks = SignedRanks.of(np.random.default_rng(5).normal(0.8, 1, 40), np.full(40, 0.5), draws=2000)
    gamma = ranks.breakdown(0.05)
    assert gamma is not None
    assert ranks.p(gamma) <= 0.05 < ranks.p(1.01 * gamma)
    assert SignedRanks.of([-1.0, -2.0, 3.0], np.full(3, 0.5)).breakdown(0.05) is None


def test_differences_of_zero_take_no_part() -> None:
    some = SignedRanks.of([1.0, 0.0, -2.0, 3.0], [0.5, 0.9, 0.5, 0.5], draws=999)
    assert some.p() == SignedRanks.of([1.0, -2.0, 3.0], [0.5, 0.5, 0.5], draws=999).p()
    assert SignedRanks.of([0.0, 0.0], [0.5, 0.5]).p() == 1.0


@pytest.mark.parametrize("hidden", [1.0, 2.0])
def test_signs_drawn_at_the_bound_reject_at_the_level(hidden: float) -> None:
    """At Γ = 1 with the chances themselves; at Γ = 2 where the true odds are twice as high as the chances say."""
    rng, runs, rejected = np.random.default_rng(6), 400, 0
    for seed in range(runs):
        sizes, q = rng.exponential(size=30), rng.uniform(0.2, 0.8, 30)
        true = hidden * q / (hidden * q + 1 - q)
        above = rng.random(30) < true
        ranks = SignedRanks.of(np.where(above, sizes, -sizes), q, draws=399, seed=seed)
        rejected += ranks.p(hidden) <= 0.05
    assert binom.ppf(0.0005, runs, 0.05) <= rejected <= binom.ppf(0.9995, runs, 0.05)


def test_wrong_values_are_refused() -> None:
    with pytest.raises(TextsError, match="a chance for each"):
        SignedRanks.of([1.0, 2.0], [0.5])
    with pytest.raises(ExpressionError, match="between 0 and 1"):
        SignedRanks.of([1.0], [1.5])
    with pytest.raises(ExpressionError, match="from 1 on"):
        SignedRanks.of([1.0], [0.5]).p(0.5)
