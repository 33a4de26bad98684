"""Twins from texts to verdict, with models whose likelihoods are made up."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import WORDS

from pretrace.errors import ModelError, TextsError
from pretrace.scoring.plan import Models
from pretrace.testing import FakeBackend
from pretrace.types import Corpus, Text
from pretrace.verdicts.twins import TwinSettings, drafts_in, twins


def written(rng, words=40):
    return " ".join(rng.choice(WORDS, words))


def corpora(number=24, seed=0, **more):
    """Published texts, and drafts in which some words differ."""
    rng = np.random.default_rng(seed)
    published, drafts = [], []
    for i in range(number):
        words = rng.choice(WORDS, 40)
        other = words.copy()
        other[rng.integers(0, 40, 6)] = rng.choice(WORDS, 6)
        published.append(Text(f"t{i}", " ".join(words), **more))
        drafts.append(Text(f"t{i}", " ".join(other), **more))
    return Corpus("texts", tuple(published)), Corpus("drafts", tuple(drafts))


SETTINGS = TwinSettings(draws=1999, cache=False)
PUBLISHED, DRAFTS = corpora()
TRAINED = FakeBackend([text.text for text in PUBLISHED.texts], name="trained")
PLACEBO = FakeBackend(name="placebo", max_tokens=4000)
UNTRAINED = FakeBackend(name="untrained", max_tokens=3999)
REFERENCE = FakeBackend(name="reference", max_tokens=3998)


def test_a_model_that_read_the_published_versions_is_told() -> None:
    found = twins(PUBLISHED, DRAFTS, Models(TRAINED, placebos=(PLACEBO,)), SETTINGS)
    assert found.outcome == "consistent"
    assert found.p is not None
    assert found.p <= 0.05
    assert found.figures["gamma"] > 1
    assert not found.exact


def test_gamma_stands_beside_p_wherever_p_is_told() -> None:
    found = twins(PUBLISHED, DRAFTS, Models(TRAINED, placebos=(PLACEBO,)), SETTINGS)
    for sentences in (found.reasons[0], " ".join(found.trust)):
        assert "Γ* =" in sentences
        assert "would stand even if" in sentences
    without = twins(PUBLISHED, DRAFTS, Models(UNTRAINED, placebos=(PLACEBO,)), SETTINGS)
    assert "Γ* = none" in without.reasons[0]


def test_a_model_that_did_not_is_not_told_and_not_cleared() -> None:
    found = twins(PUBLISHED, DRAFTS, Models(UNTRAINED, placebos=(PLACEBO,)), SETTINGS)
    assert found.outcome == "inconclusive"
    assert found.figures["gamma"] is None


def test_without_a_placebo_nobody_is_accused() -> None:
    found = twins(PUBLISHED, DRAFTS, TRAINED, SETTINGS)
    assert found.p is not None
    assert found.p <= 0.05
    assert found.outcome == "inconclusive"
    assert any("--placebo" in advice for advice in found.advice)


def test_a_placebo_that_withstands_as_much_withholds_the_accusation() -> None:
    twin = FakeBackend([text.text for text in PUBLISHED.texts], name="twin", max_tokens=3000)
    found = twins(PUBLISHED, DRAFTS, Models(TRAINED, placebos=(PLACEBO, twin)), SETTINGS)
    assert found.outcome == "inconclusive"
    assert [check.name for check in found.checks if check.status == "failed"] == ["negative controls"]


def test_the_result_does_not_depend_on_which_version_is_called_published_but_for_its_sign() -> None:
    there = twins(PUBLISHED, DRAFTS, Models(UNTRAINED, placebos=(PLACEBO,)), SETTINGS)
    back = twins(DRAFTS, PUBLISHED, Models(UNTRAINED, placebos=(PLACEBO,)), SETTINGS)
    first, second = there.table("pairs").columns["left"], back.table("pairs").columns["left"]
    np.testing.assert_allclose(first, -np.asarray(second), atol=1e-12)


def test_equal_pairs_are_left_out_and_counted() -> None:
    drafts = Corpus("drafts", (PUBLISHED.texts[0], *DRAFTS.texts[1:]))
    found = twins(PUBLISHED, drafts, Models(TRAINED, placebos=(PLACEBO,)), SETTINGS)
    assert found.units == len(PUBLISHED) - 1
    assert [one.id for one in found.skipped] == ["t0"]
    assert any(note.startswith("1 pairs were left out") for note in found.notes)


def test_pairs_of_a_document_count_once() -> None:
    published, drafts = (
        Corpus(side.name, tuple(Text(t.id, t.text, group=f"d{int(t.id[1:]) // 3}") for t in side.texts))
        for side in (PUBLISHED, DRAFTS)
    )
    found = twins(published, drafts, Models(TRAINED, placebos=(PLACEBO,)), SETTINGS)
    assert (found.units, found.unit) == (8, "document")


def test_texts_that_give_the_answer_away_are_refused() -> None:
    drafts = Corpus("drafts", tuple(Text(t.id, t.text + " zzz" * 300) for t in DRAFTS.texts))
    found = twins(PUBLISHED, drafts, Models(TRAINED, placebos=(PLACEBO,)), SETTINGS)
    assert found.outcome == "inconclusive"
    assert "information" in {check.name for check in found.checks if check.status == "failed"}


@pytest.mark.parametrize(
    ("published", "drafts", "said"),
    [
        (PUBLISHED, Corpus("d", DRAFTS.texts[1:]), "1 of 24 published texts have no draft: 't0'"),
        (Corpus("p", PUBLISHED.texts[1:]), DRAFTS, "1 of 24 drafts belong to no published text: 't0'"),
        (PUBLISHED, Corpus("d", (Text("t0", "  "), *DRAFTS.texts[1:])), "1 of 24 texts have an empty draft: 't0'"),
        (Corpus("p", PUBLISHED.texts[:5]), Corpus("d", DRAFTS.texts[:5]), "6 pairs or more"),
        (PUBLISHED, PUBLISHED, "found 0 (24 pairs were left out: the draft and the published version are equal)"),
    ],
)  # fmt: skip
def test_unusable_pairs_are_refused_with_the_number(published: Corpus, drafts: Corpus, said: str) -> None:
    with pytest.raises(TextsError) as error:
        twins(published, drafts, TRAINED, SETTINGS)
    assert said in str(error.value)


def test_drafts_stand_in_a_column() -> None:
    texts = tuple(
        Text(t.id, t.text, meta={"draft": d.text}) for t, d in zip(PUBLISHED.texts, DRAFTS.texts, strict=True)
    )
    assert [t.text for t in drafts_in(Corpus("p", texts), "draft").texts] == [t.text for t in DRAFTS.texts]
    with pytest.raises(TextsError, match="without the column"):
        drafts_in(PUBLISHED, "draft")


def test_a_reference_that_is_the_target_is_refused() -> None:
    with pytest.raises(ModelError, match="is the target"):
        twins(PUBLISHED, DRAFTS, TRAINED, SETTINGS, references=[TRAINED])


def test_reference_models_take_off_what_they_predict() -> None:
    alone = twins(PUBLISHED, DRAFTS, Models(UNTRAINED, placebos=(PLACEBO,)), SETTINGS)
    beside = twins(
        PUBLISHED, DRAFTS, Models(UNTRAINED, placebos=(PLACEBO,)), SETTINGS, references=[REFERENCE]
    )
    spread = [float(np.std(one.table("pairs").columns["left"])) for one in (alone, beside)]
    assert spread[1] < 0.2 * spread[0]  # the reference model is the same up to what it read
