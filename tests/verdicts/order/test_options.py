"""Which items have an order that may have been drawn by lot, and how their orders are read."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from pretrace.errors import TextsError
from pretrace.scoring.plan import Models
from pretrace.testing import FakeBackend
from pretrace.types import Text
from pretrace.verdicts import order as rules
from pretrace.verdicts.order import CUT, OrderSettings, asked, check_others, ranks

CHOICES = OrderSettings(options="choices")


def item(name, *options, question="Which one?"):
    return Text(name, question, meta={"choices": json.dumps(options)})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("a cat", "a dog", "a cow", "a hen"), ""),
        (("Ankara", "Paris", "Vitamin C", "May I sing in the old house"), ""),
        (("a cat", "a dog", "All of the above"), rules.REFERRING),
        (("a cat", "a dog", "none of these"), rules.REFERRING),
        (("a cat", "a dog", "Both A and B"), rules.REFERRING),
        (("a cat", "a dog", "A and C"), rules.REFERRING),
        (("a cat", "a dog", "both a and b"), rules.REFERRING),
        (("a cat", "a dog", "(a) or (b)"), rules.REFERRING),
        (("a cat", "a dog", "Neither."), rules.REFERRING),
        (("a cat", "a dog", "Both are correct"), rules.REFERRING),
        (("I only", "II only", "I and II", "I, II and III"), rules.REFERRING),
        (("A only", "a dog"), rules.REFERRING),
        (("1", "2", "3", "4"), rules.NUMBERS),
        (("4", "1", "3", "2"), rules.NUMBERS),  # in whatever order they stand
        (("$1,200", "$ 900.50", "-3", "1.2e5"), rules.NUMBERS),
        (("12 per cent", "20 per cent", "about 5 kg"), rules.NUMBERS),
        (("3 March 1869", "July 1914", "in the year 1066"), rules.NUMBERS),
        (("Monday", "Tuesday", "Friday"), rules.NUMBERS),
        (("one", "two", "three"), rules.NUMBERS),
        (("1", "2", "a cat that sat on a mat"), ""),
        (("True", "False"), rules.USUAL),
        (("yes, it does", "no, it does not"), rules.USUAL),
        (("a cat", "A CAT", "a dog"), rules.SAME),
        (("a cat",), rules.ONE),
        (tuple(f"beast {'x' * i}" for i in range(27)), rules.MANY),
    ],
)
def test_items_are_left_out_for_what_their_options_say(options, reason):
    assert rules.left_out(options) == reason
    for some in itertools.islice(itertools.permutations(options), 24):  # and never for their order
        assert rules.left_out(some) == reason


def test_items_become_units_with_the_question_in_front():
    texts = [item("q1", "red", "blue"), item("q2", "blue ", "red"), item("q3", "red", "none of the above")]
    found = rules.items(texts, CHOICES)
    assert [unit.name for unit in found.units] == ["q1"]
    assert found.units[0].text([1, 0]) == "Which one?\nA. blue\nB. red"
    assert [(one.id, one.reason) for one in found.skipped] == [("q2", rules.TWICE), ("q3", rules.REFERRING)]


def test_options_come_from_a_list_an_object_or_columns():
    assert rules.options_of(item("q", "red", " ", "blue"), ("choices",)) == ("red", "blue")
    nested = Text("q", "?", meta={"choices": json.dumps({"text": ["red", "blue"], "label": ["A", "B"]})})
    assert rules.options_of(nested, ("choices",)) == ("red", "blue")
    apart = Text("q", "?", meta={"a": "red", "b": "", "c": "blue"})
    assert rules.options_of(apart, ("a", "b", "c")) == ("red", "blue")


@pytest.mark.parametrize("cell", ["", "not a list", "3", "{}", "[]", '[" "]'])
def test_items_without_options_are_an_error(cell):
    texts = [item("q1", "red", "blue"), Text("q2", "?", meta={"choices": cell})]
    with pytest.raises(TextsError, match=r"1 of 2 items have no options in choices \('q2'\)"):
        rules.items(texts, CHOICES)


def test_all_orders_of_four_options_are_read_and_some_of_more():
    four, five = item("q1", "oak", "elm", "ash", "fir"), item("q2", "oak", "elm", "ash", "fir", "yew")
    units = rules.items([four, five], CHOICES).units
    found = asked(units, FakeBackend(), 0)
    assert [len(texts) for texts in found.texts] == [24, 1 + rules.OTHERS]
    assert len(set(found.texts[0])) == 24
    assert found.texts[1][0] == "Which one?\nA. oak\nB. elm\nC. ash\nD. fir\nE. yew"


def test_an_item_that_a_model_would_cut_is_left_out_with_all_its_orders():
    units = rules.items([item("q1", "oak", "elm"), item("q2", "oak " * 30, "elm " * 30)], CHOICES).units
    found = asked(units, FakeBackend(max_tokens=100), 0)
    assert [unit.name for unit in found.units] == ["q1"]
    assert [(one.id, one.reason) for one in found.skipped] == [("q2", CUT)]


def test_a_model_beside_it_that_reads_shorter_texts_is_an_error():
    units = rules.items([item("q1", "oak", "elm"), item("q2", "oak " * 30, "elm " * 30)], CHOICES).units
    found = asked(units, FakeBackend(), 0)
    short = FakeBackend(name="short", max_tokens=100)
    for models in (Models(FakeBackend(), placebos=(short,)), Models(FakeBackend(), reference=short)):
        with pytest.raises(
            TextsError, match="short reads at most 100 tokens at once, and 1 of 2 units are longer"
        ):
            check_others(found, models)


def answered(*cells):
    """Items of four options, with what a column says of the right answer."""
    words = [("oak", "elm", "ash", f"fir {i}") for i in range(len(cells))]
    return [
        replace(item(f"q{i}", *own), meta={**item("q", *own).meta, "answer": cell})
        for i, (own, cell) in enumerate(zip(words, cells, strict=True))
    ]


@pytest.mark.parametrize(
    ("cells", "places"),
    [
        (("oak", "ash"), [0, 2]),
        (("A", "c"), [0, 2]),
        (("0", "3"), [0, 3]),
        (("1", "4"), [0, 3]),
        (("0", "2"), [0, 2]),
    ],
)
def test_the_right_answer_keeps_its_place(cells, places):
    units = rules.items(answered(*cells), replace(CHOICES, answer="answer")).units
    assert [set(range(4)) - set(unit.movable[0]) for unit in units] == [{place} for place in places]
    for unit, place in zip(units, places, strict=True):
        orders = asked([unit], FakeBackend(), 0).texts[0]
        assert len(orders) == 6
        letter = "ABCD"[place]
        assert {text.split(f"{letter}. ")[1].split("\n")[0] for text in orders} == {unit.parts[place]}


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (("yew", "oak"), "1 of 2 items have a right answer in answer that is none of their options"),
        (("1", "2"), "counted neither from 0 nor from 1"),  # both would do
        (("0", "4"), "counted neither from 0 nor from 1"),
        (("", "oak"), "none of their options"),
        (("E", "A"), "none of their options"),
    ],
)
def test_a_right_answer_that_cannot_be_found_is_an_error(cells, message):
    with pytest.raises(TextsError, match=message):
        rules.items(answered(*cells), replace(CHOICES, answer="answer"))


def test_items_of_one_wrong_option_are_left_out():
    texts = [replace(item("q", "oak", "elm"), meta={"choices": '["oak", "elm"]', "answer": "elm"})]
    found = rules.items(texts, replace(CHOICES, answer="answer"))
    assert [one.reason for one in found.skipped] == [rules.ALONE_WRONG]


def test_ranks_lie_between_0_and_1_and_ties_share_theirs():
    assert ranks(np.array([3.0, 1.0, 1.0, 7.0])).tolist() == [0.75, 0.375, 0.375, 1.0]
