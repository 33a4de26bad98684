"""For every registered score, a text the model was trained on beats its unseen twin on average.

A tiny model is trained here, with the house's own training loop, until it knows its members; a
sign error anywhere between logits and score turns this red.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny import make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.loading import ModelSettings
from pretrace.detection import Models, Options, detect
from pretrace.scores import scores
from pretrace.statistics.roc import auc
from pretrace.types import Corpus, Run, Text

WORDS = [
    "cat",
    "dog",
    "mat",
    "railway",
    "valley",
    "Nothing",
    "same",
    "again",
    "Parse",
    "Café",
    "one",
    "FOUR",
    "six",
]


def twins(seed: int) -> list[Text]:
    generator = np.random.default_rng(seed)
    texts = [" ".join(generator.choice(WORDS, 14)) for _ in range(60)]
    return [Text(str(i), text, member=i % 2 == 0) for i, text in enumerate(texts)]


class Flat:
    """Counts that say nothing: every token as frequent as any other."""

    def __init__(self, tokenizer_hash: str) -> None:
        self.tokenizer_hash = tokenizer_hash

    def log_frequency(self, vocabulary: int) -> np.ndarray:
        return np.full(vocabulary, -np.log(vocabulary))


@pytest.fixture(scope="module")
def run() -> Run:
    texts = twins(5)
    tokenizer = make_tokenizer()
    model, reference = make_model("gpt_neox").train(), make_model("gpt_neox")
    torch.manual_seed(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    members = [torch.tensor([tokenizer(t.text)["input_ids"]]) for t in texts if t.member]
    for _ in range(25):
        for ids in members:
            optimiser.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
    target = HuggingFace(model, tokenizer, name="trained", weights="a", settings=ModelSettings())
    other = HuggingFace(reference, tokenizer, name="untrained", weights="b", settings=ModelSettings())
    models = Models(target, other, Flat(target.tokenizer_hash))
    return detect(Corpus("twins", tuple(texts)), models, list(scores), Options(cache=False))


@pytest.mark.parametrize("name", list(scores))
def test_a_member_beats_its_twin(run: Run, name: str) -> None:
    members = np.array([bool(m) for m in run.members])
    assert auc(run.column(name), members) > 0.7
