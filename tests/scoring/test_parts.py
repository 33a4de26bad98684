"""Scores that some texts lack: each figure rests on the texts that have it, each comparison on those of both."""

from dataclasses import replace

import numpy as np
import pytest
from made import evaluate, run_of

from pretrace.errors import ExpressionError, TextsError
from pretrace.statistics.paired import compare
from pretrace.statistics.roc import auc
from pretrace.types import Control, Missing

N = 80


def run(lost, *, placebo_lost=None):
    """A run of three scores of which "partial" lacks the `lost` texts, with a placebo."""
    random = np.random.default_rng(3)
    members = np.arange(N) % 2 == 0
    matrix = random.normal(size=(N, 3)) + members[:, None] * [0.2, 1.5, 0.5]
    whole = matrix.copy()
    matrix[lost, 1] = np.nan
    placebo = random.normal(size=(N, 1))
    missing = [Missing(f"t{i}", "partial", "no case") for i in np.flatnonzero(lost)]
    values = placebo.copy()
    if placebo_lost is not None:
        values[placebo_lost] = np.nan
        missing += [Missing(f"t{i}", "partial", "placebo") for i in np.flatnonzero(placebo_lost)]
    made = run_of(
        matrix,
        members,
        scores=("loss", "partial", "other"),
        missing=tuple(missing),
        controls=(Control("partial", "placebo", values),),
    )
    assert not np.isnan(whole).any()
    return made, [f"words of text {i} and {i * 7 % 13}" for i in range(N)]


def test_each_figure_rests_on_the_texts_that_have_the_score():
    lost = np.arange(N) < 10
    made, texts = run(lost)
    found = evaluate(made, texts, resamples=200)
    rows = {(row.name, row.kind): row for row in found.rows}
    assert rows["loss", "score"].texts == rows["other", "score"].texts == N
    partial, placebo = rows["partial", "score"], rows["partial", "placebo"]
    assert partial.texts == placebo.texts == N - 10
    members = np.array(made.members)[~lost]
    assert partial.auc.value == pytest.approx(auc(made.column("partial")[~lost], members))
    lead = auc(made.column("partial")[~lost], members) - auc(made.controls[0].values[~lost, 0], members)
    assert placebo.lead.value == pytest.approx(lead)
    assert any("partial has no value for 't0' (no case) and 9 more" in one for one in found.findings)


def test_the_other_scores_are_measured_as_if_it_were_not_there():
    made, texts = run(np.arange(N) < 10)
    whole = evaluate(
        replace(made, controls=(), missing=(), matrix=made.matrix[:, [0, 2]], scores=("loss", "other")), texts
    )
    found = evaluate(replace(made, controls=()), texts)
    assert found.rows[0] == whole.rows[0]
    assert found.rows[2] == whole.rows[1]


def test_scores_are_compared_on_the_texts_that_both_have():
    lost = np.arange(N) % 5 == 0
    made, texts = run(lost)
    found = {one.score: one for one in evaluate(made, texts, resamples=300).comparisons}
    members = np.array(made.members)[~lost]
    expected = auc(made.column("partial")[~lost], members) - auc(made.column("loss")[~lost], members)
    assert found["partial"].difference.value == pytest.approx(expected)
    again = {one.score: one for one in compare(made, resamples=300)}
    assert again["partial"].difference.value == pytest.approx(expected)
    assert list(again) == ["partial", "other"]
    assert again["other"] == found["other"]


def test_a_placebo_that_lacks_a_text_leaves_the_score_whole():
    gone = np.arange(N) < 6
    made, texts = run(np.zeros(N, dtype=bool), placebo_lost=gone)
    rows = {(row.name, row.kind): row for row in evaluate(made, texts, resamples=200).rows}
    assert rows["partial", "score"].texts == N
    assert rows["partial", "placebo"].texts == N - 6


def test_a_score_with_one_class_alone_is_not_measured_and_named():
    made, texts = run(np.arange(N) % 2 == 0)
    found = evaluate(replace(made, controls=()), texts, resamples=200)
    assert [row.name for row in found.rows if row.kind == "score"] == ["loss", "other"]
    assert [one.score for one in found.comparisons] == ["other"]
    assert any("partial has no value" in one and "not measured" in one for one in found.findings)
    alone = replace(made, scores=("partial",), matrix=made.matrix[:, [1]], controls=())
    with pytest.raises(TextsError, match="nothing can be measured"):
        evaluate(alone, texts)


def test_a_value_that_is_missing_without_a_reason_is_a_mistake():
    made, texts = run(np.arange(N) < 10)
    with pytest.raises(ExpressionError, match="finite"):
        evaluate(replace(made, missing=()), texts)
