"""How much of the batches is done."""

import pytest
from tiny import make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.scoring.evidence import Work, open_store, trace
from pretrace.testing import FakeBackend
from pretrace.types import Progress, Quantity


class Told(Progress):
    """Progress that remembers how much was done when."""

    def __init__(self):
        self.work = Work()
        self.begin, self.weigh, self.worked = self.work.begin, self.work.weigh, self.work.worked  # type: ignore[method-assign]
        self.shares: list[float] = []

    def advance(self, texts, tokens, seconds, fresh):
        self.work.advance(texts, fresh=fresh)
        if fresh:
            done, of = self.work.sizes
            self.shares.append(done / of)


def test_batches_of_other_back_ends_count_by_their_tokens():
    told = Told()
    trace(
        FakeBackend(),
        ["a" * 7, "b" * 5, "c" * 2, "d" * 3, "e" * 9],
        Quantity.LOGP,
        store=open_store(None),
        progress=told,
    )
    assert told.shares == [17 / 26, 1.0]


def test_all_is_done_at_the_end_and_never_less_than_before():
    told = Told()
    settings = ModelSettings(token_budget=64)
    model = HuggingFace(make_model("llama"), make_tokenizer(), name="m", weights="w", settings=settings)
    texts = ["the cat sat on the mat " * (1 + i % 5) + str(i) for i in range(30)]
    trace(model, texts, Quantity.LOGP, store=open_store(None), progress=told)
    assert told.shares == sorted(told.shares)
    assert told.shares[-1] == pytest.approx(1.0)
    assert 8 * 100 < model.work([8] * 100) < model.work([800])  # of a long text a token is more work
