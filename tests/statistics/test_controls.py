"""Placebo and shuffled labels: which rows an evaluation adds for them, and what its differences rest on."""

from dataclasses import replace

import numpy as np
import pytest
from made import evaluate, row, run_of, tpr_at_fpr

from pretrace.statistics.documents import grouped_split
from pretrace.statistics.roc import _accuracy, auc, best_threshold, divide_texts, roc_curve, survives
from pretrace.types import Control, Estimate

TEXTS = 160


def world(repeats=4):
    """A run of two scores that see the domain, and on the target the exposure as well; with all controls."""
    rng = np.random.default_rng(0)
    members = np.arange(TEXTS) % 2 == 0
    domain = rng.normal(size=TEXTS) + 0.9 * members

    def noisy(values):
        return values + 0.5 * rng.normal(size=TEXTS)

    placebo = [noisy(domain), noisy(domain)]
    matrix = np.column_stack([noisy(domain + members), noisy(domain + members)])
    shuffled = np.column_stack([noisy(rng.normal() * domain) for _ in range(repeats)])
    run = run_of(
        matrix,
        members,
        groups=tuple(f"d{i // 4}" for i in range(TEXTS)),
        scores=("loss", "na_pdd"),
        controls=(
            Control("na_pdd", "shuffled", shuffled),
            Control("na_pdd", "placebo", placebo[1][:, None]),
            Control("loss", "placebo", placebo[0][:, None]),
        ),
    )
    return run, [f"text {i}" for i in range(TEXTS)], members


def test_a_placebo_is_measured_like_any_column():
    run, texts, members = world()
    found = evaluate(run, texts, resamples=50, blind=False, seed=3)
    chosen = grouped_split(run.groups, 0.2, 3, labels=members)
    assert found.validation == chosen.sum() == 32
    placebo, values = found.rows[4], run.controls[1].values[:, 0]
    assert (placebo.kind, placebo.name) == ("placebo", "na_pdd")
    assert placebo.auc.value == pytest.approx(auc(values, members))
    assert placebo.tpr.value == pytest.approx(tpr_at_fpr(values, members, 0.05))
    assert placebo.threshold == best_threshold(values[chosen], members[chosen])
    assert placebo.accuracy.value == pytest.approx(
        _accuracy(values[~chosen], members[~chosen], placebo.threshold)
    )
    assert placebo.curve == roc_curve(values, members)
    assert placebo.lead.value == pytest.approx(found.rows[1].auc.value - placebo.auc.value)
    assert placebo.survives == survives(found.rows[1], placebo)
    alone = evaluate(replace(run, controls=()), texts, resamples=50, blind=False, seed=3)
    assert found.rows[:2] == alone.rows[:2]


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_shuffled_labels_are_told_by_median_and_range(repeats):
    run, texts, members = world(repeats=repeats)
    found = evaluate(run, texts, resamples=20, blind=False, seed=1).rows[-1]
    values = run.controls[0].values
    aucs = [auc(column, members) for column in values.T]
    assert (found.kind, found.name) == ("shuffled", "na_pdd")
    assert found.auc == Estimate(*map(pytest.approx, (np.median(aucs), min(aucs), max(aucs))))
    rates = [tpr_at_fpr(column, members, 0.05) for column in values.T]
    assert found.tpr == Estimate(*map(pytest.approx, (np.median(rates), min(rates), max(rates))))
    chosen = grouped_split(run.groups, 0.2, 1, labels=members)
    thresholds = [best_threshold(column[chosen], members[chosen]) for column in values.T]
    right = [_accuracy(c[~chosen], members[~chosen], t) for c, t in zip(values.T, thresholds, strict=True)]
    assert (found.accuracy.low, found.accuracy.high) == (min(right), max(right))
    middle = sorted(range(repeats), key=lambda k: aucs[k])[(repeats - 1) // 2]
    assert found.curve == roc_curve(values[:, middle], members)
    assert found.threshold == thresholds[middle]


@pytest.mark.parametrize(
    ("target", "lead", "expected"),
    [
        ((0.7, 0.6, 0.8), (0.1, 0.01, 0.2), "yes"), ((0.7, 0.6, 0.8), (0.1, 0.0, 0.2), "not shown"),
        ((0.7, 0.6, 0.8), (0.0, -0.1, 0.1), "no"), ((0.7, 0.6, 0.8), (-0.1, -0.2, -0.05), "no"),
        ((0.7, 0.5, 0.8), (0.2, 0.1, 0.3), "not above chance"),
        ((0.3, 0.2, 0.4), (0.2, 0.1, 0.3), "not above chance"), ((0.7, 0.6, 0.8), None, "not shown"),
    ],
)  # fmt: skip
def test_who_survives(target, lead, expected):
    score, lead = row("a", Estimate(*target)), Estimate(*lead) if lead else None
    assert survives(score, replace(score, kind="placebo", lead=lead)) == expected


@pytest.mark.parametrize(("kept", "divided"), [([0, 1, 2, 3], True), ([0, 1, 2], False), ([0, 2, 3], False)])
def test_a_division_keeps_its_parts_while_both_have_both_classes(kept, divided):
    chosen, members = np.array([True, True, False, False]), np.array([True, False, True, False])
    texts = np.isin(np.arange(5), kept)
    chosen, tested = divide_texts(np.append(chosen, True)[texts], np.append(members, True)[texts])
    assert (chosen & ~tested).sum() == (2 if divided else 0)
    assert tested.sum() == (2 if divided else len(kept))
