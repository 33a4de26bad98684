"""From the test and its controls to an outcome, and to words that a court may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrace.types import Answer, Check, Outcome

_WITHHOLD_EITHER = ("documents", "halves", "reverse", "shuffled", "gap", "copies")
_WITHHOLD_REJECTION = (*_WITHHOLD_EITHER, "placebo", "stand-in")
_WITHHOLD_NOTHING = (*_WITHHOLD_EITHER, "power")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome, the statement in one sentence, the reasons and what would help, a sentence each."""

    outcome: Outcome
    statement: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...]


def decide(answer: Answer, checks: Sequence[Check], *, level: float, corpus: str, model: str) -> Verdict:
    """The verdict of a test and its controls; it was settled before looking how they lead to it.

    A p-value at or below the level says "consistent with training" unless a control failed; above it
    "nothing shown" unless a control failed or the power was measured and is low. Otherwise the verdict is
    withheld.
    """
    rejected = answer.p <= level
    deciding = _WITHHOLD_REJECTION if rejected else _WITHHOLD_NOTHING
    failed = [check for check in checks if check.name in deciding and check.status == "failed"]
    outcome: Outcome = "inconclusive" if failed else "consistent" if rejected else "nothing"
    statement = _STATEMENTS[outcome].format(corpus=corpus, model=model)
    reasons = [_finding(answer, rejected, level)]
    reasons += [f"{check.title}: no. {check.words}" for check in failed]
    if outcome == "nothing" and not any(
        check.name == "power" and check.status == "passed" for check in checks
    ):
        reasons.append(
            "Whether the audit would have seen training on these texts was not measured, so silence says little."
        )
    advice = [check.cure for check in failed if check.cure]
    advice += [check.cure for check in checks if check.status == "not run" and check.cure]
    return Verdict(outcome, statement, tuple(reasons), tuple(dict.fromkeys(advice)))


_STATEMENTS = {
    "consistent": "What {model} makes of {corpus} is consistent with training on these texts, or on copies of them.",
    "nothing": "Nothing shown: what {model} makes of {corpus} does not differ from what it makes of texts like them.",
    "inconclusive": "Inconclusive: this audit cannot say whether {model} was trained on {corpus}.",
}


def _finding(answer: Answer, rejected: bool, level: float) -> str:
    word = "at or below" if rejected else "above"
    effect = ""
    if answer.effect is not None:
        found = answer.effect
        effect = f" The effect is {found.value:.4f} {answer.unit} [{found.low:.4f}, {found.high:.4f}]."
    return f"The test gave p = {answer.p:.3g}, {word} the level of {level:g} that was set beforehand.{effect}"
