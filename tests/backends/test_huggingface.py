"""A trace against the naive loop: one text, the whole model, the whole log-softmax, in float64."""

import shutil

import numpy as np
import pytest
import torch
from net.api import STARTS, ModelError, Quantity, open_model
from tiny import RECURRENT, make_model, make_tokenizer, opened, read

ALL = Quantity.LOGP | Quantity.MOMENTS
FAMILIES = ["gpt_neox", "llama", "opt", "gemma3_text"]
SCALED = ["granite", "gemma2"]  # these do more to their logits than the output layer
OTHERS = ["gpt2", "bloom", "mamba", "mixtral", "qwen3", "recurrent_gemma"]
"""Learned positions, ALiBi, state space, experts, norms of queries and keys, a recurrence with a window."""


def naive(model, ids, first):
    """Straight from the definitions, a position at a time."""
    with torch.inference_mode():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].double()
    logp, mean, std = [], [], []
    for i in range(first, len(ids)):
        row = logits[i - 1]
        log_p = row - torch.log(torch.exp(row).sum())
        p = torch.exp(log_p)
        logp.append(float(log_p[ids[i]]))
        mean.append(float((p * log_p).sum()))
        std.append(float((p * (log_p - mean[-1]) ** 2).sum().sqrt()))
    return np.array(logp), np.array(mean), np.array(std)


@pytest.mark.parametrize("family", FAMILIES + SCALED + OTHERS)
@pytest.mark.parametrize("start", [False, True])
def test_a_trace_equals_the_naive_loop(family, start, sentences):
    model = opened(family, start=start)
    near = RECURRENT if family == "mamba" else 1e-5
    for text, one in zip(sentences, read(model, sentences, ALL), strict=True):
        ids = model.encode([text])[0]
        whole = [*ids.prefix.tolist(), *ids.tokens.tolist()]
        logp, mean, std = naive(model.model, whole, max(1, len(ids.prefix)))
        assert one.tokens.tolist() == whole[max(1, len(ids.prefix)) :]
        np.testing.assert_allclose(one.logp, logp, atol=near)
        np.testing.assert_allclose(one.mean, mean, atol=near)
        np.testing.assert_allclose(one.std, std, atol=near)
        assert one.logp.dtype == np.float32


def test_the_output_layer_is_applied_apart_only_where_that_is_right():
    assert all(opened(family).split for family in FAMILIES)
    assert not any(opened(family).split for family in SCALED)


@pytest.mark.parametrize("kind", STARTS)
@pytest.mark.parametrize("own", [False, True])
def test_start_tokens(kind, own):
    model = opened("llama", make_tokenizer(start=own), start=kind)
    [one] = model.encode(["The cat sat"])
    expected = {"tokenizer": int(own), "always": 1, "never": 0}[kind]
    assert len(one.prefix) == expected
    [seen] = read(model, ["The cat sat"], ALL)
    assert len(seen) == len(one.tokens) - (0 if expected else 1) == one.predicted


def test_spans_cover_the_text(sentences):
    model = opened("llama")
    for text in [*sentences, "  leading and trailing  \n\n", "🙂🙂 naïve"]:
        spans = model.spans(text)
        assert len(spans) == len(model.encode([text])[0].tokens)
        assert "".join(text[a:b] for a, b in spans) == text


def test_bfloat16_stays_close(sentences):
    rounded = make_model("llama").to(torch.bfloat16)
    model = opened(rounded)
    assert model.split
    for a, b in zip(read(opened("llama"), sentences), read(model, sentences), strict=True):
        assert float(np.abs(a.logp - b.logp).mean()) < 0.2


def test_pickled_weights_need_a_word(model_folder, tmp_path):
    folder = tmp_path / "pickled"
    shutil.copytree(model_folder, folder)
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="--model-args allow_pickle=true"):
        open_model(str(folder))
    facts = open_model(str(folder), allow_pickle=True).facts
    assert (facts["family"], facts["dtype"]) == ("gpt_neox", "float32")  # which "auto" is on a processor


def test_numbers_that_are_not_finite_are_an_error():
    model = make_model("llama")
    with torch.no_grad():
        model.lm_head.weight[5] = float("nan")
    broken = opened(model)
    with pytest.raises(ModelError, match="finite"):
        read(broken, ["The cat sat on the mat"])


def test_whatever_changes_a_trace_changes_the_fingerprint():
    def printed(model="gpt_neox", **how):
        return str(opened(model, make_tokenizer(), **how).fingerprint)

    rounded = printed(make_model("gpt_neox").to(torch.bfloat16))
    others = [printed(weights="other"), rounded, printed(start="always"), printed(max_tokens=9)]
    assert len({printed(), *others}) == 5
    assert printed() == printed()
