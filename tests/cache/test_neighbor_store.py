"""The neighbour cache: texts come back character for character, longer lists win, damage is a miss."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrace.cache.neighbors import NeighborStore
from pretrace.cache.traces import open_store, text_key
from pretrace.errors import OutputError

KEYS = [text_key(name) for name in "abc"]
SOME = ("one 🙂", "", "three\x00\n", "vier ü\ud800")


def edit(store: NeighborStore, statement: str, *values: object) -> None:
    connection = sqlite3.connect(store.path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    with NeighborStore("proposer", tmp_path) as store:
        store.put(KEYS[:2], [SOME, ("x",)], share=0.3, seed=0)
    with NeighborStore("proposer", tmp_path) as store:
        assert store.get([KEYS[1], KEYS[2], KEYS[0]], share=0.3, seed=0) == [("x",), (), SOME]
        assert store.get(KEYS[:1], share=0.15, seed=0) == [()]
        assert store.get(KEYS[:1], share=0.3, seed=1) == [()]
    with NeighborStore("another", tmp_path) as store:
        assert store.get(KEYS, share=0.3, seed=0) == [(), (), ()]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(), max_size=5), st.floats(0.01, 1), st.integers(0, 2**80))
def test_any_text_share_and_seed(texts: list[str], share: float, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, NeighborStore("proposer", Path(folder)) as store:
        store.put(KEYS[:1], [tuple(texts)], share=share, seed=seed)
        assert store.get(KEYS[:1], share=share, seed=seed) == [tuple(texts)]


def test_a_longer_list_takes_the_place_of_a_shorter_one_only(tmp_path: Path) -> None:
    with NeighborStore("proposer", tmp_path) as store:
        for some in (SOME[:2], SOME, SOME[:1]):
            store.put(KEYS[:1], [some], share=1, seed=0)
        assert store.get(KEYS[:1], share=1.0, seed=0) == [SOME]


@pytest.mark.parametrize(
    "change",
    ["body = x''", "body = 'x'", "number = 9", "number = 'x'", "checksum = 1", "body = substr(body, 2)"],
)
def test_a_damaged_row_is_a_miss_and_is_mended(tmp_path: Path, change: str) -> None:
    with NeighborStore("proposer", tmp_path) as store:
        store.put(KEYS[:2], [SOME, SOME], share=0.3, seed=0)
        edit(store, f"UPDATE neighbors SET {change} WHERE key = ?", KEYS[0])
        assert store.get(KEYS[:2], share=0.3, seed=0) == [(), SOME]
        store.put(KEYS[:1], [SOME[:1]], share=0.3, seed=0)
        assert store.get(KEYS[:2], share=0.3, seed=0) == [SOME[:1], SOME]


def test_a_damaged_file_is_set_aside_in_words_of_its_own(tmp_path: Path) -> None:
    store = NeighborStore("proposer", tmp_path)
    store.close()
    store.path.write_bytes(b"x" * 5000)
    with pytest.warns(UserWarning, match=r"the neighbour cache .*its neighbours are computed anew"):
        NeighborStore("proposer", tmp_path).close()
    with pytest.raises(ValueError, match=r"the neighbour cache .* is closed"):
        store.get(KEYS, share=0.3, seed=0)


def test_a_file_of_traces_is_not_taken_for_neighbours(tmp_path: Path) -> None:
    with open_store("proposer", tmp_path) as traces:
        pass
    store = NeighborStore("proposer", tmp_path)
    store.close()
    assert traces.path != store.path
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"the neighbour cache .*PRETRACE_CACHE"):
        NeighborStore("proposer", tmp_path / "file")


def test_many_neighbours_of_a_text_take_little_more_room_than_one(tmp_path: Path) -> None:
    text = " ".join(str(number * number) for number in range(400))
    near = tuple(text.replace(str(number * number), "x") for number in range(25))
    with NeighborStore("proposer", tmp_path) as store:
        store.put(KEYS[:1], [near], share=0.3, seed=0)
        connection = sqlite3.connect(store.path)
        (size,) = connection.execute("SELECT length(body) FROM neighbors").fetchone()
        connection.close()
    assert size < 3 * len(text)
