"""Packing does not see the order within a shard, and orders are drawn uniformly within blocks."""

from __future__ import annotations

from collections import Counter
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrace.testing import FakeBackend
from pretrace.types import Text
from pretrace.verdicts import order
from pretrace.verdicts.order import (
    EMPTY,
    FEW,
    FIXED,
    LONG,
    MOST_ROWS,
    OrderSettings,
    Row,
    Unit,
    drawn_orders,
    every_order,
    packed,
    shards,
)


def rows_of(weights):
    return [Row(str(i), "x", weight) for i, weight in enumerate(weights)]


@settings(max_examples=200, deadline=None)
@given(
    weights=st.lists(st.integers(1, 40), min_size=1, max_size=40),
    limit=st.integers(40, 120),
    most=st.integers(3, 8),
    seed=st.integers(0, 1000),
)
def test_packing_is_the_same_for_every_order_within_a_shard(weights, limit, most, seed):
    found = list(packed(rows_of(weights), limit, most))
    assert [row.id for shard in found for row in shard] == [str(i) for i in range(len(weights))]
    assert all(sum(row.weight for row in shard) <= limit for shard in found)
    rng = np.random.default_rng(seed)
    mixed = [[shard[0], *(shard[1 + i] for i in rng.permutation(len(shard) - 1))] for shard in found]
    again = list(packed([row for shard in mixed for row in shard], limit, most))
    assert again == mixed


def test_the_first_row_of_a_shard_must_stay_for_that():
    found = list(packed(rows_of([1, 1, 1, 38, 1]), 40))
    assert [len(shard) for shard in found] == [3, 2]
    moved = [*found[0], *reversed(found[1])]
    assert [len(shard) for shard in packed(moved, 40)] == [4, 1]


def test_packing_is_greedy():
    found = list(packed(rows_of([5, 5, 1, 9, 2, 2, 2]), 10, 2))
    assert [[row.weight for row in shard] for shard in found] == [[5, 5], [1, 9], [2, 2], [2]]


def test_shards_hold_whole_rows_and_say_what_they_leave_out():
    texts = [Text(f"r{i}", "word " * 3) for i in range(7)]
    texts.insert(2, Text("long", "x" * 200))
    texts.insert(4, Text("empty", "  "))
    backend = FakeBackend(max_tokens=90)  # a row is 15 characters, a joint 2, a margin 2
    found = shards(texts, backend, OrderSettings())
    assert [len(unit.parts) for unit in found.units] == [4, 3]
    assert {one.id: one.reason for one in found.skipped} == {"long": LONG, "empty": EMPTY}
    assert found.units[0].name == "r0 to r3"
    assert found.units[0].text(range(4)) == "\n\n".join(["word " * 3] * 4)
    for unit in found.units:
        assert all(one.cut == 0 for one in backend.encode(unit.texts(every_order(unit))))
    few = shards(texts, FakeBackend(max_tokens=60), OrderSettings())
    assert [len(unit.parts) for unit in few.units] == [3, 3]
    assert {one.id: one.reason for one in few.skipped}["r6"] == FEW


def test_nobody_chooses_how_long_a_shard_is(monkeypatch):
    texts = [Text(f"r{i}", f"row {i}") for i in range(30)]
    large = shards(texts, FakeBackend(max_tokens=100_000), OrderSettings())
    assert [len(unit.parts) for unit in large.units] == [MOST_ROWS] * 3 + [6]
    monkeypatch.setattr(order, "SHARD_TOKENS", 50)
    fewer = shards(texts, FakeBackend(max_tokens=100_000), OrderSettings())
    assert {len(unit.parts) for unit in fewer.units} == {5}


def test_rows_stay_among_those_of_their_block():
    texts = [Text(str(i), f"row {i}", meta={"day": "ab"[i % 2], "topic": "xyz"[i % 3]}) for i in range(8)]
    found = shards(texts, FakeBackend(), OrderSettings(block_column=("day",)))
    assert found.units[0].movable == ((1, 3, 5, 7), (2, 4, 6))  # the first row stays where it is
    orders = drawn_orders(found.units[0], 50, np.random.default_rng(0))
    assert (orders % 2 == np.arange(8) % 2).all()
    assert (orders[:, 0] == 0).all()
    both = shards(texts, FakeBackend(), OrderSettings(block_column=("day, topic",)))
    assert both.units[0].movable == ((1, 7),)
    alone = shards(texts[:6], FakeBackend(), OrderSettings(block_column=("day", "topic")))
    assert not alone.units
    assert {one.reason for one in alone.skipped} == {FIXED}


def test_orders_are_uniform_and_the_published_one_comes_first():
    unit = Unit("u", tuple("abcde"), ((1, 2, 3, 4),))
    orders = drawn_orders(unit, 22, np.random.default_rng(1))
    assert orders.shape == (23, 5)
    assert orders[0].tolist() == [0, 1, 2, 3, 4]
    counts = Counter(
        tuple(row)
        for row in drawn_orders(Unit("u", tuple("abcd"), ((1, 2, 3),)), 4, np.random.default_rng(0))
    )
    assert sum(counts.values()) == 5
    many = Unit("u", tuple("abcdef"), ((1, 2, 3, 4, 5),))
    drawn = Counter(tuple(row) for row in drawn_orders(many, 100, np.random.default_rng(0))[1:].tolist())
    assert max(drawn.values()) > 1  # an order may be drawn twice, the published one among them
    counts = Counter(
        tuple(row)
        for seed in range(300)
        for row in drawn_orders(many, 40, np.random.default_rng(seed))[1:].tolist()
    )
    assert len(counts) == 120
    assert max(abs(count - 100) for count in counts.values()) < 45  # 100 expected, deviation 10


@pytest.mark.parametrize("movable", [((1, 2, 3),), ((0, 2), (1, 3)), ((0, 1, 2, 3),)])
def test_few_orders_are_all_read(movable):
    unit = Unit("u", tuple("abcd"), movable)
    orders = drawn_orders(unit, 30, np.random.default_rng(0))
    assert len(orders) == unit.ways == np.prod([factorial(len(group)) for group in movable])
    assert len({tuple(row) for row in orders.tolist()}) == len(orders)
    assert orders[0].tolist() == [0, 1, 2, 3]
    still = [i for i in range(4) if not any(i in group for group in movable)]
    assert (orders[:, still] == still).all()
