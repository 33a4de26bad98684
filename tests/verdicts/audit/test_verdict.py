"""Which checks of an audit bear on which outcome, and the exposure that decides; the rule is in test_conclusions."""

import pytest

from pretrace.types import Check, Estimate, Power
from pretrace.verdicts.audit.audit import deciding_power, power_check
from pretrace.verdicts.audit.built import ACCUSING, INFORMING
from pretrace.verdicts.outcome import ObservedFinding, conclude

NAMES = (
    "documents", "placebo", "gap", "reverse", "copies", "second", "controls", "mixture", "spread", "power",
)  # fmt: skip
ONE_SIDED = ("placebo", "second", "controls", "mixture", "spread")
POWER = Power(Estimate(0.9, 0.8, 0.95), 40, 25, 2, effect=Estimate(0.09, 0.05, 0.13))
"""Planting moved the target by 0.05 at least."""


def decided(p, failed="", *, power=POWER, high=0.03):
    checks = [
        Check(n, f"T {n}", "failed" if n == failed else "passed", f"W {n}.", f"C {n}." * (n == failed))
        for n in NAMES
    ]
    said = {"accusing": ACCUSING, "informing": INFORMING, "second": True, "noun": "audit", "unit": "document"}
    effect = Estimate(0.02, 0.01, high)
    found = ObservedFinding("the model", "my posts", 0.05, p, effect, "nats a token", power, **said)  # type: ignore[arg-type]
    return conclude(found, checks)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (*ONE_SIDED, "power")])
@pytest.mark.parametrize("p", [0.001, 0.4])
def test_a_failed_control_withholds_either_verdict(name, p):
    found = decided(p, name)
    assert found.outcome == "inconclusive"
    assert f"T {name}: no. W {name}." in found.reasons
    assert f"C {name}." in found.advice
    assert "cannot say" in found.statement


@pytest.mark.parametrize("name", ONE_SIDED)
@pytest.mark.parametrize(("p", "outcome"), [(0.001, "inconclusive"), (0.4, "nothing")])
def test_some_controls_bear_on_a_rejection_alone(name, p, outcome):
    assert decided(p, name).outcome == outcome


def test_the_check_of_the_power_informs_and_the_rule_itself_asks_for_it():
    weak = Power(Estimate(0.79, 0.7, 0.9), 80, 25, 2, effect=POWER.effect)
    assert decided(0.001, "power").outcome == "consistent"
    assert decided(0.3, "power", power=weak).outcome == "inconclusive"
    assert decided(0.3, high=0.05).outcome == "inconclusive"  # planting moved it by as much
    assert decided(0.3).outcome == "nothing"
    assert "25 documents were read twice by a copy of the model" in decided(0.3).statement
    assert (
        "prove"
        not in " ".join(decided(p, name).statement for p in (0.01, 0.9) for name in ("", "gap")).lower()
    )


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
