"""The verdict on an order: exact whatever the model makes of orders, and found where the model knows the order."""

from __future__ import annotations

import hashlib
import json
import random
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from verdicts.order.memorising import Memorising, Reading, by_hash, made_corpus

from pretrace.errors import ExpressionError, TextsError
from pretrace.results.verdicts import load_verdict
from pretrace.runs import save_verdict
from pretrace.scoring.plan import Models
from pretrace.statistics.ranks import lot_test
from pretrace.testing import FakeBackend
from pretrace.types import Corpus, Text
from pretrace.verdicts.draws import seed_of
from pretrace.verdicts.order import (
    WAYS,
    OrderSettings,
    Unit,
    asked,
    check_enough,
    drawn_orders,
    order,
    ranks,
    repeated,
)

STATED = {"stated": "shuffled with a seed", "shuffled_with": "sha256", "cache": False}


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
    arranged = Corpus("sorted", tuple(sorted(corpus.texts, key=lambda text: text.text)))
    withheld = order(arranged, Models(FakeBackend()), OrderSettings(power=True, stated="by lot", cache=False))
    assert withheld.outcome == "inconclusive"  # an order that carries meaning clears nobody


@pytest.mark.parametrize("stated", ["", "shuffled with a seed"])
def test_what_is_only_stated_accuses_nobody_and_clears_nobody(stated, monkeypatch):
    """Rows of which each continues the last move a model that did not read them exactly as rows that it read: here the
    target knows the order, and the second model does not."""
    corpus = made_corpus(96)
    alone = OrderSettings(stated=stated, cache=False)
    knowing = Memorising(published(corpus))
    second = Reading(name="innocent", salt=2)
    found = order(corpus, Models(knowing, placebos=(second,)), alone)
    assert found.p < 0.001
    assert found.outcome == "inconclusive"
    assert {check.name for check in found.checks if check.status == "failed"} == {"lot"}
    assert any("--shuffled-with" in advice for advice in found.advice)
    assert order(corpus, Models(knowing, placebos=(second,)), OrderSettings(**STATED)).outcome == "consistent"
    monkeypatch.setattr("pretrace.verdicts.planting.planted_copy", lambda *_, **__: nullcontext(knowing))
    cleared = order(corpus, Models(FakeBackend()), replace(alone, power=True))
    assert (cleared.outcome, cleared.planted.probability.value >= 0.8) == ("inconclusive", True)


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
    stated = {"stated": "by lot", "cache": False}
    found = order(corpus, model, OrderSettings(**stated))
    check = next(check for check in found.checks if check.name == "order")
    assert check.status == "failed"
    assert check.figures["p"]["numbers in front"] < 0.01
    assert "--block-column" in check.cure
    blocked = order(corpus, model, OrderSettings(block_column=("day",), **stated))
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
    question = f"Question {number}?"
    return Text(f"q{number}", question, meta={"choices": json.dumps(list(options))})


def multiple_choice(items=60, seed=0):
    rng = np.random.default_rng(seed)
    parts = [f"{a}{b}" for a in "bdfghklmnprstvw" for b in ("ako", "elu", "iro", "ona", "umi", "yse")]
    words = [one + other for one in parts for other in parts]
    return Corpus(
        "items",
        tuple(
            item(i, by_hash(rng.choice(words, 4, replace=False).tolist(), f"Question {i}?\n"))
            for i in range(items)
        ),
    )


def test_the_order_of_options_is_found_and_an_innocent_model_is_not():
    corpus = multiple_choice()
    settings = OrderSettings(shuffled_with="sha256", options="choices", cache=False)
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
    stated = OrderSettings(stated="by lot", cache=False)
    with pytest.raises(
        TextsError, match=r"1 shards whose rows .* 20 results in all, .* needs 40: give more rows"
    ):
        order(made_corpus(5), Models(FakeBackend()), stated)
    with pytest.raises(TextsError, match="there is no shard whose rows may change places"):
        order(made_corpus(2), Models(FakeBackend()), stated)
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
        ({"shuffled_from": "a"}, "name them with --shuffled-with"),
        ({"shuffled_with": "sha256:1"}, "--shuffled-with is sha256, or a way to shuffle and its seed"),
        (
            {"shuffled_with": "random.shuffle"},
            "found 'random.shuffle'. The ways are random.shuffle, random.sample",
        ),
        ({"shuffled_with": "random.shuffle:4294967296"}, "from 0 to 4294967295"),
        ({"shuffled_with": "shuf:1"}, "found 'shuf:1'"),
    ],
)
def test_settings_out_of_range_are_refused(wrong, message):
    with pytest.raises(ExpressionError, match=message):
        OrderSettings(**wrong)


def test_columns_are_those_of_blocks_and_options():
    assert OrderSettings(block_column=("day, topic", "split")).columns == ("day", "topic", "split")
    assert OrderSettings(options="a, b,c").option_columns == ("a", "b", "c")


def shuffled_by(way, seed, rows):
    """As whoever publishes a set shuffles it."""
    rows = list(rows)
    if way == "random.shuffle":
        random.Random(seed).shuffle(rows)
    elif way == "random.sample":
        rows = random.Random(seed).sample(rows, len(rows))
    elif way == "numpy.permutation":
        np.random.default_rng(seed).shuffle(rows)
    else:
        rows = [rows[i] for i in np.random.RandomState(seed).permutation(len(rows))]
    return rows


def corpus_of(rows, name="set"):
    return Corpus(name, tuple(Text(f"r{i}", text) for i, text in enumerate(rows)))


@pytest.mark.parametrize("way", WAYS)
def test_a_shuffle_is_repeated_from_a_file_or_from_sorted_rows(way):
    rows = [f"row {i} of {i % 7}" for i in range(40)]
    settings = OrderSettings(shuffled_with=f"{way}:11")
    published = shuffled_by(way, 11, rows)
    original = corpus_of(rows, "before")
    said = repeated(corpus_of(published), settings, original)
    how = f"{way} with the seed 11"
    assert (
        said
        == f"The lot was drawn again: the rows of before put in order by {how} stand as they were published."
    )
    assert repeated(corpus_of(published[5:30:2]), settings, original)  # a part of them was published
    assert "sorted by their text" in repeated(corpus_of(shuffled_by(way, 11, sorted(rows))), settings)
    for wrong, start in ((rows, original), (shuffled_by(way, 12, rows), original), (published, None)):
        with pytest.raises(TextsError, match=r"do not stand as they were published: r\d+ stands"):
            repeated(corpus_of(wrong), settings, start)
    with pytest.raises(TextsError, match="8 rows are so few that any order agrees with a lot by chance"):
        repeated(corpus_of(published[:8]), settings, original)
    with pytest.raises(TextsError, match="so few"):
        repeated(corpus_of(["one row"] * 40), settings, corpus_of(["one row"] * 40))


def test_rows_by_their_hash_are_in_an_order_that_nobody_chose():
    rows = [f"row {i}" for i in range(40)]
    settings = OrderSettings(shuffled_with="sha256")
    assert "put in order by their SHA-256" in repeated(corpus_of(by_hash(rows)), settings)
    with pytest.raises(TextsError, match="r1 stands elsewhere"):
        repeated(corpus_of(by_hash(rows)[::-1]), settings)
    parts = [by_hash(rows[:20]), by_hash(rows[20:])]
    texts = tuple(
        Text(f"{i}-{part}", text, meta={"part": str(part)})
        for part, some in enumerate(parts)
        for i, text in enumerate(some)
    )
    assert repeated(Corpus("set", texts), replace(settings, block_column=("part",)))
    with pytest.raises(TextsError, match="stands elsewhere"):
        repeated(Corpus("set", texts), settings)


@pytest.mark.parametrize("way", WAYS)
def test_the_shuffle_of_options_goes_on_from_item_to_item(way):
    options = [[f"{word} {i}" for word in ("cow", "ant", "dog", "bee")] for i in range(12)]
    before = Corpus("before", tuple(item(i, one) for i, one in enumerate(options)))
    draw, state, generator = random.Random(5), np.random.RandomState(5), np.random.default_rng(5)
    in_place = {"random.shuffle": draw, "numpy.permutation": generator, "RandomState.permutation": state}
    made = []
    for one in options:
        places = list(range(4))
        if way in in_place:
            in_place[way].shuffle(places)
        else:
            places = draw.sample(places, 4)
        made.append([one[i] for i in places])
    settings = OrderSettings(shuffled_with=f"{way}:5", options="choices")
    published = Corpus("set", tuple(item(i, one) for i, one in enumerate(made)))
    assert "the answer options of before" in repeated(published, settings, before)
    assert repeated(replace(published, texts=published.texts[2:10]), settings, before)
    with pytest.raises(TextsError, match="q0 stands elsewhere"):
        repeated(published, settings)  # they were not sorted before
    again = Corpus("set", tuple(item(i, [one[k] for k in (1, 0, 2, 3)]) for i, one in enumerate(options)))
    with pytest.raises(TextsError, match="stands elsewhere"):
        repeated(again, settings, before)  # one order for all items is one lot, not twelve


def test_a_right_answer_keeps_its_place_where_wrong_options_stand_by_their_hash():
    texts = []
    for i in range(14):
        options = by_hash([f"{word} {i}" for word in ("cow", "ant", "dog")], f"Question {i}?\n")
        options.insert(i % 4, f"bee {i}")
        meta = {"choices": json.dumps(options), "right": f"bee {i}"}
        texts.append(Text(f"q{i}", f"Question {i}?", meta=meta))
    kept = OrderSettings(shuffled_with="sha256", options="choices", answer="right")
    assert repeated(Corpus("set", tuple(texts)), kept)
    with pytest.raises(TextsError, match="elsewhere"):
        repeated(Corpus("set", tuple(texts)), replace(kept, answer=""))


def test_a_second_model_that_finds_nothing_is_enough_where_the_lot_is_repeated():
    """And the verdict names the file that the lot began with, as a statement."""
    rows = [text.text for text in made_corpus(96, seed=4).texts]
    corpus = corpus_of(shuffled_by("random.shuffle", 3, rows))
    known = Models(Memorising(published(corpus)), placebos=(Reading(name="innocent", salt=2),))
    settings = OrderSettings(shuffled_with="random.shuffle:3", cache=False)
    found = order(corpus, known, settings, original=corpus_of(rows, "before.jsonl"))
    assert found.outcome == "consistent"
    assert "p beyond innocent" not in found.figures
    assert any("before.jsonl holds the rows as they stood" in one for one in found.trust)
    assert found.settings["original"]["name"] == "before.jsonl"
    assert order(corpus, Models(known.target), settings, original=corpus_of(rows)).outcome == "inconclusive"
