"""Planted, unlearned by gradient ascent, retrained without: a two-sided reading tells each apart, on tiny models."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made import drawn
from tiny import WORDS, make_model, make_tokenizer, opened
from transformers import AutoModelForCausalLM

from pretrace.errors import ExpressionError, TextsError
from pretrace.results.run import load_run, save_run
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evaluation import evaluate
from pretrace.scoring.plan import Models, ScorePlan, check_use
from pretrace.scoring.settings import EvaluationSettings, ScoreSettings
from pretrace.types import Corpus, Estimate, Text, Unlearned

MARGIN = 0.25


def texts(seed, number):
    return [row["text"] for row in drawn(number, 14, seed=seed, of=WORDS)]


MEMBERS, UNSEEN, KEPT = texts(1, 40), texts(2, 40), texts(3, 40)
SIDES = {True: MEMBERS, False: UNSEEN}
TEXTS = (
    Text(f"{seen} {i}", text, member=seen) for seen, some in SIDES.items() for i, text in enumerate(some)
)
CORPUS = Corpus("to forget", tuple(TEXTS))


TOKENIZER = make_tokenizer()
TOKENIZER.pad_token = TOKENIZER.eos_token


def step(model, optimiser, batch, sign):
    """One step down the loss of a batch, or up."""
    read = TOKENIZER(batch, return_tensors="pt", padding=True)
    labels = read["input_ids"].masked_fill(read["attention_mask"] == 0, -100)
    optimiser.zero_grad()
    (sign * model(**read, labels=labels).loss).backward()
    optimiser.step()


def read(model, rate, number, texts, seed=0, unlearn=()):
    """A model that read these texts so often, 20 at once; before each step one up the loss of texts to unlearn."""
    order = np.random.default_rng(seed)
    optimiser = torch.optim.AdamW(model.train().parameters(), lr=rate)
    for _ in range(number):
        sides = [[some[i] for i in order.permutation(len(some))] for some in (unlearn, texts)]
        for start in range(0, len(texts), 20):
            for some, sign in zip(sides, (-1.0, 1.0), strict=True):
                if batch := some[start : start + 20]:
                    step(model, optimiser, batch, sign)
    return model.eval()


@pytest.fixture(scope="module")
def models(trained):
    def make(folder):
        planted = read(make_model("gpt_neox"), 5e-3, 40, MEMBERS + KEPT)
        planted.save_pretrained(folder / "planted")
        read(planted, 2e-3, 10, KEPT, unlearn=MEMBERS).save_pretrained(folder / "ascended")
        for name, seed in (("retrained", 0), ("again", 5)):
            read(make_model("gpt_neox"), 5e-3, 40, KEPT, seed).save_pretrained(folder / name)

    names = ("planted", "ascended", "retrained", "again")
    load = AutoModelForCausalLM.from_pretrained
    return {name: opened(load(trained(make) / name), make_tokenizer(), weights=name) for name in names}


def judged(models, name, corpus=CORPUS, **how):
    """A model beside the retrained one: the run, and its figures."""
    both = Models(models[name], placebo=Models(models["retrained"]))
    run = detect(corpus, both, "loss,min_k", Options(cache=False))
    return run, evaluate(run, corpus, unlearned=MARGIN, resamples=300)


@pytest.mark.parametrize(
    ("name", "reading", "said"),
    [
        ("planted", "still known", "The members are not forgotten"),
        ("ascended", "over-unlearned", "The model is over-unlearned"),
        ("again", "as retrained", "By loss the members are as good as never read"),
    ],
)
def test_each_is_told_apart(models, name, reading, said, tmp_path):
    _, run = judged(models, name)
    first, second = run.evaluation.unlearned
    assert (first.score, second.score, first.margin, first.reading) == ("loss", "min_k", MARGIN, reading)
    assert run.evaluation.findings[0].startswith(said)
    assert "retrained" in run.evaluation.findings[0]
    assert not any("wrong way" in finding for finding in run.evaluation.findings)
    save_run(run, tmp_path / "run")
    assert load_run(tmp_path / "run").evaluation.unlearned == run.evaluation.unlearned


def test_near_copies_count_as_one_document(models):
    """Eight texts in five versions each are eight: in an innocent model they move together."""
    some = [(seen, i, k) for seen in SIDES for i in range(8) for k in range(5)]
    said = [f"{SIDES[seen][i]} {SIDES[seen][i]} {SIDES[seen][i]} {WORDS[k]}" for seen, i, k in some]
    texts = tuple(Text(f"{one}", text, member=one[0]) for one, text in zip(some, said, strict=True))
    corpus = Corpus("copies", texts)
    run, beside = judged(models, "again", corpus)
    assert beside.evaluation.groups == 16
    assert "Near copies: 64 texts without a group" in " ".join(beside.evaluation.findings)
    assert beside.groups == run.groups
    assert evaluate(run, corpus, resamples=300).evaluation.groups == 80
    named = tuple(replace(text, group=f"g{i % 40}") for i, text in enumerate(texts))
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
    texts = tuple(replace(t, text=made(t.text)) if t.member else t for t in CORPUS.texts)
    found = judged(models, "planted", replace(CORPUS, texts=texts))[1].evaluation
    assert {one.reading for one in found.unlearned} == {"inconclusive"}
    start = "Whether the members are forgotten cannot be said: members and non-members"
    assert found.findings[0].startswith(start)
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
