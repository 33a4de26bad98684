"""A run in, an evaluation out: rows, splits, refusals, and findings that follow from the texts."""

from dataclasses import replace

import numpy as np
import pytest
from made import evaluate, run_of, tpr_at_fpr

from pretrace.baselines import WIDENING, bag_of_words
from pretrace.errors import ExpressionError, TextsError
from pretrace.statistics.roc import _accuracy, auc, best_threshold, group_bootstrap
from pretrace.types import Control, Missing


def made(matrix, members, groups=None, **parts):
    return run_of(matrix, members, **({"groups": tuple(groups)} if groups else {}), **parts)


WORDS = np.array([f"w{k}" for k in range(300)])


def corpus(*, docs=60, pieces=3, seed=0):
    """Members and non-members of the same words, one good score and one that knows nothing."""
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(2 * docs), pieces)
    members = document < docs
    texts = [" ".join(WORDS[rng.integers(0, 300, 40)]) for _ in document]
    shared = rng.normal(size=2 * docs)[document]
    good = 1.2 * members + 0.5 * shared + rng.normal(size=len(document))
    matrix = np.column_stack((rng.normal(size=len(document)), good))
    run = made(matrix, members, [f"d{d}" for d in document], scores=("noise", "good"))
    return run, texts, members


def test_rows_are_the_scores_and_then_the_blind_baseline():
    run, texts, members = corpus()
    found = evaluate(run, texts, resamples=200)
    kinds = {row.name: row.kind for row in found.rows}
    assert list(kinds.items())[:2] == [("noise", "score"), ("good", "score")]
    assert list(kinds.items())[2:] == [("bag of words", "blind"), ("text length", "blind")]
    assert (found.members, found.nonmembers, found.groups, found.resamples) == (180, 180, 120, 200)
    for row in found.rows[:2]:
        scores = run.column(row.name)
        assert row.auc.value == pytest.approx(auc(scores, members))
        assert row.tpr.value == pytest.approx(tpr_at_fpr(scores, members, 0.05))
        assert row.tpr_low is None
        assert row.auc.low < row.auc.value < row.auc.high
    assert found.rows[0].auc.low < 0.5 < found.rows[1].auc.low
    assert found.rows[3].auc.value == auc([len(text) for text in texts], members)


def test_the_blind_interval_is_widened_and_the_others_are_not():
    run, texts, members = corpus()
    found = evaluate(run, texts, resamples=100, seed=2)
    judged, _ = bag_of_words(texts, members, run.groups, seed=2)
    matrix = np.column_stack((run.matrix, judged))
    plain = group_bootstrap(matrix.T, members, groups=run.groups, seed=2, resamples=100).auc
    assert [row.auc for row in found.rows[:2]] == [plain.estimate(0), plain.estimate(1)]
    narrow, wide = plain.estimate(2), found.rows[2].auc
    assert wide.value == narrow.value
    assert wide.high - wide.low == pytest.approx(WIDENING * (narrow.high - narrow.low))


def test_the_same_call_gives_the_same_evaluation_in_any_row_order():
    run, texts, members = corpus()
    first = evaluate(run, texts, resamples=50, blind=False)
    assert evaluate(run, texts, resamples=50, blind=False) == first
    order = np.random.default_rng(1).permutation(len(texts))
    groups = [run.groups[i] for i in order]
    alone = replace(run, groups=("",) * len(texts))
    assert evaluate(alone, texts, resamples=20, blind=False).groups == len(texts)
    mixed = made(run.matrix[order], members[order], groups, scores=run.scores)
    again = evaluate(mixed, [texts[i] for i in order], resamples=50, blind=False)
    assert again.rows[1].threshold == first.rows[1].threshold
    assert again.rows[1].auc.low == pytest.approx(first.rows[1].auc.low)
    assert again.rows[1].accuracy.high == pytest.approx(first.rows[1].accuracy.high)


def test_without_a_validation_split_accuracy_says_what_it_is():
    rng = np.random.default_rng(0)
    members = [True] * 20 + [False] * 20
    run = made(rng.normal(size=(40, 1)), members, ["a"] * 20 + [f"b{i}" for i in range(20)])
    found = evaluate(run, ["x"] * 40, resamples=20)
    assert found.validation == 0
    row = found.rows[0]
    assert row.threshold == best_threshold(run.column("score0"), members)
    assert row.accuracy.value == pytest.approx(_accuracy(run.column("score0"), members, row.threshold))
    assert any("No documents were set aside" in sentence for sentence in found.findings)
    assert any("There is no blind baseline: it takes two documents" in one for one in found.findings)
    found = evaluate(*corpus()[:2], validation=0.0, resamples=20, blind=False)
    assert found.validation == 0


N = 80


def run(lost, *, placebo_lost=0):
    """A run of three scores of which "partial" lacks the `lost` texts, with a placebo."""
    random = np.random.default_rng(3)
    members = np.arange(N) % 2 == 0
    matrix = random.normal(size=(N, 3)) + members[:, None] * [0.2, 1.5, 0.5]
    placebo = random.normal(size=(N, 1))
    matrix[lost, 1], placebo[:placebo_lost] = np.nan, np.nan
    gone = [(i, "no case") for i in np.flatnonzero(lost)] + [(i, "placebo") for i in range(placebo_lost)]
    missing = tuple(Missing(f"t{i}", "partial", why) for i, why in gone)
    controls = (Control("partial", "placebo", placebo),)
    made = run_of(matrix, members, scores=("loss", "partial", "other"), missing=missing, controls=controls)
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
    assert any("partial has no value for 10 texts, such as 't0' (no case)" in one for one in found.findings)
    made, texts = run(np.zeros(N, dtype=bool), placebo_lost=6)
    rows = {(row.name, row.kind): row.texts for row in evaluate(made, texts, resamples=20).rows}
    assert (rows["partial", "score"], rows["partial", "placebo"]) == (N, N - 6)


def test_scores_are_compared_on_the_texts_that_both_have_and_the_others_as_if_it_were_not_there():
    lost = np.arange(N) % 5 == 0
    made, texts = run(lost)
    without = {"controls": (), "missing": (), "matrix": made.matrix[:, [0, 2]], "scores": ("loss", "other")}
    whole = evaluate(replace(made, **without), texts, resamples=300)
    found = evaluate(replace(made, controls=()), texts, resamples=300)
    assert (found.rows[0], found.rows[2]) == whole.rows[:2]
    members = np.array(made.members)[~lost]
    expected = auc(made.column("partial")[~lost], members) - auc(made.column("loss")[~lost], members)
    first, second = found.comparisons
    assert (first.score, second.score) == ("partial", "other")
    assert first.difference.value == pytest.approx(expected)


def test_a_score_with_one_class_alone_is_not_measured_and_named():
    made, texts = run(np.arange(N) % 2 == 0)
    found = evaluate(replace(made, controls=()), texts, resamples=200)
    assert [row.name for row in found.rows if row.kind == "score"] == ["loss", "other"]
    assert [one.score for one in found.comparisons] == ["other"]
    assert any("partial has no value for 40 texts" in one for one in found.findings)
    alone = replace(made, scores=("partial",), matrix=made.matrix[:, [1]], controls=())
    with pytest.raises(TextsError, match="nothing can be measured"):
        evaluate(alone, texts)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_score_that_is_no_number_is_named(value):
    matrix = np.ones((4, 2))
    matrix[2, 1] = value
    with pytest.raises(ExpressionError, match=rf"score1 gave {value} for the text 't2' \(1 such values"):
        evaluate(made(matrix, [True, False, True, False]), ["a"] * 4)
