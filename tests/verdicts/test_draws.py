"""Seeds follow from texts, the test and its settings, and from nothing that a user may choose freely."""

import hashlib

import numpy as np
from net.api import TextsSketch, seed_of, texts_hash

TEXTS = ("one text", "another", "a third", "a third")


def test_the_same_texts_in_any_place_give_the_same_seed():
    seed = seed_of("canaries", TEXTS, score="loss")
    assert seed == seed_of("canaries", reversed(TEXTS), score="loss")
    assert seed == seed_of("canaries", [f" {text}\r\n" for text in TEXTS], score="loss")
    assert 0 <= seed < 2**64
    assert np.random.default_rng(seed).random() == np.random.default_rng(seed).random()


def test_what_matters_gives_another_seed():
    seeds = {
        seed_of("canaries", TEXTS, score="loss"),
        seed_of("order", TEXTS, score="loss"),
        seed_of("canaries", TEXTS, score="zlib"),
        seed_of("canaries", TEXTS[:3], score="loss"),  # a multiset: how often counts
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
