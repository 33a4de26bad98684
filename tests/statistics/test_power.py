"""Power: the fast simulation against the permutation tests themselves, and what follows from it."""

import math
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from net.api import PlantedValues, auc_documents, auc_power, sign_flip, two_sample
from net.api import permutation as module

RNG = np.random.default_rng(7)
NOISE = RNG.standard_normal(80)
BESIDE = 3 * (RNG.exponential(1, 80) - 1)
LAWS = {
    "normal": (NOISE, 0.4 + 0.5 * RNG.standard_normal(80)),
    "few documents move": (NOISE, 3.0 * (RNG.random(80) < 0.15)),
    "other documents": (RNG.standard_t(4, 80), RNG.gamma(1, 0.5, 50)),
}


def power(noise, shift, documents, audits=2000, **how):
    return PlantedValues.of(noise, shift, **how).power(documents, audits)


def curve(noise, shift, sizes, heldout=None):
    return PlantedValues.of(noise, shift, heldout).curve(sizes)


def needed(noise, shift, **how):
    return PlantedValues.of(noise, shift, **how).needed()


def permuted(noise, shift, documents, heldout=0, audits=1000):
    """The same probability with the permutation test itself, drawn by other means."""
    rng = np.random.default_rng(11)
    planted = PlantedValues.of(noise, shift)
    rejected = 0
    for seed in range(audits):
        rows, others = rng.integers(0, len(noise), documents), rng.integers(0, len(shift), documents)
        values = planted.noise[rows] + planted.shift[rows if len(noise) == len(shift) else others]
        if heldout:
            known = PlantedValues.of(noise, shift, BESIDE[:heldout]).heldout
            beside = known[rng.integers(0, heldout, heldout)]
            p = two_sample(values, beside, permutations=199, seed=seed)
        else:
            p = sign_flip(values, flips=199, seed=seed)
        rejected += p <= 0.05
    return rejected / audits


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("documents", "heldout"), [(25, 0), (80, 0), (60, 30)])
def test_it_agrees_with_the_permutation_test(law, documents, heldout):
    noise, shift = LAWS[law]
    more = {"heldout": BESIDE[:heldout]} if heldout else {}
    found = power(noise, shift, documents, **more)
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(permuted(noise, shift, documents, heldout), abs=0.06)


def test_without_an_effect_it_is_the_level():
    for level in (0.05, 0.2):
        found = power(NOISE, np.zeros(80), 100, level=level, audits=4000)
        assert found.value == pytest.approx(level, abs=0.015)
    found = power(NOISE, np.zeros(80), 50, heldout=BESIDE[:40])
    assert found.value == pytest.approx(0.05, abs=0.02)


def test_pairs_are_kept_together():
    shift = -NOISE + 0.3  # training takes a document's own noise away: every trained value is alike
    assert power(NOISE, shift, 20).value == 1.0
    assert power(NOISE, shift[:-1], 20).value < 0.6


def test_the_interval_holds_the_truth():
    """The truth being the power for the law that documents were planted from, not for those documents."""
    many = RNG.standard_normal(40_000), 0.35 + 0.5 * RNG.standard_normal(40_000)
    truth = power(*many, 40, audits=4000).value
    held, widths = 0, []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        few = rng.standard_normal(30), 0.35 + 0.5 * rng.standard_normal(30)
        found = power(*few, 40, audits=500, seed=seed)
        held += found.low <= truth <= found.high
        widths.append(found.high - found.low)
    assert held >= 25
    assert 0.3 < np.mean(widths) < 0.9


def test_more_documents_see_more():
    noise, shift = LAWS["normal"]
    sizes = (4, 5, 10, 20, 40, 80, 160, 1999, 2001, 50_000)
    points = curve(noise, shift, sizes)
    assert tuple(size for size, _ in points) == sizes
    chances = [chance for _, chance in points]
    assert chances[0] == 0.0  # four documents cannot reach 5%
    assert all(later > before - 0.01 for before, later in pairwise(chances))
    assert chances[-1] == pytest.approx(1.0)
    apart = curve(noise, shift, sizes[3:7], heldout=BESIDE)
    assert all(unpaired < paired for (_, unpaired), (_, paired) in zip(apart, points[3:7], strict=True))
    assert dict(points)[40] == power(noise, shift, 40).value


def test_the_limit_goes_on_where_simulation_ends(monkeypatch):
    noise, shift = NOISE, 0.06 + 0.5 * LAWS["normal"][1] - 0.5 * LAWS["normal"][1].mean()
    simulated = dict(curve(noise, shift, (500, 1000), heldout=BESIDE))
    monkeypatch.setattr(module, "LARGE", 100)
    for size, chance in curve(noise, shift, (500, 1000), heldout=BESIDE):
        assert chance == pytest.approx(simulated[size], abs=0.04)


@pytest.mark.parametrize("heldout", [None, BESIDE])
def test_the_documents_that_are_needed(heldout):
    noise, shift = LAWS["normal"]
    number = needed(noise, shift, heldout=heldout)
    assert number is not None
    (_, before), (_, at) = curve(noise, shift, (number - 1, number), heldout=heldout)
    assert before < 0.8 <= at
    # Far beyond what is simulated, against the formula for a normal mean.
    small = needed(noise, shift / 20, heldout=heldout)
    assert small is not None
    variance = (NOISE + shift / 20).var() + (0.0 if heldout is None else heldout.var())
    expected = (2.4865 / (shift.mean() / 20)) ** 2 * variance * 80 / 79
    assert small == pytest.approx(expected, rel=0.01)


def test_where_no_number_of_documents_would_do():
    assert needed(NOISE, np.zeros(80)) is None
    assert needed(NOISE, np.full(80, -1.0)) is None
    assert needed(NOISE, np.full(80, 1e-9)) is None
    assert needed(NOISE, np.full(80, 100.0)) == 5
    assert needed(NOISE, np.full(80, 100.0), level=0.01) == 7


def test_odd_noise():
    assert power(np.zeros(5), np.zeros(5), 10).value == 0.0
    certain = power(np.zeros(5), np.ones(5), 10)
    assert certain.value == certain.high == 1.0
    assert 0.99 < certain.low < 1.0  # simulated audits, however many, do not show certainty
    assert power(NOISE, np.ones(80), 4).value == 0.0
    assert power(NOISE, np.full(80, 9.0), 3, heldout=BESIDE[:2]).value == 0.0
    assert power(NOISE * 1e-40, np.full(80, 1e-40), 30).value == power(NOISE, np.ones(80), 30).value


@pytest.mark.parametrize(
    ("auc", "documents", "controls"), [(0.5, 30, 30), (0.55, 100, 60), (0.65, 25, 50), (0.75, 20, 20)]
)
def test_the_power_from_an_auc_is_the_share_of_permutation_tests_that_reject(auc, documents, controls):
    apart = math.sqrt(2) * NormalDist().inv_cdf(auc)
    rng = np.random.default_rng(5)
    draws = [(rng.normal(apart, 1, documents), rng.normal(0, 1, controls)) for _ in range(400)]
    found = [two_sample(*one, permutations=99, seed=i) <= 0.05 for i, one in enumerate(draws)]
    # three standard errors
    assert auc_power(auc, documents, controls) == pytest.approx(np.mean(found), abs=0.075)


def test_documents_for_an_auc_are_the_fewest_that_reach_the_power():
    for auc in (0.55, 0.62, 0.8, 0.99):
        found = auc_documents(auc)
        assert found is not None
        assert auc_power(auc, found, found) >= 0.8
        assert found == 2 or auc_power(auc, found - 1, found - 1) < 0.8
    assert auc_documents(0.5) is None
    # By the normal approximation 2 ((z_0.95 + z_0.8) / d)^2, where d is sqrt(2) times the quantile of the AUC.
    normal = NormalDist()
    apart = math.sqrt(2) * normal.inv_cdf(0.52)
    by_hand = 2 * ((normal.inv_cdf(0.95) + normal.inv_cdf(0.8)) / apart) ** 2
    assert auc_documents(0.52) == pytest.approx(by_hand, rel=0.01)
