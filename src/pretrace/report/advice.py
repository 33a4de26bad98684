"""How an inconclusive report ends: which other test could answer, with what is known of this case filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pretrace.report import facts
from pretrace.report.frame import Section, fill
from pretrace.results.verdicts import EXIT_CODES
from pretrace.types import Audit, Situation, Verdict
from pretrace.verdicts.advise import Names, State, advise

_STATES: dict[State, str] = {
    "applies": "can be made",
    "could": "could be made",
    "cannot": "cannot be made with this model",
}


def of_audit(audit: Audit) -> Section | None:
    """The other tests beside an audit without an answer; nothing beside one that has an answer."""
    if audit.outcome != "inconclusive":
        return None
    command, plan = facts.mapping(audit.settings.get("command")), audit.plan
    earlier = next((one.name for one in audit.placebos if one.grade == "own"), "")
    has = Situation(
        documents=plan.documents if plan else len(audit.values),
        unseen=plan.control_documents if plan else len(audit.heldout_values),
        checkpoint=bool(earlier),
        access=_access(facts.of_model(audit, "target")),
    )
    made = "placebo" if audit.design == "placebos" else "controls-placebo" if audit.placebos else "controls"
    named = command.get("placebo")
    if earlier and isinstance(named, list | tuple) and named:
        earlier = str(named[0])  # as it was typed, where several were given the first
    names = _names(command, "heldout", earlier)
    return section(has, _texts(audit.settings), audit.model, names=names, made=made)


def of_verdict(verdict: Verdict) -> Section | None:
    """The same for a flagging, and for a test that needs no earlier checkpoint."""
    if EXIT_CODES[verdict.outcome] != EXIT_CODES["inconclusive"]:
        return None
    target = facts.mapping(facts.mapping(verdict.settings.get("models")).get("target"))
    if verdict.test == "flag":
        has = replace(verdict.situation, access=_access(target))
        names = _names(facts.mapping(verdict.settings.get("command")), "nonmembers", "")
        return section(has, _texts(verdict.settings), verdict.model, names=names, made="flag")
    named = target.get("name")
    model = named if isinstance(named, str) else verdict.model
    return section(verdict.situation, _texts(verdict.settings), model, made=verdict.test)


def section(
    situation: Situation, texts: str, model: str, *, names: Names | None = None, made: str = ""
) -> Section:
    """Every test for this case; `made` names the one of this report."""
    found = advise(situation, texts, model=model, names=names)
    rows = [
        (row, "made in this report" if row.choice.name == made else _STATES[row.state]) for row in found.rows
    ]
    values = {"rows": rows, "made": made}
    return Section("Which other test could answer", "advice", fill("advice.html", values))


def _names(command: Mapping[str, Any], controls: str, earlier: str) -> Names:
    """What the command of this report named."""
    named, found = Names(), command.get(controls)
    return replace(
        named,
        controls=found if found and isinstance(found, str) else named.controls,
        earlier=earlier or named.earlier,
    )


def _texts(settings: Mapping[str, Any]) -> str:
    """The texts as the command named them, else where they came from."""
    corpus = facts.mapping(settings.get("corpus"))
    found = facts.mapping(settings.get("command")).get("texts") or corpus.get("source")
    return found if isinstance(found, str) and found not in ("", "-") else Names().texts


def _access(target: Mapping[str, Any]) -> Literal["weights", "logprobs"]:
    """Whether the weights were at hand; what an earlier version did not record counts as at hand."""
    return "logprobs" if target and not target.get("weights") else "weights"
