"""A cut-off from dated texts to verdict, with models whose likelihoods are made up."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from tiny import WORDS

from pretrace.errors import ModelError, TextsError
from pretrace.scoring.plan import Models
from pretrace.testing import FakeBackend
from pretrace.types import Corpus, Text, Verdict
from pretrace.verdicts.cutoff import CutoffSettings, cutoff

CUTOFF = date(2020, 7, 1)
SETTINGS = CutoffSettings(cutoff="2020-07", cache=False)


def series(months: int = 96, a_month: int = 3, begin: int = 2016, seed: int = 0) -> Corpus:
    """Texts of one kind, some every month."""
    rng = np.random.default_rng(seed)
    texts = []
    for month in range(months):
        for i in range(a_month):
            day = date(begin + month // 12, 1 + month % 12, 1 + int(rng.integers(28)))
            texts.append(Text(f"m{month}.{i}", " ".join(rng.choice(WORDS, 40)), meta={"date": str(day)}))
    return Corpus("texts", tuple(texts))


TEXTS = series()
READ = [text.text for text in TEXTS.texts if text.meta["date"] < str(CUTOFF)]
TRAINED = FakeBackend(READ, name="trained")
UNTRAINED = FakeBackend(name="untrained", max_tokens=4000)
BESIDE = Models(TRAINED, placebos=(UNTRAINED,))
REFERENCE = FakeBackend(name="reference", max_tokens=3999)


def failed(found: Verdict) -> set[str]:
    return {check.name for check in found.checks if check.status == "failed"}


def test_a_model_that_was_trained_until_then_is_told() -> None:
    found = cutoff(TEXTS, BESIDE, SETTINGS)
    assert found.outcome == "consistent"
    assert found.p == pytest.approx(1 / 22)
    assert found.figures["M"] > 1
    assert found.figures["months"] == 4
    assert not found.exact
    assert "at the same time of other years" in found.assumption


def test_without_a_second_model_nobody_is_accused() -> None:
    found = cutoff(TEXTS, TRAINED, SETTINGS)
    assert (found.p, found.outcome) == (pytest.approx(1 / 22), "inconclusive")
    assert "No such model was asked" in " ".join(found.reasons)


def test_the_draws_follow_from_the_texts_alone() -> None:
    """The same texts under other ids, in another order of the file: the same verdict, interval included."""
    other = [replace(text, id=f"x{i}", group="") for i, text in enumerate(TEXTS.texts[::-1])]
    one, two = (cutoff(corpus, BESIDE, SETTINGS) for corpus in (TEXTS, Corpus("again", tuple(other))))
    assert (one.p, one.effect, one.figures) == (two.p, two.effect, two.figures)


def test_a_model_that_was_not_is_not_told_and_not_cleared() -> None:
    found = cutoff(TEXTS, UNTRAINED, SETTINGS)
    assert found.outcome == "inconclusive"
    assert found.p is not None
    assert found.p > 0.05


def test_p_is_told_with_the_breakdown() -> None:
    found = cutoff(TEXTS, BESIDE, SETTINGS)
    for sentences in (found.reasons[0], " ".join(found.trust)):
        assert "M* = " in sentences
    assert any("would stand even if" in sentence for sentence in found.trust)


def test_reference_models_take_off_what_they_predict() -> None:
    alone, beside = (
        cutoff(TEXTS, UNTRAINED, SETTINGS, references=some).figures["largest jump elsewhere"]
        for some in ([], [REFERENCE])
    )
    assert beside < 0.2 * alone  # the reference model is the same up to what it read


def test_a_placebo_that_drops_there_too_withholds_the_answer() -> None:
    other = FakeBackend(READ, name="other", max_tokens=3000)
    found = cutoff(TEXTS, Models(TRAINED, placebos=(other,)), SETTINGS)
    assert found.outcome == "inconclusive"
    assert failed(found) == {"second"}
    assert cutoff(TEXTS, Models(TRAINED, placebos=(UNTRAINED,)), SETTINGS).outcome == "consistent"


def test_texts_that_change_at_the_cutoff_are_refused() -> None:
    texts = tuple(
        text if text.meta["date"] < str(CUTOFF) else replace(text, text=text.text[: len(text.text) // 2])
        for text in TEXTS.texts
    )
    found = cutoff(Corpus("texts", texts), FakeBackend(READ, name="trained"), SETTINGS)
    assert found.outcome == "inconclusive"
    assert "texts" in failed(found)


def test_too_short_a_series_is_refused_with_what_is_missing() -> None:
    """No model is asked: exit code 2, one line."""
    short = series(36, begin=2019)
    with pytest.raises(
        TextsError, match=r"takes 19 other dates at which nothing happened.* are missing"
    ) as error:
        cutoff(short, TRAINED, SETTINGS)
    assert "\n" not in str(error.value)
    with pytest.raises(TextsError, match="takes 199 other dates"):
        cutoff(TEXTS, TRAINED, replace(SETTINGS, level=0.005))
    near = tuple(text for text in TEXTS.texts if "2020-05" < text.meta["date"] < "2020-09")
    with pytest.raises(TextsError, match="are missing"):
        cutoff(Corpus("texts", near), TRAINED, SETTINGS)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"cutoff": "2030-01"}, "lies outside the texts, which are dated from 2016-01-"),
        ({"cutoff": "2010-01"}, "lies outside the texts"),
        ({"cutoff": "July 2020"}, "--cutoff is a date such as"),
        ({"date": "day"}, "without the column 'day'"),
    ],
)
def test_a_wrong_cutoff_is_refused(how: dict[str, str], said: str) -> None:
    with pytest.raises(TextsError, match=said):
        cutoff(TEXTS, TRAINED, replace(SETTINGS, **how))


def test_a_gap_at_the_cutoff_is_refused() -> None:
    texts = tuple(text for text in TEXTS.texts if not "2020-07" <= text.meta["date"] < "2021-01")
    with pytest.raises(
        TextsError, match="in the 6 months before the cut-off 2020-07-01 lie 18 documents and in those"
    ):
        cutoff(Corpus("texts", texts), TRAINED, SETTINGS)


def test_undated_texts_are_refused_or_left_out_and_counted() -> None:
    texts = tuple(
        replace(text, meta={"date": "soon"}) if i < 4 else text for i, text in enumerate(TEXTS.texts)
    )
    with pytest.raises(TextsError) as error:
        cutoff(Corpus("texts", texts), TRAINED, SETTINGS)
    assert (
        "4 of 288 texts have no usable date in the column 'date': 'm0.0', 'm0.1', 'm0.2' and 1 more"
        in str(error.value)
    )
    assert "--skip-undated" in str(error.value)
    found = cutoff(Corpus("texts", texts), TRAINED, replace(SETTINGS, skip_undated=True))
    assert len(found.skipped) == 4
    assert any("4 texts without a usable date" in note for note in found.notes)


def test_months_alone_do_not_go_with_a_cutoff_within_a_month() -> None:
    texts = tuple(replace(text, meta={"date": text.meta["date"][:7]}) for text in TEXTS.texts)
    with pytest.raises(TextsError, match="lies within a month"):
        cutoff(Corpus("texts", texts), TRAINED, replace(SETTINGS, cutoff="2020-07-15"))
    assert cutoff(Corpus("texts", texts), BESIDE, SETTINGS).outcome == "consistent"


def test_a_reference_that_is_the_target_is_refused() -> None:
    with pytest.raises(ModelError, match="is the target"):
        cutoff(TEXTS, TRAINED, SETTINGS, references=[TRAINED])
    with pytest.raises(ModelError, match="the very weights of the target"):
        cutoff(TEXTS, Models(TRAINED, placebos=(TRAINED,)), SETTINGS)
