"""Ends that a model writes: its own likeliest tokens, the same in any batch; and how much of an end they cover."""

import numpy as np
import pytest
import torch
from tiny import SENTENCES, make_tokenizer, opened

from pretrace.backends.generation import never_drawn
from pretrace.scores import parse
from pretrace.scores.extraction import Extraction, chance_in, covered, tries_for
from pretrace.scoring.detect import detect
from pretrace.scoring.evidence import Want, open_store, trace
from pretrace.scoring.plan import Models
from pretrace.testing import FakeBackend
from pretrace.types import Continued, Corpus, Drawn, Quantity, Text

GREEDY, DRAWN = Continued(1, temperature=0.0), Continued(3, share=0.3)


@pytest.fixture(scope="module")
def backend():
    return opened("gpt_neox")


def written(backend, texts, states):
    traces = backend.run(backend.encode(texts), Quantity.LOGP, frozenset(states))
    return [dict(trace.states) for trace in traces]


def test_the_likeliest_end_is_the_models_own(backend):
    texts = [*SENTENCES, "a b"]
    banned = never_drawn(backend.tokens.rust, backend.vocabulary)
    for text, states in zip(texts, written(backend, texts, {GREEDY}), strict=True):
        tokens = backend.encode([text])[0].tokens.tolist()
        cut = 1 + max(1, (len(tokens) - 1) // 2)
        ids = tokens[:cut]
        while len(ids) < len(tokens):
            with torch.inference_mode():
                logits = backend.model(input_ids=torch.tensor([ids])).logits[0, -1]
            ids.append(int(logits.masked_fill(banned, -torch.inf).argmax()))
        assert states[GREEDY].tolist() == [ids[cut:]]


def test_an_end_is_the_same_in_any_batch(backend):
    texts = [*SENTENCES, SENTENCES[0]]
    together = written(backend, texts, {DRAWN})
    for text, states in zip(texts, together, strict=True):
        (alone,) = written(backend, [text], {DRAWN})
        assert np.array_equal(alone[DRAWN], states[DRAWN])
        assert states[DRAWN].dtype == np.int32
    assert any(not np.array_equal(s[DRAWN][0], s[DRAWN][1]) for s in together)  # samples are drawn apart


@pytest.mark.parametrize(
    ("end", "made", "share"),
    [([1, 2, 3], [1, 2, 3], 1.0), ([1, 2, 3], [1, 2], 0.0), ([1, 2], [1, 2, 3], 0.0), ([], [1], 0.0),
     ([1, 2, 3, 9, 2, 3, 4], [1, 2, 3, 4], 6 / 7), ([5, 1, 2, 3], [3, 2, 1, 5], 0.0)],
)  # fmt: skip
def test_covered(end, made, share):
    assert covered(np.array(end, dtype=np.int32), np.array(made, dtype=np.int32), 3) == pytest.approx(share)


def test_the_fewest_tokens_leave_an_end_with_a_run():
    for expression in ("coverage", "coverage(n=1, share=0.9)", "coverage(n=5, share=0.01)"):
        score = parse(expression)[expression]
        state = Continued(share=score.share)
        fewest = score.fewest
        assert fewest - state.read(fewest) >= score.n
        assert fewest == score.n + 1 or fewest - 1 - state.read(fewest - 1) < score.n


TEXTS = [" ".join(SENTENCES[:4]), SENTENCES[4], SENTENCES[1]]


@pytest.mark.parametrize("family", ["gpt_neox", "gemma2"])  # the second does more to its logits
@pytest.mark.parametrize("how", [Drawn(), Drawn(1, 1.0), Drawn(7, 0.6), Drawn(10_000, 1.5)])
def test_tokens_are_drawn_as_a_plain_softmax_draws_them(family, how):
    backend, tokenizer = opened(family), make_tokenizer()
    want = Want(Quantity.LOGP | Quantity.MOMENTS, frozenset({how, Drawn(2, 1.0)}))
    found = trace(backend, TEXTS, want, store=open_store(None))
    for text, one in zip(TEXTS, found, strict=True):
        ids = tokenizer(text)["input_ids"]
        with torch.inference_mode():
            logits = backend.model(input_ids=torch.tensor([ids])).logits[0].double()
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
    run = detect(Corpus("one", (Text("long", "abc" * 50),)), Models(FakeBackend()), "extraction(k=1,n=1)")
    assert run.column("extraction(k=1,n=1)")[0] in (0.0, 1.0)


def test_what_was_read_is_kept_under_its_own_name(tmp_path):
    backend = FakeBackend()
    with open_store("model", tmp_path) as store:
        first = trace(backend, TEXTS, Want(Quantity.LOGP, frozenset({Drawn(3, 0.5)})), store=store)
        backend.run = None  # type: ignore[assignment]  # nothing may be read again
        again = trace(backend, TEXTS, Want(Quantity.LOGP, frozenset({Drawn(3, 0.5)})), store=store)
        np.testing.assert_array_equal(first[0].states[Drawn(3, 0.5)], again[0].states[Drawn(3, 0.5)])
        with pytest.raises(TypeError):
            trace(backend, TEXTS, Want(Quantity.LOGP, frozenset({Drawn(4, 0.5)})), store=store)


def test_a_text_without_a_window_has_no_value_and_is_told():
    two = Corpus("two", (Text("long", "abc" * 50), Text("short", "abc" * 20)))
    run = detect(two, Models(FakeBackend()), "extraction,loss")
    assert run.ids == ("long", "short")
    assert np.isnan(run.matrix[1, 0])
    assert np.isfinite(run.matrix[:, 1]).all()
    assert [(one.id, one.score) for one in run.missing] == [("short", "extraction")]
    assert "59 tokens, and extraction takes 100 or more" in run.missing[0].reason
    run = detect(two, Models(FakeBackend()), "extraction")
    assert run.ids == ("long",)
    assert "takes 100 or more" in run.skipped[0].reason


@pytest.mark.parametrize("p", [1.0, 0.9, 0.5, 0.01, 1e-12])
def test_tries_are_the_fewest_with_an_even_chance(p):
    tries = float(tries_for(np.log(p)))
    assert chance_in(np.log(p), tries) >= 0.5 * (1 - 1e-9)
    assert tries == 1 or chance_in(np.log(p), tries - 1) < 0.5
    assert np.isinf(tries_for(-np.inf))


@pytest.mark.parametrize("wrong", [{"n": 0}, {"k": 0}, {"temperature": 0.0}, {"prefix": -1}, {"suffix": 0}])
def test_settings_out_of_range(wrong):
    with pytest.raises(Exception, match=f"extraction: {next(iter(wrong))}"):
        Extraction(**wrong)
