"""One rule for all tests: what leads to each outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pretrace.types import Check, Estimate, Power
from pretrace.verdicts.outcome import Found, conclude

FOUND = Found("model", "the letters", 0.05, 0.01, Estimate(0.3, 0.2, 0.4), "nats a token")
PLANTED = Power(Estimate(0.9, 0.8, 1.0), 10, 20, 1, Estimate(0.5, 0.45, 0.55))
FAILED = Check("blind", "The texts are alike", "failed", "They are not.", "Take others.")


def outcome(found, *checks):
    return conclude(found, checks).outcome


def test_a_small_p_is_consistent_and_a_failed_check_withholds_it():
    assert outcome(FOUND) == "consistent"
    assert outcome(FOUND, FAILED) == "inconclusive"
    assert outcome(FOUND, replace(FAILED, status="passed")) == "consistent"
    assert outcome(replace(FOUND, p=0.05)) == "consistent"


def test_a_large_p_takes_planting_for_an_all_clear():
    above = replace(FOUND, p=0.5)
    assert outcome(above) == "inconclusive"
    assert outcome(replace(above, planted=PLANTED)) == "nothing"
    wide = replace(above, planted=PLANTED, effect=Estimate(0.3, 0.1, 0.46))
    assert outcome(wide) == "inconclusive"


def test_checks_that_only_accusations_need_do_not_withhold_an_all_clear():
    clear = replace(FOUND, p=0.5, planted=PLANTED, accusing=("blind",))
    assert outcome(clear, FAILED) == "nothing"
    assert outcome(replace(clear, accusing=()), FAILED) == "inconclusive"
    assert outcome(replace(clear, p=0.01), FAILED) == "inconclusive"


def test_without_a_test_nothing_is_said():
    assert outcome(replace(FOUND, p=None, planted=PLANTED)) == "inconclusive"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (FOUND, "consistent with training on the letters"),
        (replace(FOUND, p=0.5), "could have missed it"),
        (replace(FOUND, p=0.5, planted=PLANTED), "Nothing was found"),
        (replace(FOUND, p=None), "cannot say whether model was trained on the letters"),
    ],
)
def test_the_statement_says_the_outcome(found, said):
    assert said in conclude(found, ()).statement


def test_advice_names_the_power_and_cures():
    above = conclude(replace(FOUND, p=0.5), [replace(FAILED, status="not run")])
    assert any("--power" in line for line in above.advice)
    assert "Take others." in above.advice
