"""Hidden states at the last token, against transformers' own output."""

import numpy as np
import pytest
import torch
from net.api import Firing, Hidden, ModelError, Quantity, Want, open_store, trace
from tiny import make_model, opened

FAMILIES = ["gpt_neox", "llama", "opt", "gemma3_text", "granite", "gemma2"]


def traces(backend, texts, *states):
    return trace(backend, texts, Want(Quantity.LOGP, frozenset(states)), store=open_store(None))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", [False, True])
def test_hidden_states_are_those_of_transformers(family, start, sentences):
    model = make_model(family)
    backend = opened(model, start=start)
    assert Quantity.HIDDEN in backend.offers
    for text, one in zip(sentences, traces(backend, sentences, Hidden(), Hidden(1), Hidden(2)), strict=True):
        [encoded] = backend.encode([text])
        ids = torch.tensor([[*encoded.prefix.tolist(), *encoded.tokens.tolist()]])
        with torch.inference_mode():
            known = [layer[0, -1].numpy() for layer in model(ids, output_hidden_states=True).hidden_states]
        found = one.states[Hidden()]
        assert found.dtype == np.float32
        assert found.shape == (3, 32)
        for layer, expected in enumerate(known):
            np.testing.assert_allclose(found[layer, : len(expected)], expected, atol=1e-5, rtol=1e-5)
            assert not found[layer, len(expected) :].any()  # OPT's last is narrower: zeros
        np.testing.assert_array_equal(one.states[Hidden(1)], found[1])
        np.testing.assert_array_equal(one.states[Hidden(2)], found[2])


def test_one_layer_alone_is_padded_as_among_all(sentences):
    backend = opened(make_model("opt"))
    [alone], [among] = (traces(backend, sentences[:1], *states) for states in ([Hidden(2)], [Hidden()]))
    np.testing.assert_array_equal(alone.states[Hidden(2)], among.states[Hidden()][2])


def test_hidden_states_and_neurons_come_from_one_pass(sentences):
    model = make_model("llama")
    backend = opened(model, token_budget=4096)
    passes = []
    handle = model.model.layers[0].register_forward_hook(lambda *_: passes.append(1))
    found = traces(backend, sentences, Hidden(), Firing(), Firing("count"))
    handle.remove()
    assert len(passes) == 1
    assert all(set(one.states) == {Hidden(), Firing(), Firing("count")} for one in found)
    assert all(array.base is None for one in found for array in one.states.values())


def test_a_layer_the_model_lacks_is_named(sentences):
    model = make_model("llama")
    with pytest.raises(ModelError, match="hidden state 3 was wanted; this model has 0 to 2"):
        traces(opened(model), sentences, Hidden(3))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    found = traces(opened(make_model("llama").to(torch.bfloat16)), sentences, Hidden(1))
    assert all(one.states[Hidden(1)].dtype == np.float32 for one in found)


def test_a_model_without_a_list_of_blocks_offers_none(sentences):
    model = make_model("gpt_neox")
    model.config.num_hidden_layers = 5  # it says so, and has two
    backend = opened(model)
    assert not backend.offers & (Quantity.HIDDEN | Quantity.NEURONS)
    with pytest.raises(ModelError, match=r"hidden states were wanted of tiny \(gpt_neox\).*Use scores"):
        traces(backend, sentences, Hidden())
    with pytest.raises(ModelError, match="its blocks could not be found"):
        traces(backend, sentences, Firing())
