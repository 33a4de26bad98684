"""Rosenbaum's bounds against enumeration, published figures and other programs; the shift against the test itself."""

from itertools import product

import numpy as np
import pytest
from net.api import permutation as module
from net.api import sign_bound, sign_gamma, two_sample, two_sample_shift, wilcoxon_bound, wilcoxon_gamma
from scipy import stats

SMALL = [1.5, -0.25, 3.0, 0.5, -1.0, 0.75, 2.0, 0.0, 1.0, 1.0]

WELDERS = (
    "148 358 1572 2526 287 -271 494 716 411 988 1073 1097 491 294 62 417 -886 314 178 867 539 1791 -1 -67 779 "
    "113 729 374 610 2277 303 -326 527 1203 854 269 683 -190 778"
)
"""Damage to the DNA of 39 pairs of a welder and a control, in thousandths: Werfel et al. 1998, the example of
Rosenbaum, *Design of Observational Studies*, section 3.5."""
WELDING = np.array([float(one) for one in WELDERS.split()]) / 1000
EXPOSED = "38 23 41 18 37 36 23 62 31 34 24 14 21 17 16 20 15 10 45 39 22 35 49 48 44 35 43 39 34 13 73 25 27"
CONTROL = "16 18 18 24 19 11 10 15 16 18 18 13 19 10 16 16 24 13 9 14 21 19 7 18 19 12 11 22 25 16 13 11 13"
LEAD = np.array([float(one) for one in EXPOSED.split()]) - [float(one) for one in CONTROL.split()]
"""Lead in the blood of 33 pairs of children: Morton et al. 1982, the example of Rosenbaum 2002, chapter 4."""


def enumerated(values, gamma):
    """Both bounds from all signs of the values that are not 0."""
    found = np.array([one for one in values if one])
    ranks = stats.rankdata(np.abs(found))
    signs = np.array(list(product((0, 1), repeat=len(found))))
    weights = (gamma / (1 + gamma)) ** signs.sum(1) * (1 / (1 + gamma)) ** (1 - signs).sum(1)
    up = found > 0
    return weights[signs.sum(1) >= up.sum()].sum(), weights[signs @ ranks >= ranks[up].sum()].sum()


@pytest.mark.parametrize("gamma", [1, 1.7, 6])
@pytest.mark.parametrize("values", [SMALL, SMALL[:3], [-1.0, -2.0, 3.5], [-1.0, -1.0]])
def test_the_bounds_by_hand(values, gamma):
    assert (sign_bound(values, gamma), wilcoxon_bound(values, gamma)) == pytest.approx(
        enumerated(values, gamma), abs=1e-12
    )


def test_published_figures():
    """The exact one-sided p of the lead example has been published as 8.037e-07 / 2, with a rank sum of 499. In the
    other example the lower end of the 95% interval at Γ = 3 (table 3.3) is at 0.0935 to 0.0936 according to the
    documentation of R's DOS2."""
    assert 2 * wilcoxon_bound(LEAD, 1) == pytest.approx(8.037e-07, rel=1e-4)
    assert wilcoxon_bound(WELDING - 0.0934, 3) < 0.05 < wilcoxon_bound(WELDING - 0.0936, 3)


@pytest.mark.parametrize("level", [0.05, 0.001])
@pytest.mark.parametrize(("gamma", "bound"), [(sign_gamma, sign_bound), (wilcoxon_gamma, wilcoxon_bound)])
def test_gamma_is_where_the_bound_crosses_the_level(gamma, bound, level):
    for values in (WELDING, LEAD, np.ones(12), [*np.ones(300), -2.0]):
        found = gamma(values, level)
        assert found > 1
        assert bound(values, found * (1 - 1e-5)) < level < bound(values, found * (1 + 1e-5))


def test_what_does_not_reject_has_no_gamma():
    for values in ([-1.0] * 9, [0.0] * 9, [1.0] * 4, [1.0, -1.0] * 20):
        assert sign_gamma(values, 0.05) is None
        assert wilcoxon_gamma(values, 0.05) is None
    assert sign_bound([0.0], 2) == wilcoxon_bound([0.0], 2) == 1.0


def test_many_documents_come_near_the_exact_bound(monkeypatch):
    values = np.random.default_rng(0).normal(0.3, 1, 150)
    exact = [wilcoxon_bound(values, gamma) for gamma in (1, 1.3, 1.8)]
    monkeypatch.setattr(module, "EXACT_RANKS", 0)
    assert [wilcoxon_bound(values, gamma) for gamma in (1, 1.3, 1.8)] == pytest.approx(exact, abs=0.004)


@pytest.mark.parametrize("sizes", [(30, 18), (18, 30)])
def test_the_shift_is_where_the_two_sample_test_stops_rejecting(sizes):
    rng = np.random.default_rng(sizes)
    suspect, heldout = 5 + 1.5 * rng.normal(0.8, 1, sizes[0]), 5 + rng.exponential(1, sizes[1]) - 1
    found = two_sample_shift(suspect, heldout, 0.05, permutations=999, seed=3)
    p_values = [
        two_sample(suspect - shift, heldout, permutations=999, seed=3)
        for shift in (0.0, found / 2, found, found + 0.1)
    ]
    assert p_values == sorted(p_values)
    assert p_values[2] <= 0.05 < p_values[3]
    moved = two_sample_shift(100 * suspect - 40, 100 * heldout - 40, 0.05, permutations=999, seed=3)
    assert moved == pytest.approx(100 * found, rel=1e-4)


def test_the_shift_where_there_is_none_or_no_spread():
    rng = np.random.default_rng(1)
    values = rng.normal(0, 1, 30)
    assert two_sample_shift(values, values + 1, 0.05, permutations=199) is None
    assert two_sample_shift([1.0] * 9, [1.0] * 9, 0.05, permutations=199) is None
    assert two_sample_shift([3.0] * 9, [1.0] * 9, 0.05, permutations=199) == pytest.approx(2.0, rel=1e-5)


def test_what_belongs_to_which_design():
    found = module.sensitivity(LEAD, level=0.01)
    assert found == module.Sensitivity(sign_gamma(LEAD, 0.01), wilcoxon_gamma(LEAD, 0.01), None)
    beside = module.sensitivity(LEAD, LEAD - 15, level=0.01, permutations=999, seed=2)
    shift = two_sample_shift(LEAD, LEAD - 15, 0.01, permutations=999, seed=2)
    assert beside == module.Sensitivity(None, None, shift)
    assert 0 < shift < 15
