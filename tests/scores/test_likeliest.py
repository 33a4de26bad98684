"""The log-probability of the likeliest token: against a plain softmax of transformers, and what rests on it."""

import numpy as np
import pytest
import torch
from tiny import SENTENCES, make_tokenizer, opened, read

from pretrace.errors import ModelError
from pretrace.scores import parse
from pretrace.scores.reference import gains
from pretrace.scoring.detect import detect
from pretrace.scoring.evidence import Traces
from pretrace.scoring.plan import Models
from pretrace.testing import Memory, make_evidence, make_trace
from pretrace.types import Corpus, Drawn, Evidence, Peak, Quantity, Text, View

TEXTS = [" ".join(SENTENCES[:4]), SENTENCES[4], SENTENCES[1]]


def plain_logits(backend, text):
    """The tokens of a text, and the logits behind each."""
    ids = make_tokenizer()(text)["input_ids"]
    with torch.inference_mode():
        return ids, backend.model(input_ids=torch.tensor([ids])).logits[0].double()


@pytest.mark.parametrize("family", ["gpt_neox", "gemma2"])  # the second does more to its logits
@pytest.mark.parametrize("quantity", [Quantity.LOGP, Quantity.LOGP | Quantity.MOMENTS])
def test_the_peak_is_that_of_a_plain_softmax(family, quantity, tmp_path):
    backend = opened(family)
    with Traces("model", tmp_path) as store:
        found = read(backend, TEXTS, quantity, Peak(), Drawn(1), store=store)
        backend._traces = None  # type: ignore[assignment]  # nothing may be read again
        again = read(backend, TEXTS, quantity, Peak(), store=store)
    for text, one, kept in zip(TEXTS, found, again, strict=True):
        naive = [
            float(row.max() - torch.log(torch.exp(row).sum())) for row in plain_logits(backend, text)[1][:-1]
        ]
        np.testing.assert_allclose(one.states[Peak()], naive, atol=1e-5)
        np.testing.assert_array_equal(one.states[Peak()], kept.states[Peak()])
        # equal to the last bit where the text's token is the likeliest one, and nowhere else
        np.testing.assert_array_equal(one.logp == one.states[Peak()], np.isfinite(one.states[Drawn(1)]))


def test_two_models_are_compared_token_by_token_whichever_predicts_the_first():
    longer = make_trace([-9.0, -1.0, -2.0], tokens=[5, 6, 7])
    shorter = make_trace([-2.0, -5.0], tokens=[6, 7])
    for own, other, expected, part in (
        (longer, shorter, [1.0, 3.0], slice(1, 3)),
        (shorter, longer, [-1.0, -3.0], slice(0, 2)),
    ):
        views = {View(): (own,), View(model="reference"): (other,)}
        found, where = gains(Evidence(Text("t", "abc"), views))
        assert found.tolist() == expected
        assert where == part
    others = {View(): (longer,), View(model="reference"): (make_trace([-1.0] * 3, tokens=[1, 2, 3]),)}
    with pytest.raises(ModelError, match="same tokenizer"):
        gains(Evidence(Text("t", "abc"), others))


@pytest.mark.parametrize("name", ["wbc", "ez"])
def test_a_reference_with_other_tokens_is_refused_before_anything_is_read(name):
    target, other = Memory(), Memory(name="other")
    other.tokenizer_hash = "words"
    corpus = Corpus("one", (Text("a", "abcdef"),))
    other.run = target.run = None
    with pytest.raises(ModelError, match="other tokens than memory: name another --reference-model"):
        detect(corpus, Models(target, reference=other), f"loss,{name}")
    with pytest.raises(ModelError, match=f"{name} compares the target with a second model"):
        detect(corpus, Models(target), f"loss,{name}")


def test_a_text_that_never_fell_is_at_the_top_and_one_without_errors_has_a_value():
    ez = parse("ez")["ez"]

    def value(logp, reference, peak):
        made = make_evidence(logp=logp, reference=reference)
        made.plain.states[Peak()] = np.array(peak, dtype=np.float32)
        return ez(made)

    never_fell = value([-1.0, -2.0], [-2.0, -4.0], [-0.5, -0.5])
    mixed = value([-1.0, -4.0], [-4.0, -3.0], [-0.5, -0.5])
    memorised = value([-0.1, -0.1], [-2.0, -4.0], [-0.1, -0.1])
    fell = value([-3.0, -4.0], [-2.0, -3.0], [-0.5, -0.5])
    assert fell < mixed < never_fell < memorised
    assert mixed == pytest.approx(3.0, rel=1e-5)


@pytest.mark.parametrize("family", ["gpt_neox", "gemma2"])
@pytest.mark.parametrize("how", [Drawn(), Drawn(1, 1.0), Drawn(7, 0.6), Drawn(10_000, 1.5)])
def test_tokens_are_drawn_as_a_plain_softmax_draws_them(family, how):
    backend = opened(family)
    found = read(backend, TEXTS, Quantity.LOGP | Quantity.MOMENTS, how, Drawn(2, 1.0))
    for text, one in zip(TEXTS, found, strict=True):
        ids, logits = plain_logits(backend, text)
        naive = []
        for i, token in enumerate(ids[1:]):
            scaled = logits[i] / how.temperature
            kept = sorted(range(len(scaled)), key=lambda v: -float(scaled[v]))[: how.k]
            total = sum(float(torch.exp(scaled[v])) for v in kept)
            naive.append(np.log(float(torch.exp(scaled[token])) / total) if token in kept else -np.inf)
        np.testing.assert_allclose(one.states[how], naive, atol=2e-4)
