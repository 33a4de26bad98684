"""A run in, an evaluation out: rows, splits, refusals, and findings that follow from the texts."""

from dataclasses import replace

import numpy as np
import pytest
from made import evaluate, run_of

from pretrace.baselines.blind import bag_of_words
from pretrace.baselines.classifiers import WIDENING
from pretrace.errors import ExpressionError
from pretrace.statistics.documents import grouped_split
from pretrace.statistics.resampling import group_bootstrap
from pretrace.statistics.roc import accuracy, auc, best_threshold, tpr_at_fpr


def made(matrix, members, groups=None, **parts):
    return run_of(matrix, members, **({"groups": tuple(groups)} if groups else {}), **parts)


WORDS = np.array([f"w{k}" for k in range(300)])


def corpus(*, docs=60, pieces=3, dated=False, seed=0):
    """Members and non-members of the same words (with years that give them away when `dated`), one good
    score and one that knows nothing."""
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(2 * docs), pieces)
    members = document < docs
    texts = [" ".join(WORDS[rng.integers(0, 300, 40)]) for _ in document]
    if dated:
        texts = [f"{2014 if member else 2023} {text}" for member, text in zip(members, texts, strict=True)]
    shared = rng.normal(size=2 * docs)[document]
    good = 1.2 * members + 0.5 * shared + rng.normal(size=len(document))
    run = made(
        np.column_stack((rng.normal(size=len(document)), good)),
        members,
        [f"d{d}" for d in document],
        scores=("noise", "good"),
    )
    return run, texts, members


def test_rows_are_the_scores_and_then_the_blind_baseline():
    run, texts, members = corpus()
    found = evaluate(run, texts, resamples=200)
    assert [(row.name, row.kind) for row in found.rows] == [
        ("noise", "score"),
        ("good", "score"),
        ("bag of words", "blind"),
        ("text length", "blind"),
    ]
    assert (found.members, found.nonmembers, found.groups, found.resamples) == (180, 180, 120, 200)
    for row in found.rows[:2]:
        scores = run.column(row.name)
        assert row.auc.value == pytest.approx(auc(scores, members))
        assert row.tpr.value == pytest.approx(tpr_at_fpr(scores, members, 0.05))
        assert row.tpr_low is None
        assert row.auc.low < row.auc.value < row.auc.high
    assert found.rows[0].auc.excludes < 0 < found.rows[1].auc.excludes


def test_accuracy_is_measured_where_the_threshold_was_not_chosen():
    run, texts, members = corpus()
    found = evaluate(run, texts, resamples=50, seed=9, blind=False)
    chosen = grouped_split(run.groups, 0.2, 9, labels=members)
    assert found.validation == chosen.sum()
    assert abs(found.validation / 360 - 0.2) < 0.01
    row = found.rows[1]
    assert row.threshold == best_threshold(run.column("good")[chosen], members[chosen])
    assert row.accuracy.value == pytest.approx(
        accuracy(run.column("good")[~chosen], members[~chosen], row.threshold)
    )


def test_the_blind_interval_is_widened_and_the_others_are_not():
    run, texts, members = corpus()
    found = evaluate(run, texts, resamples=100, seed=2)
    judged = bag_of_words(texts, members, run.groups, seed=2).scores
    matrix = np.column_stack((run.matrix, judged))
    plain = group_bootstrap(matrix, members, groups=run.groups, seed=2, resamples=100).auc
    assert [row.auc for row in found.rows[:2]] == [plain.estimate(0), plain.estimate(1)]
    narrow, wide = plain.estimate(2), found.rows[2].auc
    assert wide.value == narrow.value
    assert wide.high - wide.low == pytest.approx(WIDENING * (narrow.high - narrow.low))


def test_texts_that_give_themselves_away_are_called_out():
    run, texts, _ = corpus(dated=True)
    found = evaluate(run, texts, resamples=200)
    assert found.rows[2].auc.value > 0.95
    assert any("never saw the model does better" in sentence for sentence in found.findings)


@pytest.mark.parametrize(("more", "word"), [(12, "longer"), (-12, "shorter")])
def test_length_alone_is_called_out(more, word):
    run, texts, members = corpus()
    rng = np.random.default_rng(4)
    lengths = 30 + more * members + rng.integers(0, 10, len(texts))
    texts = [" ".join(WORDS[rng.integers(0, 300, n)]) for n in lengths]
    found = evaluate(run, texts, resamples=100)
    assert found.rows[-1].auc.value == auc([len(text) for text in texts], members)
    [said] = [sentence for sentence in found.findings if "text length" in sentence]
    assert said.startswith(f"Members are {word} than non-members (AUC of the text length")


def test_equal_lengths_are_not_mentioned():
    run, texts, _ = corpus()
    assert not any("text length" in s for s in evaluate(run, texts, resamples=100).findings)


def test_texts_of_the_same_words_clear_the_score():
    run, texts, _ = corpus()
    found = evaluate(run, texts, resamples=200)
    assert any("success is not explained by their words" in sentence for sentence in found.findings)
    assert any("noise is at chance" in sentence for sentence in found.findings)


def test_the_same_call_gives_the_same_evaluation_in_any_row_order():
    run, texts, members = corpus()
    first = evaluate(run, texts, resamples=50, blind=False)
    assert evaluate(run, texts, resamples=50, blind=False) == first
    order = np.random.default_rng(1).permutation(len(texts))
    groups = [run.groups[i] for i in order]
    mixed = made(run.matrix[order], members[order], groups, scores=run.scores)
    again = evaluate(mixed, [texts[i] for i in order], resamples=50, blind=False)
    assert again.rows[1].threshold == first.rows[1].threshold
    assert again.rows[1].auc.low == pytest.approx(first.rows[1].auc.low)
    assert again.rows[1].accuracy.high == pytest.approx(first.rows[1].accuracy.high)


def test_ungrouped_texts_are_their_own_documents():
    run, texts, _ = corpus(docs=20)
    alone = replace(run, groups=("",) * len(texts))
    assert evaluate(alone, texts, resamples=20, blind=False).groups == len(texts)


def test_without_a_validation_split_accuracy_says_what_it_is():
    rng = np.random.default_rng(0)
    members = [True] * 20 + [False] * 20
    run = made(rng.normal(size=(40, 1)), members, ["a"] * 20 + [f"b{i}" for i in range(20)])
    found = evaluate(run, ["x"] * 40, resamples=20)
    assert found.validation == 0
    row = found.rows[0]
    assert row.threshold == best_threshold(run.column("score0"), members)
    assert row.accuracy.value == pytest.approx(accuracy(run.column("score0"), members, row.threshold))
    assert any("No documents were set aside" in sentence for sentence in found.findings)
    assert any(
        "There is no blind baseline: it needs two documents" in sentence for sentence in found.findings
    )
    assert evaluate(*corpus()[:2], validation=0.0, resamples=20, blind=False).validation == 0


def test_a_blind_baseline_left_out_is_missed_in_words():
    run, texts, _ = corpus(docs=20)
    found = evaluate(run, texts, resamples=20, blind=False)
    assert all(row.kind == "score" for row in found.rows)
    assert any("The blind baseline was left out" in sentence for sentence in found.findings)


def test_two_texts_are_enough_not_to_break():
    found = evaluate(made(np.array([[1.0], [0.0]]), [True, False]), ["a", "b"], resamples=20)
    assert found.rows[0].auc.value == 1.0
    assert any("must not be relied on" in sentence for sentence in found.findings)


def test_a_run_without_scores_still_gets_its_baseline():
    run, texts, members = corpus(dated=True)
    bare = made(np.empty((len(texts), 0)), members, run.groups)
    assert [row.kind for row in evaluate(bare, texts, resamples=20).rows] == ["blind", "blind"]
    assert evaluate(bare, texts, resamples=20, blind=False).rows == ()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_score_that_is_no_number_is_named(value):
    matrix = np.ones((4, 2))
    matrix[2, 1] = value
    run = made(matrix, [True, False, True, False])
    with pytest.raises(ExpressionError, match=rf"score1 gave {value} for the text 't2' \(1 such values"):
        evaluate(run, ["a"] * 4)
