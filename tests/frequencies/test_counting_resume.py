"""A count that was killed goes on where it was, and comes to the same table."""

import signal
import subprocess
import sys
import time

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
    return count(
        texts, tokenizer, tokenizer_hash=facts["tokenizer_hash"], source=facts["source"], settings=settings
    )


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
    told: list[int] = []
    settings = Counting(workers=2, checkpoint=kept)
    table = count(
        texts,
        built("gpt2"),
        tokenizer_hash="h",
        source="docs",
        settings=settings,
        on_progress=lambda done, _: told.append(done),
    )
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
