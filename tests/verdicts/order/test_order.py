"""The verdict on an order: exact whatever the model makes of orders, and found where the model knows the order."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.stats
from verdicts.order.memorising import Memorising, Reading, made_corpus

from pretrace.errors import ExpressionError, TextsError
from pretrace.results.verdicts import load_verdict
from pretrace.runs import save_verdict
from pretrace.scoring.plan import Models
from pretrace.statistics.lots import lot_test
from pretrace.testing import FakeBackend
from pretrace.types import Corpus, Text
from pretrace.verdicts.draws import seed_of
from pretrace.verdicts.order import (
    OrderSettings,
    Unit,
    _Order,
    asked,
    check_enough,
    drawn_orders,
    every_order,
    far,
    order,
    ranks,
    shards,
)

STATED = {"stated": "shuffled with a seed", "cache": False}


def published(corpus, rows=8):
    texts = [text.text for text in corpus.texts]
    return ["\n\n".join(texts[i : i + rows]) for i in range(0, len(texts), rows)]


def hashed(text):
    """An adversarial model: any fixed function of the order, with a long tail."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    return -(float(np.log1p(-number)) ** 3)


def test_p_values_are_uniform_for_any_fixed_function_of_the_order():
    parts = np.array([f"row {i}" for i in range(24)])
    p = []
    for seed in range(400):
        rng = np.random.default_rng([7, seed])
        shuffled = rng.permutation(parts)
        units = [Unit(str(i), tuple(shuffled[i : i + 6]), ((1, 2, 3, 4, 5),)) for i in range(0, 24, 6)]
        values = [[hashed(text) for text in unit.texts(drawn_orders(unit, 9, rng))] for unit in units]
        p.append(lot_test(values, draws=400, seed=seed).p)
    rejected = int((np.array(p) <= 0.05).sum())
    low, high = scipy.stats.binom.ppf([0.005, 0.995], 400, 0.05)
    assert low <= rejected <= high
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01


def test_what_is_read_is_what_the_formula_says():
    corpus = made_corpus(24)
    model, reference = Memorising(published(corpus)), FakeBackend(name="other")
    settings = OrderSettings(**STATED)
    verdict = order(corpus, Models(model, reference=reference), settings)
    units = [
        Unit(
            str(i),
            tuple(text.text for text in corpus.texts[i : i + 8]),
            ((1, 2, 3, 4, 5, 6, 7),),
            joint="\n\n",
        )
        for i in (0, 8, 16)
    ]
    seed = seed_of("order", [text.text for text in corpus.texts], blocks=[], answer=False)
    texts = asked(units, model, seed).texts
    assert [found[0] for found in texts] == published(corpus)

    def total(backend, text):
        encoded = backend.encode([text])
        return float(backend.run(encoded, backend.offers)[0].logp.astype(np.float64).sum())

    values = [[total(model, text) - total(reference, text) for text in found] for found in texts]
    table = verdict.table("shards").columns
    assert table["published"] == pytest.approx([row[0] for row in values], abs=1e-3)
    assert table["others_mean"] == pytest.approx([np.mean(row[1:]) for row in values], abs=1e-3)
    assert table["effect"] == pytest.approx([row[0] - np.mean(row[1:]) for row in values], abs=1e-3)
    assert table["rank"].tolist() == [ranks(np.array(row))[0] for row in values]
    assert verdict.p == lot_test(values, draws=10_000, seed=seed).p
    assert verdict.effect.value == pytest.approx(np.mean(table["effect"]))


def test_a_model_that_knows_the_order_is_found_and_another_is_not(tmp_path):
    corpus = made_corpus(96)
    knowing, innocent = Memorising(published(corpus)), Reading(name="innocent", salt=2)
    found = order(corpus, Models(knowing, placebos=(innocent,)), OrderSettings(**STATED))
    assert (found.outcome, found.units, found.p) == ("consistent", 12, pytest.approx(1 / 10_001))
    assert all(check.status == "passed" for check in found.checks)
    assert found.effect.low > 0
    assert found.statements["order"] == "shuffled with a seed"
    assert "“shuffled with a seed”" in found.assumption
    assert 100 < found.figures["passes"] <= 12 * 20  # four rows have 24 orders, and some are drawn twice
    save_verdict(found, tmp_path / "R")
    assert load_verdict(tmp_path / "R").p == found.p
    page = (tmp_path / "R" / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "shards, sorted" in page
    nothing = order(corpus, Models(innocent), OrderSettings(**STATED))
    assert nothing.outcome == "inconclusive"
    assert nothing.p > 0.05


def test_nothing_is_shown_only_where_planting_would_have_been_seen(monkeypatch):
    corpus = made_corpus(96)
    copy = Memorising(published(corpus))
    monkeypatch.setattr("pretrace.verdicts.planting.planted_copy", lambda *_, **__: nullcontext(copy))
    found = order(corpus, Models(FakeBackend()), OrderSettings(power=True, **STATED))
    assert found.outcome == "nothing"
    assert found.planted.planted == 6
    assert found.planted.effect.low > found.effect.high
    expected = order(corpus, Models(copy), OrderSettings(**STATED)).table("shards").columns["effect"]
    assert found.planted.effect.value == pytest.approx(expected.mean(), rel=0.5)
    unstated = order(corpus, Models(FakeBackend()), OrderSettings(power=True, **{**STATED, "stated": ""}))
    assert unstated.outcome == "inconclusive"
    arranged = Corpus("sorted", tuple(sorted(corpus.texts, key=lambda text: text.text)))
    withheld = order(arranged, Models(FakeBackend()), OrderSettings(power=True, **STATED))
    assert withheld.outcome == "inconclusive"  # an order that carries meaning clears nobody


def test_without_a_statement_there_is_no_verdict():
    corpus = made_corpus(96)
    unstated = {**STATED, "stated": " "}
    found = order(corpus, Models(Memorising(published(corpus))), OrderSettings(**unstated))
    assert found.p < 0.001
    assert found.outcome == "inconclusive"
    assert {check.name for check in found.checks if check.status == "failed"} == {"stated"}
    assert any("--stated" in advice for advice in found.advice)


def test_a_placebo_that_knows_the_order_withholds_the_accusation():
    corpus = made_corpus(96)
    placebo = Memorising(published(corpus), name="placebo")
    found = order(corpus, Models(Memorising(published(corpus)), placebos=(placebo,)), OrderSettings(**STATED))
    assert found.outcome == "inconclusive"
    assert {check.name for check in found.checks if check.status == "failed"} == {"second"}
    assert found.figures["p of placebo"] < 0.001


def test_a_sorted_set_is_withheld_and_blocks_make_it_a_lot_again():
    rng = np.random.default_rng(3)
    days = sorted(range(100, 130))
    texts = tuple(
        Text(
            f"{day}-{i}",
            f"{day}: {' '.join(rng.choice(['a', 'bb', 'ccc', 'dd'], 6))}",
            meta={"day": str(day)},
        )
        for day in days
        for i in range(4)
    )
    corpus = Corpus("sorted", texts)
    model = Models(FakeBackend())
    found = order(corpus, model, OrderSettings(**STATED))
    check = next(check for check in found.checks if check.name == "order")
    assert check.status == "failed"
    assert check.figures["p"]["numbers in front"] < 0.01
    assert "--block-column" in check.cure
    blocked = order(corpus, model, OrderSettings(block_column=("day",), **STATED))
    check = next(check for check in blocked.checks if check.name == "order")
    assert check.status == "passed"
    assert "numbers in front" not in check.figures["p"]  # within a day there is nothing to compare


def test_the_order_of_reading_does_not_tell_which_one_was_published():
    corpus = made_corpus(24)
    seen = []

    class Watching(FakeBackend):
        def encode(self, texts):
            seen.append(list(texts))
            return super().encode(texts)

    order(corpus, Models(Watching()), OrderSettings(**STATED))
    whole = [texts for texts in seen if len(texts) > len(corpus)]  # all orders of all shards
    assert whole
    for texts in whole:
        shard = [one for one in texts if one.startswith(corpus.texts[0].text)]
        assert shard == sorted(shard)


def item(number, options):
    return Text(f"q{number}", f"Question {number}?", meta={"choices": json.dumps(list(options))})


def multiple_choice(items=60, seed=0):
    rng = np.random.default_rng(seed)
    parts = [f"{a}{b}" for a in "bdfghklmnprstvw" for b in ("ako", "elu", "iro", "ona", "umi", "yse")]
    words = [one + other for one in parts for other in parts]
    return Corpus("items", tuple(item(i, rng.choice(words, 4, replace=False)) for i in range(items)))


def test_the_order_of_options_is_found_and_an_innocent_model_is_not():
    corpus = multiple_choice()
    settings = OrderSettings(stated="options shuffled", options="choices", cache=False)
    texts = [
        "\n".join([text.text, *(f"{letter}. {one}" for letter, one in zip("ABCD", options, strict=True))])
        for text in corpus.texts
        for options in [json.loads(text.meta["choices"])]
    ]
    found = order(
        corpus, Models(Memorising(texts, gain=0.5), placebos=(Reading(name="innocent", salt=2),)), settings
    )
    assert (found.test, found.unit, found.units) == ("options", "item", 60)
    assert found.outcome == "consistent"
    assert found.table("items").columns["orders"].tolist() == [24.0] * 60
    assert found.table("items").columns["rank"].mean() > 0.8
    nothing = order(corpus, Models(FakeBackend()), settings)
    assert nothing.p > 0.05


def test_orders_that_share_the_least_with_the_published_one_are_far():
    rows = Unit("rows", tuple("abcd"), ((1, 2, 3),))
    every = every_order(rows)  # 0123 0132 0213 0231 0312 0321
    assert every[far(rows, every)].tolist() == [[0, 2, 1, 3], [0, 3, 2, 1]]
    options = Unit("item", tuple("abcd"), ((0, 1, 2, 3),), lettered=True)
    every = every_order(options)
    assert far(options, every).tolist() == [bool((row != np.arange(4)).all()) for row in every]
    pair = Unit("item", tuple("ab"), ((0, 1),), lettered=True)
    assert far(pair, every_order(pair)).tolist() == [False, True]  # too few for a variance


def test_a_pattern_that_the_second_model_does_not_see_accuses_nobody():
    """The target sees something in all orders, and the published one stands high in it; the second model does not. A
    model that has read the published order finds that one likelier, and is moved by the others as the second is."""
    corpus = made_corpus(24 * 8)
    units = shards(corpus.texts, FakeBackend(), OrderSettings(**STATED))
    test = _Order.made(corpus, Models(FakeBackend()), OrderSettings(**STATED), units, None)
    rng = np.random.default_rng(0)
    noise = [rng.standard_normal((2, len(texts))) for texts in test.asked.texts]
    plain = tuple(one[0] for one in noise)
    second = tuple(np.sqrt(0.5) * one[0] + np.sqrt(0.5) * one[1] for one in noise)
    pattern = [rng.standard_normal(len(one)) for one in plain]
    seen = tuple(row + np.append(1.0, 1.5 * some[1:]) for row, some in zip(plain, pattern, strict=True))
    known = tuple(row + np.append(1.2, np.zeros(len(row) - 1)) for row in plain)
    assert test.tested(seen).p <= 0.05
    assert test.tested(known).p <= 0.05
    assert test.beyond(seen, second).p > 0.05 >= test.beyond(known, second).p
    assert test.beyond(seen, second).unseen > 0.5 > 0.3 > test.beyond(known, second).unseen


def test_items_sorted_by_hand_are_withheld():
    corpus = multiple_choice()
    alphabetical = Corpus(
        "items",
        tuple(item(i, sorted(json.loads(text.meta["choices"]))) for i, text in enumerate(corpus.texts)),
    )
    settings = OrderSettings(stated="options shuffled", options="choices", cache=False)
    found = order(alphabetical, Models(FakeBackend()), settings)
    check = next(check for check in found.checks if check.name == "order")
    assert check.status == "failed"
    assert check.figures["p"]["the alphabet"] < 0.001
    assert found.outcome == "inconclusive"


def test_too_few_orders_for_the_level_are_an_error():
    with pytest.raises(
        TextsError, match=r"1 shards whose rows .* 20 results in all, .* needs 40: give more rows"
    ):
        order(made_corpus(5), Models(FakeBackend()), OrderSettings(**STATED))
    with pytest.raises(TextsError, match="there is no shard whose rows may change places"):
        order(made_corpus(2), Models(FakeBackend()), OrderSettings(**STATED))
    chosen = asked([Unit("a", tuple("abc"), ((1, 2),))] * 6, FakeBackend(), 0)
    check_enough(chosen, OrderSettings())  # 2 ** 6 results
    with pytest.raises(TextsError, match=r"64 results in all, and a test at the level of 0\.01 needs 200"):
        check_enough(chosen, OrderSettings(level=0.01))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"options": "a", "block_column": ("b",)}, "give one of the two"),
        ({"answer": "a"}, "name their column with --options"),
        ({"draws": 999}, "--draws must be at least 1000"),
        ({"level": 1.0}, "--level lies between 0 and 1"),
    ],
)
def test_settings_out_of_range_are_refused(wrong, message):
    with pytest.raises(ExpressionError, match=message):
        OrderSettings(**wrong)


def test_columns_are_those_of_blocks_and_options():
    assert OrderSettings(block_column=("day, topic", "split")).columns == ("day", "topic", "split")
    assert OrderSettings(options="a, b,c").option_columns == ("a", "b", "c")
