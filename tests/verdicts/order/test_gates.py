"""The blind gates let random orders pass and stop orders that carry meaning."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import scipy.stats
from verdicts.order.memorising import WORDS, row

from pretrace.verdicts import order as gates
from pretrace.verdicts.order import Unit, gate_values, near, neighbours, order_check

CURE = "what to do"


def units_of(texts, rows=8):
    places = tuple(range(1, rows))
    return [
        Unit(str(i), tuple(texts[i : i + rows]), (places,), joint="\n\n") for i in range(0, len(texts), rows)
    ]


def checked(texts, rows=8):
    return order_check(gate_values(units_of(texts, rows), seed=0), cure=CURE, seed=0)


def rows_drawn(seed, number=96):
    rng = np.random.default_rng(seed)
    return [row(rng, int(rng.integers(3, 9))) for _ in range(number)]


def test_random_orders_pass_as_often_as_promised(monkeypatch):
    monkeypatch.setattr(gates, "MOST", 29)
    monkeypatch.setattr(gates, "GATE_DRAWS", 1000)
    failed = sum(checked(rows_drawn(seed, 24), 6).status == "failed" for seed in range(60))
    assert failed <= scipy.stats.binom.ppf(0.995, 60, gates.GATES)


@pytest.mark.parametrize(
    ("arranged", "gate"),
    [
        (sorted, "the alphabet"),
        (lambda rows: sorted(rows, reverse=True), "the alphabet"),
        (lambda rows: sorted(rows, key=len), "the length of neighbours"),
        (lambda rows: [f"{i}. {text}" for i, text in enumerate(rows)], "numbers in front"),
    ],
)
def test_arranged_rows_are_stopped(arranged, gate):
    check = checked(arranged(rows_drawn(1)))
    assert check.status == "failed"
    assert check.figures["p"][gate] <= 0.01
    assert gate in check.words.partition("stands out by")[2]
    assert check.cure == CURE


def test_rows_grouped_by_topic_are_stopped_by_their_words_and_so_are_rows_kept_apart():
    rng = np.random.default_rng(5)
    half = len(WORDS) // 2
    first = [" ".join(rng.choice(WORDS[:half], 6)) for _ in range(80)]
    second = [" ".join(rng.choice(WORDS[half:], 6)) for _ in range(80)]
    together = [text for i in range(0, 80, 4) for text in (*first[i : i + 4], *second[i : i + 4])]
    apart = [text for pair in zip(first, second, strict=True) for text in pair]
    for texts in (together, apart):
        check = checked(texts)
        assert check.status == "failed"
        assert check.figures["p"][gates.WORDS_NEAR] < 0.01
    assert checked(together).figures["p"]["how far they compress"] < 0.01


def test_pieces_of_running_text_are_stopped_by_where_sentences_end():
    """Cut after every sixth word, so that a row ends within a sentence where the next one begins within it."""
    rng = np.random.default_rng(8)
    words: list[str] = []
    while len(words) < 6 * 96:
        sentence = [str(word) for word in rng.choice(WORDS, int(rng.integers(8, 20)))]
        words += [sentence[0].capitalize(), *sentence[1:-1], f"{sentence[-1]}."]
    rows = [" ".join(words[i : i + 6]) for i in range(0, 6 * 96, 6)]
    check = checked(rows)
    assert check.status == "failed"
    assert check.figures["p"]["where sentences end"] < 0.001
    assert checked([rows[i] for i in rng.permutation(len(rows))]).status == "passed"
    unit = Unit("u", ("A row that goes", "on here.", "Another one.", "and more"), ((1, 2, 3),))
    found = gates._sentences(unit, 0)
    assert found.tolist() == [[0, 1, 0, 1], [1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]]


def test_a_statistic_that_cannot_differ_is_left_out():
    assert "numbers in front" not in gate_values(units_of(rows_drawn(0)), seed=0)
    same = gate_values(units_of(["the same row"] * 16), seed=0)
    assert same == {}
    assert order_check(same, cure=CURE, seed=0).status == "not run"


def test_statistics_are_what_they_are_called():
    unit = Unit("u", ("pear tree", "apple pie", "apple tree", "3 figs"), ((1, 2, 3),), joint="|")
    orders = np.array([[0, 1, 2, 3], [0, 2, 1, 3]])
    lengths = [-abs(9 - 9) - abs(10 - 9) - abs(6 - 10), -abs(10 - 9) - abs(9 - 10) - abs(6 - 9)]
    found = gates._gates([unit])
    assert neighbours(found["the length of neighbours"](unit, 0), orders).tolist() == lengths
    assert neighbours(found["the alphabet"](unit, 0), orders).tolist() == [-1 + 1 - 1, -1 - 1 - 1]
    alike = found[gates.WORDS_NEAR](unit, 0)
    assert alike[0, 2] > 0
    assert alike[0, 1] == alike[0, 3] == 0
    slow = [
        sum(alike[order[a], order[b]] / (b - a) for a in range(4) for b in range(a + 1, 4))
        for order in orders.tolist()
    ]
    assert near(alike, orders).tolist() == pytest.approx(slow)
    assert found[gates.PIECES_NEAR](unit, 0)[0, 2] > 0
    size = len(zlib.compress(b"pear tree|apple tree|apple pie|3 figs"))
    assert gates.compressed(unit, orders)[1] == -size


def test_few_orders_of_many_units_are_looked_at(monkeypatch):
    units = units_of(rows_drawn(0, 80))
    assert {len(row) for row in gate_values(units, seed=0)["the alphabet"]} == {1 + gates.MOST}
    monkeypatch.setattr(gates, "TOTAL", 500)
    assert {len(row) for row in gate_values(units, seed=0)["the alphabet"]} == {51}
    monkeypatch.setattr(gates, "TOTAL", 10)
    assert {len(row) for row in gate_values(units, seed=0)["the alphabet"]} == {1 + gates.FEWEST}
