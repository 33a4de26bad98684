"""Scores of a text behind members or others of its collection: the numbers are a whole pass's."""

import numpy as np
import pytest
import torch
from scores import test_prefixed
from scores.test_prefixed import Noting, labelled
from tiny import SENTENCES, make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.plugins import SCORES
from pretrace.scores import scores
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.plan import Models
from pretrace.types import Corpus, Text


def test_the_scores_of_the_table_are_there():
    assert all(scores.factory(name).__module__ == module for name, module in SCORES.items())


@pytest.mark.parametrize("start", ["never", "always"])
def test_it_is_the_likelihood_of_a_whole_pass(start):
    test_prefixed.test_it_is_the_likelihood_of_a_whole_pass(start, "con_recall(shots=2)")


def test_texts_that_are_put_before_others_are_not_read_by_themselves():
    corpus, known = Corpus("two", (Text("a", "abcdef"), Text("b", "ghijkl"))), labelled(40)
    for score in ("con_recall", "codec"):
        backend = Noting()
        detect(corpus, Models(backend, labelled=known), score, Options(cache=False, shuffles=0))
        assert backend.read == {"abcdef", "ghijkl"}


def test_codec_is_what_a_text_loses_behind_another_of_its_collection():
    model, tokenizer = make_model("llama"), make_tokenizer()
    backend = HuggingFace(model, tokenizer, name="tiny", weights="a", settings=ModelSettings(start="never"))
    corpus = Corpus("few", tuple(Text(str(i), text) for i, text in enumerate(SENTENCES)))
    known = labelled(12)
    run = detect(corpus, Models(backend, labelled=known), "codec", Options(cache=False, shuffles=0))
    (drawn,) = run.settings["fitted"]["codec"]["prefix"]["members"]
    before = next(text for text in known.texts if text.id == drawn)
    assert before.member

    def mean_of(text, context):
        ids = context + tokenizer(text)["input_ids"]
        with torch.inference_mode():
            logp = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
        return float(np.mean([logp[i - 1, ids[i]] for i in range(max(1, len(context)), len(ids))]))

    for i, text in enumerate(SENTENCES):
        lost = mean_of(text, []) - mean_of(text, tokenizer(before.text)["input_ids"])
        assert run.matrix[i, 0] == pytest.approx(lost, abs=1e-5)
