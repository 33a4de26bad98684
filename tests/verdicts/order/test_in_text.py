"""The order test of models that give text alone: exact whatever they answer, and found where they know the order."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from verdicts.answering import Answering
from verdicts.order.memorising import WORDS, by_hash, made_corpus

from pretrace.errors import ModelError, TextsError
from pretrace.results.verdicts import load_verdict
from pretrace.runs import save_verdict
from pretrace.scoring.plan import Models
from pretrace.statistics.ranks import lot_test
from pretrace.types import Corpus, Text
from pretrace.verdicts.order import (
    OrderSettings,
    Unit,
    in_text,
    led,
    order,
    picked,
    prompts_of,
    questions,
    told,
)

STATED = OrderSettings(shuffled_with="sha256", cache=False)
CHOICES = OrderSettings(shuffled_with="sha256", options="choices", answer="right", cache=False)
NOTHING = Answering(lambda prompt: "1" if hashed(prompt) < 0.5 else "2", chats=True, name="second")


def hashed(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def quiz(items: int, *, seed: int = 0) -> Corpus:
    rng = np.random.default_rng(seed)
    made = []
    for i in range(items):
        beasts = rng.permutation(["hen", "cow", "dog", "cat", "ox"])
        question = f"Which animal is number {i}?"
        options = by_hash([f"a {beast} and a {rng.choice(WORDS)}" for beast in beasts], f"{question}\n")
        meta = {"choices": json.dumps(options), "right": options[int(rng.integers(5))]}
        made.append(Text(f"q{i}", question, meta=meta))
    return Corpus("quiz", tuple(made))


def knowing(corpus: Corpus, settings: OrderSettings, *, chats: bool, share: float = 1.0) -> Answering:
    """It knows what stands next in the published set, in so many of the places."""
    _, asked = in_text(corpus, settings)
    after = {one.before.strip(): one.parts[0] for one in asked}

    def answer(prompt: str) -> str:
        if not chats:
            return after[prompt.strip()] if hashed(prompt) < share else "something else"
        before = next(one for one in after if f"\n\n{one}\n\nOne of these" in prompt)
        listed = re.findall(r"^(\d+)\. (.*)$", prompt.split("One of these")[1], re.MULTILINE)
        here = [number for number, part in listed if part == after[before]]
        return f"{here[0]}." if here and hashed(before) < share else "2"

    return Answering(answer, chats=chats, name="knowing")


def status(verdict, name):
    return next(one.status for one in verdict.checks if one.name == name)


def test_a_question_names_what_is_left_whatever_stands_there():
    unit = Unit("s", ("a", "b", "c", "d", "e"), ((1, 2, 3, 4),), "\n\n")
    found = questions([unit])
    assert [(one.place, one.before, one.parts) for one in found] == [
        (1, "a\n\n", ("b", "c", "d", "e")),
        (2, "a\n\nb\n\n", ("c", "d", "e")),
    ]
    other = questions([Unit("s", ("a", "e", "c", "b", "d"), ((1, 2, 3, 4),), "\n\n")])
    (first, again), (second, _) = (prompts_of(found[:1], chat=True)[:2], prompts_of(other[:1], chat=True)[:2])
    assert first == second  # the prompt does not tell which row was published
    assert first != again
    listed = [[one.parts[i] for i in order] for one in found[:1] for order in one.listed()]
    assert listed[0] == listed[1][::-1]
    item = Unit("q", ("x", "y", "z"), ((0, 1, 2),), head="Which?", lettered=True)
    assert questions([item])[0].before == "Which?\nA."
    assert not questions([Unit("q", ("x", "X ", "z"), ((0, 1, 2),), head="Which?", lettered=True)])


@pytest.mark.parametrize("chat", [False, True])
def test_p_values_are_uniform_for_any_fixed_function_of_the_prompt(chat):
    parts = np.array(
        [
            f"{word} row"
            for word in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
        ]
    )

    def answer(prompt: str) -> str:
        if chat:
            return str(1 + int(5 * hashed(prompt)))
        return str(parts[int(10 * hashed(prompt))]) if hashed(prompt) < 0.9 else ""

    p = []
    for seed in range(300):
        rng = np.random.default_rng([11, seed])
        units = []
        for i in range(6):
            shuffled = tuple(rng.permutation(parts)[:6].tolist())
            units.append(Unit(str(i), shuffled, ((1, 2, 3, 4, 5),), "\n\n"))
        asked = questions(units)
        found = told(asked, [answer(prompt) for prompt in prompts_of(asked, chat=chat)], chat=chat)
        rows = [one.values + 1e-9 * rng.random(len(one.values)) for one in found]  # ties by lot
        p.append(lot_test([row for row in rows if np.isfinite(row).all()], draws=300, seed=seed).p)
    rejected = int((np.array(p) <= 0.05).sum())
    assert rejected <= scipy.stats.binom.ppf(0.995, 300, 0.05)
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("2", 1),
        ("2. a dog", 1),
        ("Number 3, I think", 2),
        ("A dog sat there.", 1),
        ("It is 17", None),
        ("no idea", None),
        ("", None),
        ("a cat or a dog", None),
        ("a cat or a dog: 1", 0),
    ],
)
def test_an_answer_names_a_part(answer, found):
    assert picked(answer, ["a cat", "a dog", "a cow"]) == found


def test_how_far_a_continuation_begins_as_a_part():
    assert led(" The cat sat. And more", "the cat sat") == 1.0
    assert led("The cat ran", "the cat sat on") == 0.5
    assert led("A cat", "the cat") == 0.0
    assert led("A cat", "…") == 0.0


@pytest.mark.parametrize("chats", [False, True])
@pytest.mark.parametrize(("corpus", "settings"), [(made_corpus(48), STATED), (quiz(24), CHOICES)])
def test_a_model_that_knows_the_order_is_found_and_only_beside_a_second_model(
    corpus, settings, chats, tmp_path
):
    target = knowing(corpus, settings, chats=chats)
    found = order(corpus, Models(target, placebos=(NOTHING,)), settings, text=True)
    assert found.p is not None
    assert found.p < 0.01
    assert found.outcome == "consistent"
    assert found.units == (6 if settings is STATED else 24)
    save_verdict(found, tmp_path / "OUT")
    assert load_verdict(tmp_path / "OUT").p == found.p
    alone = order(corpus, Models(target), settings, text=True)
    assert alone.outcome == "inconclusive"
    twin = knowing(corpus, settings, chats=not chats)
    twin.fingerprint += "twin"
    both = order(corpus, Models(target, placebos=(twin,)), settings, text=True)
    assert both.outcome == "inconclusive"
    assert status(both, "second") == "failed"
    innocent = order(corpus, Models(NOTHING, placebos=(target,)), settings, text=True)
    assert innocent.outcome == "inconclusive"
    assert innocent.p is not None
    assert innocent.p > 0.05


def test_without_a_lot_or_answers_nobody_is_accused():
    corpus = made_corpus(48)
    target = knowing(corpus, STATED, chats=True)
    stated = OrderSettings(stated="by lot", cache=False)
    withheld = order(corpus, Models(target, placebos=(NOTHING,)), stated, text=True)
    assert (status(withheld, "lot"), withheld.outcome) == ("failed", "inconclusive")
    silent = Answering(
        lambda prompt: target.answer(prompt) if hashed(prompt) < 0.4 else "I'd rather not", chats=True
    )
    found = order(corpus, Models(silent, placebos=(NOTHING,)), STATED, text=True)
    assert status(found, "answers") == "failed"
    assert found.outcome == "inconclusive"
    with pytest.raises(ModelError, match="named none of the rows"):
        order(corpus, Models(Answering(lambda _: "no", chats=True)), STATED, text=True)


def test_a_set_that_carries_meaning_is_withheld():
    stated = OrderSettings(stated="by lot", cache=False)
    rows = sorted(made_corpus(80).texts, key=lambda one: one.text)
    corpus = Corpus("sorted", tuple(rows))
    target = knowing(corpus, stated, chats=True)
    found = order(corpus, Models(target, placebos=(NOTHING,)), stated, text=True)
    assert found.p is not None
    assert found.p < 0.01
    assert status(found, "order") == "failed"
    assert found.outcome == "inconclusive"


def test_options_without_their_right_answers_accuse_nobody():
    corpus, settings = quiz(40), replace(CHOICES, answer="")
    target = knowing(corpus, settings, chats=True)
    found = order(corpus, Models(target, placebos=(NOTHING,)), settings, text=True)
    assert found.p is not None
    assert found.p < 0.001
    assert status(found, "right") == "failed"
    assert found.outcome == "inconclusive"


def test_too_few_questions_are_told():
    with pytest.raises(TextsError, match="give more rows"):
        in_text(made_corpus(3), STATED)
    with pytest.raises(TextsError, match="give more items"):
        in_text(quiz(1), CHOICES)
