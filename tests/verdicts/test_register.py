"""Seeds follow from texts, the test and its settings, and from nothing that a user may choose freely; and the register
of verdicts on this machine."""

import hashlib

import numpy as np
import pytest

from pretrace.verdicts.register import (
    FILE,
    RegisterEntry,
    TextsSketch,
    earlier_tests,
    known,
    note,
    read_tests,
    seed_of,
    texts_hash,
)


def test_a_damaged_line_is_passed_over(tmp_path):
    note(entry(), 0.5, "inconclusive", tmp_path)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"texts": "t", "wei\n[1]\n\xff\xfe\n')
    note(entry("\ud800"), 0.5, "inconclusive", tmp_path)
    assert [line["test"] for line in read_tests(tmp_path)] == ["order", "\ud800"]
    assert read_tests(tmp_path / "nowhere") == ()
    assert len(known(["one text", "another"], tmp_path)) == 2


def entry(test="order", weights="w", **settings):
    return RegisterEntry(test, TextsSketch.of(["one text", "another"]), weights, settings, "model")


def test_different_tests_of_the_same_texts_are_counted_and_the_same_one_only_once(tmp_path):
    (first,) = earlier_tests(entry(), 0.05, tmp_path)
    assert first.startswith("No other test of these texts is known")
    made = (entry(), 0.2), (entry(score="zlib"), 0.03), (entry(weights="other"), 0.5), (entry(), 0.2)
    for one, p in made:
        note(one, p, "inconclusive", tmp_path)
    words, *others = earlier_tests(entry("canaries"), 0.05, tmp_path)
    assert "4 different tests" in words
    assert "For 4 tests the level is 0.0125 each, and for one it is 0.05." in words
    told = [line.partition(": ")[2] for line in others]
    assert told == [f"order of model, p = {p}, inconclusive" for p in (0.2, 0.03, 0.5)]
    assert len(earlier_tests(entry(), 0.05, tmp_path)) == 3  # the same test made again is no new one
    assert len(known(["another", "one  text\n"], tmp_path)) == 3  # a multiset, whatever white space
    other = RegisterEntry("order", TextsSketch.of(["other texts"]), "w", {})
    assert len(earlier_tests(other, 0.05, tmp_path)) == 1


TEXTS = [f"text {number}" for number in range(1000)]


@pytest.mark.parametrize("number", [4, 50, 200, 1000])
@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (lambda texts: texts[1:], True),
        (lambda texts: [*texts, "one more"], True),
        (lambda texts: texts[: len(texts) // 2], True),
        (lambda texts: [*texts, *(f"other {i}" for i in range(len(texts) // 2))], True),
        (lambda texts: [*texts[: len(texts) // 4], *(f"other {i}" for i in range(len(texts)))], False),
        (lambda texts: [f"{text}." for text in texts], False),
    ],
    ids=["one dropped", "one added", "half", "half as many added", "a quarter and others", "all changed"],
)
def test_collections_that_share_half_of_their_texts_are_one(tmp_path, number, changed, same):
    first = TEXTS[:number]
    note(RegisterEntry("audit", TextsSketch.of(first), "w", {}), 0.6, "inconclusive", tmp_path)
    again = RegisterEntry("audit", TextsSketch.of(changed(first)), "w", {})
    assert len(earlier_tests(again, 0.05, tmp_path)) == (2 if same else 1)
    assert (len(known(changed(first), tmp_path)) == 1) is same


SAME = ("one text", "another", "a third", "a third")


def test_the_same_texts_in_any_place_give_the_same_seed():
    seed = seed_of("canaries", SAME, score="loss")
    assert seed == seed_of("canaries", reversed(SAME), score="loss")
    assert seed == seed_of("canaries", [f" {text}\r\n" for text in SAME], score="loss")
    assert 0 <= seed < 2**64
    assert np.random.default_rng(seed).random() == np.random.default_rng(seed).random()


def test_what_matters_gives_another_seed():
    seeds = {
        seed_of("canaries", SAME, score="loss"),
        seed_of("order", SAME, score="loss"),
        seed_of("canaries", SAME, score="zlib"),
        seed_of("canaries", SAME[:3], score="loss"),  # a multiset: how often counts
        seed_of("canaries", ("one", "text another", "a third", "a third"), score="loss"),
    }
    assert len(seeds) == 5
    assert texts_hash(["a", "b"]) == texts_hash(["b", "a"])
    assert len({texts_hash(["ab"]), texts_hash(["a", "b"]), texts_hash([])}) == 3
    assert seed_of("t", ["\ud800"]) != seed_of("t", ["\ud801"])


def test_a_sketch_has_the_lowest_hashes_of_different_texts():
    texts = [f"text {i % 90}" for i in range(100)]
    found = sorted(hashlib.sha256(text.encode()).hexdigest()[:16] for text in set(texts))
    assert TextsSketch.of(texts) == TextsSketch(90, tuple(found[:64]))
