"""Which sentence is said when, and with which numbers: every branch, on figures made for it."""

from dataclasses import replace

import made
import pytest

from pretrace.results.wording import say
from pretrace.scoring import evaluation as findings
from pretrace.scoring.evaluation import BLIND, LENGTH, _sentences
from pretrace.types import Estimate, Evaluation

ANY, TPR = Estimate(0.5, 0.4, 0.6), Estimate(0.34, 0.25, 0.43)


def row(name, value, low, high, kind="score"):
    return made.row(name, Estimate(value, low, high), kind, tpr=TPR, accuracy=ANY)


def blind(value, low, high, name=BLIND):
    return row(name, value, low, high, kind="blind")


def placebo(name, value, *lead):
    return replace(row(name, value, value - 0.05, value + 0.05, "placebo"), lead=Estimate(*lead))


def shuffled(name, value, low, high):
    return row(name, value, low, high, "shuffled")


def named(kind, **numbers):
    """The kind of a sentence and its numbers, once these are seen to fill it."""
    assert say(kind, **numbers)
    return f"{kind.removeprefix('evaluation.')}: {' '.join(f'{k}={v}' for k, v in numbers.items())}"


def said(*rows, lead=None, **changed):
    figures = Evaluation(rows=rows, members=500, nonmembers=500, groups=600, resamples=1000, validation=200)
    counts = {name: changed.pop(name) for name in ("members", "nonmembers", "validation") if name in changed}
    groups = changed.pop("groups", (300, 300))
    more = {"placebo": "pythia", "lead": lambda *_: Estimate(*lead) if lead else None, **changed}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "say", named)
        return [*filter(None, _sentences(replace(figures, **counts), groups, **more))]


LOSS = row("loss", 0.85, 0.81, 0.89)
LOW, ZLIB, PPL = (row(name, 0.71, 0.66, 0.76) for name in ("loss", "zlib", "ppl"))
WEAK = row("weak", 0.52, 0.46, 0.58)
FALLEN, LOST, KEPT = (
    placebo("loss", *values)
    for values in ((0.72, -0.01, -0.03, 0.01), (0.68, 0.03, -0.01, 0.07), (0.6, 0.11, 0.06, 0.16))
)
WRONG = (LOSS, row("zlib", 0.3, 0.25, 0.36), row("ref", 0.5, 0.45, 0.55), row("ppl", 0.5, 0.46, 0.54))
ALL = (LOW, ZLIB, PPL, WEAK, LOST, placebo("zlib", 0.55, 0.16, 0.1, 0.22))
ALL += (placebo("ppl", 0.72, -0.01, -0.03, 0.01), placebo("weak", 0.4, 0.12, 0.05, 0.19))
EIGHT = [row(f"s{k}", 0.7, 0.6, 0.8) for k in range(8)]
FALLS = [placebo(f"s{k}", 0.6, 0.1 + k / 100, 0.05, 0.2) for k in range(8)]

KINDS = [
    (said(LOSS), "best reach"),
    (said(WEAK), "all_chance best"),
    (said(WEAK, row("zlib", 0.51, 0.47, 0.55)), "all_chance best"),
    (said(*WRONG), "best reach wrong chance looks"),
    (said(row("loss", 1.0, 1.0, 1.0)), "best reach no_width"),
    (said(LOSS, blind(0.65, 0.6, 0.7), lead=(0.2, 0.15, 0.25)), "best reach blind.apart blind.lead"),
    (said(LOW, blind(0.52, 0.44, 0.6), lead=(0.05, -0.04, 0.14)), "best reach blind.chance blind.lead"),
    (said(LOSS, blind(0.4, 0.32, 0.48), lead=(0.4, 0.3, 0.5)), "best reach blind.below"),
    (said(WEAK, blind(0.7, 0.6, 0.8), lead=(-0.1, -0.2, 0)), "all_chance best blind.apart"),
    (said(WEAK, blind(0.51, 0.46, 0.56), lead=(0.01, -0.1, 0.1)), "all_chance best blind.chance"),
    (said(blind(0.7, 0.6, 0.8)), "blind.apart"),
    (said(LOSS, notes=("A", "", "B")), "best reach A B"),
    (said(LOSS, blind(0.6, 0.52, 0.68, LENGTH)), "best reach length"),
    (said(LOSS, blind(0.55, 0.49, 0.61, LENGTH)), "best reach"),
    (said(LOW, ZLIB, FALLEN), "best placebo.no reach looks"),
    (said(LOW, LOST), "best placebo.not shown reach"),
    (said(LOW, KEPT), "best placebo.yes reach"),
    (said(*ALL), "best placebo.yes placebo.no placebo.not shown reach chance looks"),
    (said(WEAK, placebo("weak", 0.5, 0.02, -0.01, 0.05)), "all_chance best"),
    (said(LOW, shuffled("loss", 0.5, 0.4, 0.6), shuffles={"loss": 18}), "best reach labels.with"),
    (said(LOW, shuffled("loss", 0.5, 0.4, 0.7)), "best reach labels.with"),
    (said(LOW, shuffled("loss", 0.5, 0.4, 0.71), shuffles={"loss": 20}), "best reach labels.without"),
    (said(WEAK, shuffled("weak", 0.5, 0.4, 0.6), shuffles={"weak": 20}), "all_chance best labels.without"),
    (said(WEAK, shuffled("weak", 0.5, 0.4, 0.51), shuffles={"weak": 20}), "all_chance best"),
    (said(LOSS, groups=(300, 19)), "best reach documents.few documents.rates"),
    (said(LOSS, groups=(300, 20)), "best reach documents.rates"),
    (said(LOSS, groups=(300, 60)), "best reach"),
    (said(LOSS, groups=(19, 300)), "best reach documents.few"),
    (said(LOSS, validation=0), "best reach documents.validation"),
    (said(LOSS, nonmembers=200, members=300), "best reach documents.lopsided"),
]


@pytest.mark.parametrize(("found", "kinds"), KINDS, ids=[kinds for _, kinds in KINDS])
def test_each_case_has_its_sentences(found, kinds):
    assert " ".join(one.partition(":")[0] for one in found) == kinds


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (said(ZLIB, LOSS), "best: name=loss value=0.85 low=0.81 high=0.89"),
        (said(row("loss", 0.52, 0.5011, 0.54)), "value=0.52 low=0.501 high=0.54"),
        (said(row("loss", 0.998, 0.99, 1.0)), "value=0.998 low=0.99 high=1.00"),
        (said(LOSS), "reach: name=loss tpr=34% (25% to 43%)"),
        (said(LOSS, blind(0.6, 0.55, 0.65), lead=(0.05, -0.004, 0.1)), "lead=0.05, −0.004 to 0.10"),
        (said(*WRONG), "wrong: names=zlib (AUC 0.30, 0.25 to 0.36)"),
        (said(*WRONG), "chance: names=ref and ppl"),
        (said(LOSS, blind(0.4, 0.32, 0.48, LENGTH)), "length: word=shorter auc=0.40, 0.32 to 0.48"),
        (said(LOW, KEPT), "name=loss here=0.71 there=0.60 lead=0.11, 0.06 to 0.16"),
        (said(LOW, FALLEN, placebo=""), "placebo=without a name"),
        # a lead on sets that differ as texts shows no training; a blind AUC below chance says nothing
        (said(LOW, KEPT, blind(0.6, 0.52, 0.68)), "meaning=placebo.differ"),
        (said(LOW, KEPT, blind(0.55, 0.49, 0.61)), "meaning=placebo.alike"),
        (said(LOW, KEPT, blind(0.4, 0.32, 0.48)), "meaning=placebo.alike"),
        (said(LOW, KEPT, blind(0.4, 0.32, 0.48, LENGTH)), "meaning=placebo.differ"),
        (said(LOW, shuffled("loss", 0.5, 0.4, 0.7)), "auc=0.71 low=0.40 high=0.70 repeats=0"),
        (said(LOSS, members=400, nonmembers=100), "larger=0.8 side=members"),
        (said(*EIGHT, *FALLS), "here=0.70 there=0.60 lead=0.13, 0.05 to 0.20 and 3 others meaning="),
    ],
)
def test_the_numbers_of_a_sentence(found, words):
    assert words in " ".join(found)


def test_the_best_is_a_score_and_the_first_of_equals():
    assert not [one for one in said(blind(0.7, 0.6, 0.8)) if one.startswith("best")]
    assert any(one.startswith("best: name=a") for one in said(*(row(name, 0.5, 0.4, 0.6) for name in "ab")))
