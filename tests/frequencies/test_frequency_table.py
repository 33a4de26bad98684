"""The table: smoothing by hand, its file, and what is refused."""

import json

import numpy as np
import pytest
from net.api import Frequencies, TableError

TABLE = Frequencies(np.array([5, 0, 2], dtype=np.int64), "a" * 64, "three lines of x.txt", 3, "by hand")


def test_log_frequency_is_the_papers_formula():
    expected = [np.log(6 / 12), np.log(1 / 12), np.log(3 / 12), np.log(1 / 12), np.log(1 / 12)]
    found = TABLE.log_frequency(5)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    for vocabulary in (3, 4, 100):
        assert np.exp(TABLE.log_frequency(vocabulary)).sum() == pytest.approx(1)
    longer = Frequencies(np.array([5, 0, 2, 0, 0], dtype=np.int64), "a" * 64)  # ids that were never counted
    np.testing.assert_array_equal(longer.log_frequency(3), TABLE.log_frequency(3))
    with pytest.raises(TableError, match="2"):
        TABLE.log_frequency(2)


def test_saved_and_loaded_it_is_the_same(tmp_path):
    path = tmp_path / "new" / "counts.npz"
    TABLE.save(path)
    loaded = Frequencies.load(path)
    np.testing.assert_array_equal(loaded.counts, TABLE.counts)
    assert loaded.counts.dtype == np.int64
    assert (loaded.tokenizer_hash, loaded.source) == ("a" * 64, "three lines of x.txt")
    assert (loaded.texts, loaded.method) == (3, "by hand")
    assert [file.name for file in path.parent.iterdir()] == ["counts.npz"]


def test_every_damaged_byte_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "counts.npz"
    TABLE.save(path)
    content = path.read_bytes()
    noticed = 0
    for position in range(0, len(content), 7):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :])
        try:
            assert Frequencies.load(path).total == 7
        except TableError:
            noticed += 1
    assert noticed > len(content) / 7 / 4
    for length in range(0, len(content), 50):
        path.write_bytes(content[:length])
        with pytest.raises(TableError):
            Frequencies.load(path)


@pytest.mark.parametrize(
    ("facts", "counts", "message"),
    [
        ({"kind": "recipe"}, np.zeros(2, dtype=np.int64), "holds a recipe"),
        ({}, np.zeros(3, dtype=np.int64), "is no token count table"),  # of another program
        ({"kind": "token count table"}, np.array([{}]), "damaged"),  # nothing is ever unpickled
        ({"kind": "token count table"}, np.zeros(2, dtype=np.int64), "parts missing"),
        (None, np.zeros(2), "no whole numbers"),
        (None, np.array([-1]), "no whole numbers"),
        (None, np.zeros((2, 2), dtype=np.int64), "no whole numbers"),
    ],
)
def test_tables_that_are_not_quite_ours(tmp_path, facts, counts, message):
    good = {"kind": "token count table", "tokenizer_hash": "a", "source": "", "texts": 0, "method": ""}
    path = tmp_path / "counts.npz"
    own = {} if facts == {} else {"pretrace": np.array(json.dumps(facts or good))}
    np.savez(path, counts=counts, **own)
    with pytest.raises(TableError, match=message):
        Frequencies.load(path)
