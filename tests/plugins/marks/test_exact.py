"""The tests by lot hold their level exactly, whatever the model is, and find a model that knows the published texts."""

import random

import numpy as np
import pytest
from net.api import CheckSettings, Corpus, Memory, Models, Text, check_marks, marks

SETTINGS = CheckSettings(draws=1000, cache=False, model_date="2050")
OWN = marks.MarkSettings(variant_column=("other",))


def corpus(number=24):
    return Corpus("letters", tuple(Text(f"t{i}", f"Letter {i} tells of the valley.") for i in range(number)))


def sealed():
    made = {
        text.id: tuple(f"{text.text} It is kept in folder {'abc'[k]}{i}." for k in range(3))
        for i, text in enumerate(corpus().texts)
    }
    return marks.mark(corpus(), marks.VariantCandidates(made), OWN, draw=random.Random(0).randrange)


def test_the_draw_is_fair():
    pairs = marks.VariantCandidates({f"t{i}": (f"One {i}.", f"Other {i}.") for i in range(600)})
    drawn = [one.drawn for one in marks.mark(corpus(600), pairs, OWN).documents]
    assert set(drawn) == {0, 1}
    assert abs(np.mean(drawn) - 0.5) < 0.11  # five standard errors


def test_a_model_that_knows_other_variants_than_the_published_ones_is_far_from_accused():
    seal = sealed()
    knows_another = Memory([one.realised_first[1] for one in seal.documents])
    assert check_marks(seal, Models(knows_another), SETTINGS).p > 0.9


def test_a_canary_is_read_as_a_sum_over_the_text():
    lot, settings = random.Random(3).randrange, marks.MarkSettings(canary=True, choices=4)
    seal = marks.mark(corpus(), marks.own_candidates(corpus(), settings, draw=lot), settings, draw=lot)
    found = check_marks(seal, Models(Memory([one.published for one in seal.documents])), SETTINGS)
    assert found.effect_unit == "nats a text"
    assert found.outcome == "consistent"
    length = np.mean([len(one.published) - 1 for one in seal.documents])
    assert found.effect.value == pytest.approx(length, rel=0.35)  # 1 a character, and chance


def test_a_second_try_with_another_score_withholds_and_the_same_test_again_does_not():
    seal = sealed()
    models = Models(Memory([one.published for one in seal.documents]))
    settings = CheckSettings(draws=1000)
    assert check_marks(seal, models, settings).outcome == "consistent"
    again = check_marks(seal, models, settings)
    assert again.outcome == "consistent"
    assert "1 earlier tests" in again.checks[1].words
    other = check_marks(seal, models, CheckSettings(draws=1000, score="min_k(k=0.5)"))
    assert other.outcome == "inconclusive"
    assert "score loss" in other.checks[1].words
    another_model = check_marks(seal, Models(Memory(name="new")), CheckSettings(draws=1000, score="zlib"))
    assert another_model.checks[1].status == "passed"


@pytest.mark.parametrize(
    ("texts", "variants", "status"),
    [(4, 2, "failed"), (5, 2, "passed"), (1, 20, "passed"), (500, 2, "passed")],
)
def test_too_few_texts_for_the_level_are_told(texts, variants, status):
    made = {one.id: tuple(f"{one.text} {k}" for k in range(variants)) for one in corpus(texts).texts}
    seal = marks.mark(corpus(texts), marks.VariantCandidates(made), OWN)
    found = check_marks(seal, Models(Memory()), SETTINGS)
    assert {one.name: one.status for one in found.checks}["enough"] == status
