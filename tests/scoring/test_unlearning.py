"""Planted, unlearned by gradient ascent, retrained without: a two-sided reading tells each apart, on tiny models."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import WORDS, make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.errors import ExpressionError, TextsError
from pretrace.results.run import load_run, save_run
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evaluation import evaluate
from pretrace.scoring.plan import Models, ScorePlan, check_use
from pretrace.scoring.settings import EvaluationSettings, ScoreSettings
from pretrace.types import Corpus, Estimate, Text, Unlearned

MARGIN = 0.25


def texts(seed, number):
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, 14)) for _ in range(number)]


MEMBERS, UNSEEN, KEPT = texts(1, 40), texts(2, 40), texts(3, 40)
CORPUS = Corpus(
    "to forget",
    tuple(Text(f"{member} {i}", text, member=member) for member, some in ((True, MEMBERS), (False, UNSEEN))
          for i, text in enumerate(some)),
)  # fmt: skip


TOKENIZER = make_tokenizer()
TOKENIZER.pad_token = TOKENIZER.eos_token


def step(model, optimiser, batch, sign):
    """One step down the loss of a batch, or up."""
    read = TOKENIZER(batch, return_tensors="pt", padding=True)
    labels = read["input_ids"].masked_fill(read["attention_mask"] == 0, -100)
    optimiser.zero_grad()
    (sign * model(**read, labels=labels).loss).backward()
    optimiser.step()


def batches(texts, order):
    shuffled = [texts[i] for i in order.permutation(len(texts))]
    return [shuffled[start : start + 20] for start in range(0, len(shuffled), 20)]


def trained(on, *, seed=0):
    """A model that read these texts 40 times."""
    torch.manual_seed(seed)
    model, order = make_model("gpt_neox").train(), np.random.default_rng(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(40):
        for batch in batches(on, order):
            step(model, optimiser, batch, 1.0)
    return model.eval()


def unlearned(model):
    """The same after gradient ascent on the members, with a step down on kept texts after each."""
    model = copy.deepcopy(model).train()
    optimiser, order = torch.optim.AdamW(model.parameters(), lr=2e-3), np.random.default_rng(0)
    for _ in range(10):
        for up, down in zip(batches(MEMBERS, order), batches(KEPT, order), strict=True):
            step(model, optimiser, up, -1.0)
            step(model, optimiser, down, 1.0)
    return model.eval()


def opened(model, name):
    return HuggingFace(model, make_tokenizer(), name=name, weights=name, settings=ModelSettings())


@pytest.fixture(scope="module")
def models():
    planted = trained(MEMBERS + KEPT)
    return {
        "planted": opened(planted, "planted"),
        "ascended": opened(unlearned(planted), "ascended"),
        "retrained": opened(trained(KEPT), "retrained"),
        "again": opened(trained(KEPT, seed=5), "again"),
    }


def judged(models, name):
    beside = Models(models[name], placebo=Models(models["retrained"]))
    run = detect(CORPUS, beside, "loss,min_k", Options(cache=False))
    return evaluate(run, CORPUS, unlearned=MARGIN, resamples=300)


@pytest.mark.parametrize(
    ("name", "reading", "said"),
    [
        ("planted", "still known", "The members are not forgotten"),
        ("ascended", "over-unlearned", "The model is over-unlearned"),
        ("again", "as retrained", "By loss the members are as good as never read"),
    ],
)
def test_each_is_told_apart(models, name, reading, said, tmp_path):
    run = judged(models, name)
    first, second = run.evaluation.unlearned
    assert (first.score, second.score, first.margin) == ("loss", "min_k", MARGIN)
    assert first.reading == reading, first
    assert run.evaluation.findings[0].startswith(said)
    assert "retrained" in run.evaluation.findings[0]
    assert not any("wrong way" in finding for finding in run.evaluation.findings)
    save_run(run, tmp_path / "run")
    assert load_run(tmp_path / "run").evaluation.unlearned == run.evaluation.unlearned


def versions(text, number):
    """The text with another word at its end."""
    return [f"{text} {text} {text} {WORDS[i]}" for i in range(number)]


def test_near_copies_count_as_one_document(models):
    """Eight texts in five versions each are eight: in an innocent model they move together."""
    sides = ((True, MEMBERS[:8]), (False, UNSEEN[:8]))
    made = [(member, one) for member, some in sides for text in some for one in versions(text, 5)]
    corpus = Corpus("copies", tuple(Text(f"{i}", one, member=member) for i, (member, one) in enumerate(made)))
    run = detect(
        corpus, Models(models["again"], placebo=Models(models["retrained"])), "loss", Options(cache=False)
    )
    beside = evaluate(run, corpus, unlearned=MARGIN, resamples=300)
    assert beside.evaluation.groups == 16
    assert "Near copies: 64 texts without a group" in " ".join(beside.evaluation.findings)
    assert beside.groups == run.groups
    assert evaluate(run, corpus, resamples=300).evaluation.groups == 80
    named = tuple(replace(text, group=f"g{i % 40}") for i, text in enumerate(corpus.texts))
    run = replace(run, groups=tuple(text.group for text in named))
    said = evaluate(run, replace(corpus, texts=named), unlearned=MARGIN, resamples=300).evaluation
    assert "Near copies" not in " ".join(said.findings)  # who names documents is believed


@pytest.mark.parametrize(
    "made",
    [lambda text: " ".join(WORDS[:6]) + " " + text, str.upper, lambda text: text[: len(text) // 2]],
    ids=["a notice before every member", "other capitals", "half as long"],
)
def test_members_that_differ_as_texts_say_nothing(models, made):
    """Innocent models differ in how well they know a kind of text, by the same in all texts of it."""
    corpus = replace(
        CORPUS, texts=tuple(replace(t, text=made(t.text)) if t.member else t for t in CORPUS.texts)
    )
    run = detect(
        corpus, Models(models["planted"], placebo=Models(models["retrained"])), "loss", Options(cache=False)
    )
    found = evaluate(run, corpus, unlearned=MARGIN, resamples=300).evaluation
    assert {one.reading for one in found.unlearned} == {"inconclusive"}
    assert found.findings[0].startswith(
        "Whether the members are forgotten cannot be said: members and non-members"
    )
    assert not any("not forgotten" in finding for finding in found.findings)


@pytest.mark.parametrize(
    ("low", "high", "reading"),
    [
        (-0.04, 0.04, "as retrained"),
        (0.01, 0.04, "as retrained"),  # a difference that is shown, and smaller than the margin
        (-0.04, 0.05, "inconclusive"),  # the margin itself is not within it
        (0.01, 0.2, "still known"),
        (-0.2, -0.01, "over-unlearned"),
        (-0.2, 0.2, "inconclusive"),
    ],
)
def test_the_reading_follows_from_the_whole_interval(low, high, reading):
    assert Unlearned("loss", 0.05, Estimate((low + high) / 2, low, high)).reading == reading


def test_without_a_retrained_model_there_is_no_reading(models):
    run = detect(CORPUS, Models(models["planted"]), "loss", Options(cache=False))
    with pytest.raises(TextsError, match="a model retrained without the texts: name it with --placebo"):
        evaluate(run, CORPUS, unlearned=MARGIN)
    with pytest.raises(ExpressionError, match="name it with --placebo"):
        check_use(ScorePlan.parse("loss"), ScoreSettings(), EvaluationSettings(unlearned=0.1))
    with pytest.raises(ExpressionError, match="unlearned"):
        EvaluationSettings(unlearned=0.7)
