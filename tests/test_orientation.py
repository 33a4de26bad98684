"""For every registered score, a text the model was trained on beats its unseen twin on average.

A tiny model is trained here, with the house's own training loop, until it knows its members; a
sign error anywhere between logits and score turns this red.
"""

import numpy as np
import pytest
import torch
from net.api import (
    Corpus,
    Frequencies,
    Models,
    Options,
    Text,
    auc,
    detect,
    methods,
    open_proposer,
    scores,
    tuned_model,
)
from tiny import WORDS, make_model, make_tokenizer, opened
from transformers import GPTNeoXForCausalLM

INSIDE = ("na_pdd", "probe", "recall", "con_recall", "codec", "learned")
"""Too small a model keeps no trace of its members inside that could be read off: tests/test_contracts.py. An overfitted
real one, for the probe, is in tests/scores."""
# The likeliest tokens inside a word are certain in any text: too few of them tell nothing of so small a model.
WIDER = {"max_k": "max_k(k=0.8)", "coverage": "coverage(n=2)"}
OUTSIDE = [WIDER.get(name, name) for name in scores if name not in (*INSIDE, "fsd")]
EXPRESSIONS = [*OUTSIDE, "fsd(ppl)", "fsd(lowercase)", "fsd(zlib)", "fsd(min_k)"]


def twins(seed):
    generator = np.random.default_rng(seed)
    texts = [" ".join(generator.choice(WORDS, 14)) for _ in range(60)]
    return [Text(str(i), text, member=i % 2 == 0) for i, text in enumerate(texts)]


def read_often(folder, texts, times):
    """Save a model that has read the texts so often, five at a time."""
    model, tokenizer = make_model("gpt_neox").train(), make_tokenizer()
    torch.manual_seed(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=8e-3)
    for start in [*range(0, len(texts), 5)] * times:
        rows = tokenizer(texts[start : start + 5])["input_ids"]
        labels = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, -100)
        optimiser.zero_grad()
        model(input_ids=labels.clamp(min=0), labels=labels).loss.backward()
        optimiser.step()
    model.save_pretrained(folder)


@pytest.fixture(scope="module")
def run(trained):
    texts, others = twins(5), twins(7)

    def make(folder):
        read_often(folder / "target", [t.text for t in texts if t.member], 40)
        # the reference knows texts of this kind, as a model before fine-tuning does, but not these
        read_often(folder / "reference", [t.text for t in twins(9)], 6)

    model, reference = (
        GPTNeoXForCausalLM.from_pretrained(trained(make) / name).eval() for name in ("target", "reference")
    )
    target, other = opened(model, weights="a"), opened(reference, weights="b")
    nonmembers = Corpus("others", tuple(text for text in others if not text.member))
    models = Models(
        target,
        reference=other,
        counts=Frequencies(np.zeros(1, np.int64), target.tokenizer_hash),
        tuned=tuned_model(
            target, nonmembers, methods.make("lora(epochs=8, batch=4, learning_rate=5e-3)"), cache=False
        ),
        proposer=open_proposer("causal", target, cache=False),
    )
    return detect(Corpus("twins", tuple(texts)), models, EXPRESSIONS, Options(cache=False, shuffles=0))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_member_beats_its_twin(run, name):
    members = np.array([bool(m) for m in run.members])
    assert auc(run.column(name), members) > (0.6 if name.startswith(("fsd", "coverage")) else 0.7)
