"""How a test and its controls lead to an outcome."""

from __future__ import annotations

from typing import Any

import pytest

from pretrace.types import Check, Estimate, Power
from pretrace.verdicts.audit.built import ACCUSING, INFORMING
from pretrace.verdicts.audit.power import deciding_power, power_check
from pretrace.verdicts.outcome import Conclusion, ObservedFinding, conclude

NAMES = (
    "documents", "placebo", "gap", "reverse", "copies", "second", "controls", "mixture",
    "spread",
)  # fmt: skip
ONE_SIDED = ("placebo", "second", "controls", "mixture", "spread")


def controls(failed: str = "", power: str = "not run") -> list[Check]:
    made = [
        Check(n, f"T {n}", "failed" if n == failed else "passed", f"W {n}.", f"C {n}." * (n == failed))
        for n in NAMES
    ]
    status: Any = "failed" if failed == "power" else power
    return [*made, Check("power", "T power", status, "W power.", "" if status == "passed" else "C power.")]


POWER = Power(Estimate(0.9, 0.8, 0.95), 40, 25, 2, effect=Estimate(0.09, 0.05, 0.13))
"""Planting moved the target by 0.05 at least."""


def decided(
    p: float, checks: list[Check], *, power: Power | None = None, high: float = 0.03, level: float = 0.05
) -> Conclusion:
    return conclude(found_of(p, Estimate(0.02, 0.01, high), power, level), checks)


def found_of(
    p: float, effect: Estimate | None, power: Power | None, level: float = 0.05, **more: Any
) -> ObservedFinding:
    said = {"accusing": ACCUSING, "informing": INFORMING, "second": True, "noun": "audit", "unit": "document"}
    return ObservedFinding("the model", "my posts", level, p, effect, "nats a token", power, **said, **more)


def test_a_rejection_with_all_controls_is_consistent_with_training() -> None:
    found = decided(0.004, controls())
    assert found.outcome == "consistent"
    assert "consistent with training" in found.statement
    assert "p = 0.004, at or below the level of 0.05" in found.reasons[0]
    assert len(found.reasons) == 1


def test_without_a_power_test_nothing_is_never_said() -> None:
    found = decided(0.9, controls())
    assert found.outcome == "inconclusive"
    assert "could have missed it" in found.statement
    assert "not measured" in found.reasons[-1]
    assert any("--power" in words for words in found.advice)
    served = found_of(0.9, None, None, trainable=False)
    assert not any("--power" in words for words in conclude(served, controls()).advice)


@pytest.mark.parametrize(
    ("high", "outcome"),
    [
        (0.049, "nothing"),
        (0.05, "inconclusive"),
        (0.08, "inconclusive"),
    ],  # planting moved it by 0.05 at least
)
def test_nothing_takes_an_effect_that_planting_excludes(high: float, outcome: str) -> None:
    found = decided(0.3, controls(power="passed"), power=POWER, high=high)
    assert found.outcome == outcome
    assert ("not smaller than what it left" in found.reasons[-1]) == (outcome == "inconclusive")
    assert ("could have been missed" in found.reasons[-1]) == (outcome == "inconclusive")
    assert "25 documents were read twice by a copy of the model" in found.reasons[-1]
    assert ("25 documents were read twice" in found.statement) == (outcome == "nothing")
    assert not any("--power" in words for words in found.advice)


def test_nothing_takes_a_power_of_four_fifths_and_a_bound() -> None:
    weak = Power(Estimate(0.79, 0.7, 0.9), 80, 25, 2, effect=POWER.effect)
    assert decided(0.3, controls("power"), power=weak).outcome == "inconclusive"
    assert decided(0.3, controls(power="passed"), power=POWER, high=0.08).outcome == "inconclusive"
    assert decided(0.3, controls(power="passed"), power=POWER).outcome == "nothing"
    assert decided(0.001, controls("power"), power=POWER).outcome == "consistent"


def test_the_lightest_exposure_that_is_excluded_is_named() -> None:
    light = Power(Estimate(0.3, 0.2, 0.4), 900, 25, 1, Estimate(0.02, 0.005, 0.04), facts={"how": "5e-05"})
    heavy = Power(Estimate(0.95, 0.9, 1.0), 30, 25, 1, Estimate(0.1, 0.08, 0.12), facts={"how": "5e-04"})
    heavier = Power(Estimate(1.0, 0.9, 1.0), 20, 25, 1, Estimate(0.5, 0.4, 0.6), facts={"how": "5e-03"})
    effect = Estimate(0.0, -0.01, 0.03)
    assert deciding_power((light, heavy, heavier), effect) is heavy
    assert deciding_power((light, heavy, heavier), Estimate(0.0, -0.01, 0.2)) is heavier
    assert deciding_power((light, heavy), Estimate(0.0, -0.01, 0.2)) is heavy
    assert deciding_power((light,), effect) is light
    assert deciding_power((), effect) is None
    said = decided(0.3, controls(power="passed"), power=heavy).statement
    assert "read once by a copy of the model (5e-04)" in said
    check = power_check((light, heavy), heavy)
    assert check.status == "passed"
    assert "0.30" in check.words
    assert "0.95" in check.words


def test_without_an_effect_nothing_is_excluded() -> None:
    found = conclude(found_of(0.5, None, POWER), controls(power="passed"))
    assert found.outcome == "inconclusive"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ONE_SIDED])
@pytest.mark.parametrize("p", [0.001, 0.4])
def test_a_failed_control_withholds_either_verdict(name: str, p: float) -> None:
    found = decided(p, controls(name), power=POWER)
    assert found.outcome == "inconclusive"
    assert f"T {name}: no. W {name}." in found.reasons
    assert f"C {name}." in found.advice
    assert "cannot say" in found.statement


@pytest.mark.parametrize("name", ONE_SIDED)
@pytest.mark.parametrize(("p", "outcome"), [(0.001, "inconclusive"), (0.4, "nothing")])
def test_some_controls_bear_on_a_rejection_alone(name: str, p: float, outcome: str) -> None:
    assert decided(p, controls(name), power=POWER).outcome == outcome


def test_the_level_counts_as_rejected_and_nothing_ever_proves() -> None:
    assert decided(0.05, controls()).outcome == "consistent"
    assert decided(0.0501, controls(), power=POWER).outcome == "nothing"
    assert decided(0.02, controls(), power=POWER, level=0.01).outcome == "nothing"
    said = " ".join(decided(p, controls(name)).statement for p in (0.01, 0.9) for name in ("", "gap"))
    assert "prove" not in said.lower()
