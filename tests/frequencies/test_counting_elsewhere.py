"""A count that is handed out gives the table of one that is not."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from pretrace.errors import TableError
from pretrace.frequencies import Counting, count, counting


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
