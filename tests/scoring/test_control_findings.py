"""Which sentence is said of the placebo and of shuffled labels: every branch, on figures made for it."""

from dataclasses import replace

import pytest

from pretrace.scoring.findings import BLIND, LENGTH, Circumstances, sentences
from pretrace.types import Curve, Estimate, Evaluation, Measured

ANY = Estimate(0.5, 0.4, 0.6)
MEANING = "A detector that does as well on the placebo as on the target detects the domain, not membership."
ON = "On pythia, a model that never saw the members,"


def row(name, value, low, high, kind="score"):
    curve = Curve((0.0, 1.0), (0.0, 1.0))
    auc, tpr = Estimate(value, low, high), Estimate(0.34, 0.25, 0.43)
    return Measured(name=name, kind=kind, auc=auc, tpr=tpr, accuracy=ANY, threshold=0.0, curve=curve)


def placebo(name, value, *lead):
    return replace(row(name, value, value - 0.05, value + 0.05, "placebo"), lead=Estimate(*lead))


def said(*rows, **changed):
    circumstances = Circumstances(
        lead=None, member_groups=300, nonmember_groups=300, asked=1000, placebo="pythia"
    )
    evaluation = Evaluation(
        rows=rows, members=500, nonmembers=500, groups=600, resamples=1000, validation=200
    )
    return sentences(evaluation, replace(circumstances, **changed))


LOSS, ZLIB, PPL = (row(name, 0.71, 0.66, 0.76) for name in ("loss", "zlib", "ppl"))
WEAK = row("weak", 0.52, 0.46, 0.58)


def test_no_survivor_is_said_right_after_the_best_score():
    found = said(
        LOSS, ZLIB, placebo("loss", 0.72, -0.01, -0.03, 0.01), placebo("zlib", 0.71, 0.0, -0.02, 0.02)
    )
    assert found[0].startswith("The best score, loss, has an AUC of 0.71")
    assert found[1] == (
        f"No score survives the placebo. {ON} loss (AUC 0.72 there, 0.71 on the target) and zlib (AUC 0.71 "
        f"there, 0.71 on the target) do as well. {MEANING}"
    )
    assert found[2].endswith("for members, loss finds 34% (25% to 43%) of the members.")


def test_a_lone_score_is_called_by_its_name():
    found = said(LOSS, placebo("loss", 0.72, -0.01, -0.03, 0.01))[1]
    assert found.startswith("loss does not survive the placebo. On pythia,")
    found = said(LOSS, placebo("loss", 0.68, 0.03, -0.01, 0.07))[1]
    assert found == (
        f"loss is not shown to survive the placebo. {ON} the AUC of loss falls by 0.03 (95% interval −0.01 to "
        "0.07), which may be chance; more documents would tell."
    )


def test_a_lead_that_may_be_chance_is_not_called_a_failure():
    found = said(
        LOSS, ZLIB, placebo("loss", 0.72, -0.01, -0.03, 0.01), placebo("zlib", 0.69, 0.02, -0.01, 0.05)
    )
    assert found[1] == (
        f"No score is shown to survive the placebo. {ON} loss (AUC 0.72 there, 0.71 on the target) does as well. "
        f"{MEANING} On the placebo the AUC of zlib falls by 0.02 (95% interval −0.01 to 0.05), which may be chance; "
        "more documents would tell."
    )


def test_survivors_are_named_with_their_leads_the_largest_first():
    found = said(
        LOSS,
        ZLIB,
        PPL,
        WEAK,
        placebo("loss", 0.6, 0.11, 0.06, 0.16),
        placebo("zlib", 0.55, 0.16, 0.1, 0.22),
        placebo("ppl", 0.72, -0.01, -0.03, 0.01),
        placebo("weak", 0.4, 0.12, 0.05, 0.19),
    )
    assert found[1:3] == (
        f"2 of 3 scores above chance survive the placebo. {ON} the AUC of zlib falls by 0.16 (95% interval 0.10 to "
        "0.22) and that of loss by 0.11 (0.06 to 0.16). As far as the two models are otherwise alike, the domain "
        "of the texts does not explain that difference.",
        f"On the placebo ppl (AUC 0.72 there, 0.71 on the target) does as well. {MEANING}",
    )
    assert "weak" not in "".join(found[1:3]), "at chance there is nothing to survive"


@pytest.mark.parametrize(
    ("name", "auc", "said_so"),
    [
        (BLIND, (0.6, 0.52, 0.68), True),
        (BLIND, (0.55, 0.49, 0.61), False),
        (BLIND, (0.4, 0.32, 0.48), False),  # below chance says nothing
        (LENGTH, (0.4, 0.32, 0.48), True),
    ],
)
def test_a_lead_on_sets_that_differ_as_texts_shows_no_training(name, auc, said_so):
    rows = [LOSS, placebo("loss", 0.6, 0.11, 0.06, 0.16), row(name, *auc, kind="blind")]
    assert any("this alone shows no training" in one for one in said(*rows)) == said_so
    assert any("does not explain that difference" in one for one in said(*rows)) != said_so


def test_the_numbers_of_survivors():
    both = [placebo(name, 0.6, 0.11, 0.06, 0.16) for name in ("loss", "zlib")]
    assert said(LOSS, ZLIB, *both)[1].startswith("All 2 scores above chance survive the placebo.")
    one = [both[0], placebo("zlib", 0.71, 0.0, -0.02, 0.02)]
    assert said(LOSS, ZLIB, *one)[1].startswith("1 of 2 scores above chance survives the placebo.")
    assert said(LOSS, WEAK, both[0])[1].startswith("loss survives the placebo.")


def test_an_interval_that_only_nears_zero_is_not_rounded_onto_it():
    assert "(95% interval 0.003 to 0.10)" in said(LOSS, placebo("loss", 0.66, 0.05, 0.003, 0.1))[1]


def test_many_survivors_are_counted():
    rows = [row(f"s{k}", 0.7, 0.6, 0.8) for k in range(8)]
    others = [placebo(f"s{k}", 0.6, 0.1 + k / 100, 0.05, 0.2) for k in range(8)]
    found = said(*rows, *others)[1]
    assert "the AUC of s7 falls by 0.17" in found
    assert "s2" not in found
    assert "and those of 3 others too. As far" in found
    fallen = [placebo(f"s{k}", 0.7, -0.01, -0.05, 0.02) for k in range(8)]
    assert "and 3 others do as well." in said(*rows, *fallen)[1]


def test_without_success_or_name_nothing_is_made_up():
    assert not any("placebo" in sentence for sentence in said(WEAK, placebo("weak", 0.5, 0.02, -0.01, 0.05)))
    assert (
        "On the placebo, a model that never saw"
        in said(LOSS, placebo("loss", 0.7, 0.0, -0.1, 0.1), placebo="")[1]
    )
    found = said(LOSS, ZLIB, placebo("loss", 0.72, -0.01, -0.03, 0.01))[1]
    assert found.startswith("No score that was tried on it survives the placebo.")
    assert said(LOSS)[1].endswith("it finds 34% (25% to 43%) of the members.")


def test_controls_are_neither_the_best_score_nor_the_blind_baseline():
    blind = row("bag of words", 0.5, 0.45, 0.55, "blind")
    control = placebo("loss", 0.99, -0.28, -0.3, -0.2)
    found = said(LOSS, blind, control, row("loss", 0.9, 0.8, 0.95, "shuffled"))
    assert found[0].startswith("The score loss has an AUC of 0.71")
    assert not any("The best of" in sentence for sentence in found)
    assert "bag of words, is at chance" in " ".join(found)


@pytest.mark.parametrize(("value", "word"), [(0.71, "as well at least once"), (0.70, "never does as well")])
def test_true_labels_must_beat_every_shuffle(value, word):
    found = said(LOSS, row("loss", 0.5, 0.4, value, "shuffled"), shuffles={"loss": 20})
    [sentence] = [s for s in found if "shuffled" in s]
    assert word in sentence
    assert f"loss (AUC 0.71 with the true labels, 0.40 to {value:.2f} in 20 repeats)" in sentence
    assert ("no sign that the labels of the reference mattered to it" in sentence) == (value == 0.71)


def test_few_repeats_prove_nothing_and_a_score_at_chance_gains_nothing():
    few = said(LOSS, row("loss", 0.5, 0.4, 0.6, "shuffled"), shuffles={"loss": 5})
    assert any(s.endswith("never does as well: with so few repeats that may be chance.") for s in few)
    one = said(LOSS, row("loss", 0.6, 0.6, 0.6, "shuffled"), shuffles={"loss": 1})
    assert any("(AUC 0.71 with the true labels, 0.60)" in s for s in one)
    weak = said(WEAK, row("weak", 0.5, 0.4, 0.51, "shuffled"), shuffles={"weak": 20})
    assert not any("shuffled" in s for s in weak)
    weak = said(WEAK, row("weak", 0.5, 0.4, 0.6, "shuffled"), shuffles={"weak": 20})
    assert any("no sign that the labels" in s for s in weak)


def test_several_fitted_scores_share_a_sentence():
    shuffled = [row(name, 0.5, 0.4, 0.9, "shuffled") for name in ("loss", "zlib")]
    [sentence] = [
        s for s in said(LOSS, ZLIB, *shuffled, shuffles={"loss": 20, "zlib": 20}) if "shuffled" in s
    ]
    assert "and zlib (AUC" in sentence
    assert sentence.endswith(
        "do as well at least once: there is no sign that the labels of the reference mattered to them."
    )
