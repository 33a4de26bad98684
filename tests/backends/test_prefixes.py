"""What texts begin with alike is read once, and the numbers are those of whole passes, text by text."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from net.api import (
    GAIN,
    LEAST,
    WIDTH,
    Drawn,
    Encoded,
    Firing,
    Hidden,
    ModelError,
    Quantity,
    Traces,
    alike,
    encoded_for,
    pack_alike,
    prefixes,
)
from tiny import RECURRENT, WORDS, naive_logp, opened, read

ALL = Quantity.LOGP | Quantity.MOMENTS
FAMILIES = ["gpt_neox", "llama", "opt", "gemma3_text", "granite", "gemma2"]


def naive(backend, context, text):
    """Log-probabilities of the text's tokens, from one whole pass over the context and the text."""
    one = backend.encode([text])[0]
    before = [*one.prefix.tolist(), *(backend.encode([context])[0].tokens.tolist() if context else [])]
    return naive_logp(backend.model, [*before, *one.tokens.tolist()], max(1, len(before)))


def drawn(number, words=30, seed=5):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=int(n))) for n in rng.integers(1, words, size=number)]


def begun_alike():
    """Questions with options in several orders, long and short, and texts that share nothing."""
    texts = []
    for question in drawn(4, seed=6):
        parts = drawn(3, words=6, seed=len(question))
        head = f"{question} and so on with many more words before anything differs at all"
        texts += [f"{head}: {a} {b} {c}" for a in parts for b in parts for c in parts if len({a, b, c}) == 3]
    long = "the same long beginning of one and the same text " * 3
    return [*texts, *[long + one for one in drawn(9, seed=7)], *drawn(7, seed=8), long]


def passes(monkeypatch):
    """Shapes of the beginnings that are read from now on."""
    seen = []
    own = prefixes.cache_of
    monkeypatch.setattr(prefixes, "cache_of", lambda read: seen.append(tuple(read[0].shape[:2])) or own(read))
    return seen


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("budget", [None, 60])
def test_texts_that_begin_alike_equal_the_naive_loop(family, start, budget):
    model, texts = opened(family, start=start, token_budget=budget), begun_alike()
    encoded = encoded_for(model, texts, ALL)
    assert sum(e.shared > LEAST for e in encoded) > 20
    assert model._begins_once == (family not in ("granite", "gemma2"))
    found = read(model, texts, ALL)
    for text, one in [*zip(texts, found, strict=True)][start::3]:
        np.testing.assert_allclose(one.logp, naive(model, "", text), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", [False, True])
def test_texts_read_after_another_equal_the_naive_loop(family, start):
    """With gemma3's windows of 16 tokens the beginning reaches far beyond what a layer keeps of it."""
    model, texts = opened(family, start=start, token_budget=100), drawn(20)
    context = "one two three and whoever wrote this must have been angry at the railway in the valley. " * 2
    found = read(model, texts, ALL, after=context)
    for text, one in zip(texts, found, strict=True):
        assert one.tokens.tolist() == model.encode([text])[0].tokens.tolist()
        np.testing.assert_allclose(one.logp, naive(model, context, text), atol=1e-5)


def test_a_beginning_is_read_once_however_many_batches_go_on_from_it(monkeypatch):
    model, context = opened("llama", token_budget=100), "the railway reached the valley " * 4
    length = len(model.encode([context])[0].tokens)
    assert model._begins_once
    seen = passes(monkeypatch)
    read(model, drawn(30), ALL, after=context)
    assert seen == [(1, length)]


def test_moments_draws_and_states_are_those_of_a_whole_pass(monkeypatch):
    """States inside the model belong to every token that is read: there nothing is shared."""
    texts, shared, whole = begun_alike(), opened("llama"), opened("llama")
    whole._begins_once = False
    seen = passes(monkeypatch)
    for wanted in ([Drawn(5, 0.7)], [Hidden(), Firing("count", 0.1)]):
        for one, other in zip(*(read(m, texts, ALL, *wanted) for m in (shared, whole)), strict=True):
            np.testing.assert_allclose(one.mean, other.mean, atol=1e-5)
            np.testing.assert_allclose(one.std, other.std, atol=2e-5)
            for state in wanted:
                np.testing.assert_allclose(one.states[state], other.states[state], atol=1e-5)
        assert bool(seen) == isinstance(wanted[0], Drawn)
        seen.clear()


def test_a_model_whose_state_cannot_be_taken_up_reads_whole_texts():
    """A recurrent state is no list of keys and values, and positions that depend on the length would be others."""
    import transformers as t

    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 416, "num_attention_heads": 4}
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    more = {"intermediate_size": 48, "max_position_embeddings": 64, "rope_parameters": rope}
    for model in ("mamba", t.LlamaForCausalLM(t.LlamaConfig(**size, **more))):
        backend = opened(model)
        assert not backend._begins_once
        texts = begun_alike()[:8]
        for text, one in zip(texts, read(backend, texts, ALL), strict=True):
            np.testing.assert_allclose(one.logp, naive(backend, "", text), atol=RECURRENT)


def test_the_store_tells_what_a_text_was_read_after():
    model, texts = opened("llama"), drawn(4)
    with Traces(model.fingerprint) as store:
        plain = read(model, texts, ALL, store=store)
        for context in ("the cat sat", "the dog sat"):
            for _ in range(2):  # computed, then from the store
                behind = read(model, texts, ALL, store=store, after=context)
                for text, one, other in zip(texts, behind, plain, strict=True):
                    np.testing.assert_allclose(one.logp, naive(model, context, text), atol=1e-5)
                    assert len(one) == len(other) + 1


def test_the_limit_counts_what_stands_before():
    model = opened("llama", max_tokens=20)
    context = "the cat sat on"
    room = 20 - len(model.encode([context])[0].tokens)
    text = "one two three four five six seven eight nine ten"
    (one,) = read(model, [text], ALL, after=context)
    assert len(one) == room
    assert one.cut == len(model.tokens.rust.encode(text).ids) - room
    with pytest.raises(ModelError, match=r"read after has .* tokens, and the model reads at most 20"):
        read(model, [text], ALL, after="the cat sat on the mat " * 3)


def encoded(rows):
    return [Encoded(np.zeros(0, np.int32), np.array(row, np.int32)) for row in rows]


def best(rows, least):
    """The fewest tokens, with every set of one beginning tried: a plain recursion over the tree of beginnings."""
    if len(rows) == 1:
        return len(rows[0])
    depth = 0
    while all(len(row) > depth + 1 for row in rows) and len({row[depth] for row in rows}) == 1:
        depth += 1
    parts = {}
    for row in rows:
        key = tuple(row[: depth + 1]) if len(row) > depth + 1 else (-1, len(parts))
        parts.setdefault(key, []).append(row)
    if len(parts) == 1:
        return sum(map(len, rows))
    apart = sum(best(part, least) for part in parts.values())
    whole = depth + sum(len(row) - depth for row in rows)
    return whole if depth >= least and whole <= GAIN * apart else apart


@given(
    st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=12, unique_by=tuple),
    st.sampled_from([LEAST, 12]),
)
@settings(max_examples=300, deadline=None)
def test_the_sets_are_the_best_of_all(tails, least):
    """Each drawn token stands for a run of five, so that beginnings are long enough."""
    rows = [[token for one in tail for token in [one] * 5] + [9] for tail in tails]
    made = alike(encoded(rows), least)
    sets = {}
    for e in made:
        sets.setdefault((e.shared, tuple(e.tokens[: e.shared].tolist()) if e.shared else id(e)), []).append(e)
    cost = sum(d + sum(len(e.tokens) - d for e in found) for (d, _), found in sets.items())
    assert cost == best(rows, least)
    assert all(len(found) > 1 for (d, _), found in sets.items() if d)


@given(st.integers(0, 10_000), st.integers(20, 400))
@settings(max_examples=100, deadline=None)
def test_packing_loses_nothing_and_keeps_beginnings_together(seed, budget):
    rng = np.random.default_rng(seed)
    heads = [rng.integers(0, 3, size=int(n)).tolist() for n in rng.integers(5, 40, size=4)]
    rows = [
        [*heads[int(rng.integers(4))], *rng.integers(3, 9, size=int(rng.integers(1, 30))).tolist()]
        for _ in range(int(rng.integers(1, 40)))
    ]
    made = alike(encoded(rows))
    batches = pack_alike(made, budget)
    assert sorted(i for batch in batches for i in batch) == [i for i, e in enumerate(made) if e.predicted]
    for batch in batches:
        depth = min(made[i].shared for i in batch)
        longest = max(made[i].length for i in batch)
        assert len(batch) == 1 or len(batch) * (longest - depth) <= budget
        assert len(batch) == 1 or not depth or len(batch) * longest <= WIDTH * budget
        if not depth:
            assert not any(made[i].shared for i in batch)
