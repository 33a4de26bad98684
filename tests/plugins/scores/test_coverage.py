"""Ends that a model writes: its own likeliest tokens; and how much of an end they cover."""

import numpy as np
import pytest
import torch
from tiny import SENTENCES, opened

from pretrace.backends.generation import Writer
from pretrace.plugins.scores.prefixed import _covered
from pretrace.scores import parse
from pretrace.scoring.detect import detect
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.types import Continued, Corpus, Quantity, Text

GREEDY = Continued(1, temperature=0.0)


@pytest.fixture(scope="module")
def backend():
    return opened()


def test_the_likeliest_end_is_the_models_own(backend):
    texts = [*SENTENCES, "a b"]
    banned = Writer(backend).banned
    traces = backend.run(backend.encode(texts), Quantity.LOGP, frozenset({GREEDY}))
    for text, trace in zip(texts, traces, strict=True):
        tokens = backend.encode([text])[0].tokens.tolist()
        predicted = len(tokens) - 1
        cut = 1 + max(1, predicted // 2)
        ids = tokens[:cut]
        while len(ids) < len(tokens):
            with torch.inference_mode():
                logits = (
                    backend.model(input_ids=torch.tensor([ids])).logits[0, -1].masked_fill(banned, -torch.inf)
                )
            ids.append(int(logits.argmax()))
        assert trace.states[GREEDY].tolist() == [ids[cut:]]


@pytest.mark.parametrize(
    ("end", "made", "share"),
    [([1, 2, 3], [1, 2, 3], 1.0), ([1, 2, 3], [1, 2], 0.0), ([1, 2], [1, 2, 3], 0.0), ([], [1], 0.0),
     ([1, 2, 3, 9, 2, 3, 4], [1, 2, 3, 4], 6 / 7), ([5, 1, 2, 3], [3, 2, 1, 5], 0.0)],
)  # fmt: skip
def test_covered(end, made, share):
    assert _covered(np.array(end, dtype=np.int32), np.array(made, dtype=np.int32), 3) == pytest.approx(share)


def test_the_fewest_tokens_leave_an_end_with_a_run():
    for expression in ("coverage", "coverage(n=1, share=0.9)", "coverage(n=5, share=0.01)"):
        score = parse(expression)[expression]
        state = Continued(share=score.share)
        fewest = score.fewest
        assert fewest - state.read(fewest) >= score.n
        assert fewest == score.n + 1 or fewest - 1 - state.read(fewest - 1) < score.n


def test_a_text_too_short_for_a_score_has_no_value_and_is_told():
    texts = (Text("long", "abc" * 50), Text("short", "abc"))
    run = detect(Corpus("two", texts), Models(Memory()), "loss,coverage")
    assert run.ids == ("long", "short")
    assert np.isnan(run.column("coverage")).tolist() == [False, True]
    assert np.isfinite(run.column("loss")).all()
    assert [(one.id, one.score) for one in run.missing] == [("short", "coverage")]
    assert "2 tokens, and coverage takes 5 or more" in run.missing[0].reason
