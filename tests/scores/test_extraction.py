"""The chance that a model prints a text: against a plain softmax of transformers, and with texts that are too short."""

import numpy as np
import pytest
import torch
from tiny import SENTENCES, make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.scoring.detect import detect
from pretrace.scoring.evidence import Want, open_store, trace
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.types import Corpus, Drawn, Quantity, Text

TEXTS = [" ".join(SENTENCES[:4]), SENTENCES[4], SENTENCES[1]]


@pytest.mark.parametrize("family", ["gpt_neox", "gemma2"])  # the second does more to its logits
@pytest.mark.parametrize("how", [Drawn(), Drawn(1, 1.0), Drawn(7, 0.6), Drawn(10_000, 1.5)])
def test_tokens_are_drawn_as_a_plain_softmax_draws_them(family, how):
    model, tokenizer = make_model(family), make_tokenizer()
    backend = HuggingFace(model, tokenizer, name="tiny", weights=family, settings=ModelSettings())
    want = Want(Quantity.LOGP | Quantity.MOMENTS, frozenset({how, Drawn(2, 1.0)}))
    found = trace(backend, TEXTS, want, store=open_store(None))
    for text, one in zip(TEXTS, found, strict=True):
        ids = tokenizer(text)["input_ids"]
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids])).logits[0].double()
        naive = []
        for i, token in enumerate(ids[1:]):
            scaled = logits[i] / how.temperature
            kept = sorted(range(len(scaled)), key=lambda v: -float(scaled[v]))[: how.k]
            total = sum(float(torch.exp(scaled[v])) for v in kept)
            naive.append(np.log(float(torch.exp(scaled[token])) / total) if token in kept else -np.inf)
        np.testing.assert_allclose(one.states[how], naive, atol=2e-4)
        if how == Drawn(10_000, 1.0):
            np.testing.assert_allclose(one.states[how], one.logp, atol=1e-5)


def test_a_draw_among_one_token_takes_the_likeliest():
    run = detect(Corpus("one", (Text("long", "abc" * 50),)), Models(Memory()), "extraction(k=1,n=1)")
    assert run.column("extraction(k=1,n=1)")[0] in (0.0, 1.0)


def test_a_text_without_a_window_has_no_value_and_is_told():
    texts = (Text("long", "abc" * 50), Text("short", "abc" * 20))
    run = detect(Corpus("two", texts), Models(Memory()), "extraction,loss")
    assert run.ids == ("long", "short")
    assert np.isnan(run.matrix[1, 0])
    assert np.isfinite(run.matrix[:, 1]).all()
    assert [(one.id, one.score) for one in run.missing] == [("short", "extraction")]
    assert "59 tokens, and extraction takes 100 or more" in run.missing[0].reason
