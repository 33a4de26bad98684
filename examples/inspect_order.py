"""The order test as a task of inspect_ai: was a multiple-choice set used with its options in the published order?

    inspect eval examples/inspect_order.py --model hf/EleutherAI/pythia-160m \
        -T items=quiz.jsonl -T shuffled_with=random.shuffle:0

The whole set is one sample, and its value is p: how often chance alone would put the published orders so high. Where a
check withholds the test (no lot can be repeated, or the order can be told from a random one without a model), the
sample has no value, and its explanation says why. A small p is consistent with training on the published file; it is
no proof.
"""

from __future__ import annotations

import anyio.to_thread
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

import pretrace
from pretrace.harnesses.inspect_scorers import opened_by


@task
def answer_order(
    items: str = "quiz.jsonl",
    question: str = "question",
    options: str = "choices",
    shuffled_with: str = "",
    model: str = "",
) -> Task:
    """`items` is a file with a question and a list of options in each row; `shuffled_with` is the lot that gave their
    order."""
    return Task(
        dataset=[Sample(id="order", input=items)],
        solver=nothing(),
        scorer=order_test(question, options, shuffled_with, model),
    )


@solver
def nothing() -> Solver:
    """The model is not asked to write anything: its log-probabilities are read."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


@scorer(metrics=[mean()])
def order_test(question: str, options: str, shuffled_with: str, model: str) -> Scorer:
    """p of the order test on the file that is the sample's input."""

    async def score(state: TaskState, target: Target) -> Score:
        corpus = pretrace.open_corpus(
            state.input_text, pretrace.Columns(text=question, label="", more=(options,))
        )
        models = pretrace.Models(pretrace.open_model(model or opened_by(get_model())))
        settings = pretrace.OrderSettings(options=options, shuffled_with=shuffled_with)
        verdict = await anyio.to_thread.run_sync(pretrace.order, corpus, models, settings)
        words = " ".join((verdict.statement, *verdict.reasons))
        told = {check.name: check.status for check in verdict.checks}
        if verdict.p is None or "failed" in told.values():
            return Score.unscored(reason="withheld", explanation=words, metadata=told)
        return Score(value=verdict.p, explanation=words, metadata=told)

    return score
