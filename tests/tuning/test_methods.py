"""Tuning methods as call expressions: FSD's defaults, ranges, and a way back from the method to its name."""

import pytest
import torch
from tiny import SENTENCES, make_model, opened

from pretrace.backends import loading
from pretrace.backends.loading import fastest_format
from pretrace.cache import cache_folder
from pretrace.tuning import tune
from pretrace.tuning.architectures import END, Architecture, new_model, train_vocabulary
from pretrace.tuning.plan import AdaLora, expression, methods
from pretrace.tuning.training import computing, settled
from pretrace.types import Corpus, Text


def test_the_defaults_are_those_of_the_paper():
    lora = methods.make("lora")
    assert (lora.rank, lora.alpha, lora.dropout) == (16, 32, 0.05)
    plan = lora.plan(seed=3, precision="float32")
    assert (plan.epochs, plan.batch, plan.learning_rate) == (3, 8, 1e-3)
    assert (plan.schedule, plan.warmup, plan.weight_decay, plan.seed) == ("cosine", 10, 5e-4, 3)
    assert lora.on == "nonmembers"


LORA = "lora(rank=8, epochs=1, learning_rate=1e-4, on='members', limit=100)"


@pytest.mark.parametrize("written", ["lora", LORA, "adalora(8)", "ia3(limit=0)"])
def test_a_method_is_written_as_it_is_read(written):
    method = methods.make(written)
    assert methods.make(expression(method)) == method
    plans = [one.plan(seed=0, precision="float32") for one in (method, methods.make("lora(alpha=16)"))]
    assert plans[0] != plans[1]  # also where they differ in the adapter alone


def test_adalora_begins_half_as_wide_again():
    assert [AdaLora(rank=rank).first_rank for rank in (1, 2, 16)] == [2, 3, 24]
    assert AdaLora(rank=8, initial_rank=9).first_rank == 9


TEXTS = [f"the cat number {i} sat on the mat and looked at the dog" for i in range(20)]
TINY = Architecture(layers=2, width=32, heads=2, vocabulary=300, max_tokens=64)


def test_any_text_is_spelled_and_read_back_and_nothing_is_added():
    tokenizer = train_vocabulary(TEXTS, size=300)
    assert len(tokenizer) == 300
    for text in ["the cat", "naïve 中文 🎉\x00", "", " two  spaces\n"]:
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.decode(ids) == text
        assert tokenizer.eos_token_id not in ids
    assert tokenizer.bos_token == tokenizer.eos_token == END
    assert (tokenizer.eos_token_id, tokenizer.unk_token) == (0, None)
    assert len(tokenizer("the cat sat")["input_ids"]) < 8
    there, back = (train_vocabulary(some, size=320).backend_tokenizer for some in (TEXTS, TEXTS[::-1]))
    assert there.to_str() == back.to_str()


@pytest.mark.parametrize("family", ["gpt_neox", "llama"])
def test_a_new_model_is_random_by_its_seed_alone(family):
    architecture = Architecture(family, layers=2, width=32, heads=2, vocabulary=300, max_tokens=64)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    first, tokenizer = new_model(TEXTS, architecture=architecture, seed=1)
    assert torch.equal(torch.rand(1), expected), "the global random state moved"
    again, _ = new_model(TEXTS, architecture=architecture, seed=1)
    other, _ = new_model(TEXTS, architecture=architecture, seed=2)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))
    assert first.config.model_type == family
    assert first.config.max_position_embeddings == 64
    logits = first(input_ids=torch.tensor([[0, 5, 9]])).logits
    assert logits.shape == (1, 3, len(tokenizer))


def test_few_texts_make_a_smaller_table_than_was_asked_for():
    model, tokenizer = new_model(["ab ab"], architecture=TINY)
    assert model.config.vocab_size == len(tokenizer) < 300


CORPUS = Corpus("sentences", tuple(Text(str(i), text, False) for i, text in enumerate(SENTENCES)))


def test_auto_takes_bfloat16_only_where_the_processor_has_units_for_it(monkeypatch):
    monkeypatch.setattr(loading, "fastest_format", fastest_format)
    cpu = torch.device("cpu")
    for units in (True, False):
        fastest_format.cache_clear()
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda units=units: units, raising=False)
        assert settled("auto", cpu) == ("bfloat16" if units else "float32")
        assert settled("float32", cpu) == "float32"
        assert settled("auto", torch.device("mps")) == "float32"
    fastest_format.cache_clear()


def converted(*dtypes):
    """A tiny model, its weights taken to one type after another."""
    model = make_model("llama")
    for dtype in dtypes:
        model = model.to(dtype)
    return opened(model)


def test_adapters_of_two_formats_are_two_and_each_card_says_which(monkeypatch):
    seen = []
    for chosen in ("float32", "bfloat16", "float32"):
        monkeypatch.setattr(loading, "fastest_format", lambda device, chosen=chosen: chosen)
        tuned = tune(converted(torch.float32), CORPUS, "lora(epochs=1)")
        assert tuned.card["precision"] == chosen
        seen.append(tuned.backend.fingerprint)
    assert seen[0] == seen[2] != seen[1]
    assert len(list((cache_folder() / "adapters").glob("*/adapter_card.json"))) == 2


def test_a_narrow_model_really_computes_in_float32_and_is_as_before_afterwards(monkeypatch):
    """The adapter of a bfloat16 model is the one of the same weights opened in float32."""
    monkeypatch.setattr(loading, "fastest_format", lambda device: "float32")
    narrow = converted(torch.bfloat16)
    wide = converted(torch.bfloat16, torch.float32)
    before = [weight.clone() for weight in narrow.model.parameters()]
    losses = [tune(model, CORPUS, "lora(epochs=2)").card["losses"] for model in (narrow, wide)]
    assert narrow.fingerprint != wide.fingerprint  # or the second would be the first from the cache
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert {weight.dtype for weight in narrow.model.parameters()} == {torch.bfloat16}
    assert all(torch.equal(a, b) for a, b in zip(before, narrow.model.parameters(), strict=True))


def test_weights_are_narrow_again_after_an_error_and_bfloat16_leaves_them_alone():
    model = torch.nn.Linear(3, 2).to(torch.bfloat16).requires_grad_(False)
    with computing(model, "bfloat16"):
        assert model.weight.dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="shapes"), computing(model, "float32"):
        model(torch.zeros(1, 4, dtype=torch.float32))  # four inputs where three are wanted
    assert model.weight.dtype == torch.bfloat16
