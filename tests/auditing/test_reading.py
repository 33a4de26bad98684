"""Log-probabilities of a text given its prefix, against a naive loop; weights alike and not; grades of placebos."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny import SENTENCES, make_model, make_tokenizer

from pretrace.auditing.placebo import check_placebos, closeness, graded
from pretrace.auditing.reading import Reading, bounded_lead, bytewise, lead, read, read_sides, token_scale
from pretrace.auditing.sides import Piece, Sides
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.loading import ModelSettings
from pretrace.backends.weight_similarity import likeness
from pretrace.errors import ModelError
from pretrace.types import Pair

PIECES = [Piece(f"d{i}", text[len(text) // 2 :], text[: len(text) // 2]) for i, text in enumerate(SENTENCES)]


def back_end(
    family: str = "gpt_neox", *, start: bool = False, name: str = "", **settings: Any
) -> HuggingFace:
    model, tokenizer = make_model(family), make_tokenizer(start=start)
    return HuggingFace(
        model, tokenizer, name=name or family, weights=name or family, settings=ModelSettings(**settings)
    )


def naive(model: HuggingFace, piece: Piece) -> tuple[float, int]:
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
def test_only_the_text_counts_and_the_prefix_conditions(family: str, start: bool) -> None:
    model = back_end(family, start=start)
    found = read(model, PIECES)
    for i, piece in enumerate(PIECES):
        total, count = naive(model, piece)
        assert found.total[i] == pytest.approx(total, abs=1e-4)
        assert found.tokens[i] == count
        assert found.bytes[i] == len(piece.text.encode())
    alone = read(model, [Piece(piece.document, piece.text) for piece in PIECES])
    assert not np.allclose(alone.per_token, found.per_token, atol=1e-3)


def test_a_text_without_prefix_counts_whole() -> None:
    model = back_end("llama", start=True)
    found = read(model, [Piece("d", text) for text in SENTENCES])
    assert found.tokens.tolist() == [len(e.tokens) for e in model.encode(SENTENCES)]


def test_sides_are_read_as_they_are_apart() -> None:
    model = back_end()
    pairs = [Pair(str(i), p.document, p.prefix, p.text, p.text[::-1]) for i, p in enumerate(PIECES)]
    both = read_sides(model, Sides.of_pairs(pairs))
    assert np.allclose(both.suspect.total, read(model, PIECES).total, atol=1e-4)
    assert both.suspect.total.shape == both.heldout.total.shape == (len(PIECES),)
    assert not np.allclose(both.suspect.total, both.heldout.total)


def test_the_lead_is_the_difference_by_token_or_by_byte() -> None:
    one, other = back_end(), back_end("llama", start=True)
    a, b = read(one, PIECES), read(other, PIECES)
    assert np.allclose(lead(a, b), a.total / a.tokens - b.total / b.tokens)
    assert np.allclose(lead(a, b, bytewise=True), (a.total - b.total) / a.bytes)
    assert np.allclose(lead(a), a.per_token)


def said(*logp: list[float], size: int = 10) -> Reading:
    return Reading(tuple(np.array(one) for one in logp), np.full(len(logp), size))


def test_no_token_counts_for_more_than_the_median_one() -> None:
    suspect = said([-1.0, -2.0], [-3.0]), said([-1.5, -12.0], [-3.5])
    heldout = said([-1.0], [-5.0, -5.0]), said([-2.0], [-4.0, -5.5])
    # leads 0.5, 10, 0.5, 1, -1, 0.5: the median without signs is 0.75
    scale = token_scale([suspect, heldout])
    assert scale == 0.75
    third = 0.5 / 0.75
    assert bounded_lead(*suspect, scale) == pytest.approx([(third + 1) / 2, third])
    assert bounded_lead(*heldout, scale) == pytest.approx([1.0, (-1 + third) / 2])
    by_byte = token_scale([suspect, heldout], by_byte=True)
    assert by_byte == pytest.approx(np.median([1.05, 0.05, 0.1, 0.05]))
    assert bounded_lead(*suspect, by_byte, by_byte=True) == pytest.approx([1.0, 0.05 / by_byte])


def test_models_that_agree_have_no_lead() -> None:
    one = said([-1.0, -2.0], [-3.0])
    assert token_scale([(one, one)]) == 0
    assert bounded_lead(one, one, 0.0).tolist() == [0.0, 0.0]


def test_a_cut_snippet_is_an_error() -> None:
    with pytest.raises(ModelError, match=r"reads at most 8 tokens, and a snippet has more"):
        read(back_end(max_tokens=8), PIECES)


def moved(model: HuggingFace, by: float, name: str) -> HuggingFace:
    """A copy whose weights were pushed around a little, as training does."""
    copy = back_end(name=name)
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in copy.model.parameters():
            weight.add_(by * weight.std() * torch.randn_like(weight)) if weight.numel() > 1 else None
    return copy


def apart(name: str) -> HuggingFace:
    """The same shape from other random weights."""
    copy = back_end(name=name)
    torch.manual_seed(99)
    with torch.no_grad():
        for weight in copy.model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.1)
    return copy


def test_likeness_tells_a_common_past_from_none() -> None:
    model = back_end()
    assert likeness(model, model) == pytest.approx(1.0)
    near, far = likeness(model, moved(model, 0.3, "near")), likeness(model, apart("far"))
    assert near is not None
    assert far is not None
    assert near > 0.9
    assert abs(far) < 0.05


def test_a_placebo_is_graded_by_tokens_weights_and_family() -> None:
    model = back_end(name="target")
    sides = Sides.of_pairs(
        [Pair(str(i), p.document, p.prefix, p.text, p.text[::-1]) for i, p in enumerate(PIECES)]
    )
    known = read_sides(model, sides)
    grade, close = {}, {}
    for other in (moved(model, 0.01, "own"), apart("sibling"), back_end("llama", start=True, name="other")):
        grade[other.name] = graded(model, other).grade
        by_byte = bytewise(model, other)
        close[other.name] = closeness(known, read_sides(other, sides), by_byte=by_byte)
    assert grade == {"own": "own", "sibling": "sibling", "other": "other"}
    assert close["own"] > close["sibling"]
    assert graded(model, apart("sibling")).closeness is None  # before anything is read


def test_the_target_is_no_placebo_of_itself() -> None:
    with pytest.raises(ModelError, match="has the very weights of the target"):
        check_placebos(back_end(), (back_end(),))
