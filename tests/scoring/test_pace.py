"""How much of the batches is done."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tiny import make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.scoring import evidence
from pretrace.scoring.evidence import Work, open_store, trace
from pretrace.types import Quantity


class Told(Work):
    """Progress that counts work and remembers how much was done when."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[float] = []

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:  # type: ignore[override]
        super().advance(texts, fresh=fresh)
        if fresh:
            done, of = self.sizes
            self.shares.append(done / of)


def under_way(backend: object, batches: list[tuple[int, ...]], lengths: list[int], told: Told) -> Any:
    return evidence._UnderWay(cast(Any, backend), batches, lengths, told, len(lengths))


def test_batches_of_other_back_ends_count_when_they_are_done() -> None:
    told = Told()
    way = under_way(object(), [(1,), (0, 2)], [5, 7, 11], told)
    for batch in ((0, 2), (1,)):  # in whatever order they end
        way.ended(batch)
    assert told.shares == [16 / 23, 1.0]


def test_all_is_done_at_the_end_and_never_less_than_before() -> None:
    told = Told()
    settings = ModelSettings(token_budget=64)
    model = HuggingFace(make_model("llama"), make_tokenizer(), name="m", weights="w", settings=settings)
    texts = ["the cat sat on the mat " * (1 + i % 5) + str(i) for i in range(30)]
    trace(model, texts, Quantity.LOGP, store=open_store(None), progress=told)
    assert told.shares == sorted(told.shares)
    assert told.shares[-1] == pytest.approx(1.0)
    assert 8 * 100 < model.work([8] * 100) < model.work([800])  # of a long text a token is more work
