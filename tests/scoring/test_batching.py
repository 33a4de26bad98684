"""A text's trace is the same alone, padded, shuffled, in any token budget."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from net.api import HuggingFace, ModelError, ModelSettings, Quantity, Traces, pack, trace
from tiny import make_model, make_tokenizer

ALL = Quantity.LOGP | Quantity.MOMENTS


def opened(family, budget):
    chosen = ModelSettings(token_budget=budget)
    return HuggingFace(make_model(family), make_tokenizer(), name=family, weights="w", settings=chosen)


def same(a, b):
    assert a.tokens.tolist() == b.tokens.tolist()
    np.testing.assert_allclose(a.logp, b.logp, atol=2e-5)
    np.testing.assert_allclose(a.mean, b.mean, atol=2e-5)
    np.testing.assert_allclose(a.std, b.std, atol=2e-5)


def test_a_text_that_stands_several_times_is_read_once(sentences):
    model = opened("llama", 64)
    passed = []
    stream, rust = model.stream, model.tokens.rust

    def watched(batches, want, states):
        passed.extend(rust.decode(one.tokens.tolist()) for batch in batches for one in batch)
        return stream(batches, want, states)

    model.stream = watched
    texts = [*sentences, *reversed(sentences), sentences[0]]
    found = trace(model, texts, ALL, store=Traces(None))
    assert len(passed) == len(set(sentences))
    once = dict(zip(sentences, trace(model, sentences, ALL, store=Traces(None)), strict=True))
    for text, one in zip(texts, found, strict=True):
        assert one.logp.tobytes() == once[text].logp.tobytes()


class Forgetful:
    """A back end that works on several batches at once, answers the last first, and leaves one out or none."""

    def __init__(self, backend, forgotten):
        self.backend, self.forgotten = backend, forgotten

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def stream(self, batches, want, states=frozenset(), /):
        for i in reversed(range(len(batches))):
            if i != self.forgotten:
                yield i, self.backend.run(batches[i], want, states)


def test_a_batch_without_an_answer_is_never_passed_over(sentences):
    backend, texts = opened("llama", 1), [*sentences, "a b"]
    alone = trace(backend, texts, ALL, store=Traces(None))
    together = trace(cast("Any", Forgetful(backend, None)), texts, ALL, store=Traces(None))
    for one, other in zip(alone, together, strict=True):
        same(one, other)
    with pytest.raises(ModelError, match=f"left 1 of {len(texts)} texts without an answer"):
        trace(cast("Any", Forgetful(backend, 2)), texts, ALL, store=Traces(None))


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 1000))
@settings(max_examples=200)
def test_packing_loses_nothing_and_keeps_its_budget(lengths, budget):
    batches = pack(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == [i for i, n in enumerate(lengths) if n]
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget
