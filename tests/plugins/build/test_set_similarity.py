"""Similarity of two sets: the figures of a naive loop, even where both are the same, apart where they differ."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from pretrace.plugins.build.set_similarity import Comparing, _js_divergence, compare_sets
from pretrace.types import Text


def made(number, *, words, name, seed=0, length=30):
    rng = np.random.default_rng(seed)
    choices = words.split()
    texts = [" ".join(rng.choice(choices, length)) for _ in range(number)]
    return [Text(f"{name}{i}", text) for i, text in enumerate(texts)]


WORDS = " ".join(f"w{i}" for i in range(80))
OTHERS = " ".join(f"{'w' if i % 2 else 'v'}{i}" for i in range(80))
QUICK = Comparing(resamples=100, halves=5)


def grams(text, size):
    words = text.lower().split()
    return set(itertools.pairwise(words)) if size == 2 else {(word,) for word in words}


def embed(texts):
    rows = np.array([[text.count("w"), text.count("v"), 1.0] for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_figures_of_a_naive_loop():
    a, b = made(12, words=WORDS, name="a"), made(9, words=OTHERS, name="b", seed=1)
    found = {row.name: row for row in compare_sets(a, b, QUICK, embed=embed)[0]}
    for size, name in ((1, "1-gram"), (2, "2-gram")):
        inside = [_jaccard(x.text, y.text, size) for x, y in itertools.combinations(a, 2)]
        across = [_jaccard(x.text, y.text, size) for x in a for y in b]
        assert found[name].inside.value == pytest.approx(np.mean(inside))
        assert found[name].across.value == pytest.approx(np.mean(across))
    cosine = np.mean([embed([x.text])[0] @ embed([y.text])[0] for x in a for y in b])
    assert found["similarity"].across.value == pytest.approx(cosine)
    assert set(found) == {"1-gram", "2-gram", "similarity", "JS divergence", "JS distance"}


def _jaccard(one, two, size):
    x, y = grams(one, size), grams(two, size)
    return len(x & y) / len(x | y)


def test_divergence_is_scipys():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, q = rng.integers(0, 4, 30).astype(float), rng.integers(0, 4, 30).astype(float)
        assert _js_divergence(p, q) == pytest.approx(jensenshannon(p, q, base=2) ** 2)
    a, b = made(8, words=WORDS, name="a"), made(8, words=OTHERS, name="b")
    *_, divergence, distance = compare_sets(a, b, Comparing(halves=1))[0]
    assert distance.across.value == pytest.approx(np.sqrt(divergence.across.value * np.log(2)))


def test_alike_and_apart():
    a = made(60, words=WORDS, name="a")
    same, _, _ = compare_sets(a, made(60, words=WORDS, name="b", seed=5), QUICK)
    apart, _, _ = compare_sets(a, made(60, words=OTHERS, name="b", seed=5), QUICK)
    for row in same:
        assert row.across.value == pytest.approx(row.inside.value, rel=0.3)
        assert row.name.startswith("JS") or row.across.low <= row.inside.high
        assert row.name.startswith("JS") or row.inside.low <= row.across.high
        assert row.inside.low <= row.inside.value <= row.inside.high
    for row in apart:
        if row.name.startswith("JS"):
            assert row.across.low > row.inside.high
        else:
            assert row.across.high < row.inside.low
    assert compare_sets(a, a[:30], QUICK) == compare_sets(a, a[:30], QUICK)


def test_intervals_cover_the_truth():
    many = made(400, words=WORDS, name="a", seed=98), made(400, words=OTHERS, name="b", seed=99)
    truth = compare_sets(*many, QUICK)[0][0]
    inside = across = 0
    for seed in range(60):
        a = made(25, words=WORDS, name="a", seed=2 * seed)
        b = made(25, words=OTHERS, name="b", seed=2 * seed + 1)
        row = compare_sets(a, b, Comparing(resamples=200, halves=1))[0][0]
        inside += row.inside.low <= truth.inside.value <= row.inside.high
        across += row.across.low <= truth.across.value <= row.across.high
    assert min(inside, across) >= 50


def first(a, b):
    return compare_sets(a, b, QUICK)[0][0]


def test_a_document_is_not_compared_with_itself():
    a = made(10, words=WORDS, name="a")
    twice = [Text(f"{t.id}-{k}", t.text, group=t.id) for t in a for k in range(2)]
    b = made(10, words=WORDS, name="b", seed=3)
    once = first(a, b)
    assert first(twice, b).inside.value == pytest.approx(once.inside.value)
    # A text's own transformed version is left out; a row number names nothing.
    assert first(a, a).across.value == pytest.approx(once.inside.value)
    numbered = [Text(str(i), t.text) for i, t in enumerate(a)]
    assert first(numbered, numbered).across.value > once.inside.value


def test_of_many_texts_some_are_drawn():
    a, b = made(40, words=WORDS, name="a"), made(20, words=OTHERS, name="b")
    _, texts, notes = compare_sets(a, b, Comparing(most=10))
    said = "10 of the {} texts of {} were drawn and compared."
    assert (texts, notes) == ((10, 10), [said.format(40, "A"), said.format(20, "B")])


def test_odd_texts():
    odd = [Text(f"o{i}", text) for i, text in enumerate(("", "...", "\ud83d half", "one", "x " * 50_000))]
    a = [*made(4, words=WORDS, name="a"), *odd]
    rows, texts, notes = compare_sets(a, odd, QUICK)
    assert texts == (7, 3)
    assert notes[0] == "2 texts of A without a word were left out."
    assert all(np.isfinite([row.inside.low, row.across.high]).all() for row in rows)
    chinese = [Text(f"c{i}", text) for i, text in enumerate(["今日は雨", "昨日は雪", "明日は晴", "雨が降る"])]
    assert first(chinese, chinese[:2]).inside.value > 0
