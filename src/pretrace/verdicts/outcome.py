"""From a p-value and its checks to an outcome, by one rule for every test, fixed before any result was seen.

A p-value at or below the level says "consistent with training" unless a check failed. Above it, "nothing shown" takes
as much evidence as an accusation: no check that failed, and an effect whose upper bound lies below what training a
copy of the target brought. In every other case the verdict is withheld.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.auditing.checks import times
from pretrace.statistics.permutation import PermutationTest
from pretrace.types import Check, Doubles, Estimate, Null, Outcome, Power

BINS = 60


@dataclass(frozen=True, slots=True)
class Found:
    """What a test gave: `p` None where it could not be made, and the effect in its unit. `of` says in a few words what
    the model would have been trained on ("the published texts of letters.jsonl"), `accusing` names checks that only
    withhold "consistent with training", and not "nothing shown"."""

    model: str
    of: str
    level: float
    p: float | None
    effect: Estimate | None = None
    effect_unit: str = ""
    planted: Power | None = None
    accusing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The outcome, the statement in one sentence, the reasons and what would help, a sentence each."""

    outcome: Outcome
    statement: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...]


def conclude(found: Found, checks: Sequence[Check]) -> Conclusion:
    """The verdict of a test and its checks; see the top of this file."""
    rejected = found.p is not None and found.p <= found.level
    failed = [
        check
        for check in checks
        if check.status == "failed" and (rejected or check.name not in found.accusing)
    ]
    cleared = found.p is not None and not rejected and _excluded(found)
    outcome: Outcome = "inconclusive"
    if not failed and rejected:
        outcome = "consistent"
    elif not failed and cleared:
        outcome = "nothing"
    reasons = [_tested(found, rejected)]
    reasons += [f"{check.title}: no. {check.words}" for check in failed]
    if found.p is not None and not rejected:
        reasons.append(_bound(found, cleared))
    advice = [check.cure for check in failed if check.cure]
    if found.p is not None and not rejected and found.planted is None:
        advice.append("Run the test with --power, which measures what it would have seen.")
    if outcome == "inconclusive":
        advice += [check.cure for check in checks if check.status == "not run" and check.cure]
    statement = _statement(found, outcome, withheld=rejected or bool(failed))
    return Conclusion(outcome, statement, tuple(reasons), tuple(dict.fromkeys(advice)))


def null_of(test: PermutationTest, level: float, statistic: str) -> Null:
    """The distribution of a statistic as a histogram, as the reports draw it."""
    return null_histogram(test.null, test.observed, test.critical(level), statistic)


def null_histogram(drawn: Doubles, observed: float, critical: float, statistic: str) -> Null:
    """A histogram of the values that a statistic has for texts that were not used, `drawn` [draws]."""
    low, high = float(drawn.min()), float(drawn.max())
    if not low < high:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(drawn, BINS, (low, high))
    return Null(statistic, observed, critical, tuple(map(float, edges)), tuple(map(int, counts)))


def _excluded(found: Found) -> bool:
    """Whether the effect's upper bound lies below what planting the texts predicts."""
    return (
        found.planted is not None
        and found.effect is not None
        and found.effect.high < found.planted.effect.low
    )


def _statement(found: Found, outcome: Outcome, *, withheld: bool) -> str:
    if outcome == "consistent":
        return f"The predictions of {found.model} are consistent with training on {found.of}, or on copies of them."
    if outcome == "nothing":
        return (
            f"Nothing was found: the predictions of {found.model} show no trace of {found.of}, and training like the "
            "one that was tried here would have been seen."
        )
    if withheld or found.p is None:
        return f"Inconclusive: this test cannot say whether {found.model} was trained on {found.of}."
    return (
        f"Inconclusive: no sign of training on {found.of} was found in {found.model}, but this test could have "
        "missed it."
    )


def _tested(found: Found, rejected: bool) -> str:
    if found.p is None:
        return "No test could be made."
    word, effect = "at or below" if rejected else "above", ""
    if found.effect is not None:
        one = found.effect
        effect = f" The effect is {one.value:.4f} {found.effect_unit} [{one.low:.4f}, {one.high:.4f}]."
    return f"The test gave p = {found.p:.3g}, {word} the level of {found.level:g} that was set beforehand.{effect}"


def _bound(found: Found, cleared: bool) -> str:
    """What the test could have missed."""
    power, effect = found.planted, found.effect
    if power is None or effect is None:
        return (
            "What this test could have missed was not measured. A p-value above the level does not show that the "
            "texts were not used."
        )
    planted = power.effect
    words = (
        f"Reading {power.planted:,} of them {times(power.epochs)} moved a copy of the target by {planted.value:.4f} "
        f"[{planted.low:.4f}, {planted.high:.4f}] {found.effect_unit}. The effect that was found is at most "
        f"{effect.high:.4f}, which is "
    )
    return words + ("less." if cleared else "not less: such training could have been missed.")
