"""The report of an audit: one self-contained HTML file, no script, no network, the same audit the same bytes.

A section gives a heading and markup, or None where the audit has nothing to say on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pretrace.backends.serving.address import called
from pretrace.report import advice, facts, wording
from pretrace.report.audit_first import first_page
from pretrace.report.chance_plots import power_curve
from pretrace.report.facts import searched
from pretrace.report.frame import ReportPage, Section, Sections, fill, titled
from pretrace.report.svg import to_svg
from pretrace.types import Answer, AuditFigures, Design, Outcome, Pair, Power, Verdict
from pretrace.verdicts.audit.built import CONTROL, SUSPECT, documents_of, figures_of, pairs_of

_DESIGNS: dict[Design, str] = {
    "controls": "control documents, compared directly",
    "differences": "control documents, compared by differences between true and generated text",
    "placebos": "true and generated text, compared with placebos and without control documents",
}
_OUTCOMES: dict[Outcome, str] = {
    "consistent": "consistent with training",
    "nothing": "nothing shown",
    "inconclusive": "inconclusive",
}
_GRADES = {
    "own": "an earlier state of the target: the best kind, if from shortly before the texts can have come in",
    "sibling": "same architecture and tokenizer, other weights: a fair kind",
    "other": "another family: the weakest kind",
}
_PARTS = {
    "corpus": "The texts",
    "heldout": "The control documents",
    "snippets": "How the texts were cut",
    "sampling": "How the generator wrote",
    "software": "Software",
    "timings": "Time taken",
}
_EXAMPLES, _CONTROL_EXAMPLES = 12, 4


def deciding_test(audit: Verdict) -> Section:
    """What was set beforehand, what was found, and the sentences that lead from there to the answer."""
    own = figures_of(audit)
    effect, spread = wording.effect(audit.effect)
    values = {
        "audit": audit,
        "own": own,
        "level": wording.share(audit.level),
        "p": _p(audit),
        "effect": effect,
        "spread": spread,
        "controls": len(documents_of(audit, CONTROL)[0]),
        "facts": facts.rounded(own.facts),
        "observed": audit.null and wording.brief(audit.null.observed),
        "critical": audit.null and wording.brief(audit.null.critical),
        "answers": [_against(one) for one in own.answers],
        **_sensitivity(audit, own),
    }
    return Section("The test", "test", fill("audit/test.html", values))


def plan(audit: Verdict) -> Section | None:
    """What the audit could answer, settled before any model read the texts; nothing where no plan was recorded."""
    made = figures_of(audit).plan
    if made is None:
        return None
    values = {
        "plan": made,
        "design": _DESIGNS[made.design] if made.design else "none: no verdict was possible",
        "outcomes": ", ".join(_OUTCOMES[one] for one in made.outcomes),
    }
    return Section("The plan", "plan", fill("audit/plan.html", values), appendix=True)


def placebo(audit: Verdict) -> Section:
    """The models that the target is compared with, their grades, or what it means that there are none."""
    own = figures_of(audit)
    values = {
        "own": own,
        "placebos": [(one, facts.rounded(one.facts)) for one in own.placebos],
        "grades": _GRADES,
        "other": own.compared_with,
        "tuned": own.compared_with is not None and own.placebo is None,
        "said": audit.statements.get("placebo"),
    }
    title = "The placebos" if len(own.placebos) > 1 else "The placebo"
    return Section(title, "placebo", fill("audit/placebo.html", values))


def leans(audit: Verdict) -> Section | None:
    """What innocent models showed where it was measured, the largest first; nothing where it was not."""
    own = figures_of(audit)
    if not own.leans:
        return None
    values = {
        "leans": sorted(own.leans, key=lambda lean: -lean.value),
        "margin": wording.brief(own.margin, 3),
        "words": wording.beside_leans(own.leans, audit.effect, own.margin),
    }
    return Section("What innocent models showed", "leans", fill("audit/leans.html", values))


def checks(audit: Verdict) -> Section | None:
    """Each check with its figures, in the order in which they were made; nothing where there were none."""
    made = [(check, facts.line(check.figures)) for check in facts.checks(audit)]
    return Section("The checks", "checks", fill("audit/checks.html", {"checks": made})) if made else None


def power(audit: Verdict) -> Section | None:
    """The power at each exposure that was tried, the lightest first, with its curve; or what it means that it was not
    measured. Nothing beside a result without one."""
    tried = figures_of(audit).powers or ((audit.planted,) if audit.planted else ())
    if not tried and facts.rejected(audit):
        return None
    shown = [_exposed(audit, one, f"power{i or ''}") for i, one in enumerate(tried)]
    values = {"audit": audit, "powers": shown, "level": wording.share(audit.level)}
    return Section("What the audit could have seen", "power", fill("audit/power.html", values))


def _exposed(audit: Verdict, found: Power, name: str) -> dict[str, object]:
    """One exposure, its power and its curve."""
    words = ", ".join(f"{share:.0%} with {number} documents" for number, share in found.curve)
    label = f"Probability of seeing the planted texts: {words}."
    drawn = power_curve(found, audit.units) if found.curve else None
    facts_beside = {name: value for name, value in found.facts.items() if name not in ("how", "units")}
    return {
        "power": found,
        "how": found.facts.get("how", ""),
        "times": wording.times(found.epochs),
        "plot": to_svg(drawn, name=name, label=label) if drawn else "",
        "effect": wording.figure(found.effect),
        "spread": wording.spread(found.effect),
        "facts": facts.rounded(facts_beside),
    }


def gap(audit: Verdict) -> Section | None:
    """How far classifiers that saw texts alone tell the two sides apart; nothing where none was asked."""
    own = figures_of(audit)
    if not own.gaps:
        return None
    return Section("The texts without the model", "gap", fill("audit/gap.html", {"own": own}), appendix=True)


def texts(audit: Verdict) -> Section | None:
    """The quality of the generated texts, and a dozen of them to read; nothing where no text was generated."""
    quality = figures_of(audit).quality
    pairs, others = pairs_of(audit, SUSPECT), pairs_of(audit, CONTROL)
    if not pairs and not quality:
        return None
    examples = [(SUSPECT, pair) for pair in _spaced(pairs, _EXAMPLES)]
    examples += [(CONTROL, pair) for pair in _spaced(others, _CONTROL_EXAMPLES)]
    values = {
        "quality": [(row.measure, _brief(row.true), _brief(row.generated), row.words) for row in quality],
        "examples": examples,
        "total": len(pairs) + len(others),
    }
    return Section("The generated texts", "texts", fill("audit/texts.html", values), appendix=True)


def variants(audit: Verdict) -> Section:
    """Everything else that was tried: further procedures, and audits made before this one."""
    earlier = audit.settings.get("earlier")
    entries = [] if audit.register or not isinstance(earlier, list | tuple) else earlier
    values = {
        "variants": [
            (one, wording.p_value(one.p), *wording.effect(one.effect), facts.line(one.facts))
            for one in figures_of(audit).variants
        ],
        "register": audit.register,
        "earlier": [facts.line(entry) if isinstance(entry, Mapping) else str(entry) for entry in entries],
    }
    return Section("Everything that was tried", "variants", fill("audit/variants.html", values))


def limits(audit: Verdict) -> Section:
    """What an audit of this design and outcome cannot say."""
    own = figures_of(audit)
    values = {
        "design": own.design,
        "other": own.compared_with,
        "own": own.placebo is not None and own.placebo.grade == "own",
        "power": audit.planted is not None or not facts.rejected(audit),
    }
    return Section("What this audit cannot say", "limits", fill("audit/limits.html", values))


def repeating(audit: Verdict) -> Section | None:
    """A table for each part of the settings; nothing where none were recorded."""
    told = {key: value for key, value in audit.settings.items() if key != "earlier"}
    if isinstance(told.get("timings"), Mapping):
        told["timings"] = _timed(told["timings"])
    parts = facts.parts(told, "This audit", _PARTS)
    if not parts:
        return None
    values = {"parts": parts}
    return Section("To repeat this audit", "repeat", fill("audit/repeating.html", values), appendix=True)


SECTIONS: Sections[Verdict] = (
    *(deciding_test, placebo, leans, checks, power, searched, variants, limits),
    plan,
    gap,
    texts,
    repeating,
    advice.of_verdict,
)
"""The sections of the technical part in reading order. One of your own: `write(audit, path, (*SECTIONS, mine))`."""


def heading(audit: Verdict) -> str:
    """What the report is called."""
    return titled("Audit", audit.corpus, called(audit.model))


PAGE = ReportPage(heading, SECTIONS, lambda audit: {"first": first_page(audit)})
render, write = PAGE.render, PAGE.write


def _against(answer: Answer) -> tuple[str, str, str, str]:
    """The test against one placebo: its name, p, the effect and its interval."""
    name = answer.facts.get("placebo")
    shown = name if isinstance(name, str) else "none"
    return (shown, wording.p_value(answer.p), *wording.effect(answer.effect))


def _p(audit: Verdict) -> str:
    return wording.p_value(audit.p) if audit.p is not None else ""


def _sensitivity(audit: Verdict, own: AuditFigures) -> dict[str, object]:
    """The bounds on hidden bias as rows, and what they mean in a sentence."""
    found, controls = own.sensitivity, len(documents_of(audit, CONTROL)[0])
    if found is None or not facts.rejected(audit):
        return {"sensitivity": [], "sensitivity_words": ""}
    if controls:
        shift = "none" if found.shift is None else f"{wording.brief(found.shift, 3)} {audit.effect_unit}"
        words = (
            "Largest shift: so much can be taken off every suspect document, for whatever reason it lies higher than "
            "control documents, before the test no longer rejects."
        )
        rows = [("Largest shift", shift)]
        if found.left_out is not None:
            rows.append(("Control documents left out", f"{found.left_out:,} of {controls:,}"))
            words += (
                " Control documents left out: so many, those with the lowest values first, can be taken away before "
                "the test no longer rejects. A few documents of another kind lie there."
            )
        return {"sensitivity": rows, "sensitivity_words": words}
    bounds = (("Γ* of the sign test", found.gamma_sign), ("Γ* of Wilcoxon’s test", found.gamma_wilcoxon))
    rows = [(name, "does not reject" if one is None else wording.brief(one, 3)) for name, one in bounds]
    words = (
        "Rosenbaum’s Γ*: the odds at which a document that was not used may lie above 0, for whatever reason, before "
        "that test no longer rejects. At 1 any bias explains the result; at 3 it stands even if three in four such "
        "documents lie above 0."
    )
    return {"sensitivity": rows, "sensitivity_words": words}


def _spaced(pairs: Sequence[Pair], number: int) -> Sequence[Pair]:
    """So many of the pairs, evenly spaced, and so from as many documents as there are; all where there are fewer."""
    if len(pairs) <= number:
        return pairs
    return [pairs[i * len(pairs) // number] for i in range(number)]


def _brief(value: float | None) -> str:
    return "–" if value is None else wording.brief(value, 3)


def _timed(timings: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds as people say them, and all of them together."""
    seconds = {
        key: value
        for key, value in timings.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    }
    said = {**timings, **{key: wording.duration(value) for key, value in seconds.items()}}
    return said | ({"all": wording.duration(sum(seconds.values()))} if len(seconds) > 1 else {})
