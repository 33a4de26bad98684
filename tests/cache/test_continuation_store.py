"""The cache of generated texts: they come back character for character, under all that they were drawn with."""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrace.cache.location import text_key
from pretrace.cache.written import Draw, Generated, open_continuations, open_neighbors
from pretrace.errors import OutputError
from pretrace.types import Sampling

KEYS = [text_key(name) for name in "abc"]
DRAW = Draw(32, Sampling(0.6, 0.9, 1.2), 0)
ODD = "vier ü\ud800\x00\n🙂 "


def edit(store: Generated[str], statement: str, *values: object) -> None:
    connection = sqlite3.connect(store.path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    with open_continuations("generator", tmp_path) as store:
        store.put(KEYS[:2], [ODD, ""], DRAW.label)
        store.put([], [], DRAW.label)
    with open_continuations("generator", tmp_path) as store:
        assert store.get([KEYS[1], KEYS[2], KEYS[0]], DRAW.label) == ["", None, ODD]
        store.put(KEYS[:1], ["another"], DRAW.label)  # what is there stays: it has been used
        assert store.get(KEYS[:1], DRAW.label) == [ODD]
    with open_continuations("another", tmp_path) as store:
        assert store.get(KEYS, DRAW.label) == [None] * 3


@pytest.mark.parametrize(
    "other",
    [
        replace(DRAW, tokens=33),
        replace(DRAW, seed=1),
        replace(DRAW, sampling=Sampling(0.6 + 1e-16, 0.9, 1.2)),
        replace(DRAW, sampling=Sampling(0.9, 0.6, 1.2)),
        replace(DRAW, sampling=Sampling(0.6, 0.9, 1)),
    ],
)
def test_another_setting_is_another_text(tmp_path: Path, other: Draw) -> None:
    with open_continuations("generator", tmp_path) as store:
        store.put(KEYS[:1], ["one"], DRAW.label)
        assert store.get(KEYS[:1], other.label) == [None]
        store.put(KEYS[:1], ["two"], other.label)
        assert store.get(KEYS[:1], DRAW.label) == ["one"]
        assert store.get(KEYS[:1], other.label) == ["two"]


def test_whole_numbers_are_numbers() -> None:
    assert Draw(sampling=Sampling(1, 1, 1)).label == Draw().label


@settings(max_examples=20, deadline=None)
@given(st.text(), st.floats(0, 1e9), st.integers(0, 2**80))
def test_any_text_temperature_and_seed(text: str, temperature: float, seed: int) -> None:
    draw = Draw(1, Sampling(temperature), seed)
    with tempfile.TemporaryDirectory() as folder, open_continuations("generator", Path(folder)) as store:
        store.put(KEYS[:1], [text], draw.label)
        assert store.get(KEYS[:1], draw.label) == [text]


@pytest.mark.parametrize(
    "change", ["body = x''", "body = 'x'", "body = x'ff'", "checksum = 1", "checksum = 'x'"]
)
def test_a_damaged_row_is_a_miss_and_is_mended(tmp_path: Path, change: str) -> None:
    with open_continuations("generator", tmp_path) as store:
        store.put(KEYS[:2], ["one", "two"], DRAW.label)
        edit(store, f"UPDATE entries SET {change} WHERE key = ?", KEYS[0])
        assert store.get(KEYS[:2], DRAW.label) == [None, "two"]
        store.put(KEYS[:1], ["one"], DRAW.label)
        assert store.get(KEYS[:2], DRAW.label) == ["one", "two"]


def test_a_damaged_file_is_set_aside_in_words_of_its_own(tmp_path: Path) -> None:
    store = open_continuations("generator", tmp_path)
    store.close()
    store.path.write_bytes(b"x" * 5000)
    with pytest.warns(
        UserWarning, match=r"the cache of generated texts .*its continuations are computed anew"
    ):
        open_continuations("generator", tmp_path).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"the cache of generated texts .*PRETRACE_CACHE"):
        open_continuations("generator", tmp_path / "file")


def test_neighbours_lie_elsewhere(tmp_path: Path) -> None:
    with open_continuations("x", tmp_path) as texts, open_neighbors("x", tmp_path) as neighbors:
        assert texts.path != neighbors.path


def test_without_a_cache_nothing_is_kept() -> None:
    with open_continuations(None) as store:
        store.put(KEYS, ["a", "b", "c"], DRAW.label)
        assert store.get(KEYS, DRAW.label) == [None] * 3
