"""Counting gives exactly what encoding every text by itself would, however the work is divided."""

import threading

import numpy as np
import pytest
from net.api import Counting, TableError, counting, seams
from net.api import frequencies_count as count
from tokenizers import Tokenizer

ODD = [
    "", " ", "a", "one<|endoftext|>two", "  \n\n ", "e\u0301 слово 中文。😀", "x" * 3000, "\x00", "\ufdd0", "",
]  # fmt: skip


def naive(texts, tokenizer):
    counts = np.zeros(max(tokenizer.get_vocab().values()) + 1, dtype=np.int64)
    for text in texts:
        for token in tokenizer.encode(text, add_special_tokens=False).ids:
            counts[token] += 1
    return counts


def counted(texts, tokenizer, on_progress=None, **settings):
    how = {"settings": Counting(**settings), "on_progress": on_progress}
    return count(texts, tokenizer, tokenizer_hash="h", source="docs", **how)


def assert_counted(texts, tokenizer, plain=None, **settings):
    """The table, whose counts are those of every text by itself."""
    table = counted(texts, tokenizer, **settings)
    np.testing.assert_array_equal(table.counts, naive(plain or texts, tokenizer))
    return table


def test_equals_the_loop(any_kind, built, documents):
    texts = documents[:40] + ODD
    table = assert_counted(texts, built(any_kind))
    assert (table.texts, table.source, table.tokenizer_hash) == (len(texts), "docs", "h")
    assert any_kind != "bert" or "Bert" in table.method  # why it goes slowly


@pytest.mark.parametrize("end", ["\u3000", "\u00a0", "é", "…", "\u2028", "中", "\u0085"])
def test_a_text_ends_where_it_ends(end, built):
    assert_counted([f"one two{end}", "three four", f"five {end}"] * 5, built("gpt2"))


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("kind", ["llama3", "bert", "mistral"])
def test_division_of_the_work_and_a_full_tally_change_nothing(workers, kind, built, documents, monkeypatch):
    for name, value in (("_BATCH", 500), ("_SLICE", 64), ("MAX_PENDING", 400)):
        monkeypatch.setattr(counting, name, value)
    assert_counted(documents + ODD, built(kind), workers=workers)


def test_truncation_and_special_tokens_of_the_tokenizer_stay_out(built):
    tokenizer = Tokenizer.from_str(built("gpt2").to_str())
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=50)
    table = counted(["one two three four five six"], tokenizer)
    np.testing.assert_array_equal(table.counts, naive(["one two three four five six"], built("gpt2")))


def test_special_tokens_read_as_text_if_the_tokenizer_does(built):
    tokenizer = Tokenizer.from_str(built("gpt2").to_str())
    tokenizer.encode_special_tokens = True
    table = assert_counted(["a<|endoftext|>b"], tokenizer)
    assert table.counts[tokenizer.token_to_id("<|endoftext|>")] == 0


def test_no_texts_and_lone_surrogates_which_count_as_replacement_characters(built):
    table = counted([], built("gpt2"))
    assert (table.total, table.texts) == (0, 0)
    assert len(table.counts) == built("gpt2").get_vocab_size()
    for kind in ("gpt2", "own pattern"):
        assert_counted(["a\ud800b c"], built(kind), ["a\ufffd\ufffd\ufffdb c"])


def test_progress_is_told_in_texts_and_bytes(built, documents, monkeypatch):
    monkeypatch.setattr(counting, "_BATCH", 5000)
    told = []
    counted(documents, built("gpt2"), lambda texts, size: told.append((texts, size)))
    assert told == sorted(told)
    assert len(told) > 10
    assert told[-1] == (len(documents), sum(len(text.encode()) for text in documents))


def test_texts_are_read_only_a_little_ahead(built, documents, monkeypatch):
    monkeypatch.setattr(counting, "_BATCH", 1)
    read = 0
    ahead = []

    def reading():
        nonlocal read
        for text in documents:
            read += 1
            yield text

    counted(reading(), built("gpt2"), lambda texts, _: ahead.append(read - texts), workers=2)
    assert max(ahead) <= 4


def test_an_error_of_the_reader_comes_through(built):
    def reading():
        yield "one"
        raise OSError("the disk went away")

    before = set(threading.enumerate())
    for workers in (1, 2):
        with pytest.raises(OSError, match="the disk went away"):
            counted(reading(), built("gpt2"), workers=workers)
    assert set(threading.enumerate()) <= before


@pytest.fixture
def wrong_seams(monkeypatch):
    """A mistake in what we believe of a pattern: that a line break and the spaces behind it are two pieces."""
    monkeypatch.setattr(seams, "_VISIBLE", [*seams._VISIBLE, ord("\n")])


@pytest.mark.usefixtures("wrong_seams")
def test_a_disagreement_has_everything_counted_whole_also_far_on(built, documents, tmp_path, monkeypatch):
    how = {"checkpoint": tmp_path / "kept", "checkpoint_bytes": 1}
    assert "pieces had other tokens" in assert_counted(documents, built("gpt2"), **how).method
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(counting, "_BATCH", 1)
    assert "pieces had other" in assert_counted(["x"] * 16 + documents, built("gpt2"), workers=1).method


@pytest.mark.usefixtures("wrong_seams")
def test_a_disagreement_in_texts_that_are_gone_is_an_error(built, documents):
    with pytest.raises(TableError, match=r"docs.*cannot be read a second time.*whole"):
        counted(iter(documents), built("gpt2"))
