"""Which sentence is said when: every branch, on figures made for it."""

from dataclasses import replace

import made
import pytest

from pretrace.scoring.findings import BLIND, LENGTH, Circumstances, best_of, sentences
from pretrace.statistics.resampling import PairedDifference
from pretrace.types import Estimate, Evaluation

ANY, TPR = Estimate(0.5, 0.4, 0.6), Estimate(0.34, 0.25, 0.43)
PLENTY = Circumstances(lead=None, member_groups=300, nonmember_groups=300, asked=1000, placebo="pythia")
MEANING = "A detector that does as well on the placebo as on the target detects the domain, not membership."
ON = "On pythia, a model that never saw the members,"
BLINDLY = "A bag-of-words classifier that never saw the model"


def row(name, value, low, high, kind="score"):
    return made.row(name, Estimate(value, low, high), kind, tpr=TPR, accuracy=ANY)


def blind(value, low, high):
    return row(BLIND, value, low, high, kind="blind")


def placebo(name, value, *lead):
    return replace(row(name, value, value - 0.05, value + 0.05, "placebo"), lead=Estimate(*lead))


def shuffled(name, value, low, high):
    return row(name, value, low, high, "shuffled")


def evaluation(*rows):
    return Evaluation(rows=rows, members=500, nonmembers=500, groups=600, resamples=1000, validation=200)


def said(*rows, lead=None, **changed):
    difference = PairedDifference(Estimate(*lead), 0.01) if lead else None
    counts = {name: changed.pop(name) for name in ("members", "nonmembers", "validation") if name in changed}
    return sentences(replace(evaluation(*rows), **counts), replace(PLENTY, lead=difference, **changed))


LOSS = row("loss", 0.85, 0.81, 0.89)
LOW, ZLIB, PPL = (row(name, 0.71, 0.66, 0.76) for name in ("loss", "zlib", "ppl"))
WEAK = row("weak", 0.52, 0.46, 0.58)
FALLEN, LOST, KEPT = (
    placebo("loss", *values)
    for values in ((0.72, -0.01, -0.03, 0.01), (0.68, 0.03, -0.01, 0.07), (0.6, 0.11, 0.06, 0.16))
)
EIGHT = [row(f"s{k}", 0.7, 0.6, 0.8) for k in range(8)]
WRONG = (LOSS, row("zlib", 0.3, 0.25, 0.36), row("ref", 0.5, 0.45, 0.55), row("ppl", 0.5, 0.46, 0.54))
SURVIVORS = (
    *(LOW, ZLIB, PPL, WEAK, KEPT, placebo("zlib", 0.55, 0.16, 0.1, 0.22)),
    *(placebo("ppl", 0.72, -0.01, -0.03, 0.01), placebo("weak", 0.4, 0.12, 0.05, 0.19)),
)

SAID = {
    "the best score first": (
        said(row("zlib", 0.7, 0.65, 0.75), row("min_k(k=0.1)", 0.85, 0.81, 0.89)),
        {
            0: "The best score, min_k(k=0.1), has an AUC of 0.85 (95% interval 0.81 to 0.89): that is how often it "
            "ranks a random member above a random non-member, 0.50 being chance.",
            1: "At a threshold that takes at most 5% of the non-members for members, it finds 34% (25% to 43%) of the "
            "members.",
            2: "The best of 2 scores was picked on the very texts it is measured on, so its figures lean upwards: "
            "confirm it on texts that had no part in the choice.",
        },
    ),
    "a lone score": (said(LOSS), {0: "The score loss has an AUC of 0.85…"}),
    **{
        f"the blind does {verb}": (
            said(LOSS, blind(0.99, 0.98, 0.996), lead=lead),
            {
                2: f"{BLINDLY} does {verb} (AUC 0.99, 0.98 to 0.996): on these texts a high score says that members "
                "and non-members differ as texts, not that the model was trained on the members."
            },
        )
        for verb, lead in (
            ("better", (-0.1, -0.2, -0.05)),
            ("as well", (-0.01, -0.02, 0.01)),
            ("about as well", (0.01, -0.01, 0.03)),
        )
    },
    "the blind does something": (
        said(LOSS, blind(0.65, 0.6, 0.7), lead=(0.2, 0.15, 0.25)),
        {
            2: f"{BLINDLY} tells the two sets apart too (AUC 0.65, 0.60 to 0.70): they differ as texts, and some of "
            "the scores' success may come from that. The best score is ahead of it by 0.20, 0.15 to 0.25."
        },
    ),
    "the blind is at chance": (
        said(LOSS, blind(0.51, 0.45, 0.57), lead=(0.34, 0.28, 0.4)),
        {
            2: "The blind classifier, bag of words, is at chance (AUC 0.51, 0.45 to 0.57): no difference in words was "
            "found between the two sets, so the scores' success is not explained by their words."
        },
    ),
    "not surely ahead of the blind": (
        said(row("loss", 0.57, 0.51, 0.63), blind(0.52, 0.44, 0.6), lead=(0.05, -0.04, 0.14)),
        {2: "…but the best score is not surely ahead of it (by 0.05, −0.04 to 0.14)…"},
    ),
    "the blind alone above chance": (
        said(WEAK, blind(0.7, 0.6, 0.8), lead=(-0.1, -0.2, 0)),
        {2: "…differ as texts, whatever the model…"},
    ),
    "the blind alone at chance": (
        said(WEAK, blind(0.51, 0.46, 0.56), lead=(0.01, -0.1, 0.1)),
        {2: "…no difference in words was found between the two sets."},
    ),
    "the blind at chance among few": (
        said(WEAK, blind(0.51, 0.3, 0.72), lead=(0.01, -0.1, 0.1)),
        {2: "…though these texts are too few to rule one out."},
    ),
    "the blind below chance": (
        said(LOSS, blind(0.4, 0.32, 0.48), lead=(0.4, 0.3, 0.5)),
        {2: "…below chance…"},
    ),
    "wrong ways and chance": (
        said(*WRONG),
        {
            2: "zlib (AUC 0.30, 0.25 to 0.36) points the wrong way on these texts…",
            3: "ref and ppl are at chance on these texts (95% interval around 0.50).",
        },
    ),
    "all at chance": (
        said(WEAK, row("zlib", 0.51, 0.47, 0.55)),
        {0: "No score is shown to do better than chance on these texts."},
    ),
    "one at chance": (said(WEAK), {1: "That is not shown to be better than chance."}),
    "near an edge": (said(row("loss", 0.52, 0.5011, 0.54)), {0: "…0.52 (95% interval 0.501 to 0.54)…"}),
    "near one": (said(row("loss", 0.998, 0.99, 1.0)), {0: "…0.998 (95% interval 0.99 to 1.00)…"}),
    "near nought": (
        said(LOSS, blind(0.6, 0.55, 0.65), lead=(0.05, 0.004, 0.1)),
        {2: "…0.05, 0.004 to 0.10…"},
    ),
    "no width": (said(row("loss", 1.0, 1.0, 1.0)), {2: "…that interval has no width…"}),
    "few documents": (
        said(LOSS, nonmember_groups=12),
        {
            -2: "The members come from 300 documents, the non-members from 12 documents: with fewer than 20 of either "
            "the 95% intervals are rough."
        },
    ),
    "one document": (said(LOSS, nonmember_groups=1), {-1: "…1 document: a result on a single document…"}),
    "few non-members": (
        said(LOSS, members=15, nonmembers=15),
        {-1: "With 15 non-members, 5% of them is less than one…"},
    ),
    "a threshold hardly known": (
        said(LOSS, nonmember_groups=59),
        {
            -1: "With 59 documents of non-members, where the threshold for 5% false positives lies is hardly known: "
            "new non-members may pass it more often than 5%, and the 95% interval of the true positive rate is too "
            "narrow. 60 documents or more would mend that."
        },
    ),
    "fewer resamples": (
        said(LOSS, asked=2000),
        {-1: "The 95% intervals rest on 1,000 resamples instead of 2,000, for there are many texts."},
    ),
    "no validation": (said(LOSS, validation=0), {-1: "…threshold was chosen on…"}),
    "the blind's own note": (said(LOSS, blind_note="A note."), {2: "A note."}),
    "lopsided": (
        said(LOSS, nonmembers=100, members=400),
        {-1: "80% of the texts are members: an accuracy means something only above 0.80…"},
    ),
    "the blind without scores": (said(blind(0.7, 0.6, 0.8)), {0: f"{BLINDLY}…"}),
    "no survivor": (
        said(LOW, ZLIB, FALLEN, placebo("zlib", 0.71, 0.0, -0.02, 0.02)),
        {
            0: "The best score, loss, has an AUC of 0.71…",
            1: f"No score survives the placebo. {ON} loss (AUC 0.72 there, 0.71 on the target) and zlib (AUC 0.71 "
            f"there, 0.71 on the target) do as well. {MEANING}",
            2: "…for members, loss finds 34% (25% to 43%) of the members.",
        },
    ),
    "a lone one that falls": (said(LOW, FALLEN), {1: "loss does not survive the placebo. On pythia,…"}),
    "a lone one that may survive": (
        said(LOW, LOST),
        {
            1: f"loss is not shown to survive the placebo. {ON} the AUC of loss falls by 0.03 (95% interval −0.01 to "
            "0.07), which may be chance; more documents would tell."
        },
    ),
    "a lead that may be chance": (
        said(LOW, ZLIB, FALLEN, placebo("zlib", 0.69, 0.02, -0.01, 0.05)),
        {
            1: f"No score is shown to survive the placebo. {ON} loss (AUC 0.72 there, 0.71 on the target) does as "
            f"well. {MEANING} On the placebo the AUC of zlib falls by 0.02 (95% interval −0.01 to 0.05), which may be "
            "chance; more documents would tell."
        },
    ),
    "survivors, the largest lead first": (
        said(*SURVIVORS),
        {
            1: f"2 of 3 scores above chance survive the placebo. {ON} the AUC of zlib falls by 0.16 (95% interval "
            "0.10 to 0.22) and that of loss by 0.11 (0.06 to 0.16). As far as the two models are otherwise alike, the "
            "domain of the texts does not explain that difference.",
            2: f"On the placebo ppl (AUC 0.72 there, 0.71 on the target) does as well. {MEANING}",
        },
    ),
    "all survive": (
        said(LOW, ZLIB, KEPT, placebo("zlib", 0.6, 0.11, 0.06, 0.16)),
        {1: "All 2 scores above chance survive the placebo.…"},
    ),
    "one survives": (
        said(LOW, ZLIB, KEPT, placebo("zlib", 0.71, 0.0, -0.02, 0.02)),
        {1: "1 of 2 scores above chance survives the placebo.…"},
    ),
    "the only one above chance survives": (said(LOW, WEAK, KEPT), {1: "loss survives the placebo.…"}),
    "a lead near nought": (
        said(LOW, placebo("loss", 0.66, 0.05, 0.003, 0.1)),
        {1: "…(95% interval 0.003 to 0.10)…"},
    ),
    "many survivors": (
        said(*EIGHT, *(placebo(f"s{k}", 0.6, 0.1 + k / 100, 0.05, 0.2) for k in range(8))),
        {1: "…the AUC of s7 falls by 0.17 (95% interval 0.05 to 0.20), that of s6…"},
    ),
    "many survivors are counted": (
        said(*EIGHT, *(placebo(f"s{k}", 0.6, 0.1 + k / 100, 0.05, 0.2) for k in range(8))),
        {1: "…and those of 3 others too. As far…"},
    ),
    "many that fall": (
        said(*EIGHT, *(placebo(f"s{k}", 0.7, -0.01, -0.05, 0.02) for k in range(8))),
        {1: "…and 3 others do as well.…"},
    ),
    "a placebo without a name": (
        said(LOW, placebo("loss", 0.7, 0.0, -0.1, 0.1), placebo=""),
        {1: "…On the placebo, a model that never saw…"},
    ),
    "one was not tried": (
        said(LOW, ZLIB, FALLEN),
        {1: "No score that was tried on it survives the placebo.…"},
    ),
    "no placebo": (said(LOW), {1: "…it finds 34% (25% to 43%) of the members."}),
    "few shuffles": (
        said(LOW, shuffled("loss", 0.5, 0.4, 0.6), shuffles={"loss": 5}),
        {2: "…never does as well: with so few repeats that may be chance."},
    ),
    "one shuffle": (
        said(LOW, shuffled("loss", 0.6, 0.6, 0.6), shuffles={"loss": 1}),
        {2: "…(AUC 0.71 with the true labels, 0.60)…"},
    ),
    "a weak one and its shuffles": (
        said(WEAK, shuffled("weak", 0.5, 0.4, 0.6), shuffles={"weak": 20}),
        {2: "…no sign that the labels…"},
    ),
    "several and their shuffles": (
        said(
            *(LOW, ZLIB, shuffled("loss", 0.5, 0.4, 0.9), shuffled("zlib", 0.5, 0.4, 0.9)),
            shuffles={"loss": 20, "zlib": 20},
        ),
        {
            2: "…, 0.40 to 0.90 in 20 repeats) and zlib (AUC 0.71 with the true labels, 0.40 to 0.90 in 20 repeats) do "
            "as well at least once: there is no sign that the labels of the reference mattered to them."
        },
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_each_case_has_its_sentences(case):
    found, expected = SAID[case]
    for place, text in expected.items():
        begins, ends, core = not text.startswith("…"), not text.endswith("…"), text.strip("…")
        assert core in found[place]
        assert not begins or found[place].startswith(core)
        assert not ends or found[place].endswith(core)


def test_what_is_not_said():
    for found, words in (
        (said(LOSS), "The best of"),
        (
            said(row("loss", 0.57, 0.51, 0.63), blind(0.52, 0.44, 0.6), lead=(0.05, -0.04, 0.14)),
            "not explained",
        ),
        (said(LOSS, nonmember_groups=60), "is hardly known"),
        (said(LOSS, nonmembers=15, nonmember_groups=15), "is hardly known"),
        (said(LOSS, nonmember_groups=1), "is hardly known"),
        (said(*SURVIVORS)[1:3], "weak"),  # at chance there is nothing to survive
        (said(WEAK, placebo("weak", 0.5, 0.02, -0.01, 0.05)), "placebo"),
        (said(WEAK, shuffled("weak", 0.5, 0.4, 0.51), shuffles={"weak": 20}), "shuffled"),
    ):
        assert words not in " ".join(found)
    assert "is hardly known" in " ".join(said(LOSS, nonmember_groups=12))
    assert len(said(blind(0.7, 0.6, 0.8))) == 1


def test_the_best_is_a_score_and_the_first_of_equals():
    assert best_of([blind(0.7, 0.6, 0.8)]) is None
    assert best_of([row("a", 0.5, 0.4, 0.6), row("b", 0.5, 0.4, 0.6)]).name == "a"
    control = placebo("loss", 0.99, -0.28, -0.3, -0.2)
    found = said(LOW, blind(0.5, 0.45, 0.55), control, shuffled("loss", 0.9, 0.8, 0.95))
    assert found[0].startswith("The score loss has an AUC of 0.71")
    assert not any("The best of" in sentence for sentence in found)
    assert "bag of words, is at chance" in " ".join(found)


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
    found = said(LOW, KEPT, row(name, *auc, kind="blind"))
    assert any("this alone shows no training" in one for one in found) == said_so
    assert any("does not explain that difference" in one for one in found) != said_so


@pytest.mark.parametrize(("value", "word"), [(0.71, "as well at least once"), (0.70, "never does as well")])
def test_true_labels_must_beat_every_shuffle(value, word):
    found = said(LOW, shuffled("loss", 0.5, 0.4, value), shuffles={"loss": 20})
    [sentence] = [s for s in found if "shuffled" in s]
    assert word in sentence
    assert f"loss (AUC 0.71 with the true labels, 0.40 to {value:.2f} in 20 repeats)" in sentence
    assert ("no sign that the labels of the reference mattered to it" in sentence) == (value == 0.71)
