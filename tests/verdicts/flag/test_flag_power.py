"""What clears a flagging: power of 0.8 for a tenth of the documents, and a finding below what such a tenth shows."""

import numpy as np
import pytest

from pretrace.statistics.conformal import compare_below, serial_p, spread_p
from pretrace.tuning.planting import PlantSettings
from pretrace.verdicts.flag import concluding
from pretrace.verdicts.flag.concluding import Sides, simulated
from pretrace.verdicts.flag.planning import FlagSettings, prospect
from pretrace.verdicts.frame import PlantedShift

SETTINGS = FlagSettings(score="loss", cache=False)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.RESAMPLES", 100)
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.SIMULATED", 60)


def looked(asked, known, seen=0, shift=0.0, seed=5, like=None):
    rng = np.random.default_rng(seed)
    number = asked + known
    scores = rng.normal(size=number)
    scores[:seen] += shift
    mine = np.arange(number) < asked
    lengths = np.full(number, 100.0) + rng.integers(0, 9, number)
    placebo = like and like * scores + np.sqrt(1 - like**2) * np.random.default_rng(seed + 99).normal(
        size=number
    )
    sides = Sides(mine, np.arange(number), scores, placebo, lengths, SETTINGS, 3)
    plan = prospect((np.ones(asked), np.ones(known)), SETTINGS, "known")
    words = rng.choice([f"w{i}" for i in range(40)], (number, 12))
    return concluding.run_checks(sides, plan, lambda chosen: [" ".join(one) for one in words[chosen]])


def ended(found, gained):
    power, share = simulated(found, PlantedShift(gained, PlantSettings(epochs=1)))
    return concluding.conclude_outliers(found.outliers, found.checks, power, share), power, share


def test_no_power_clears_nothing_and_enough_power_does():
    """Issue 21: a tenth planted and read once ended with 0 in 16 of 16."""
    found = looked(200, 200)
    assert found.quiet
    weak, power, _ = ended(found, np.full(20, 0.3))
    assert (weak, power.probability.value < 0.2) == ("missed", True)
    assert power.needed is None  # a tenth that moves so little is seen at no size that was tried
    strong, power, share = ended(found, np.full(20, 12.0))
    assert (strong, power.probability.value >= 0.8) == ("none", True)
    assert share.high < 0.1 == power.effect.low
    assert power.facts["gained"][0] == pytest.approx(12.0, rel=0.2)


def test_a_placebo_that_reads_alike_leaves_a_smaller_drift_at_every_size():
    chances = []
    for like in (None, 0.95, 0.05):
        found = looked(900, 900, like=like)
        chances.append(ended(found, np.full(20, 2.5))[1].probability.value)
        assert (found.outliers.unseen < concluding.FLOOR) == (like == 0.95)
    assert chances[1] > max(chances[0], chances[2])


@pytest.mark.parametrize(("asked", "known"), [(12, 60), (2, 25)])
def test_few_documents_are_never_cleared(asked, known):
    """Issue 21: 12 asked and 60 known ended with 0, and so did 2 and 25 with every check "not run"."""
    found = looked(asked, known)
    assert concluding.conclude_outliers(found.outliers, found.checks, None, None) == "missed"
    outcome, power, _ = ended(found, np.full(4, 1.5))
    assert (outcome, power.probability.value < 0.8) == ("missed", True)


@pytest.mark.parametrize("seed", [5, 8])
def test_a_clean_set_of_the_size_that_is_named_is_cleared(seed):
    small = looked(40, 60, seed=seed)
    outcome, power, _ = ended(small, np.full(20, 3.0))
    assert outcome == "missed"
    asked, known = power.needed, power.facts["known_needed"]
    assert 40 < asked < known < 1_000
    large = looked(asked, known, seed=seed + 10)
    assert ended(large, np.full(20, 3.0))[0] == "none"


def test_a_few_that_were_seen_are_not_cleared_though_a_tenth_would_have_been_found():
    found = looked(200, 200, seen=8, shift=12.0, seed=8)
    if found.quiet:
        assert ended(found, np.full(20, 12.0))[0] == "missed"
    else:
        assert found.outliers.rejects


def test_spreads_in_both_directions_and_below_the_middle_alone():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=300), rng.normal(size=300)
    assert spread_p(1.6 * one, other) < 1e-6
    assert spread_p(other, 1.6 * one) < 1e-6
    assert spread_p(one + 9.0, other) > 0.01
    assert spread_p(np.zeros(9), np.zeros(9)) == 1.0
    wide, seen = compare_below(1.6 * one, other), one.copy()
    seen[:30] += 2.0
    assert (wide.p < 1e-4, wide.allowed(0.84) > 1.5) == (True, True)
    seen = compare_below(seen, other)
    assert (seen.p > 0.01, seen.allowed(0.84) < 1.3) == (True, True)
    assert compare_below(np.full(9, 5.0), other).allowed(0.84) == 1.5  # nothing lies below: nothing is known


def test_neighbours_that_are_alike_are_noticed():
    rng = np.random.default_rng(0)
    assert serial_p(np.repeat(rng.normal(size=30), 5) + 0.5 * rng.normal(size=150)) < 1e-4
    assert np.mean([serial_p(rng.normal(size=60)) <= 0.05 for _ in range(400)]) < 0.09
    assert serial_p(np.arange(5.0)) == 1.0
