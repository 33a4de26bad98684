"""A count that was killed goes on where it was, and comes to the same table."""

import shutil

import numpy as np
import pytest

from pretrace.errors import TableError
from pretrace.frequencies import Counting, Frequencies, count, counting


class StoppedError(Exception):
    pass


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(counting, "_BATCH", 2000)


def stopping(texts, after):
    yield from texts[:after]
    raise StoppedError


def run(texts, tokenizer, kept, **changed):
    settings = Counting(workers=2, checkpoint=kept, checkpoint_bytes=15_000)
    return count(texts, tokenizer, **{"tokenizer_hash": "h", "source": "docs", **changed}, settings=settings)


def test_what_a_killed_count_leaves_is_gone_on_with(tmp_path, built, documents):
    kept, left = tmp_path / "kept", tmp_path / "left"

    def copying():
        for text in documents:
            if kept.exists() and not left.exists():
                shutil.copy(kept, left)  # what kill -9 would leave now
            yield text

    whole, told = run(copying(), built("gpt2"), kept), []
    how = {"settings": Counting(workers=2, checkpoint=left), "on_progress": lambda done, _: told.append(done)}
    table = count(documents, built("gpt2"), tokenizer_hash="h", source="docs", **how)
    np.testing.assert_array_equal(table.counts, whole.counts)
    assert table.texts == len(documents)
    assert told[0] > len(next(counting._batches(documents, counting._BATCH)))
    assert not left.exists()


@pytest.mark.parametrize("kind", ["gpt2", "llama2", "bert"])
@pytest.mark.parametrize("after", [1, 40, 10**6])
def test_stopped_anywhere(tmp_path, kind, after, built, documents):
    kept = tmp_path / "kept"
    with pytest.raises(StoppedError):
        run(stopping(documents, after), built(kind), kept)
    table = run(documents, built(kind), kept)
    np.testing.assert_array_equal(table.counts, run(documents, built(kind), None).counts)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_run_of_other_texts_or_a_damaged_one_is_an_error(tmp_path, built, documents):
    kept = tmp_path / "kept"
    with pytest.raises(StoppedError):
        run(stopping(documents, len(documents) * 2 // 3), built("gpt2"), kept)
    assert kept.is_file()
    for changed in ({"tokenizer_hash": "other"}, {"source": "other"}):
        with pytest.raises(TableError, match=r"kept was begun with .* 'other'; delete it"):
            run(documents, built("gpt2"), kept, **changed)
    for texts in ([text + "." for text in documents], documents[1:], documents[:3], []):
        with pytest.raises(TableError, match="have changed since; delete it"):
            run(texts, built("gpt2"), kept)
    kept.write_bytes(kept.read_bytes()[:-100])
    with pytest.raises(TableError, match=r"damaged.*delete it"):
        run(documents, built("gpt2"), kept)


def test_a_table_is_not_taken_for_a_checkpoint(tmp_path, built, documents):
    run(documents, built("gpt2"), None).save(tmp_path / "counts.npz")
    with pytest.raises(TableError, match=r"should hold a checkpoint.*holds a token count table"):
        run(documents, built("gpt2"), tmp_path / "counts.npz")
    assert Frequencies.load(tmp_path / "counts.npz").texts == len(documents)
