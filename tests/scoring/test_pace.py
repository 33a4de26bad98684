"""How much of the batches is done while several are computed at once."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tiny import make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.scoring import evidence
from pretrace.scoring.evidence import Work, open_store, trace
from pretrace.types import Quantity


class Several:
    """Work that is as long as its tokens, two batches at once."""

    at_once = 2

    def work(self, lengths: Sequence[int]) -> float:
        return float(sum(lengths))


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


def test_a_long_batch_that_is_under_way_counts_by_the_seconds_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch of 900 tokens beside nine of 100, and each core reads 100 tokens a second."""
    now, told = [0.0], Told()
    monkeypatch.setattr(evidence, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    batches = [(0,), *((i,) for i in range(1, 10))]
    way = under_way(Several(), batches, [900, *[100] * 9], told)
    for batch in batches[1:]:
        now[0] += 1.0
        way.ended(batch)
    way.ended((0,))
    assert told.shares == pytest.approx([*(i / 9 for i in range(1, 10)), 1.0])


def test_batches_of_other_back_ends_count_when_they_are_done() -> None:
    told = Told()
    way = under_way(object(), [(1,), (0, 2)], [5, 7, 11], told)
    for batch in ((0, 2), (1,)):  # in whatever order they end
        way.ended(batch)
    assert told.shares == [16 / 23, 1.0]


@pytest.mark.parametrize("threads", [1, 2])
def test_all_is_done_at_the_end_and_never_less_than_before(threads: int) -> None:
    import torch

    before, told = torch.get_num_threads(), Told()
    torch.set_num_threads(threads)
    try:
        model = HuggingFace(
            make_model("llama"),
            make_tokenizer(),
            name="m",
            weights="w",
            settings=ModelSettings(token_budget=64),
        )
        texts = ["the cat sat on the mat " * (1 + i % 5) + str(i) for i in range(30)]
        trace(model, texts, Quantity.LOGP, store=open_store(None), progress=told)
    finally:
        torch.set_num_threads(before)
    assert told.shares == sorted(told.shares)
    assert told.shares[-1] == pytest.approx(1.0)
    assert 8 * 100 < model.work([8] * 100) < model.work([800])  # of a long text a token is more work
