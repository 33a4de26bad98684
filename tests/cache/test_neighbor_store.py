"""The neighbour cache: texts come back character for character, longer lists win, damage is a miss."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrace.cache.location import text_key
from pretrace.cache.written import Generated, Neighbors, open_neighbors
from pretrace.errors import OutputError
from pretrace.scoring.evidence import open_store

HOW = "share=0.3 seed=0"
KEYS = [text_key(name) for name in "abc"]
SOME = ("one 🙂", "", "three\x00\n", "vier ü\ud800")


def edit(store: Generated[Neighbors], statement: str, *values: object) -> None:
    connection = sqlite3.connect(store.path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    with open_neighbors("proposer", tmp_path) as store:
        store.put(KEYS[:2], [SOME, ("x",)], HOW)
    with open_neighbors("proposer", tmp_path) as store:
        assert store.get([KEYS[1], KEYS[2], KEYS[0]], HOW) == [("x",), None, SOME]
        assert store.get(KEYS[:1], "share=0.15") == [None]
        assert store.get(KEYS[:1], "share=0.3 seed=1") == [None]
    with open_neighbors("another", tmp_path) as store:
        assert store.get(KEYS, HOW) == [None] * 3


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_any_texts(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, open_neighbors("proposer", Path(folder)) as store:
        store.put(KEYS[:1], [tuple(texts)], HOW)
        assert store.get(KEYS[:1], HOW) == [tuple(texts)]


def test_a_longer_list_takes_the_place_of_a_shorter_one_only(tmp_path: Path) -> None:
    with open_neighbors("proposer", tmp_path) as store:
        for some in (SOME[:2], SOME, SOME[:1]):
            store.put(KEYS[:1], [some], HOW)
        assert store.get(KEYS[:1], HOW) == [SOME]


@pytest.mark.parametrize(
    "change",
    ["body = x''", "body = 'x'", "checksum = 1", "body = substr(body, 2)"],
)
def test_a_damaged_row_is_a_miss_and_is_mended(tmp_path: Path, change: str) -> None:
    with open_neighbors("proposer", tmp_path) as store:
        store.put(KEYS[:2], [SOME, SOME], HOW)
        edit(store, f"UPDATE entries SET {change} WHERE key = ?", KEYS[0])
        assert store.get(KEYS[:2], HOW) == [None, SOME]
        store.put(KEYS[:1], [SOME[:1]], HOW)
        assert store.get(KEYS[:2], HOW) == [SOME[:1], SOME]


def test_a_damaged_file_is_set_aside_in_words_of_its_own(tmp_path: Path) -> None:
    store = open_neighbors("proposer", tmp_path)
    store.close()
    store.path.write_bytes(b"x" * 5000)
    with pytest.warns(UserWarning, match=r"the neighbour cache .*its neighbours are computed anew"):
        open_neighbors("proposer", tmp_path).close()
    with pytest.raises(ValueError, match=r"the neighbour cache .* is closed"):
        store.get(KEYS, HOW)


def test_a_file_of_traces_is_not_taken_for_neighbours(tmp_path: Path) -> None:
    with open_store("proposer", tmp_path) as traces:
        pass
    store = open_neighbors("proposer", tmp_path)
    store.close()
    assert traces.path != store.path
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"the neighbour cache .*PRETRACE_CACHE"):
        open_neighbors("proposer", tmp_path / "file")


def test_many_neighbours_of_a_text_take_little_more_room_than_one(tmp_path: Path) -> None:
    text = " ".join(str(number * number) for number in range(400))
    near = tuple(text.replace(str(number * number), "x") for number in range(25))
    with open_neighbors("proposer", tmp_path) as store:
        store.put(KEYS[:1], [near], HOW)
        connection = sqlite3.connect(store.path)
        (size,) = connection.execute("SELECT length(body) FROM entries").fetchone()
        connection.close()
    assert size < 3 * len(text)
