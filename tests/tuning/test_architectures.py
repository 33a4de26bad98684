"""New models and their vocabularies."""

import pytest
import torch

from pretrace.tuning.architectures import END, Architecture, new_model, train_vocabulary

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


def test_the_order_of_the_texts_does_not_change_the_vocabulary():
    there = train_vocabulary(TEXTS, size=320).backend_tokenizer.to_str()
    assert train_vocabulary(TEXTS[::-1], size=320).backend_tokenizer.to_str() == there


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
