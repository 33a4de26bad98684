"""The whole test of a collection on models without weights and on a tiny real one: outcomes, gates, power, generated
text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from verdicts.collections.made import contents, made

from pretrace.backends import open_model
from pretrace.errors import ModelError, TextsError
from pretrace.report.verdict import render
from pretrace.scoring.outlook import Unwatched
from pretrace.scoring.plan import Models
from pretrace.testing import FakeBackend
from pretrace.types import Estimate, Power
from pretrace.verdicts import collections as module
from pretrace.verdicts.audit.generation import tuned_generator
from pretrace.verdicts.collections import CollectionSettings, Company, beside_generated, collections, gathered

CORPORA = made(20, seed=1)
SECOND = FakeBackend(name="second", max_tokens=4000)


def beside(target):
    """The target with a model that cannot have seen the texts."""
    return Models(target, placebos=(SECOND,))


def asked(target, settings=None, corpora=CORPORA, **how):
    return collections(corpora[0], corpora[1:], target, settings, **how)


def test_the_value_of_a_collection_is_the_mean_of_its_documents():
    found = asked(beside(FakeBackend(contents(CORPORA[0]))))
    table, documents = found.table("collections").columns, found.table("documents").columns
    means = [
        np.mean(
            [v for v, name in zip(documents["value"], documents["collection"], strict=True) if name == one]
        )
        for one in table["collection"]
    ]
    assert table["value"] == pytest.approx(np.array(means))
    away = table["standard deviations"]
    assert found.p == (1 + sum(one >= away[0] for one in away[1:])) / 20 == 0.05
    assert found.outcome == "consistent"
    assert found.effect.value == pytest.approx(means[0] - np.mean(means[1:]))


def test_without_a_second_model_nobody_is_accused():
    found = asked(FakeBackend(contents(CORPORA[0])))
    assert (found.p, found.outcome) == (0.05, "inconclusive")
    assert "No such model was asked" in " ".join(found.reasons)


def test_where_nothing_is_preferred_a_second_model_that_prefers_nothing_either_has_passed():
    found = asked(Models(FakeBackend(), placebos=(FakeBackend(name="second", max_tokens=3000),)))
    second = next(check for check in found.checks if check.name == "second")
    assert found.p > 0.05
    assert (second.status, second.cure, "was then held against" in second.words) == ("passed", "", False)


def test_a_second_model_for_which_its_documents_differ_more_withholds():
    """The spread of the scores of the second model is one of the features of the collections."""
    found = asked(beside(FakeBackend(contents(CORPORA[0]))))
    columns = next(check for check in found.checks if check.name == "alike").figures
    assert "spread of scores" in columns
    odd = FakeBackend(contents(CORPORA[0])[::2], name="odd", max_tokens=3000)
    found = asked(Models(FakeBackend(contents(CORPORA[0])), placebos=(odd,)))
    assert found.outcome == "inconclusive"
    assert next(check for check in found.checks if check.name == "alike").status == "failed"


def test_swapping_two_collections_swaps_their_means_alone():
    target = FakeBackend(contents(CORPORA[3]))
    company = Company((FakeBackend(contents(CORPORA[5]), name="other"),))
    first = asked(target, company=company).table("collections").columns
    swapped = [CORPORA[3], *CORPORA[1:3], CORPORA[0], *CORPORA[4:]]
    second = asked(target, corpora=swapped, company=company).table("collections").columns
    one = dict(zip(first["collection"], first["value"].tolist(), strict=True))
    other = dict(zip(second["collection"], second["value"].tolist(), strict=True))
    assert one == other


def test_a_model_that_read_other_collections_too_loses_power_and_not_validity():
    several = FakeBackend([text for one in CORPORA[:6] for text in contents(one)])
    found = asked(several)
    assert 0.05 <= found.p <= 0.3
    assert asked(FakeBackend([text for one in CORPORA[1:6] for text in contents(one)])).p > 0.25


def test_nothing_can_be_said_to_be_shown_without_power(monkeypatch):
    blank = FakeBackend()
    found = asked(blank)
    assert found.outcome == "inconclusive"
    planted = Power(Estimate(0.9, 0.8, 1.0), None, 4, 1, Estimate(5.0, 4.0, 6.0))
    monkeypatch.setattr(module._Collections, "power", lambda *_: planted)
    assert asked(blank, CollectionSettings(power=True)).outcome == "nothing"
    small = replace(planted, effect=Estimate(0.01, 0.0, 0.02))
    monkeypatch.setattr(module._Collections, "power", lambda *_: small)
    assert asked(blank, CollectionSettings(power=True)).outcome == "inconclusive"


def test_texts_of_another_kind_withhold_both_answers(monkeypatch):
    odd = replace(CORPORA[0], texts=tuple(replace(text, text=text.text * 4) for text in CORPORA[0].texts))
    corpora = [odd, *CORPORA[1:]]
    found = asked(FakeBackend(contents(odd)), corpora=corpora)
    assert (found.p, found.outcome) == (0.05, "inconclusive")
    assert [check.status for check in found.checks][:2] == ["failed", "passed"]
    planted = Power(Estimate(0.9, 0.8, 1.0), None, 4, 1, Estimate(5.0, 4.0, 6.0))
    monkeypatch.setattr(module._Collections, "power", lambda *_: planted)
    assert asked(FakeBackend(), CollectionSettings(power=True), corpora).outcome == "inconclusive"


def test_documents_without_a_score_are_counted_and_few_of_them_withhold():
    short = tuple(replace(text, text="abc"[place]) for place, text in enumerate(CORPORA[4].texts[:3]))
    corpora = [*CORPORA[:4], replace(CORPORA[4], texts=(*short, *CORPORA[4].texts[3:])), *CORPORA[5:]]
    found = asked(FakeBackend(contents(CORPORA[0])), corpora=corpora)
    check = next(check for check in found.checks if check.name == "documents")
    assert (check.status, check.figures["fewest"]) == ("failed", 3)
    assert "author 4" in check.words
    assert len(found.skipped) == 3
    empty = replace(
        CORPORA[4], texts=tuple(replace(t, text="abcdef"[i]) for i, t in enumerate(CORPORA[4].texts))
    )
    with pytest.raises(TextsError, match="no text of 'author 4'"):
        asked(FakeBackend(), corpora=[*CORPORA[:4], empty, *CORPORA[5:]])


def test_a_reference_model_that_is_the_placebo_is_refused():
    other = FakeBackend(name="other")
    with pytest.raises(ModelError, match="is the placebo other"):
        asked(Models(FakeBackend(), placebos=(other,)), company=Company((other,)))
    with pytest.raises(ModelError, match="the very weights of the target"):
        asked(Models(other, placebos=(other,)))


def test_the_report_names_the_collection_and_shows_every_mean():
    odd = replace(CORPORA[0], name="$author_0$ <b>")
    page = render(asked(FakeBackend(contents(odd)), corpora=[odd, *CORPORA[1:]]))
    assert "Each hollow dot is one of the other collections" in page
    assert "One dot for each of 19 control collections" in page
    assert "$author_0$ &lt;b&gt;" in page
    assert "the highest of all 20" in page
    assert "<b>\n" not in page.replace("$author_0$ &lt;b&gt;", "")


LONG = made(4, documents=6, words=60, seed=2)
WRITTEN = CollectionSettings(level=0.25, value="generated")


@pytest.fixture
def short(monkeypatch):
    """Pieces of 16 tokens, two of a document."""
    monkeypatch.setattr(module, "TOKENS", 16)
    monkeypatch.setattr(module, "SNIPPETS", 2)


def pieces_of(generator, settings=WRITTEN):
    return beside_generated(gathered(LONG, 0.25), generator, settings, Unwatched(), seed=0)


def test_true_text_is_held_against_generated_text(model_folder, short, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 0)  # the seed of the test, modulo 1
    generator = open_model(str(model_folder))
    material = pieces_of(generator)
    own = [one for one in material.pieces if one.document < 6]
    assert all(one.text != one.generated and one.text[:5] == one.generated[:5] for one in own)
    found = collections(
        LONG[0],
        LONG[1:],
        FakeBackend([one.text for one in own]),
        WRITTEN,
        company=Company(generator=generator),
    )
    assert (found.p, found.figures["value"]) == (0.25, "generated")
    assert found.effect_unit == "nats a token, true less generated text"
    assert found.effect.value == pytest.approx(1.0, abs=0.3)
    blank = FakeBackend()

    def score(text):
        (trace,) = blank.run(blank.encode([text]), blank.offers)
        return trace.logp.mean(dtype=np.float64)

    documents = collections(LONG[0], LONG[1:], blank, WRITTEN, company=Company(generator=generator)).table(
        "documents"
    )
    for place in (0, 13):
        mine = [score(one.text) - score(one.generated) for one in material.pieces if one.document == place]
        assert len(mine) == 2
        assert documents.columns["value"][place] == pytest.approx(np.mean(mine))


def test_each_collection_has_a_generator_tuned_on_pieces_of_its_own(model_folder, short, monkeypatch):
    asked = []

    def recorded(model, texts, method, **how):
        asked.append(tuple(texts))
        return tuned_generator(model, (), "none")

    monkeypatch.setattr("pretrace.verdicts.collections.tuned_generator", recorded)
    material = pieces_of(open_model(str(model_folder)), replace(WRITTEN, method="lora"))
    assert len(asked) == 4
    for unit, learnt in enumerate(asked):
        whole = " ".join(contents(LONG[unit]))
        judged = [one.text for one in material.pieces if one.document // 6 == unit]
        assert learnt
        assert all(text in whole for text in (*learnt, *judged))
        assert not set(learnt) & set(judged)


def test_power_is_that_of_a_planted_copy(model_folder):
    corpora = made(4, documents=8, words=60, seed=2)
    settings = CollectionSettings(level=0.25, power=True, power_epochs=2)
    found = collections(corpora[0], corpora[1:], open_model(str(model_folder)), settings)
    assert found.planted.planted == 4
    assert 0 <= found.planted.probability.value <= 1
    assert np.isfinite(found.planted.effect.value)
