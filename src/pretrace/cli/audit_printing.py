"""What `pretrace audit --plan` prints: what the audit could answer, and what it would cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rich.console import Console

from pretrace.cli.answer import CANNOT_ANSWER, Answer, Plain
from pretrace.types import AuditPlan, Outcome, Situation
from pretrace.verdicts.expected import chance, expected_for, picture


def foreseen(plan: AuditPlan) -> Answer:
    """What an audit could answer; exit code 4 where that is nothing."""
    return Answer(
        say=partial(shown, plan),
        outcome="plan" if plan.design else "cannot answer",
        code=0 if plan.design else CANNOT_ANSWER,
        statement=plan.why,
        own={"plan": plan},
    )


def shown(plan: AuditPlan, console: Console) -> None:
    """Print what an audit could answer, and what it would cost."""
    for line in described(plan):
        console.print(Plain(line), soft_wrap=True)


_OUTCOMES: dict[Outcome, str] = {
    "consistent": "consistent with training (exit code 3)",
    "nothing": "nothing shown (exit code 0)",
    "inconclusive": "inconclusive (exit code 4)",
}
_DESIGNS = {
    "controls": "control documents, compared directly",
    "differences": "control documents, compared by differences",
    "placebos": "placebos, without control documents",
}


def described(plan: AuditPlan) -> Iterator[str]:
    """The plan as lines for a terminal."""
    controls = f", {plan.control_documents:,} control documents" if plan.control_documents else ""
    yield f"Texts: {plan.documents:,} documents, {plan.snippets:,} snippets{controls}"
    yield from plan.notes
    for placebo in plan.placebos:
        yield f"Placebo: {placebo.name} ({placebo.grade}): {placebo.words}"
    if plan.design is None:
        yield f"This audit could not have answered. {plan.why}"
    else:
        yield f"Design: {_DESIGNS[plan.design]}. {plan.why}"
        yield f"Possible outcomes: {'; '.join(_OUTCOMES[one] for one in plan.outcomes)}"
        if "nothing" not in plan.outcomes:
            yield 'It cannot end with "nothing shown": that takes --power, which measures what it could have seen.'
        yield from expected_of(plan)
        yield f"Work: {plan.passes:,} passes of a text through a model{_time(plan.seconds)}"
    for cure in plan.cures:
        yield f"What would help: {cure}"


def expected_of(plan: AuditPlan) -> Iterator[str]:
    """How likely this audit finds what was read, and the documents that it takes; nothing without control documents."""
    has = Situation(documents=plan.documents, unseen=plan.control_documents, parameters=plan.parameters)
    found = expected_for("controls", has)
    if found is not None:
        yield chance("controls", has)
        yield from picture(found)


def _time(seconds: float | None) -> str:
    """A guess of the time, to an order of magnitude."""
    if seconds is None:
        return ""
    if seconds < 10:
        return ", some seconds"
    return f", about {round(seconds)} seconds" if seconds < 90 else f", about {round(seconds / 60)} minutes"
