"""What was written is made once, a batch at a time, and never believed when it is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

import pytest

from pretrace.cache.location import text_key
from pretrace.cache.written import Batch, open_written, written_once
from pretrace.types import Written

ODD = ["a", "\ud83d half", "NUL\x00", "x" * 100_000]


class Writer:
    """Writes in batches of two, and remembers what it was asked for."""

    def __init__(self, texts: list[str], *, dies_after: int = 99) -> None:
        self.texts, self.dies_after = texts, dies_after
        self.batches: list[list[str]] = []

    def __call__(self, known: Mapping[str, Written]) -> Iterator[Batch]:
        new = [text for text in dict.fromkeys(self.texts) if text not in known]
        for at in range(0, len(new), 2):
            if len(self.batches) == self.dies_after:
                raise KeyboardInterrupt
            some = new[at : at + 2]
            self.batches.append(some)
            yield some, [Written(text.upper(), ended=len(text) % 2 == 0) for text in some]


def test_written_once_and_given_back_as_it_was() -> None:
    texts = [*ODD, "a"]
    expected = [Written(text.upper(), len(text) % 2 == 0) for text in texts]
    assert written_once("model", texts, "how", Writer(texts)) == expected
    again = Writer(texts)
    assert written_once("model", texts, "how", again) == expected
    assert again.batches == []
    for fingerprint, label in (("model", "otherwise"), ("another", "how")):
        fresh = Writer(texts)
        assert written_once(fingerprint, texts, label, fresh) == expected
        assert fresh.batches


def test_killed_between_batches_goes_on() -> None:
    texts = ["a", "b", "c", "d", "e"]
    with pytest.raises(KeyboardInterrupt):
        written_once("model", texts, "", Writer(texts, dies_after=2))
    later = Writer(texts)
    assert [one.text for one in written_once("model", texts, "", later)] == ["A", "B", "C", "D", "E"]
    assert later.batches == [["e"]]


def test_nothing_is_kept_without_a_fingerprint() -> None:
    for _ in range(2):
        writer = Writer(["a"])
        assert written_once(None, ["a"], "", writer) == [Written("A", False)]
        assert writer.batches


def test_a_damaged_row_is_written_anew() -> None:
    keys = [text_key("a"), text_key("b")]
    with open_written("model") as store:
        store.put(keys, [Written("one"), Written("two", False)], "")
        path = store.path
    connection = sqlite3.connect(path)
    connection.execute("UPDATE entries SET body = ? WHERE body = ?", (b"\x01two", b"\x00two"))
    connection.commit()
    connection.close()
    with open_written("model") as store:
        assert store.get(keys, "") == [Written("one"), None]
        store.put(keys[1:], [Written("two", False)], "")
        assert store.get(keys, "") == [Written("one"), Written("two", False)]


def test_an_empty_answer_is_asked_for_again() -> None:
    texts = ["", "a"]  # what this writer makes of the first is empty
    assert [one.text for one in written_once("model", texts, "how", Writer(texts))] == ["", "A"]
    again = Writer(texts)
    assert [one.text for one in written_once("model", texts, "how", again)] == ["", "A"]
    assert again.batches == [[""]]
