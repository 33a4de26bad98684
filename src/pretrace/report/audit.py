"""The report of an audit: one self-contained HTML file, no script, no network, the same audit the same bytes.

A section gives a heading and markup, or None where the audit has nothing to say on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from pretrace.backends.serving.address import called
from pretrace.report import advice, facts, wording
from pretrace.report.first_page import (
    UNSTATED,
    IdentityRow,
    checks,
    first_values,
    hash_of,
    repeating,
    searched,
    title_of,
    who_asked,
    why_inconclusive,
)
from pretrace.report.frame import ReportPage, Sections, fill, section, titled
from pretrace.report.svg import to_svg
from pretrace.report.verdict_plots import against_chance, draw_own, power_curve, strength
from pretrace.types import AuditFigures, Doubles, Pair, Power, Verdict
from pretrace.verdicts.audit.built import CONTROL, SUSPECT, documents_of, figures_of, pairs_of
from pretrace.verdicts.audit.designs import ALIKE, widest_gap

_ADVICE = 3
"""Sentences of advice that stand here; the test has all."""
_TITLES = ("Nothing was found", "Nothing shown", "Inconclusive")
"""What a statement may begin with, before a colon; it stands above the rest of the statement."""
_PLAIN_GRADES = {
    "own": "an earlier state of the model in question",
    "sibling": "a model of the same kind, trained apart from it",
    "other": "a model of another family",
}
_EXAMPLES, _CONTROL_EXAMPLES = 12, 4


def first_page(audit: Verdict) -> Markup:
    """The answer, who asked and what was compared, the figures, how strong it is, the checks, and what would help."""
    own = figures_of(audit)
    values = first_values(audit, title_of(audit, _TITLES))
    failed, shown = values["failed"], facts.rejected(audit)
    found, others = documents_of(audit, SUSPECT)[1], documents_of(audit, CONTROL)[1]
    base = next(
        (one.name for one in own.placebos if (own.compared_with or "").startswith(f"{one.name} + ")), None
    )
    tuned = base is not None and own.placebo is None
    shows_test = own.procedure == "pretrace"
    values |= {
        "audit": audit,
        "own": own,
        "suspects": len(found),
        "controls": len(others),
        "rows": identity(audit),
        "failed": [(one, "" if audit.outcome == "inconclusive" else words) for one, words in failed],
        "most": _ADVICE,
        "reasons": wording.once(audit.reasons),
        "why": why_inconclusive(audit, [one for one, _ in failed]),
        "withheld": shown and audit.outcome == "inconclusive",
        "shows_test": shows_test,
        "share_ahead": _ahead(found, others),
        "other": base if tuned else own.compared_with,
        "tuned": tuned,
        "told_apart": _told_apart(own),
        "often": wording.strength(audit.p, own.facts) if audit.p is not None else "",
        "sensitivity": own.sensitivity if shown and shows_test else None,
        "leans": wording.beside_leans(own.leans, audit.effect, own.margin),
        "seen": _tried(audit),
    }
    return fill("audit/first.html", values | _drawn(audit, own, found))


def identity(audit: Verdict) -> tuple[IdentityRow, ...]:
    """The date, who asked, the model, those it is compared with, the texts and the control documents."""
    own = figures_of(audit)
    return (
        *who_asked(audit, "audit"),
        IdentityRow(
            "Model in question", *facts.model_as_served(audit.model, facts.of_model(audit, "target"))
        ),
        *_models(audit, own),
        IdentityRow(
            "Suspect texts", _listed(len(documents_of(audit, SUSPECT)[0]), "document"), _hash(audit, "corpus")
        ),
        *_controls(audit, own),
    )


def _told_apart(own: AuditFigures) -> str:
    """How often a program that sees only texts tells a suspect text from a control document, by the classifier that
    decides; empty where it is not known, or there are none."""
    deciding = widest_gap(own.plan.gaps, (ALIKE,)) if own.plan else None
    if own.design == "placebos" or deciding is None:
        return ""
    widest = deciding.auc
    low, high = round(100 * max(0.0, widest.low)), round(100 * min(1.0, widest.high))
    return f"{round(100 * widest.value)} of 100 cases (95% interval {low} to {high})"


def _drawn(audit: Verdict, own: AuditFigures, found: Doubles) -> dict[str, Any]:
    """The dots and the hill, and how many suspect documents lie ahead."""
    [(dots, caption)] = draw_own(audit) or [(Markup(""), "")]
    hill = ""
    if audit.null and own.procedure == "pretrace":
        label = (
            f"A histogram of the {sum(audit.null.counts)} results that chance gave, the result of this audit at "
            f"{strength(audit.null.observed, wording.brief(audit.null.observed, 3))}, and a line at "
            f"{strength(audit.null.critical, wording.brief(audit.null.critical, 3))}."
        )
        hill = to_svg(against_chance(audit.null), name="hill", label=label)
    return {"ahead": int((found > 0).sum()), "dots": dots, "caption": caption, "hill": hill}


def _ahead(found: Doubles, others: Doubles) -> float | None:
    """How often a suspect document lies ahead of a control document, drawn by lot; None where one side is empty."""
    if not len(found) or not len(others):
        return None
    ordered = np.sort(others)
    ranked = np.searchsorted(ordered, found, side="left") + np.searchsorted(ordered, found, side="right")
    return int(ranked.sum()) / (2 * len(others) * len(found))  # a tie counts half


def _models(audit: Verdict, own: AuditFigures) -> Iterator[IdentityRow]:
    used = [placebo for placebo in own.placebos if placebo.grade != "other" or len(own.placebos) == 1]
    if not used:
        yield IdentityRow("Compared with", "no other model")
        return
    how = audit.statements.get("placebo") or UNSTATED
    for placebo in used:
        parts = facts.mapping(audit.settings.get("models")).items()
        found = [facts.mapping(part) for role, part in parts if str(role).startswith("placebo")]
        recorded = {**placebo.facts, **next((one for one in found if one.get("name") == placebo.name), {})}
        name, marks = facts.model_as_served(placebo.name, recorded)
        yield IdentityRow("Compared with", name, ((_PLAIN_GRADES[placebo.grade], False), *marks))
    each = "it" if len(used) == 1 else "each"
    yield IdentityRow(f"How {each} is known not to have seen the texts", how)


def _controls(audit: Verdict, own: AuditFigures) -> Iterator[IdentityRow]:
    if own.design == "placebos":
        yield IdentityRow("Control documents", "none")
        return
    counted = _listed(len(documents_of(audit, CONTROL)[0]), "control document")
    yield IdentityRow("Control documents", counted, _hash(audit, "heldout"))
    yield IdentityRow("Where they come from", audit.statements.get("controls") or UNSTATED)


def _listed(number: int, noun: str) -> str:
    return f"{wording.plural(number, noun)}, each listed in documents.csv"


def _hash(audit: Verdict, part: str) -> tuple[tuple[str, bool], ...]:
    return hash_of(facts.mapping(audit.settings.get(part)))


@section("The test", "test", "audit/test.html")
def deciding_test(audit: Verdict) -> dict[str, Any]:
    """What was set beforehand, what was found, and the sentences that lead from there to the answer."""
    controls, own = len(documents_of(audit, CONTROL)[0]), figures_of(audit)
    sensitivity = own.sensitivity if facts.rejected(audit) else None
    return {"audit": audit, "own": own, "controls": controls, "sensitivity": sensitivity}


@section("The plan", "plan", "audit/plan.html", appendix=True)
def plan(audit: Verdict) -> dict[str, Any] | None:
    """What the audit could answer, settled before any model read the texts; nothing where no plan was recorded."""
    made = figures_of(audit).plan
    return {"plan": made} if made else None


@section(
    lambda audit: f"The placebo{'s' * (len(figures_of(audit).placebos) > 1)}", "placebo", "audit/placebo.html"
)
def placebo(audit: Verdict) -> dict[str, Any]:
    """The models that the target is compared with, their grades, or what it means that there are none."""
    return {"own": figures_of(audit), "said": audit.statements.get("placebo")}


@section("What innocent models showed", "leans", "audit/leans.html")
def leans(audit: Verdict) -> dict[str, Any] | None:
    """What innocent models showed where it was measured, the largest first; nothing where it was not."""
    own = figures_of(audit)
    words = wording.beside_leans(own.leans, audit.effect, own.margin)
    return {"leans": own.leans, "margin": own.margin, "words": words} if own.leans else None


@section("What the audit could have seen", "power", "audit/power.html")
def power(audit: Verdict) -> dict[str, Any] | None:
    """The power at each exposure that was tried, the lightest first, with its curve; or what it means that it was not
    measured. Nothing beside a result without one."""
    tried = _tried(audit)
    if not tried and facts.rejected(audit):
        return None
    shown = [(one, _curve(audit, one, f"power{place or ''}")) for place, one in enumerate(tried)]
    return {"audit": audit, "powers": shown}


def _tried(audit: Verdict) -> tuple[Power, ...]:
    return figures_of(audit).powers or ((audit.planted,) if audit.planted else ())


def _curve(audit: Verdict, found: Power, name: str) -> str:
    words = ", ".join(f"{share:.0%} with {number} documents" for number, share in found.curve)
    label = f"Probability of seeing the planted texts: {words}."
    return to_svg(power_curve(found, audit.units), name=name, label=label) if found.curve else ""


@section("The texts without the model", "gap", "audit/gap.html", appendix=True)
def gap(audit: Verdict) -> dict[str, Any] | None:
    """How far classifiers that saw texts alone tell the two sides apart; nothing where none was asked."""
    own = figures_of(audit)
    return {"own": own} if own.gaps else None


@section("The generated texts", "texts", "audit/texts.html", appendix=True)
def texts(audit: Verdict) -> dict[str, Any] | None:
    """The quality of the generated texts, and a dozen of them to read; nothing where no text was generated."""
    quality = figures_of(audit).quality
    pairs, others = pairs_of(audit, SUSPECT), pairs_of(audit, CONTROL)
    if not pairs and not quality:
        return None
    examples = [(SUSPECT, pair) for pair in _spaced(pairs, _EXAMPLES)]
    examples += [(CONTROL, pair) for pair in _spaced(others, _CONTROL_EXAMPLES)]
    return {"quality": quality, "examples": examples, "total": len(pairs) + len(others)}


@section("Everything that was tried", "variants", "audit/variants.html")
def variants(audit: Verdict) -> dict[str, Any]:
    """Everything else that was tried: further procedures, and audits made before this one."""
    earlier = audit.settings.get("earlier")
    entries = [] if audit.register or not isinstance(earlier, list | tuple) else earlier
    told = [facts.line(entry) if isinstance(entry, Mapping) else str(entry) for entry in entries]
    return {"variants": figures_of(audit).variants, "register": audit.register, "earlier": told}


@section("What this audit cannot say", "limits", "audit/limits.html")
def limits(audit: Verdict) -> dict[str, Any]:
    """What an audit of this design and outcome cannot say."""
    return {"own": figures_of(audit), "power": audit.planted is not None or not facts.rejected(audit)}


SECTIONS: Sections[Verdict] = (
    *(deciding_test, placebo, leans, checks, power, searched, variants, limits),
    plan,
    gap,
    texts,
    repeating,
    advice.of_verdict,
)
"""The sections of the technical part in reading order."""


PAGE = ReportPage(
    lambda audit: titled("Audit", audit.corpus, called(audit.model)),
    SECTIONS,
    lambda audit: {"first": first_page(audit)},
)
render = PAGE.render


def _spaced(pairs: Sequence[Pair], number: int) -> Sequence[Pair]:
    """So many of the pairs, evenly spaced, and so from as many documents as there are; all where there are fewer."""
    if len(pairs) <= number:
        return pairs
    return [pairs[i * len(pairs) // number] for i in range(number)]
