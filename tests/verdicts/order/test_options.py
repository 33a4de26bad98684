"""Which items have an order that may have been drawn by lot, and how their orders are read."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from pretrace.errors import TextsError
from pretrace.testing import FakeBackend
from pretrace.types import Text
from pretrace.verdicts.order import OrderSettings
from pretrace.verdicts.order import options as rules
from pretrace.verdicts.order.values import CUT, asked, ranks


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
    found = rules.items(texts, ("choices",))
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
        rules.items(texts, ("choices",))


def test_all_orders_of_four_options_are_read_and_some_of_more():
    four, five = item("q1", "oak", "elm", "ash", "fir"), item("q2", "oak", "elm", "ash", "fir", "yew")
    units = rules.items([four, five], ("choices",)).units
    found = asked(units, [FakeBackend()], OrderSettings(options="choices", orders=7))
    assert [len(texts) for texts in found.texts] == [24, 8]
    assert len(set(found.texts[0])) == 24
    assert found.texts[1][0] == "Which one?\nA. oak\nB. elm\nC. ash\nD. fir\nE. yew"
    assert found.ranked


def test_an_item_that_a_model_would_cut_is_left_out_with_all_its_orders():
    units = rules.items([item("q1", "oak", "elm"), item("q2", "oak " * 30, "elm " * 30)], ("choices",)).units
    found = asked(units, [FakeBackend(), FakeBackend(max_tokens=100)], OrderSettings(options="choices"))
    assert [unit.name for unit in found.units] == ["q1"]
    assert [(one.id, one.reason) for one in found.skipped] == [("q2", CUT)]


def test_ranks_lie_between_0_and_1_and_ties_share_theirs():
    assert ranks(np.array([3.0, 1.0, 1.0, 7.0])).tolist() == [0.75, 0.375, 0.375, 1.0]
