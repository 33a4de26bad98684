"""Classifiers of texts: the same seed gives the same weights, and what is borrowed is given back as it was."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import MORE_WORDS, WORDS, opened

from pretrace.statistics.roc import auc
from pretrace.tuning.classifying import fit_new, fit_pretrained
from pretrace.tuning.plan import NewClassifier, TunedClassifier
from pretrace.types import Quantity

TINY = NewClassifier(width=32, heads=2, epochs=2, learning_rate=0.01)


def two_kinds(seed=0, texts=40):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(texts) % 2 == 0)
    return [" ".join(rng.choice(WORDS if label else MORE_WORDS, 12)) for label in labels], labels


def test_the_same_seed_gives_the_same_probabilities_and_leaves_torchs_random_state_alone():
    texts, labels = two_kinds()
    before = torch.random.get_rng_state()
    first = fit_new(texts, labels, TINY, seed=3)(texts).tolist()
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(5)
    assert fit_new(texts, labels, TINY, seed=3)(texts).tolist() == first
    assert fit_new(texts, labels, TINY, seed=4)(texts).tolist() != first


def test_order_of_words_can_be_learnt_which_a_bag_of_words_cannot_see():
    rng = np.random.default_rng(0)

    def texts(count):
        labels = np.arange(count) % 2 == 0
        pairs = ["cat dog" if label else "dog cat" for label in labels]
        return [f"{pair} {' '.join(rng.choice(WORDS[3:], 4))}" for pair in pairs], labels

    judge = fit_new(*texts(200), NewClassifier(width=64, epochs=4, learning_rate=3e-3), seed=0)
    fresh, kinds = texts(60)
    assert auc(judge(fresh), kinds) > 0.95


def test_a_text_is_judged_by_itself_and_by_what_is_read_of_it():
    texts, labels = two_kinds()
    judge = fit_new(texts, labels, replace(TINY, epochs=1, max_tokens=20), seed=0)
    long = "cat " * 30
    whole = judge([*texts, long + "dog " * 30, "", long])
    alone = np.concatenate([judge([text]) for text in [*texts, long, ""]])
    np.testing.assert_allclose(whole[:-1], alone, atol=1e-6)
    np.testing.assert_allclose(whole[-3], whole[-1], atol=1e-7)  # it is cut to what is read
    nothing = fit_new(["", ""] * 6, np.arange(12) % 2 == 0, TINY, seed=0)(["", "anything"])
    assert ((nothing > 0) & (nothing < 1)).all()


@pytest.mark.parametrize("family", ["llama", "gpt_neox", "opt"])
@pytest.mark.parametrize("method", ["lora", "full"])
def test_an_opened_back_end_is_tuned_and_stays_as_it_was(family, method):
    model = opened(family, start=family == "llama")
    texts, labels = two_kinds()
    names = {name: weight.requires_grad for name, weight in model.model.named_parameters()}
    before = {name: weight.clone() for name, weight in model.model.state_dict().items()}
    encoded = model.encode(texts[:1])
    logp = model.run(encoded, Quantity.LOGP)[0].logp
    judge = fit_pretrained(model, texts, labels, TunedClassifier(method, 12, 1e-2), seed=0)
    fresh, kinds = two_kinds(1)
    assert auc(judge(fresh), kinds) > 0.75
    assert {name: weight.requires_grad for name, weight in model.model.named_parameters()} == names
    after = model.model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    assert not model.model.training
    assert model.run(encoded, Quantity.LOGP)[0].logp.tolist() == logp.tolist()


def test_an_adapter_learns_something_of_its_own():
    # With the same seed the head alone, over states that do not change, would judge otherwise.
    model = opened("llama", start=True)
    texts, labels = two_kinds()
    one, two, again = (
        fit_pretrained(model, texts, labels, TunedClassifier("lora", 2, 5e-3, rank=rank), seed=0)
        for rank in (1, 8, 1)
    )
    first = one(texts).tolist()
    assert first != two(texts).tolist()
    assert one(texts).tolist() == first, "each judge has its own adapter, over one copy of the weights"
    assert again(texts).tolist() == first


def test_a_folder_reads_no_further_than_its_model(model_folder):
    texts, labels = two_kinds()
    judge = fit_pretrained(model_folder, texts, labels, TunedClassifier("lora", 1, max_tokens=10_000), seed=0)
    assert ((judge(["", "cat " * 400]) > 0) & (judge(["", "cat"]) < 1)).all()
