"""How an inconclusive report ends: which other test could answer, with what is known of this case filled in."""

from __future__ import annotations

from dataclasses import replace

from pretrace.report import facts
from pretrace.report.frame import Section, fill
from pretrace.results.verdicts import EXIT_CODES
from pretrace.types import Situation, Verdict
from pretrace.verdicts.advise import Names, advise, chance, enough, expected_for, needed, picture
from pretrace.verdicts.audit.data import AuditFigures, figures_of


def of_verdict(verdict: Verdict) -> Section | None:
    """The other tests beside a verdict without an answer; nothing beside one that has an answer."""
    if EXIT_CODES[verdict.outcome] != EXIT_CODES["inconclusive"]:
        return None
    target, command = facts.of_model(verdict, "target"), facts.mapping(verdict.settings.get("command"))
    has, made, model, names = _sized(verdict), verdict.test, verdict.model, Names()
    texts = command.get("texts") or facts.mapping(verdict.settings.get("corpus")).get("source")
    if made == "flag" or (made == "audit" and verdict.figures):
        earlier, controls = "", command.get("controls")
        if made == "audit":
            made, earlier = _audited(figures_of(verdict), command.get("placebo"))
        given = controls if isinstance(controls, str) and controls else names.controls
        names = replace(names, controls=given, earlier=earlier or names.earlier)
        has = replace(has, access="logprobs" if target and not target.get("weights") else "weights")
    elif isinstance(target.get("name"), str):
        model = target["name"]
    known = texts if isinstance(texts, str) and texts not in ("", "-") else names.texts
    return section(has, known, model, names=names, made=made)


def _sized(verdict: Verdict) -> Situation:
    size, known = facts.of_model(verdict, "target").get("parameters"), verdict.situation
    return replace(known, parameters=float(size)) if isinstance(size, int | float) else known


def foreseeable(verdict: Verdict) -> dict[str, object] | None:
    """How likely a test like this finds a single reading, with the picture; nothing beside an answer or a search."""
    if EXIT_CODES[verdict.outcome] != EXIT_CODES["inconclusive"] or not verdict.hypothesis:
        return None
    test = verdict.test
    if test == "audit":
        if not verdict.figures:  # it was refused
            return None
        test = _audited(figures_of(verdict), None)[0]
    if test not in needed() or test == "placebo":
        return None
    has = _sized(verdict)
    found = expected_for(test, has)
    drawn = "\n".join(picture(found)) if found else ""
    return {"sentence": chance(test, has, None if found else verdict.units), "picture": drawn}


def section(
    situation: Situation, texts: str, model: str, *, names: Names | None = None, made: str = ""
) -> Section:
    """Every test for this case; `made` names the one of this report."""
    found = advise(situation, texts, model=model, names=names)
    values = {"rows": found.rows, "made": made, "enough": enough, "situation": situation}
    return Section("Which other test could answer", "advice", fill("advice.html", values), appendix=True)


def _audited(own: AuditFigures, typed: object) -> tuple[str, str]:
    """What an audit is called in the advice, and the first earlier state of the target as it was typed, "" for none."""
    made = "placebo" if own.design == "placebos" else "controls-placebo" if own.placebos else "controls"
    earlier = next((one.name for one in own.placebos if one.grade == "own"), "")
    if earlier and isinstance(typed, list | tuple) and typed:
        return made, str(typed[0])
    return made, earlier
