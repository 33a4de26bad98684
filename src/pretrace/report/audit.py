"""The report of an audit: one self-contained HTML file, no script, no network, the same audit the same bytes.

A section gives a heading and markup, or None where the audit has nothing to say on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from pretrace.backends.serving.address import called
from pretrace.report import advice, facts, wording
from pretrace.report import audit_plots as plots
from pretrace.report.chance_plots import against_chance, power_curve, strength
from pretrace.report.facts import searched
from pretrace.report.first_page import (
    UNSTATED,
    IdentityRow,
    checks,
    first_values,
    hash_of,
    repeating,
    title_of,
    who_asked,
    why_inconclusive,
)
from pretrace.report.frame import ReportPage, Section, Sections, fill, titled
from pretrace.report.svg import to_svg
from pretrace.types import AuditFigures, Pair, Power, Verdict
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
    failed, advised = values["failed"], values["advised"]
    other, tuned = _other(own)
    values |= {
        "audit": audit,
        "own": own,
        "suspects": len(documents_of(audit, SUSPECT)[0]),
        "controls": len(documents_of(audit, CONTROL)[0]),
        "rows": identity(audit),
        "failed": [(one, "" if audit.outcome == "inconclusive" else words) for one, words in failed],
        "advice": advised[:_ADVICE],
        "advised": len(advised),
        "reasons": wording.once(audit.reasons),
        "why": why_inconclusive(audit, [one for one, _ in failed]),
        "withheld": facts.rejected(audit) and audit.outcome == "inconclusive",
        "meant": _meant(audit, own),
        "other": other,
        "tuned": tuned,
        "margin": own.margin,
        "told_apart": _told_apart(own),
    }
    return fill("audit/first.html", values | _drawn(audit, own) | _strength(audit, own))


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


def _other(own: AuditFigures) -> tuple[str | None, bool]:
    """The name of the model that the deciding test compares with, and whether it is a copy that the audit tuned: the
    name is then that of the placebo it was made from."""
    other = own.compared_with
    base = next((one.name for one in own.placebos if other and other.startswith(f"{one.name} + ")), None)
    return (base, True) if base and own.placebo is None else (other, False)


def _told_apart(own: AuditFigures) -> str:
    """How often a program that sees only texts tells a suspect text from a control document, by the classifier that
    decides; empty where it is not known, or there are none."""
    deciding = widest_gap(own.plan.gaps, (ALIKE,)) if own.plan else None
    if own.design == "placebos" or deciding is None:
        return ""
    widest = deciding.auc
    low, high = round(100 * max(0.0, widest.low)), round(100 * min(1.0, widest.high))
    return f"{round(100 * widest.value)} of 100 cases (95% interval {low} to {high})"


def _drawn(audit: Verdict, own: AuditFigures) -> dict[str, object]:
    found, others = documents_of(audit, SUSPECT)[1], documents_of(audit, CONTROL)[1]
    ahead = int((found > 0).sum())
    shows_test = own.procedure == "pretrace"
    values: dict[str, object] = {
        "ahead": ahead,
        "behind": len(found) - ahead,
        "per_dot": plots.per_dot(audit),
        "shows_test": shows_test,
        "dots": "",
        "hill": "",
    }
    if len(found):
        label = f"One dot for each of {len(found)} suspect and {len(others)} control documents."
        values["dots"] = to_svg(plots.documents(audit), name="dots", label=label, titles=plots.titles(audit))
    if audit.null and shows_test:
        label = (
            f"A histogram of the {sum(audit.null.counts)} results that chance gave, the result of this audit at "
            f"{strength(audit.null.observed, wording.brief(audit.null.observed, 3))}, and a line at "
            f"{strength(audit.null.critical, wording.brief(audit.null.critical, 3))}."
        )
        values["hill"] = to_svg(against_chance(audit.null), name="hill", label=label)
    return values


def _strength(audit: Verdict, own: AuditFigures) -> dict[str, object]:
    shown = facts.rejected(audit) and own.procedure == "pretrace"
    found = own.sensitivity if shown else None
    return {
        "often": wording.strength(audit.p, own.facts) if audit.p is not None else "",
        "gamma": found and found.gamma_sign,
        "shift": found and found.shift,
        "leans": wording.beside_leans(own.leans, audit.effect, own.margin),
        "seen": own.powers or ((audit.planted,) if audit.planted else ()),
        "left_out": _left_out(audit, own) if shown else "",
    }


def _meant(audit: Verdict, own: AuditFigures) -> str:
    found, others = documents_of(audit, SUSPECT)[1], documents_of(audit, CONTROL)[1]
    if not len(found) or own.procedure != "pretrace":
        return ""
    if not len(others):
        ahead = int((found > 0).sum())
        return f"In {wording.count(ahead)} of the {wording.plural(len(found), 'document')} the true text is ahead."
    ranked = np.searchsorted(np.sort(others), found, side="left") + np.searchsorted(
        np.sort(others), found, side="right"
    )
    share = int(ranked.sum()) / (2 * len(others) * len(found))  # a tie counts half
    return (
        "Of one suspect document and one control document drawn by lot, the suspect one lies ahead in "
        f"{wording.cases(share)}; 50 is no difference."
    )


def _left_out(audit: Verdict, own: AuditFigures) -> str:
    """How many control documents of another kind could not explain the result; empty where that was not recorded."""
    number = own.sensitivity.left_out if own.sensitivity else None
    if number is None:
        return ""
    controls = len(documents_of(audit, CONTROL)[0])
    return f"{wording.count(number)} of the {wording.count(controls)} control documents ({number / controls:.0%})"


def _models(audit: Verdict, own: AuditFigures) -> Iterator[IdentityRow]:
    used = [placebo for placebo in own.placebos if placebo.grade != "other" or len(own.placebos) == 1]
    if not used:
        yield IdentityRow("Compared with", "no other model")
        return
    how = audit.statements.get("placebo") or UNSTATED
    for placebo in used:
        recorded = {**placebo.facts, **facts.of_placebo(audit, placebo)}
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


def deciding_test(audit: Verdict) -> Section:
    """What was set beforehand, what was found, and the sentences that lead from there to the answer."""
    own = figures_of(audit)
    values = {
        "audit": audit,
        "own": own,
        "controls": len(documents_of(audit, CONTROL)[0]),
        "facts": facts.rounded(own.facts),
        "sensitivity": own.sensitivity if facts.rejected(audit) else None,
    }
    return Section("The test", "test", fill("audit/test.html", values))


def plan(audit: Verdict) -> Section | None:
    """What the audit could answer, settled before any model read the texts; nothing where no plan was recorded."""
    made = figures_of(audit).plan
    if made is None:
        return None
    return Section("The plan", "plan", fill("audit/plan.html", {"plan": made}), appendix=True)


def placebo(audit: Verdict) -> Section:
    """The models that the target is compared with, their grades, or what it means that there are none."""
    own = figures_of(audit)
    placebos = [(one, facts.rounded(one.facts)) for one in own.placebos]
    values = {"own": own, "placebos": placebos, "said": audit.statements.get("placebo")}
    title = "The placebos" if len(own.placebos) > 1 else "The placebo"
    return Section(title, "placebo", fill("audit/placebo.html", values))


def leans(audit: Verdict) -> Section | None:
    """What innocent models showed where it was measured, the largest first; nothing where it was not."""
    own = figures_of(audit)
    if not own.leans:
        return None
    values = {
        "leans": sorted(own.leans, key=lambda lean: -lean.value),
        "margin": own.margin,
        "words": wording.beside_leans(own.leans, audit.effect, own.margin),
    }
    return Section("What innocent models showed", "leans", fill("audit/leans.html", values))


def power(audit: Verdict) -> Section | None:
    """The power at each exposure that was tried, the lightest first, with its curve; or what it means that it was not
    measured. Nothing beside a result without one."""
    tried = figures_of(audit).powers or ((audit.planted,) if audit.planted else ())
    if not tried and facts.rejected(audit):
        return None
    shown = [_exposed(audit, one, f"power{i or ''}") for i, one in enumerate(tried)]
    values = {"audit": audit, "powers": shown}
    return Section("What the audit could have seen", "power", fill("audit/power.html", values))


def _exposed(audit: Verdict, found: Power, name: str) -> dict[str, object]:
    words = ", ".join(f"{share:.0%} with {number} documents" for number, share in found.curve)
    label = f"Probability of seeing the planted texts: {words}."
    drawn = power_curve(found, audit.units) if found.curve else None
    facts_beside = {name: value for name, value in found.facts.items() if name not in ("how", "units")}
    plot = to_svg(drawn, name=name, label=label) if drawn else ""
    return {"power": found, "plot": plot, "facts": facts.rounded(facts_beside)}


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
    values = {"quality": quality, "examples": examples, "total": len(pairs) + len(others)}
    return Section("The generated texts", "texts", fill("audit/texts.html", values), appendix=True)


def variants(audit: Verdict) -> Section:
    """Everything else that was tried: further procedures, and audits made before this one."""
    earlier = audit.settings.get("earlier")
    entries = [] if audit.register or not isinstance(earlier, list | tuple) else earlier
    values = {
        "variants": [(one, facts.line(one.facts)) for one in figures_of(audit).variants],
        "register": audit.register,
        "earlier": [facts.line(entry) if isinstance(entry, Mapping) else str(entry) for entry in entries],
    }
    return Section("Everything that was tried", "variants", fill("audit/variants.html", values))


def limits(audit: Verdict) -> Section:
    """What an audit of this design and outcome cannot say."""
    power = audit.planted is not None or not facts.rejected(audit)
    values = {"own": figures_of(audit), "power": power}
    return Section("What this audit cannot say", "limits", fill("audit/limits.html", values))


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
