"""What is inside a model while it reads: neurons against naive hooks (one text, whole activations, loops), hidden
states at the last token against transformers' own output."""

import numpy as np
import pytest
import torch
from net.api import Firing, Hidden, ModelError, Quantity, bits, count, prefixes
from tiny import make_model, opened, read
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

THRESHOLDS = (-0.1, 0.0, 0.3, 1.1)
RULES = [Firing(pool, t, g) for pool in ("any", "mean", "count") for t in THRESHOLDS for g in (False, True)]
# Where each family applies its activation and its down projection, written down by hand.
PATHS = {
    "gpt_neox": lambda m: [(b.mlp.act, b.mlp.dense_4h_to_h) for b in m.gpt_neox.layers],
    "opt": lambda m: [(b.activation_fn, b.fc2) for b in m.model.decoder.layers],
    "llama": lambda m: [(b.mlp.act_fn, b.mlp.down_proj) for b in m.model.layers],
    "gemma3_text": lambda m: [(b.mlp.act_fn, b.mlp.down_proj) for b in m.model.layers],
    "gemma2": lambda m: [(b.mlp.act_fn, b.mlp.down_proj) for b in m.model.layers],  # asked a text at a time
}


def traces(backend, texts, *states):
    return read(backend, texts, None, *states)


def naive(family, backend, text):
    """Each layer's activations [positions, neurons] of one text, without and with the gate's partner."""
    found = {False: [], True: []}

    def rows(table):
        return table.reshape(-1, 48).float().numpy()

    handles = []
    for activation, down in PATHS[family](backend.model):
        handles.append(activation.register_forward_hook(lambda m, a, out: found[False].append(rows(out))))
        handles.append(down.register_forward_pre_hook(lambda m, a: found[True].append(rows(a[0]))))
    plain_pass(backend, text)
    for handle in handles:
        handle.remove()
    return found


def plain_pass(backend, text, **how):
    [encoded] = backend.encode([text])
    with torch.inference_mode():
        return backend.model(torch.tensor([[*encoded.prefix.tolist(), *encoded.tokens.tolist()]]), **how)


def unpacked(trace, rule):
    found = trace.states[rule]
    assert found.dtype == (np.uint32 if rule.pool == "count" else np.uint8)
    return found if rule.pool == "count" else np.unpackbits(found, axis=1)


@pytest.mark.parametrize("family", PATHS)
@pytest.mark.parametrize("start", [False, True])
def test_firings_equal_the_naive_loop(family, start, sentences):
    backend = opened(family, start=start)
    assert Quantity.NEURONS in backend.offers
    for text, one in zip(sentences, traces(backend, sentences, *RULES), strict=True):
        layers = naive(family, backend, text)
        assert (
            len(layers[False][0]) == backend.encode([text])[0].length
        )  # the start token is read, so it counts
        for rule in RULES:
            seen = unpacked(one, rule)
            for layer, values in enumerate(layers[rule.gated]):
                for neuron in range(48):
                    column = [float(v) for v in values[:, neuron]]
                    if rule.pool == "count":
                        assert seen[layer, neuron] == sum(v > rule.threshold for v in column)
                        continue
                    pooled = max(column) if rule.pool == "any" else sum(column) / len(column)
                    if abs(pooled - rule.threshold) > 1e-5:
                        assert bool(seen[layer, neuron]) == (pooled > rule.threshold)


def test_a_count_passes_a_byte():
    model = make_model("gpt_neox")
    model.config.max_position_embeddings = 2000
    backend = opened(model, max_tokens=2000)
    text = "one two three four five " * 150
    rule = Firing("count", -1e9)
    [one] = traces(backend, [text], rule)
    length = backend.encode([text])[0].length
    assert length > 600
    assert (one.states[rule] == length).all()


def hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_no_hook_stays_behind(family, sentences, monkeypatch):
    model = make_model(family)
    backend = opened(model)
    assert hooks(model) == 0
    traces(backend, sentences, *RULES)
    assert hooks(model) == 0

    def fails(*args, **kwargs):
        assert hooks(model) > 0
        raise RuntimeError("out of memory")

    monkeypatch.setattr(model.model.layers[1], "forward", fails)
    with pytest.raises(ModelError, match="out of memory"):
        traces(backend, sentences, *RULES)
    assert hooks(model) == 0


def test_a_layers_activations_are_let_go_at_once(sentences):
    model = make_model("llama")
    backend, storages, alive = opened(model), [], []

    def note(module, args, output):
        alive.append(sum(not storage.expired() for storage in storages))
        storages.append(StorageWeakRef(output.untyped_storage()))

    for block in model.model.layers:
        block.mlp.act_fn.register_forward_hook(note)
    found = traces(backend, sentences, *RULES)
    assert len(storages) >= 2
    assert not any(alive)  # when a layer is reached, the one before is gone
    assert all(storage.expired() for storage in storages)
    # no view that would keep a whole batch
    assert all(array.base is None for one in found for array in one.states.values())


def test_one_activation_module_may_serve_all_layers(sentences):
    model = make_model("gpt_neox")
    apart = traces(opened(model), sentences, Firing("count"))
    for block in model.gpt_neox.layers:
        block.mlp.act = model.gpt_neox.layers[0].mlp.act
    for a, b in zip(apart, traces(opened(model), sentences, Firing("count")), strict=True):
        np.testing.assert_array_equal(a.states[Firing("count")], b.states[Firing("count")])


class Inline(nn.Module):
    """A feed-forward layer whose activation is a plain function."""

    def __init__(self, layer):
        super().__init__()
        self.up, self.down, self.gate = layer.dense_h_to_4h, layer.dense_4h_to_h, nn.Linear(32, 48)

    def forward(self, hidden):
        return self.down(nn.functional.silu(self.gate(hidden)) * self.up(hidden))


def test_an_activation_that_is_a_plain_function_is_refused(sentences):
    model = make_model("gpt_neox")
    for block in model.gpt_neox.layers:
        block.mlp = Inline(block.mlp)
    backend = opened(model)
    assert Quantity.NEURONS not in backend.offers
    with pytest.raises(ModelError, match=r"tiny \(gpt_neox\), and in block 1 no module with its activation"):
        traces(backend, sentences, Firing())


def test_layers_of_different_sizes_are_padded(sentences):
    model = make_model("gpt_neox")
    mlp = model.gpt_neox.layers[0].mlp
    mlp.dense_h_to_4h, mlp.dense_4h_to_h = nn.Linear(32, 43), nn.Linear(43, 32)
    for one in traces(opened(model), sentences, Firing("any", -9.0), Firing("count", -9.0)):
        bits = unpacked(one, Firing("any", -9.0))
        assert bits.shape == (2, 48)
        assert bits.sum(axis=1).tolist() == [43, 48]
        assert (one.states[Firing("count", -9.0)][0, 43:] == 0).all()


def test_a_mixture_of_experts_is_refused(sentences):
    backend = opened("mixtral")
    dense = opened("llama").offers
    assert backend.offers == dense & ~Quantity.NEURONS != dense
    with pytest.raises(ModelError, match=r"mixture of experts.*Use a dense model"):
        traces(backend, sentences, Firing())
    assert traces(backend, sentences)[0].logp.size


@pytest.mark.parametrize("family", ["gpt2", "gptj", "bloom", "falcon"])
def test_more_families_are_found_by_their_structure(family, sentences):
    backend = opened(family)
    assert [layer.neurons for layer in backend.layers] == [128, 128]
    [one] = traces(backend, sentences[:1], Firing("any", 0.0))
    assert 0 < unpacked(one, Firing("any", 0.0)).mean() <= 1


def test_a_value_at_the_threshold_does_not_fire_nor_one_that_bfloat16_rounds_up():
    """Equation 2 says above; a ReLU gives exact zeros, all of which would fire at a threshold of 0."""
    values = torch.tensor([[0.0, 0.5, -1.0, 0.0]]).expand(1, 3, 4)
    assert bits(values, "any", [0.0, 0.5]).tolist() == [[[0b01000000], [0]]]
    assert bits(values, "mean", [0.0, 0.5]).tolist() == [[[0b01000000], [0]]]
    assert count(values, [0.0, 0.5]).tolist() == [[[0, 3, 0, 0], [0, 0, 0, 0]]]
    above = torch.full((1, 3, 8), 1.1015625, dtype=torch.bfloat16)  # what 1.1 becomes in bfloat16
    assert count(above, [1.1]).tolist() == [[[3] * 8]]
    assert bits(above, "any", [1.1, 1.2]).tolist() == [[[255], [0]]]


def test_padded_rows_masked_as_on_a_gpu_give_what_cut_rows_give(sentences, monkeypatch):
    backend, texts, own = opened("llama", token_budget=4096), [*sentences, sentences[0] * 3], prefixes.firings
    found = [traces(backend, texts, *RULES)]
    as_on_a_gpu = lambda *given, masked, **how: own(*given, masked=True, **how)  # noqa: E731
    monkeypatch.setattr(prefixes, "firings", as_on_a_gpu)
    found.append(traces(backend, texts, *RULES))
    for rule in RULES:
        cut, masked = (np.stack([one.states[rule] for one in some]) for some in found)
        # a mean at a threshold may round to its other side
        assert np.mean(cut != masked) <= (0.01 if rule.pool == "mean" else 0), rule
        assert masked.any() or rule.threshold > 1


FAMILIES = ["gpt_neox", "llama", "opt", "gemma3_text", "granite", "gemma2"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", [False, True])
def test_hidden_states_are_those_of_transformers(family, start, sentences):
    backend = opened(family, start=start)
    assert Quantity.HIDDEN in backend.offers
    for text, one in zip(sentences, traces(backend, sentences, Hidden(), Hidden(1), Hidden(2)), strict=True):
        known = plain_pass(backend, text, output_hidden_states=True).hidden_states
        known = [layer[0, -1].numpy() for layer in known]
        found = one.states[Hidden()]
        assert found.dtype == np.float32
        assert found.shape == (3, 32)
        for layer, expected in enumerate(known):
            np.testing.assert_allclose(found[layer, : len(expected)], expected, atol=1e-5, rtol=1e-5)
            assert not found[layer, len(expected) :].any()  # OPT's last is narrower: zeros
        np.testing.assert_array_equal(one.states[Hidden(1)], found[1])
        np.testing.assert_array_equal(one.states[Hidden(2)], found[2])


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
    assert hooks(model) == 0
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
