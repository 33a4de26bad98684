"""An adapter over a loaded model: the tuned traces are peft's, the base's are untouched."""

import json
import shutil

import numpy as np
import pytest
import torch
from net.api import (
    CARD,
    KEY,
    WEIGHTS,
    Corpus,
    Firing,
    Hidden,
    Memory,
    ModelError,
    Quantity,
    Text,
    attach,
    encoded_for,
    make_adapter,
    methods,
    read_adapter,
    text_key,
)
from tiny import SENTENCES, make_model, naive_logp, opened, read

FAMILIES = ["gpt_neox", "llama", "opt", "gemma3_text"]
BOTH = Quantity.LOGP | Quantity.MOMENTS
TEXTS = Corpus("made", tuple(Text(f"t{i}", text, None) for i, text in enumerate(SENTENCES)))


def traces(backend):
    return read(backend, SENTENCES, BOTH)


def same(left, right):
    pairs = zip(left, right, strict=True)
    arrays = [
        (a, b)
        for one, two in pairs
        for a, b in ((one.logp, two.logp), (one.mean, two.mean), (one.std, two.std))
    ]
    return all(np.array_equal(a, b) for a, b in arrays)


def state(model):
    """All that another could find changed: modules, attributes, weights, what wants a gradient."""
    return (
        [(name, id(module), module.training) for name, module in model.named_modules()],
        sorted(model.__dict__),
        [(name, weight.requires_grad, weight.clone()) for name, weight in model.named_parameters()],
    )


def assert_same_state(left, right):
    assert left[:2] == right[:2]
    for (name, wanted, weight), (other, wanted_too, weight_too) in zip(left[2], right[2], strict=True):
        assert (name, wanted) == (other, wanted_too)
        assert torch.equal(weight, weight_too)


@pytest.fixture(scope="module")
def base():
    return opened()


@pytest.fixture(scope="module")
def adapter(base, tmp_path_factory):
    method = methods.make("lora(rank=4, epochs=4, learning_rate=1e-2, batch=2)")
    return make_adapter(base, TEXTS, method, folder=tmp_path_factory.mktemp("adapters") / "lora")


def test_beginnings_are_shared_alike_with_and_without_the_adapter(adapter):
    """On a GPU longer ones alone; the texts would have other batch mates."""
    usual, base = opened(), opened()
    base.least_shared = 40
    texts = [f"{' '.join(['the cat sat on the mat'] * 3)} {SENTENCES[i]}" for i in range(4)]
    readers = (usual, base, attach(base, adapter.folder).backend)
    found = [[e.shared >= 8 for e in encoded_for(one, texts, Quantity.LOGP)] for one in readers]
    assert found == [[True] * 4, [False] * 4, [False] * 4]


@pytest.mark.parametrize("expression", ["lora", "adalora", "ia3"])
@pytest.mark.parametrize("family", FAMILIES)
def test_tuned_traces_are_those_of_another_copy_with_the_adapter_and_the_base_stays(
    family, expression, tmp_path
):
    """The foundation of FSD: S(x; f) and S(x; f') from one copy of the weights equal those from two."""
    base = opened(family)
    method = methods.make(f"{expression}(epochs=6, learning_rate=2e-2, batch=2)")
    before, was = traces(base), state(base.model)
    made = make_adapter(base, TEXTS, method, folder=tmp_path / "adapter")
    assert_same_state(state(base.model), was)
    assert same(traces(base), before)

    tuned = attach(base, made.folder)
    got = traces(tuned.backend)
    assert_same_state(state(base.model), was)
    assert same(traces(base), before)
    assert made.card["losses"][-1] < made.card["losses"][0]
    assert np.mean([t.logp.mean() for t in got]) > np.mean([t.logp.mean() for t in before])

    from peft import PeftModel

    other = PeftModel.from_pretrained(make_model(family), str(made.folder)).eval()
    for encoded, trace in zip(base.encode(SENTENCES), got, strict=True):
        assert np.abs(trace.logp - naive_logp(other, encoded.tokens.tolist())).max() < 1e-5


def test_an_adapter_is_gone_when_a_stream_is_closed_or_a_pass_fails(base, adapter):
    tuned, before, was = attach(base, adapter.folder).backend, traces(base), state(base.model)
    stream = tuned.stream([[one] for one in tuned.encode(SENTENCES)], BOTH)
    next(stream)
    stream.close()
    assert_same_state(state(base.model), was)
    wrong = base.encode(SENTENCES[:1])[0]
    wrong.tokens[0] = 10_000  # beyond the vocabulary
    with pytest.raises(ModelError, match="failed while it read a text"):
        tuned.run([wrong], Quantity.LOGP, frozenset())
    assert_same_state(state(base.model), was)
    assert same(traces(base), before)


def test_states_inside_the_model_are_those_of_the_tuned_one(base, adapter):
    """Hooks are found on the base's own layers, which the adapter's stand around."""
    tuned = attach(base, adapter.folder).backend
    states = frozenset({Hidden(), Firing("count", threshold=0.1)})
    [encoded] = base.encode(SENTENCES[:1])
    before, got = (one.run([encoded], Quantity.LOGP, states)[0] for one in (base, tuned))
    from peft import PeftModel

    other = PeftModel.from_pretrained(make_model("gpt_neox"), str(adapter.folder)).eval()
    ids = torch.from_numpy(encoded.tokens.astype(np.int64))[None]
    with torch.inference_mode():
        hidden = other(input_ids=ids, output_hidden_states=True).hidden_states
    wanted = torch.stack([layer[0, -1] for layer in hidden]).numpy()
    assert np.abs(got.states[Hidden()] - wanted).max() < 1e-4
    assert np.abs(before.states[Hidden()] - wanted).max() > 1e-2
    assert (got.states[Firing("count", threshold=0.1)] != before.states[Firing("count", threshold=0.1)]).any()


def test_several_adapters_share_a_base_and_each_runs_its_own(base, adapter, tmp_path):
    ia3 = make_adapter(
        base, TEXTS, methods.make("ia3(epochs=3, learning_rate=5e-2)"), folder=tmp_path / "ia3"
    )
    first, second, third = (attach(base, one.folder).backend for one in (adapter, ia3, adapter))
    alone = traces(first)
    assert not same(traces(second), alone)
    assert same(traces(third), alone)
    assert same(traces(first), alone)
    assert not same(traces(base), alone)
    assert len({one.fingerprint for one in (first, second, third, base)}) == 3


def test_the_tuned_back_end_says_what_it_is(base, adapter):
    tuned = attach(base, adapter.folder)
    backend = tuned.backend
    assert backend.name == "gpt_neox + lora"
    for name in ("offers", "vocabulary", "tokenizer_hash", "max_tokens"):
        assert getattr(backend, name) == getattr(base, name)
    assert backend.facts["weights"] == base.facts["weights"]
    assert backend.facts["adapter"]["method"].startswith("lora(rank=4, ")
    assert base.fingerprint in json.loads(backend.fingerprint)["base"]
    assert tuned.seen == {text_key(text) for text in SENTENCES}
    assert tuned.card == adapter.card
    assert (backend.spans(SENTENCES[3]) == base.spans(SENTENCES[3])).all()


def test_an_untrained_adapter_changes_no_bit(base, tmp_path):
    for expression in ("lora(limit=0)", "adalora(limit=0)", "ia3(limit=0)"):
        made = make_adapter(base, TEXTS, methods.make(expression), folder=tmp_path / expression[:4])
        tuned = attach(base, made.folder)
        assert same(traces(tuned.backend), traces(base))
        assert not tuned.seen


def test_the_adapter_of_another_model_is_refused_with_both_hashes(adapter):
    with pytest.raises(ModelError, match=r"with weights w{12}, and llama has v{12}: .*tune again"):
        attach(opened("llama", weights="v" * 64), adapter.folder)
    other = opened()
    other.tokenizer_hash = "0" * 64
    with pytest.raises(ModelError, match=r"with the tokenizer [0-9a-f]{12}, and gpt_neox has 0{12}"):
        attach(other, adapter.folder)
    with pytest.raises(ModelError, match="wants a model with weights here, and memory"):
        attach(Memory(), adapter.folder)


@pytest.fixture
def copy(adapter, tmp_path):
    """A copy of the adapter, with values written into its card."""

    def made(content=None, **values):
        folder = tmp_path / "adapter"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(adapter.folder, folder)
        card = json.loads((folder / CARD).read_text())
        (folder / CARD).write_text(json.dumps({**card, **values}) if content is None else content, "utf-8")
        return folder

    return made


def test_what_is_no_adapter_of_ours_or_a_damaged_one_is_refused(base, copy, tmp_path, model_folder):
    def refused(folder, message):
        with pytest.raises(ModelError, match=message):
            attach(base, folder)

    refused(tmp_path / "nowhere", r"there is no adapter in .*give the folder")
    refused(model_folder, r"it has no adapter_card\.json, but config\.json")
    content = bytearray((copy() / WEIGHTS).read_bytes())
    content[-5] ^= 1
    (tmp_path / "adapter" / WEIGHTS).write_bytes(content)
    refused(tmp_path / "adapter", r"adapter_model\.safetensors is not what was written; tune it again")
    (copy() / WEIGHTS).unlink()
    refused(tmp_path / "adapter", "a file that it names is missing")
    refused(copy(**{KEY: 99}), "an adapter of format 99")
    refused(copy(base={}), r"adapter_card\.json is not complete")
    odd = ("{", "null", "[]", "1e999", "NaN", '{"a": 1e999}', "[" * 100_000, "\ufeff{}", '{"name": "x"}')
    for content in odd:
        refused(copy(content), r"adapter_card\.json cannot be read|an adapter of format None")


BENT = {
    "a number": ("seed", 3.5), "no seed": ("seed", None), "a seed below 0": ("seed", -1),
    "a huge seed": ("seed", 10**400), "true": ("seed", True), "files of null": ("files", None),
    "a hash of null": ("files", {WEIGHTS: None, "adapter_config.json": "a"}),
    "a name of no file": ("files", {WEIGHTS: "a", "adapter_config.json": "a", "a\x00b": "c"}),
    "method": ("method", {"name": "lora", "expression": None}),
    "expression": ("method", {"name": 1, "expression": "lora"}),
    "base": ("base", {"name": None, "weights": None, "tokenizer": None}),
    "base of text": ("base", "name weights tokenizer"), "hashes": ("hashes", [None]),
    "no hex": ("hashes", ["xyz"]), "hashes of text": ("hashes", "00"),
}  # fmt: skip


@pytest.mark.parametrize("case", BENT)
def test_a_card_with_values_of_another_kind_is_damage(base, copy, case):
    folder = copy(**dict([BENT[case]]))
    for opening in (lambda: attach(base, folder), lambda: read_adapter(folder)):
        with pytest.raises(ModelError, match=r"the adapter in .* is damaged: .*; tune it again") as caught:
            opening()
        assert "\n" not in str(caught.value)
