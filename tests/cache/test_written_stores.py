"""The caches of what models wrote: it comes back as it was, under all that it was written with, or not at all."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrace.cache.location import text_key
from pretrace.cache.store import Draw, open_continuations, open_neighbors, open_written, written_once
from pretrace.scoring.evidence import open_store
from pretrace.types import Sampling, Written

KEYS = [text_key(name) for name in "abc"]
DRAW = Draw(32, Sampling(0.6, 0.9, 1.2), 0)
ODD = "vier ü\ud800\x00\n🙂 "
STORES = {
    "continuations": (open_continuations, ODD, ""),
    "neighbours": (open_neighbors, (ODD, "", "three"), ("x",)),
    "texts": (open_written, Written(ODD), Written("two", ended=False)),
}


@pytest.mark.parametrize(("store", "one", "other"), STORES.values(), ids=STORES)
def test_what_was_put_comes_back(store, one, other, tmp_path):
    with store("model", tmp_path) as kept:
        kept.put(KEYS[:2], [one, other], "how")
        kept.put([], [], "how")
    with store("model", tmp_path) as kept:
        assert kept.get([KEYS[1], KEYS[2], KEYS[0]], "how") == [other, None, one]
        assert kept.get(KEYS, "otherwise") == [None] * 3
    with store("another", tmp_path) as kept, store(None) as none:
        none.put(KEYS[:1], [one], "how")
        assert kept.get(KEYS, "how") == none.get(KEYS, "how") == [None] * 3


def test_each_kind_has_a_file_of_its_own(tmp_path):
    opened = [store("model", tmp_path) for store in (*(one[0] for one in STORES.values()), open_store)]
    assert len({one.path for one in opened}) == 4
    for one in opened:
        one.close()


def test_another_setting_is_another_text():
    samplings = [Sampling(0.6 + 1e-16, 0.9, 1.2), Sampling(0.9, 0.6, 1.2), Sampling(0.6, 0.9, 1)]
    others = [replace(DRAW, tokens=33), replace(DRAW, seed=1)]
    others += [replace(DRAW, sampling=sampling) for sampling in samplings]
    assert len({DRAW.label, *(other.label for other in others)}) == 6
    assert Draw(sampling=Sampling(1, 1, 1)).label == Draw().label


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=5), st.floats(0, 1e9), st.integers(0, 2**80))
def test_any_texts_temperature_and_seed(texts, temperature, seed):
    how = Draw(1, Sampling(temperature), seed).label
    with tempfile.TemporaryDirectory() as folder, open_neighbors("model", Path(folder)) as store:
        store.put(KEYS[:1], [tuple(texts)], how)
        assert store.get(KEYS[:1], how) == [tuple(texts)]


def test_what_is_there_stays_but_a_longer_list_takes_the_place_of_a_shorter_one(tmp_path):
    some = ("one", "two", "three")
    with open_neighbors("model", tmp_path) as store:
        for neighbors in (some[:2], some, some[:1]):
            store.put(KEYS[:1], [neighbors], "how")
        assert store.get(KEYS[:1], "how") == [some]
    with open_continuations("model", tmp_path) as texts:
        for text in ("one", "another"):
            texts.put(KEYS[:1], [text], "how")
        assert texts.get(KEYS[:1], "how") == ["one"]


class Writer:
    """Writes in batches of two, and remembers what it was asked for."""

    def __init__(self, texts, *, dies_after=99):
        self.texts, self.dies_after = texts, dies_after
        self.batches = []

    def __call__(self, known):
        new = [text for text in dict.fromkeys(self.texts) if text not in known]
        for at in range(0, len(new), 2):
            if len(self.batches) == self.dies_after:
                raise KeyboardInterrupt
            some = new[at : at + 2]
            self.batches.append(some)
            yield some, [Written(text.upper(), ended=len(text) % 2 == 0) for text in some]


def test_written_once_and_given_back_as_it_was():
    texts = ["a", "\ud83d half", "NUL\x00", "x" * 100_000, "a"]
    expected = [Written(text.upper(), len(text) % 2 == 0) for text in texts]
    known = [("model", "how", True), ("model", "how", False), ("model", "otherwise", True)]
    for fingerprint, label, new in (*known, ("another", "how", True), *[(None, "how", True)] * 2):
        writer = Writer(texts)
        assert written_once(fingerprint, texts, label, writer) == expected
        assert bool(writer.batches) == new


def test_killed_between_batches_goes_on_and_an_empty_answer_is_asked_for_again():
    texts = ["a", "", "c", "d", "e"]
    with pytest.raises(KeyboardInterrupt):
        written_once("model", texts, "", Writer(texts, dies_after=2))
    for left in (["", "e"], [""]):
        later = Writer(texts)
        assert [one.text for one in written_once("model", texts, "", later)] == ["A", "", "C", "D", "E"]
        assert later.batches == [left]
