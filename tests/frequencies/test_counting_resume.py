"""A count that was killed goes on where it was, and comes to the same table."""

import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest

from pretrace.errors import OutputError, TableError
from pretrace.frequencies import Counting, Frequencies, count, counting

SLOW_COUNT = """
import sys, time
from pathlib import Path
from tokenizers import Tokenizer
from pretrace.frequencies import Counting, count, counting

counting._BATCH = 2000
folder = Path(sys.argv[1])

def texts():
    for number, text in enumerate((folder / "texts").read_text().split("\\0")):
        time.sleep(0.02 if number < 60 else 5)
        yield text

settings = Counting(workers=2, checkpoint=folder / "kept", checkpoint_bytes=3000)
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
count(texts(), tokenizer, tokenizer_hash="h", source="docs", settings=settings)
"""


class StoppedError(Exception):
    pass


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(counting, "_BATCH", 2000)


def stopping(texts, after):
    yield from texts[:after]
    raise StoppedError


def run(texts, tokenizer, kept, **changed):
    facts = {"tokenizer_hash": "h", "source": "docs", **changed}
    settings = Counting(workers=2, checkpoint=kept, checkpoint_bytes=15_000)
    named = {name: facts[name] for name in ("tokenizer_hash", "source")}
    return count(texts, tokenizer, **named, settings=settings)


def begin(texts, tokenizer, kept):
    with pytest.raises(StoppedError):
        run(stopping(texts, len(texts) * 2 // 3), tokenizer, kept)
    assert kept.is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_in_the_middle(tmp_path, built, documents):
    texts = [text for text in documents if "\0" not in text]
    built("gpt2").save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "texts").write_text("\0".join(texts))
    process = subprocess.Popen([sys.executable, "-c", SLOW_COUNT, str(tmp_path)])
    kept = tmp_path / "kept"
    try:
        for _ in range(10_000):
            if kept.exists() or process.poll() is not None:
                break
            time.sleep(0.02)
        time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert kept.exists()
    told = []
    settings = Counting(workers=2, checkpoint=kept)
    how = {"settings": settings, "on_progress": lambda done, _: told.append(done)}
    table = count(texts, built("gpt2"), tokenizer_hash="h", source="docs", **how)
    fresh = run(texts, built("gpt2"), None)
    np.testing.assert_array_equal(table.counts, fresh.counts)
    assert table.texts == len(texts)
    first_batch = next(counting.batches(texts, counting._BATCH))
    assert told[0] > len(first_batch)
    assert not kept.exists()


@pytest.mark.parametrize("kind", ["gpt2", "llama2", "bert"])
@pytest.mark.parametrize("after", [1, 40, 10**6])
def test_stopped_anywhere(tmp_path, kind, after, built, documents):
    kept = tmp_path / "kept"
    with pytest.raises(StoppedError):
        run(stopping(documents, after), built(kind), kept)
    table = run(documents, built(kind), kept)
    np.testing.assert_array_equal(table.counts, run(documents, built(kind), None).counts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("changed", [{"tokenizer_hash": "other"}, {"source": "other"}])
def test_a_checkpoint_of_another_run_is_an_error(tmp_path, changed, built, documents):
    kept = tmp_path / "kept"
    begin(documents, built("gpt2"), kept)
    with pytest.raises(TableError, match=r"kept was begun with .* 'other'; delete it"):
        run(documents, built("gpt2"), kept, **changed)
    assert kept.is_file()


def test_texts_that_have_changed_are_an_error(tmp_path, built, documents):
    kept = tmp_path / "kept"
    begin(documents, built("gpt2"), kept)
    for changed in ([text + "." for text in documents], documents[1:], documents[:3], []):
        with pytest.raises(TableError, match="have changed since; delete it"):
            run(changed, built("gpt2"), kept)


def test_a_damaged_checkpoint_is_an_error(tmp_path, built, documents):
    kept = tmp_path / "kept"
    begin(documents, built("gpt2"), kept)
    kept.write_bytes(kept.read_bytes()[:-100])
    with pytest.raises(TableError, match=r"damaged.*delete it"):
        run(documents, built("gpt2"), kept)


def test_a_table_is_not_taken_for_a_checkpoint(tmp_path, built, documents):
    run(documents, built("gpt2"), None).save(tmp_path / "counts.npz")
    with pytest.raises(TableError, match=r"should hold a checkpoint.*holds a token count table"):
        run(documents, built("gpt2"), tmp_path / "counts.npz")
    assert Frequencies.load(tmp_path / "counts.npz").texts == len(documents)


def test_a_place_that_cannot_be_written_is_found_at_once(tmp_path, built):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError):
        run(stopping([], 0), built("gpt2"), tmp_path / "folder")


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Batches of 5,000 characters."""
    monkeypatch.setattr(counting, "CHARACTERS", 5000)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Counts as another process would: the portion and the texts are pickled. It stops after some batches, and of one
    says that its pieces had other tokens."""

    stops: int = 10**9
    wrong: int = -1

    def __call__(self, portion, pieces):
        _, counter = pickle.loads(pickle.dumps(portion)).open()
        for number, (index, _, batch) in enumerate(pieces):
            if number == self.stops:
                raise KeyboardInterrupt
            part = counter(pickle.loads(pickle.dumps(batch)))
            yield index, None if number == self.wrong and not portion.whole else part


def counted(texts, tokenizer, settings):
    return count(texts, tokenizer, tokenizer_hash="h", source="docs", settings=settings)


@pytest.mark.parametrize("kind", ["pythia", "llama2", "bert"])
def test_the_table_is_the_same(kind, built, documents):
    tokenizer = built(kind)
    here = counted(documents, tokenizer, Counting(workers=1))
    there = counted(documents, tokenizer, Counting(elsewhere=Elsewhere()))
    assert np.array_equal(there.counts, here.counts)
    assert (there.texts, there.method) == (here.texts, here.method)


def test_a_count_that_was_stopped_goes_on_elsewhere(built, documents, tmp_path):
    tokenizer, kept = built("pythia"), tmp_path / "kept"
    stopping = Counting(elsewhere=Elsewhere(stops=9), checkpoint=kept, checkpoint_bytes=1)
    with pytest.raises(KeyboardInterrupt):
        counted(documents, tokenizer, stopping)
    assert kept.exists()
    rest = counted(documents, tokenizer, Counting(workers=2, checkpoint=kept))
    assert np.array_equal(rest.counts, counted(documents, tokenizer, Counting(workers=1)).counts)


def test_a_disagreement_elsewhere_has_everything_counted_whole(built, documents):
    tokenizer = built("pythia")
    table = counted(documents, tokenizer, Counting(elsewhere=Elsewhere(wrong=3)))
    assert "pieces had other tokens" in table.method
    assert np.array_equal(table.counts, counted(documents, tokenizer, Counting(workers=1)).counts)
    with pytest.raises(TableError, match="cannot be read a second time"):
        counted(iter(documents), tokenizer, Counting(elsewhere=Elsewhere(wrong=0)))
