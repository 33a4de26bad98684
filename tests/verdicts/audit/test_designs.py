"""The rule that chooses the comparison: every branch, and where it turns."""

from dataclasses import replace

import pytest

from pretrace.baselines import LENGTH
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Check, Estimate, Gap, Power
from pretrace.verdicts.audit.audit import Audit, deciding_power, power_check
from pretrace.verdicts.audit.checks import ALIKE, COMPARABLE, choose
from pretrace.verdicts.outcome import ObservedFinding, conclude

EVERYTHING = {
    "documents": 60, "controls": 60, "placebos": 1, "generator": True, "power": False, "judged": 60,
}  # fmt: skip


def gap(auc, low=0.51, *, name="words"):
    return Gap(name, Estimate(auc, low, 2 * auc - low), 120)


def chosen(*gaps, **changed):
    return choose(gaps, **{**EVERYTHING, **changed})


def test_the_classifier_that_sees_most_decides_and_the_length_never_does():
    assert chosen(gap(0.55), gap(0.7, name="gpt2")).design == "differences"
    assert chosen(gap(0.55), gap(0.99, name=LENGTH)).design == "controls"
    assert chosen(gap(0.75, 0.5)).design == "controls"  # an interval that holds a coin shows nothing
    assert chosen(gap(0.75, 0.5 + 1e-9)).design == "differences"
    assert chosen(gap(0.25, 0.2)).design == "controls"  # below a coin nothing was learnt
    only = chosen(gap(0.55, name=LENGTH))
    assert only.design is None
    assert "too few texts" in only.why
    assert chosen().design is None


@pytest.mark.parametrize(("controls", "auc", "design"), [(0, 0.5, "placebos"), (60, 0.7, "differences")])
def test_documents_left_to_judge_are_counted_where_a_generator_learns_from_some(controls, auc, design):
    assert chosen(gap(auc), controls=controls, judged=FEW_DOCUMENTS).design == design
    short = chosen(gap(auc), controls=controls, judged=FEW_DOCUMENTS - 1)
    assert short.design is None
    assert "leaves 19 documents" in short.why
    assert chosen(gap(0.5), judged=0).design == "controls"  # where nothing is generated


BARE = {"placebos": 0, "generator": False}


@pytest.mark.parametrize(
    ("changed", "auc", "design", "cure"),
    [
        ({}, 0.50, "controls", ""),
        ({}, ALIKE, "controls", ""),  # "up to" 0.60 is alike
        ({}, ALIKE + 1e-9, "differences", ""),
        ({}, COMPARABLE, "differences", ""),
        ({}, COMPARABLE + 1e-9, None, ""),
        ({"documents": FEW_DOCUMENTS}, 0.5, "controls", ""),
        ({"documents": FEW_DOCUMENTS - 1}, 0.5, None, "Add documents"),
        ({"documents": FEW_DOCUMENTS - 1, "controls": 0}, None, None, "Add documents"),
        (BARE, 0.55, "controls", "--placebo"),  # valid without; it would only see more with one
        ({"placebos": 0}, 0.70, None, "--placebo"),
        ({"generator": False}, 0.70, None, "--generator"),
        ({"controls": 0}, None, "placebos", "--controls"),
        ({"controls": 0, "placebos": 0}, None, None, "--controls"),
        ({"controls": 0, "generator": False}, None, None, "--controls"),
    ],
)
@pytest.mark.parametrize("power", [False, True])
def test_the_design_follows_from_what_there_is_and_what_is_missing_is_named(
    changed, auc, design, cure, power
):
    found = chosen(*([] if auc is None else [gap(auc)]), **changed, power=power)
    assert found.design == design
    assert any(cure in words for words in found.cures) or not cure
    accused = ("consistent",) if design in ("controls", "differences") else ()
    assert found.outcomes == (*accused, *(("nothing",) if power and design else ()), "inconclusive")
    if auc is not None and "documents" not in changed:
        assert f"{auc:.2f}" in found.why


POWER = Power(Estimate(0.9, 0.8, 0.95), 40, 25, 2, effect=Estimate(0.09, 0.05, 0.13))
"""Planting moved the target by 0.05 at least."""


def decided(p, failed="", *, power=POWER, high=0.03):
    names = dict.fromkeys((*Audit.accusing, "placebo", "power", "second", "documents", failed), "passed")
    states = {**names, failed: "failed"}
    checks = [Check(n, f"T {n}", now, f"W {n}.", f"C {n}." * (n == failed)) for n, now in states.items() if n]
    said = {"accusing": (*Audit.accusing, "placebo"), "second": True, "noun": "audit", "unit": "document"}
    effect = Estimate(0.02, 0.01, high)
    found = ObservedFinding("the model", "my posts", 0.05, p, effect, power, **said)
    return conclude(found, checks)


BOTH, ACCUSATION, NEITHER = ("inconclusive",) * 2, ("inconclusive", "nothing"), ("consistent", "nothing")


@pytest.mark.parametrize(
    ("names", "outcomes"),
    [
        (("documents", "gap", "reverse", "copies"), BOTH),
        (("placebo", "second", "controls", "mixture", "spread", "kinds"), ACCUSATION),
        (("power", ""), NEITHER),
    ],
)
def test_a_failed_control_withholds_either_verdict_or_an_accusation_alone(names, outcomes):
    for name in names:
        found = [decided(p, name) for p in (0.001, 0.4)]
        assert tuple(one.outcome for one in found) == outcomes, name
        if outcomes[0] == "inconclusive":
            assert f"T {name}: this check failed. W {name}." in found[0].reasons
            assert f"C {name}." in found[0].advice
            assert "cannot say" in found[0].statement


def test_the_lightest_exposure_that_is_excluded_is_named():
    light = Power(Estimate(0.3, 0.2, 0.4), 900, 25, 1, Estimate(0.02, 0.005, 0.04), facts={"how": "5e-05"})
    heavy = Power(Estimate(0.95, 0.9, 1.0), 30, 25, 1, Estimate(0.1, 0.08, 0.12), facts={"how": "5e-04"})
    heavier = Power(Estimate(1.0, 0.9, 1.0), 20, 25, 1, Estimate(0.5, 0.4, 0.6), facts={"how": "5e-03"})
    effect, wide = Estimate(0.0, -0.01, 0.03), Estimate(0.0, -0.01, 0.2)
    for tried, seen, decides in (
        ((light, heavy, heavier), effect, heavy),
        ((light, heavy, heavier), wide, heavier),
        ((light, heavy), wide, heavy),
        ((light,), effect, light),
        ((), effect, None),
    ):
        assert deciding_power(tried, seen) is decides
    assert "read once by a copy of the model (5e-04)" in decided(0.3, power=heavy).statement
    check = power_check((light, heavy), heavy)
    assert check.status == "passed"
    assert "0.30" in check.words
    assert "0.95" in check.words
    low, hopeless = (power_check((one,), one) for one in (light, replace(light, needed=None)))
    assert low.status == "failed"
    assert "about 900 would be needed" in low.cure
    assert "closer placebo" in hopeless.cure
    assert power_check((), None).status == "not run"
