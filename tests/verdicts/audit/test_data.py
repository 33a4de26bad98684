"""Log-probabilities of a text given its prefix, against a naive loop; weights alike and not; grades of placebos."""

import numpy as np
import pytest
import torch
from net.api import (
    AuditData,
    AuditSettings,
    HuggingFace,
    Logprobs,
    Models,
    ModelSettings,
    Sample,
    graded,
    likeness,
    logprob_gains,
    logprobs,
)
from tiny import SENTENCES, make_model, make_tokenizer

PIECES = tuple(
    Sample(f"d{i}", text[len(text) // 2 :], text[: len(text) // 2]) for i, text in enumerate(SENTENCES)
)
TURNED = tuple(piece._replace(text=piece.text[::-1]) for piece in PIECES)


def back_end(family="gpt_neox", *, start=False, name="", **settings):
    model, tokenizer = make_model(family), make_tokenizer(start=start)
    name = name or family
    return HuggingFace(model, tokenizer, name=name, weights=name, settings=ModelSettings(**settings))


def naive(model, piece):
    """The sum over the tokens that hold at least a character of the text, one text at a time."""
    encoded = model.encode([piece.prefix + piece.text])[0]
    ids = torch.tensor([[*encoded.prefix.tolist(), *encoded.tokens.tolist()]])
    with torch.no_grad():
        logp = torch.log_softmax(model.model(ids).logits[0].float(), -1)
    total, count = 0.0, 0
    spans = model.spans(piece.prefix + piece.text)
    for at in range(1, ids.shape[1]):
        token = at - len(encoded.prefix)
        if spans[token][1] > len(piece.prefix):
            total += float(logp[at - 1, ids[0, at]])
            count += 1
    return total, count


@pytest.mark.parametrize(("family", "start"), [("gpt_neox", False), ("llama", True), ("gemma2", True)])
def test_only_the_text_counts_and_the_prefix_conditions(family, start):
    model = back_end(family, start=start)
    found = logprobs(model, PIECES)
    for i, piece in enumerate(PIECES):
        total, count = naive(model, piece)
        assert found.total[i] == pytest.approx(total, abs=1e-4)
        assert len(found.logp[i]) == count
        assert found.bytes[i] == len(piece.text.encode())
    alone = logprobs(model, [Sample(piece.document, piece.text) for piece in PIECES])
    assert not np.allclose(alone.per_token, found.per_token, atol=1e-3)


def test_both_sides_are_read_as_they_are_apart():
    model = back_end()
    parts = PIECES, TURNED[1:], TURNED, PIECES[2:]
    read = AuditData(parts, Models(model), AuditSettings(cache=False), paired=True).logprobs(model)
    for part, found in zip(parts, read, strict=True):
        assert np.allclose(found.total, logprobs(model, part).total, atol=1e-4)


def said(*logp, size=10):
    return Logprobs(tuple(np.array(one) for one in logp), np.full(len(logp), size))


def test_no_token_counts_for_more_than_the_median_one():
    suspect = said([-1.0, -2.0], [-3.0]), said([-1.5, -12.0], [-3.5])
    heldout = said([-1.0], [-5.0, -5.0]), said([-2.0], [-4.0, -5.5])
    # gains 0.5, 10, 0.5, 1, -1, 0.5: the median without signs is 0.75
    mine, controls = logprob_gains([suspect, heldout])
    third = 0.5 / 0.75
    assert mine == pytest.approx([(third + 1) / 2, third])
    assert controls == pytest.approx([1.0, (-1 + third) / 2])
    scale = np.median([1.05, 0.05, 0.1, 0.05])
    assert logprob_gains([suspect, heldout], by_byte=True)[0] == pytest.approx([1.0, 0.05 / scale])
    assert logprob_gains([(suspect[0], suspect[0])])[0].tolist() == [0.0, 0.0]


def moved(model, by, name):
    """A copy whose weights were pushed around a little, as training does."""
    copy = back_end(name=name)
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in copy.model.parameters():
            weight.add_(by * weight.std() * torch.randn_like(weight)) if weight.numel() > 1 else None
    return copy


def apart(name):
    """The same shape from other random weights."""
    copy = back_end(name=name)
    torch.manual_seed(99)
    with torch.no_grad():
        for weight in copy.model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.1)
    return copy


def test_likeness_tells_a_common_past_from_none():
    model = back_end()
    found = [likeness(model, one) for one in (model, moved(model, 0.3, "near"), apart("far"))]
    assert found == [pytest.approx(1.0), pytest.approx(0.95, abs=0.05), pytest.approx(0.0, abs=0.05)]


def test_a_placebo_reads_controls_worse_by_a_share_of_the_loss():
    model, other = back_end(name="target"), apart("sibling")
    data = AuditData((PIECES, TURNED), Models(model), AuditSettings(cache=False))
    losses = []
    for one in (model, other):
        every = [logprobs(one, [piece], cache=False).logp[0].tolist() for piece in TURNED]
        losses.append(-sum(sum(some) / len(some) for some in every) / len(every))
    assert data.apart(other) == pytest.approx(max(losses) / min(losses) - 1)
    assert data.apart(model) == 0
    pairs = [AuditData(parts, Models(model), AuditSettings(cache=False), paired=True) for parts in (
        (PIECES, PIECES, TURNED, PIECES), (PIECES, TURNED))]  # fmt: skip
    assert [one.apart(other) for one in pairs] == [pytest.approx(data.apart(other)), None]


def test_a_placebo_is_graded_by_tokens_weights_and_family():
    model = back_end(name="target")
    both = AuditData((PIECES, TURNED), Models(model), AuditSettings(cache=False))
    grade, close = {}, {}
    for other in (moved(model, 0.01, "own"), apart("sibling"), back_end("llama", start=True, name="other")):
        grade[other.name] = graded(model, other).grade
        close[other.name] = both.closeness(other)
    assert grade == {"own": "own", "sibling": "sibling", "other": "other"}
    assert close["own"] > close["sibling"]
    assert graded(model, apart("sibling")).closeness is None  # before anything is read
