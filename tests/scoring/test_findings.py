"""Which sentence is said when: every branch, on figures made for it."""

import tomllib
from dataclasses import replace
from pathlib import Path

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

SAID = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", SAID)
def test_each_case_has_its_sentences(case):
    found = eval(SAID[case]["made"])
    for place, text in SAID[case].items():
        if place == "made":
            continue
        begins, ends, core = not text.startswith("…"), not text.endswith("…"), text.strip("…")
        assert core in found[int(place)]
        assert not begins or found[int(place)].startswith(core)
        assert not ends or found[int(place)].endswith(core)


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
