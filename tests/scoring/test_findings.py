"""Which sentence is said when: every branch, on figures made for it."""

from dataclasses import replace

import pytest

from pretrace.scoring.findings import Circumstances, best_of, sentences
from pretrace.statistics.resampling import PairedDifference
from pretrace.types import Curve, Estimate, Evaluation, Measured

ANY = Estimate(0.5, 0.4, 0.6)
PLENTY = Circumstances(lead=None, member_groups=300, nonmember_groups=300, asked=1000)


def row(name, value, low, high, kind="score"):
    curve = Curve((0.0, 1.0), (0.0, 1.0))
    auc, tpr = Estimate(value, low, high), Estimate(0.34, 0.25, 0.43)
    return Measured(name=name, kind=kind, auc=auc, tpr=tpr, accuracy=ANY, threshold=0.0, curve=curve)


def blind(value, low, high):
    return row("bag of words", value, low, high, kind="blind")


def evaluation(*rows):
    return Evaluation(rows=rows, members=500, nonmembers=500, groups=600, resamples=1000, validation=200)


def said(*rows, lead=None, **changed):
    difference = PairedDifference(Estimate(*lead), 0.01) if lead else None
    return sentences(evaluation(*rows), replace(PLENTY, lead=difference, **changed))


LOSS = row("loss", 0.85, 0.81, 0.89)


def test_the_best_score_comes_first_in_plain_words():
    found = said(row("zlib", 0.7, 0.65, 0.75), row("min_k(k=0.1)", 0.85, 0.81, 0.89))
    assert found[0] == (
        "The best score, min_k(k=0.1), has an AUC of 0.85 (95% interval 0.81 to 0.89): that is how often it "
        "ranks a random member above a random non-member, 0.50 being chance."
    )
    assert found[1] == (
        "At a threshold that takes at most 5% of the non-members for members, it finds 34% (25% to 43%) of "
        "the members."
    )
    assert found[2] == (
        "The best of 2 scores was picked on the very texts it is measured on, so its figures lean upwards: "
        "confirm it on texts that had no part in the choice."
    )
    assert len(found) == 3


def test_a_lone_score_is_not_the_best_of_many():
    assert said(LOSS)[0].startswith("The score loss has an AUC of 0.85")
    assert not any("The best of" in sentence for sentence in said(LOSS))


@pytest.mark.parametrize(
    ("lead", "verb"),
    [
        ((-0.1, -0.2, -0.05), "better"),
        ((-0.01, -0.02, 0.01), "as well"),
        ((0.01, -0.01, 0.03), "about as well"),
    ],
)
def test_a_blind_classifier_that_does_as_well_takes_the_meaning_away(lead, verb):
    assert said(LOSS, blind(0.99, 0.98, 0.996), lead=lead)[2] == (
        f"A bag-of-words classifier that never saw the model does {verb} (AUC 0.99, 0.98 to 0.996): on these "
        "texts a high score says that members and non-members differ as texts, not that the model was "
        "trained on the members."
    )


def test_a_blind_classifier_that_does_something_is_given_its_part():
    assert said(LOSS, blind(0.65, 0.6, 0.7), lead=(0.2, 0.15, 0.25))[2] == (
        "A bag-of-words classifier that never saw the model tells the two sets apart too (AUC 0.65, 0.60 to "
        "0.70): they differ as texts, and some of the scores' success may come from that. The best score is "
        "ahead of it by 0.20, 0.15 to 0.25."
    )


def test_a_blind_classifier_at_chance_clears_the_scores():
    assert said(LOSS, blind(0.51, 0.45, 0.57), lead=(0.34, 0.28, 0.4))[2] == (
        "The blind classifier, bag of words, is at chance (AUC 0.51, 0.45 to 0.57): no difference in words was "
        "found between the two sets, so the scores' success is not explained by their words."
    )


def test_a_blind_classifier_that_cannot_be_told_from_the_score_does_not_clear_it():
    found = said(row("loss", 0.57, 0.51, 0.63), blind(0.52, 0.44, 0.6), lead=(0.05, -0.04, 0.14))[2]
    assert "not surely ahead of it (by 0.05, −0.04 to 0.14)" in found
    assert "not explained" not in found


def test_a_blind_classifier_alone_above_or_at_chance():
    weak = row("loss", 0.52, 0.48, 0.56)
    assert "differ as texts, whatever the model" in said(weak, blind(0.7, 0.6, 0.8), lead=(-0.1, -0.2, 0))[2]
    found = said(weak, blind(0.51, 0.46, 0.56), lead=(0.01, -0.1, 0.1))
    assert found[2].endswith("no difference in words was found between the two sets.")
    found = said(weak, blind(0.51, 0.3, 0.72), lead=(0.01, -0.1, 0.1))
    assert found[2].endswith("though these texts are too few to rule one out.")
    assert "below chance" in said(LOSS, blind(0.4, 0.32, 0.48), lead=(0.4, 0.3, 0.5))[2]


def test_scores_at_chance_and_scores_that_point_the_wrong_way_are_named():
    found = said(LOSS, row("zlib", 0.3, 0.25, 0.36), row("ref", 0.5, 0.45, 0.55), row("ppl", 0.5, 0.46, 0.54))
    assert found[2].startswith("zlib (AUC 0.30, 0.25 to 0.36) points the wrong way on these texts")
    assert found[3] == "ref and ppl are at chance on these texts (95% interval around 0.50)."


def test_scores_that_are_all_at_chance():
    found = said(row("loss", 0.52, 0.48, 0.56), row("zlib", 0.51, 0.47, 0.55))
    assert found[0] == "No score is shown to do better than chance on these texts."
    assert said(row("loss", 0.52, 0.48, 0.56))[1:] == ("That is not shown to be better than chance.",)


def test_an_interval_that_only_nears_an_edge_is_not_rounded_onto_it():
    assert "0.52 (95% interval 0.501 to 0.54)" in said(row("loss", 0.52, 0.5011, 0.54))[0]
    assert "0.998 (95% interval 0.99 to 1.00)" in said(row("loss", 0.998, 0.99, 1.0))[0]
    assert "0.05, 0.004 to 0.10" in said(LOSS, blind(0.6, 0.55, 0.65), lead=(0.05, 0.004, 0.1))[2]


def test_an_interval_without_width_is_not_certainty():
    assert any("no width" in sentence for sentence in said(row("loss", 1.0, 1.0, 1.0)))


def test_few_documents_and_few_nonmembers():
    assert said(LOSS, nonmember_groups=12)[-2] == (
        "The members come from 300 documents, the non-members from 12 documents: with fewer than 20 of either "
        "the 95% intervals are rough."
    )
    assert "1 document: a result on a single document" in said(LOSS, nonmember_groups=1)[-1]
    few = replace(evaluation(LOSS), nonmembers=15, members=15)
    assert "With 15 non-members, 5% of them is less than one" in sentences(few, PLENTY)[-1]


def test_a_threshold_among_few_nonmembers_is_hardly_known():
    found = said(LOSS, nonmember_groups=59)[-1]
    assert found.startswith(
        "With 59 documents of non-members, where the threshold for 5% false positives lies"
    )
    assert "60 documents or more" in found
    assert not any("is hardly known" in one for one in said(LOSS, nonmember_groups=60))
    assert any("is hardly known" in one for one in said(LOSS, nonmember_groups=12))
    # With fewer than 20 texts there is a sentence of its own, and with one document a stronger one.
    few = sentences(replace(evaluation(LOSS), nonmembers=15), replace(PLENTY, nonmember_groups=15))
    assert not any("is hardly known" in one for one in few)
    assert not any("is hardly known" in one for one in said(LOSS, nonmember_groups=1))


def test_what_was_cut_short_is_said():
    assert said(LOSS, asked=2000)[-1] == (
        "The 95% intervals rest on 1,000 resamples instead of 2,000, for there are many texts."
    )
    assert "threshold was chosen on" in sentences(replace(evaluation(LOSS), validation=0), PLENTY)[-1]
    assert "A note." in said(LOSS, blind_note="A note.")


def test_lopsided_classes_give_accuracy_its_floor():
    lopsided = sentences(replace(evaluation(LOSS), nonmembers=100, members=400), PLENTY)
    assert lopsided[-1].startswith(
        "80% of the texts are members: an accuracy means something only above 0.80"
    )


def test_without_scores_only_the_blind_baseline_speaks():
    found = said(blind(0.7, 0.6, 0.8))
    assert len(found) == 1
    assert found[0].startswith("A bag-of-words classifier")
    assert best_of([blind(0.7, 0.6, 0.8)]) is None
    assert best_of([row("a", 0.5, 0.4, 0.6), row("b", 0.5, 0.4, 0.6)]).name == "a"
