"""How a test and its controls lead to an outcome."""

from __future__ import annotations

from typing import Any

import pytest

from pretrace.inference.verdict import decide
from pretrace.types import Answer, Check, Estimate

NAMES = ("documents", "placebo", "gap", "halves", "shuffled", "reverse", "copies", "stand-in")


def controls(failed: str = "", power: str = "not run") -> list[Check]:
    made = [
        Check(n, f"T {n}", "failed" if n == failed else "passed", f"W {n}.", f"C {n}." * (n == failed))
        for n in NAMES
    ]
    status: Any = "failed" if failed == "power" else power
    return [*made, Check("power", "T power", status, "W power.", "" if status == "passed" else "C power.")]


def decided(p: float, checks: list[Check], **more: Any) -> Any:
    answer = Answer("pretrace", p, "a test", 50, 100, Estimate(0.02, 0.01, 0.03), "nats a token")
    return decide(answer, checks, level=more.get("level", 0.05), corpus="my posts", model="the model")


def test_a_rejection_with_all_controls_is_consistent_with_training() -> None:
    found = decided(0.004, controls())
    assert found.outcome == "consistent"
    assert "consistent with training" in found.statement
    assert "p = 0.004, at or below the level of 0.05" in found.reasons[0]
    assert "0.0200 nats a token [0.0100, 0.0300]" in found.reasons[0]


def test_no_rejection_shows_nothing_and_says_what_that_is_worth() -> None:
    found = decided(0.3, controls())
    assert found.outcome == "nothing"
    assert "silence says little" in found.reasons[-1]
    assert "silence says little" not in " ".join(decided(0.3, controls(power="passed")).reasons)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("placebo", "stand-in")])
@pytest.mark.parametrize("p", [0.001, 0.4])
def test_a_failed_control_withholds_either_verdict(name: str, p: float) -> None:
    found = decided(p, controls(name))
    assert found.outcome == "inconclusive"
    assert f"T {name}: no. W {name}." in found.reasons
    assert f"C {name}." in found.advice


@pytest.mark.parametrize(
    ("name", "p", "outcome"),
    [
        ("placebo", 0.001, "inconclusive"),
        ("placebo", 0.4, "nothing"),
        ("stand-in", 0.001, "inconclusive"),
        ("power", 0.4, "inconclusive"),
        ("power", 0.001, "consistent"),
    ],
)
def test_some_controls_bear_on_one_answer_alone(name: str, p: float, outcome: str) -> None:
    assert decided(p, controls(name)).outcome == outcome


def test_the_level_counts_as_rejected_and_nothing_ever_proves() -> None:
    assert decided(0.05, controls()).outcome == "consistent"
    assert decided(0.0501, controls()).outcome == "nothing"
    assert decided(0.02, controls(), level=0.01).outcome == "nothing"
    said = " ".join(decided(p, controls(name)).statement for p in (0.01, 0.9) for name in ("", "gap"))
    assert "prove" not in said.lower()
