"""From the test and the checks to an outcome and the sentences that explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrace.auditing.checks import times
from pretrace.types import Answer, Check, Outcome, Power

_WITHHOLD_EITHER = ("documents", "halves", "reverse", "innocent", "shuffled", "gap", "copies")
_WITHHOLD_REJECTION = (*_WITHHOLD_EITHER, "placebo", "controls", "stand-in")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome, the statement in one sentence, the reasons and what would help, a sentence each."""

    outcome: Outcome
    statement: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked: was `model` trained on `corpus`? At this `level`."""

    corpus: str
    model: str
    level: float


def decide(answer: Answer, checks: Sequence[Check], power: Power | None, question: Question) -> Verdict:
    """The verdict of a test and its checks, by a rule that was fixed before any result was seen.

    A p-value at or below the level says "consistent with training" unless a control failed. Above it, "nothing
    shown" takes as much evidence as an accusation: controls that did not fail, and an effect whose upper bound lies
    below what planting the texts predicts. Otherwise the verdict is withheld.
    """
    rejected = answer.p <= question.level
    deciding = _WITHHOLD_REJECTION if rejected else _WITHHOLD_EITHER
    failed = [check for check in checks if check.name in deciding and check.status == "failed"]
    cleared = not rejected and _excluded(answer, power)
    outcome: Outcome = (
        "inconclusive" if failed else "consistent" if rejected else "nothing" if cleared else "inconclusive"
    )
    reasons = [_finding(answer, rejected, question.level)]
    reasons += [f"{check.title}: no. {check.words}" for check in failed]
    if not rejected:
        reasons.append(_bound(answer, power, cleared))
    statement = _statement(outcome, rejected, failed, question)
    advice = [check.cure for check in failed if check.cure]
    if not rejected and power is None:
        advice.append("Run the audit with --power, which measures what it could have seen.")
    advice += [
        check.cure
        for check in checks
        if check.status == "not run" and check.cure and (check.name != "power" and outcome == "inconclusive")
    ]
    return Verdict(outcome, statement, tuple(reasons), tuple(dict.fromkeys(advice)))


def _excluded(answer: Answer, power: Power | None) -> bool:
    """Whether the effect's upper bound lies below what planting the texts predicts."""
    return power is not None and answer.effect is not None and answer.effect.high < power.effect.low


def _statement(outcome: Outcome, rejected: bool, failed: Sequence[Check], question: Question) -> str:
    corpus, model = question.corpus, question.model
    if outcome == "consistent":
        return (
            f"The predictions of {model} on {corpus} are consistent with training on these texts, or on copies of "
            "them."
        )
    if outcome == "nothing":
        return (
            f"Nothing was found: {model} does not know {corpus} better than texts it cannot have seen, and training "
            "like the one that was tried here would have been seen."
        )
    if rejected or failed:
        return f"Inconclusive: this audit cannot say whether {model} was trained on {corpus}."
    return f"Inconclusive: no sign of training on {corpus} was found in {model}, but this audit could have missed it."


def _finding(answer: Answer, rejected: bool, level: float) -> str:
    word = "at or below" if rejected else "above"
    effect = ""
    if answer.effect is not None:
        found = answer.effect
        effect = f" The effect is {found.value:.4f} {answer.unit} [{found.low:.4f}, {found.high:.4f}]."
    return f"The test gave p = {answer.p:.3g}, {word} the level of {level:g} that was set beforehand.{effect}"


def _bound(answer: Answer, power: Power | None, cleared: bool) -> str:
    """What the audit could have missed."""
    if power is None or answer.effect is None:
        return (
            "What this audit could have missed was not measured. A p-value above the level does not show that the "
            "texts were not used."
        )
    planted, high = power.effect, answer.effect.high
    words = (
        f"Reading {power.planted:,} of the documents {times(power.epochs)} moved a copy of the target by "
        f"{planted.value:.4f} [{planted.low:.4f}, {planted.high:.4f}] {answer.unit}. The effect that was found is at "
        f"most {high:.4f}, which is "
    )
    return words + ("less." if cleared else "not less: such training could have been missed.")
