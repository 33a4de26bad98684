"""What the report of an audit has of its own: its first page, its sections, and its documents as dots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pretrace.registry import test_pages
from pretrace.report import verdict
from pretrace.report.figures import TestFigure, draw_dots
from pretrace.report.frame import Section, of_model, section
from pretrace.results import wording
from pretrace.results.folder import mapping
from pretrace.results.wording import plural, say, sentences_of
from pretrace.types import Estimate, Pair, Power, Verdict
from pretrace.verdicts.audit.checks import ALIKE, widest_gap
from pretrace.verdicts.audit.data import CONTROL, SUSPECT, AuditFigures, documents_of, figures_of, pairs_of

_EXAMPLES = {SUSPECT: 12, CONTROL: 4}
"""Generated texts of either side that are shown to read."""


def _part(
    title: str | Callable[[Verdict], str],
    anchor: str,
    found: Callable[[AuditFigures], object] = lambda own: True,
    *,
    appendix: bool = False,
) -> Callable[[Verdict], Section | None]:
    """A section of what an audit recorded, where something was `found`."""

    def values(audit: Verdict) -> dict[str, Any] | None:
        own, rejected = figures_of(audit), verdict.rejected(audit)
        if not found(own):
            return None
        return {
            "audit": audit,
            "own": own,
            "controls": len(documents_of(audit, CONTROL)[0]),
            "sensitivity": own.sensitivity if rejected else None,
            "leans": _beside_leans(own.leans, audit.effect, own.margin),
        }

    return section(title, anchor, f"audit/{anchor}.html", appendix=appendix)(values)


def _beside_leans(leans: Sequence[Mapping[str, Any]], effect: Estimate | None, margin: float) -> str:
    """The effect, with the margin that was taken off, beside what innocent models showed; empty without these."""
    if not leans or effect is None:
        return ""
    below = sum(lean["value"] < effect.value + margin for lean in leans)
    which = "any" if below == len(leans) else wording.count(below) if below else "none"
    return f"larger than {which} of the {plural(len(leans), 'lean')} that were measured on innocent models"


@section("The generated texts", "texts", "audit/texts.html", appendix=True)
def _generated(audit: Verdict) -> dict[str, Any] | None:
    """A dozen of the generated texts to read; nothing where no text was generated."""
    pairs = {side: pairs_of(audit, side) for side in _EXAMPLES}
    if not pairs[SUSPECT]:
        return None
    examples: list[tuple[str, Pair]] = []
    for side, some in pairs.items():  # evenly spaced, and so from as many documents as there are
        number = min(_EXAMPLES[side], len(some))
        examples += [(side, some[i * len(some) // number]) for i in range(number)]
    return {"examples": examples, "total": sum(map(len, pairs.values()))}


@section("Everything that was tried", "variants", "audit/variants.html")
def _variants(audit: Verdict) -> dict[str, Any]:
    """Everything else that was tried: further procedures, and other tests of these texts."""
    return {"variants": figures_of(audit).variants, "register": audit.register}


@test_pages.add("audit")
class _AuditPage(verdict.TestPage):
    """Suspect documents and what they were compared with."""

    kind, made, template = "Audit", "audit", "audit/first.html"
    needs_figures = True
    every = (
        _part("The test", "test"),
        _part(lambda audit: f"The placebo{'s' * (len(figures_of(audit).placebos) > 1)}", "placebo"),
        _part("What innocent models showed", "leans", lambda own: own.leans),
        *(verdict.checked, verdict.power, _variants),
        _part("What this audit cannot say", "limits"),
        _part("The plan", "plan", lambda own: own.plan, appendix=True),
        _part("The texts without the model", "gap", lambda own: own.gaps, appendix=True),
        *(_generated, verdict.repeating, verdict.other_tests),
    )

    @classmethod
    def values(cls, audit: Verdict, shared: Mapping[str, Any]) -> dict[str, Any]:
        own, shows_test = figures_of(audit), figures_of(audit).procedure == "pretrace"
        found, others = documents_of(audit, SUSPECT)[1], documents_of(audit, CONTROL)[1]
        compared = own.compared_with
        base = next((one.name for one in own.placebos if (compared or "").startswith(f"{one.name} + ")), None)
        tuned, ahead = base is not None and own.placebo is None, None
        if len(found) and len(others):  # of a document of each side, drawn at random; a tie counts half
            below, up_to = (np.searchsorted(np.sort(others), found, side=side) for side in ("left", "right"))
            ahead = int((below + up_to).sum()) / (2 * len(others) * len(found))
        deciding = widest_gap(own.plan.gaps, ALIKE) if own.plan and own.design != "placebos" else None
        apart = ""
        if deciding is not None:  # how often a program that sees only texts tells both sides apart
            widest = deciding.auc
            low, high = round(100 * max(0.0, widest.low)), round(100 * min(1.0, widest.high))
            apart = f"{round(100 * widest.value)} of 100 cases (95% interval {low} to {high})"
        return {
            "own": own,
            "suspects": len(found),
            "controls": len(others),
            "reasons": audit.reasons,
            "shows_test": shows_test,
            "share_ahead": ahead,
            "ahead": int((found > 0).sum()),
            "other": base if tuned else compared,
            "tuned": tuned,
            "told_apart": apart,
            "sensitivity": own.sensitivity if verdict.rejected(audit) and shows_test else None,
            "leans": _beside_leans(own.leans, audit.effect, own.margin),
            "seen": cls.exposures(audit),
        }

    @staticmethod
    def exposures(audit: Verdict) -> Sequence[Power]:
        return figures_of(audit).powers or verdict.TestPage.exposures(audit)

    @classmethod
    def identify(cls, audit: Verdict, models: Mapping[str, Any]) -> Iterator[verdict.IdentityRow]:
        own, grades = figures_of(audit), sentences_of("report.grades")
        yield verdict.identify_model("Model in question", audit.model, of_model(audit, "target"))
        used = [placebo for placebo in own.placebos if placebo.grade != "other" or len(own.placebos) == 1]
        found = [mapping(part) for role, part in models.items() if str(role).startswith("placebo")]
        for placebo in used if own.design == "placebos" else sorted(own.placebos, key=used.__contains__):
            facts = {**placebo.facts, **next((one for one in found if one.get("name") == placebo.name), {})}
            label = "Compared with" if placebo in used else "Second model"
            yield verdict.identify_model(label, placebo.name, facts, grades[placebo.grade])
        said = audit.statements.get
        if used:
            label = f"How {'it' if len(used) == 1 else 'each'} is known not to have seen the texts"
            yield label, said("placebo") or verdict.UNSTATED, ()
        else:
            yield "Compared with", "no other model", ()
        rows = [("Suspect texts", SUSPECT, "document", "corpus")]
        if own.design != "placebos":
            rows.append(("Control documents", CONTROL, "control document", "heldout"))
        for label, side, unit, part in rows:
            counted = f"{plural(len(documents_of(audit, side)[0]), unit)}, each listed in documents.csv"
            yield label, counted, verdict.hash_of(audit, part)
        if own.design == "placebos":
            yield "Control documents", "none", ()
        else:
            yield "Where they come from", said("controls") or verdict.UNSTATED, ()

    @staticmethod
    def draw(audit: Verdict) -> TestFigure | None:
        """One dot a document: suspect ones over control documents, or suspect ones alone to the left and right of 0."""
        own, found = figures_of(audit), {side: documents_of(audit, side) for side in (SUSPECT, CONTROL)}
        suspects, controls = (values for _, values in found.values())
        if not len(suspects):
            return None
        sides = {side: one for side, one in found.items() if len(one[1])}
        label, ends = _axis(own)
        figure, titles, each = draw_dots(sides, label, ends, middle="no sign of training")
        dot = say(f"report.drawn.{'dot' if each == 1 else 'dots'}", unit="document", each=each)
        if own.design != "placebos":
            caption = say("report.drawn.sides", dot=dot)
        else:
            ahead, fewer = int((suspects > 0).sum()), say("report.drawn.fewer") if own.margin else ""
            numbers: Any = {"dot": dot, "ahead": ahead, "behind": len(suspects) - ahead, "fewer": fewer}
            caption = say("report.drawn.ahead", than="the margin" if own.margin else "nothing", **numbers)
        label = say("report.drawn.documents", suspects=len(suspects), controls=len(controls))
        return TestFigure(figure, label, caption, titles)


def _axis(own: AuditFigures) -> tuple[str, tuple[str, str]]:
    """The label of the axis of values, and the words at its ends."""
    beyond = bool(own.compared_with)
    if own.design == "controls":
        more = "how much better the model knows a document than the other model does"
        return more if beyond else "how well the model knows a document", ("← less well", "better →")
    label = "how much more the model prefers the true text than the other model does"
    label = label if beyond else "how much the model prefers the true text"
    if own.design == "differences":
        return label, ("← less", "more →")
    if own.margin:
        return f"{label}, less the margin", ("← no more than the margin", "more than the margin →")
    return label, ("← imitation expected better", "true ending expected better →")
