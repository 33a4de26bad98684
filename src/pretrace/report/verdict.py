"""The report of a verdict: one self-contained HTML file, no script, no network, the same result the same bytes.

Page one is for everybody: the answer, who asked, what was compared, how far it can be trusted, the checks, what would
help. The sentences come with the result. Behind it stands a technical part, made of sections: each gives a heading and
markup, or None where the result has nothing to say on it. Audits, flaggings and all other tests differ in the template
of page one and in their sections; figures are in `report/verdict_plots.py`, and what single tests have of their own in
their `TestPage`.
"""

from __future__ import annotations

from calendar import month_name
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from pretrace.backends.serving.address import called
from pretrace.report import advice, facts, wording
from pretrace.report.frame import ReportPage, Sections, fill, section, speaking, titled
from pretrace.report.svg import to_svg
from pretrace.report.verdict_plots import against_chance, draw_own, p_values, page_of, power_curve, strength
from pretrace.report.wording import named, plural
from pretrace.results.wording import say, sentences_of
from pretrace.types import Bools, Doubles, Pair, Power, Verdict
from pretrace.verdicts.audit.built import CONTROL, SUSPECT, documents_of, figures_of, pairs_of
from pretrace.verdicts.audit.checks import ALIKE, widest_gap
from pretrace.verdicts.flag.built import expected, set_test, tried, whole
from pretrace.verdicts.outcome import SECOND

UNSTATED = "not stated"
_GAVE = "The test gave p ="
"""How the reason begins that says what the test found."""
MOST_FOUND = 50
"""Texts that the section on a search names; the result has up to 1,000, and the folder of the search all."""
MOST_ROWS, _MOST_FLAGS = 50, 100
"""Rows of a table, and texts of a flagging, in the report; its csv files have all."""
_MOST_TESTS = 5
"""Earlier tests of the same texts that page one names."""
_EXAMPLES = {SUSPECT: 12, CONTROL: 4}
"""Generated texts of either side that are shown to read."""
_TITLES = {
    "audit": ("Nothing was found", "Nothing shown", "Inconclusive"),
    "verdict": ("Nothing was found", "Inconclusive", "Found", "Not found"),
}
"""What a statement may begin with, before a colon; it stands above the rest of the statement."""


class IdentityRow(NamedTuple):
    """A row: what it is about, what is recorded, and smaller lines beneath it, each with whether it is a code."""

    label: str
    value: str
    notes: tuple[tuple[str, bool], ...] = ()


def kind_of(verdict: Verdict) -> str:
    """Whose page a verdict has: "audit", "flags", or "verdict" for every other test and for a refused audit."""
    return {"audit": "audit", "flag": "flags"}.get(verdict.test, "verdict") if verdict.figures else "verdict"


def first_page(verdict: Verdict) -> Markup:
    """The answer, who asked, what was compared, how far it can be trusted, the checks, what would help, the figures."""
    kind, made = kind_of(verdict), facts.checks(verdict)
    failed = [(one, wording.plain(one.words)) for one in made if one.status == "failed"]
    others = [one for one in made if one.status != "failed"]
    withheld = facts.rejected(verdict) and verdict.outcome == "inconclusive"
    told = [f"{check.title}: no. {words}" for check, words in failed]
    reasons = [one for one in verdict.reasons if not any(one.startswith(check.title) for check, _ in failed)]
    if facts.rejected(verdict):  # then what the test gave is no reason
        kept = [one for one in reasons if not one.startswith(_GAVE)]
        reasons = kept if kept or told else reasons
    values: dict[str, Any] = {
        kind if kind != "flags" else "flagged": verdict,
        "title": next((one for one in _TITLES.get(kind, ()) if verdict.statement.startswith(f"{one}:")), ""),
        "failed": failed,
        "others": sorted(others, key=lambda one: one.status == "not run"),
        "why": tuple(told[:3]) + wording.once(reasons),
        "withheld": withheld,
        "advised": wording.once(verdict.advice),
        "served": (*facts.served(verdict.settings), *facts.sentences(verdict.settings)),
        "foreseen": advice.foreseeable(verdict) if verdict.outcome != "refused" else None,
        "p": wording.p_value(verdict.p) if verdict.p is not None else "",
        "rows": tuple(identity(verdict)),
        "drawn": () if kind == "audit" else drawn(verdict),
    }
    if kind == "audit":
        values |= _of_audit(verdict, failed)
    elif kind == "flags":
        numbers = _numbers(verdict)
        flags = f"{wording.count(numbers['number'])} of {plural(numbers['asked'], numbers['unit'])} flagged"
        values |= numbers | {
            "title": sentences_of("report.flag_titles").get(verdict.outcome, flags),
            "css": sentences_of("report.flag_classes")[verdict.outcome],
            "expected": expected(numbers["number"], verdict.figures["fdr"]),
            "whole": " ".join(whole(set_test(verdict), verdict.units)),
            "tried": " ".join(tried(verdict.outcome, verdict.planted)),
        }
    else:
        values |= {
            "why": values["why"] if withheld else (),
            "reasons": wording.once(verdict.reasons, verdict.trust),
            "second": next((check for check in verdict.checks if check.name == SECOND), None),
            "often": wording.often(verdict.p) if verdict.p is not None and not withheld else "",
        }
    title = values["title"]
    values["statement"] = wording.after(verdict.statement, title and f"{title}: ")
    return fill(f"{kind}/first.html", values)


def _of_audit(audit: Verdict, failed: Sequence[tuple[Any, str]]) -> dict[str, Any]:
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
    [(dots, caption)] = draw_own(audit) or [(Markup(""), "")]
    return {
        "own": own,
        "suspects": len(found),
        "controls": len(others),
        "failed": [(one, "" if audit.outcome == "inconclusive" else words) for one, words in failed],
        "reasons": wording.once(audit.reasons),
        "shows_test": shows_test,
        "share_ahead": ahead,
        "ahead": int((found > 0).sum()),
        "other": base if tuned else compared,
        "tuned": tuned,
        "told_apart": apart,
        "often": wording.strength(audit.p, own.facts) if audit.p is not None else "",
        "sensitivity": own.sensitivity if facts.rejected(audit) and shows_test else None,
        "leans": wording.beside_leans(own.leans, audit.effect, own.margin),
        "seen": _tried(audit),
        "dots": dots,
        "caption": caption,
        "hill": _hill(audit, "this audit") if shows_test else "",
    }


def identity(verdict: Verdict) -> Iterator[IdentityRow]:
    """The date, who asked, the models, and the texts."""
    kind, models = kind_of(verdict), facts.mapping(verdict.settings.get("models"))
    made = "test" if verdict.hypothesis else "search"
    made = {"audit": "audit", "flags": "flagging"}.get(kind, made)
    yield IdentityRow(f"Date of the {made}", when(verdict.settings.get("time")))
    yield IdentityRow("Requested by", verdict.statements.get("requested_by") or UNSTATED)
    if kind == "audit":
        yield from _identity_of_audit(verdict, models)
    elif kind == "flags":
        yield from _identity_of_flagging(verdict, models)
    else:
        if verdict.model:
            yield _model("Model in question", verdict.model, models.get("target"))
        unasked = any(check.name == SECOND and check.status == "not run" for check in verdict.checks)
        for title, role in (("Second model", "placebo"), ("Reference model", "reference")):
            for key, one in models.items():
                if key.partition(" ")[0] == role and (name := facts.mapping(one).get("name")):
                    notes = ("not asked",) if unasked and role == "placebo" else ()
                    yield _model(title, str(name), one, *notes)
        if said := verdict.statements.get("placebo"):
            yield IdentityRow("How it is known not to have seen the texts", said)
        counted = f"{verdict.corpus}, {plural(verdict.units, verdict.unit)} in the {made}"
        yield IdentityRow("Texts", counted, _hash_of(verdict, "corpus"))
        if verdict.register:
            first, *others = map(wording.plain, verdict.register)
            more = tuple((named(one), False) for one in others[:_MOST_TESTS])
            yield IdentityRow("Tests of these texts", first, more)


def _identity_of_audit(audit: Verdict, models: Mapping[str, Any]) -> Iterator[IdentityRow]:
    own, grades = figures_of(audit), sentences_of("report.grades")
    yield _model("Model in question", audit.model, facts.of_model(audit, "target"))
    used = [placebo for placebo in own.placebos if placebo.grade != "other" or len(own.placebos) == 1]
    found = [facts.mapping(part) for role, part in models.items() if str(role).startswith("placebo")]
    for placebo in used:
        recorded = next((one for one in found if one.get("name") == placebo.name), {})
        yield _model("Compared with", placebo.name, {**placebo.facts, **recorded}, grades[placebo.grade])
    if used:
        label = f"How {'it' if len(used) == 1 else 'each'} is known not to have seen the texts"
        yield IdentityRow(label, audit.statements.get("placebo") or UNSTATED)
    else:
        yield IdentityRow("Compared with", "no other model")
    sides = ((SUSPECT, "Suspect texts", "document"), (CONTROL, "Control documents", "control document"))
    for side, label, noun in sides:
        if side == CONTROL and own.design == "placebos":
            yield IdentityRow(label, "none")
            return
        counted = f"{plural(len(documents_of(audit, side)[0]), noun)}, each listed in documents.csv"
        yield IdentityRow(label, counted, _hash_of(audit, "corpus" if side == SUSPECT else "heldout"))
    yield IdentityRow("Where they come from", audit.statements.get("controls") or UNSTATED)


def _identity_of_flagging(flagged: Verdict, models: Mapping[str, Any]) -> Iterator[IdentityRow]:
    counts, roles = flagged.figures["counts"], sentences_of("report.flag_roles")
    for role, one in models.items():
        label = roles.get(role, f"{role[:1].upper()}{role[1:]} model")
        yield _model(label, str(facts.mapping(one).get("name", "")), one)
    for label, part, name, texts, documents in (
        ("Texts", "texts", flagged.corpus, "texts", "documents"),
        ("Known non-members", "nonmembers", flagged.figures["nonmembers"], "known", "known_documents"),
    ):
        of = f" of {plural(counts[documents], 'document')}" if counts[documents] < counts[texts] else ""
        counted = f"{named(name)}, {plural(counts[texts], 'text')}{of}"
        yield IdentityRow(label, counted, _hash_of(flagged, part))


def _model(label: str, name: str, recorded: object, *notes: str) -> IdentityRow:
    own, marks = facts.model_as_served(name, facts.mapping(recorded))
    return IdentityRow(label, own, (*((note, False) for note in notes), *marks))


def _hash_of(verdict: Verdict, part: str) -> tuple[tuple[str, bool], ...]:
    """The hash of some texts, by what was recorded of them; nothing where it was not."""
    found = facts.mapping(verdict.settings.get(part)).get("sha256")
    return (("SHA-256 of the texts:", False), (named(found), True)) if isinstance(found, str) else ()


def when(found: object) -> str:
    """Write a recorded time as people do, the day alone where it cannot be read.

    >>> when("2026-11-22T14:03:09+00:00"), when(None)
    ('22 November 2026, 14:03 UTC', 'not recorded')
    """
    if not isinstance(found, str):
        return "not recorded"
    try:
        moment = datetime.fromisoformat(found)
    except ValueError:
        return named(found)
    day = f"{moment.day} {month_name[moment.month]} {moment.year}"
    return f"{day}, {moment:%H:%M} {moment.tzname() or ''}".strip()


def drawn(verdict: Verdict) -> list[tuple[Markup, str]]:
    """The figures and their captions: the test's own, and the result against chance, which flaggings have not."""
    hill = _hill(verdict, "this test") if kind_of(verdict) == "verdict" else ""
    caption = say("report.drawn.hill", level=wording.share(verdict.level))
    return draw_own(verdict) + ([(Markup(hill), caption)] if hill else [])


def _hill(verdict: Verdict, this: str) -> Markup:
    """The result of `this` against what chance gives; nothing where that was not recorded."""
    null = verdict.null
    if null is None:
        return Markup("")
    observed, critical = (strength(one, wording.brief(one, 3)) for one in (null.observed, null.critical))
    label = (
        f"A histogram of the {sum(null.counts)} results that chance gave, the result of {this} at {observed}"
    )
    label += f", and a line at {critical}." if np.isfinite(null.critical) else "."
    return to_svg(against_chance(null, this=this), name="hill", label=label)


# The technical part: sections of every verdict, then those of audits, of flaggings and of single tests.


@section("What a search found of these texts", "searched", "searched.html")
def searched(verdict: Verdict) -> dict[str, Any] | None:
    """Show the texts of which most was found."""
    found = facts.mapping(verdict.settings.get("found"))
    if not found:
        return None
    rows = found.get("rows", ())
    more = max(0, len(rows) - MOST_FOUND) + int(found.get("more rows", 0))
    said = facts.sentences(verdict.settings)
    return {"said": said, "rows": rows[:MOST_FOUND], "more": more, "scan": str(found["scan"])}


@section("To repeat this", "repeat", "repeating.html", appendix=True)
def repeating(verdict: Verdict) -> dict[str, Any] | None:
    """Show everything needed to make the result again; nothing where no settings were recorded."""
    recorded = {key: value for key, value in verdict.settings.items() if key != "earlier"}
    if isinstance(timings := recorded.get("timings"), Mapping):
        seconds = {key: one for key, one in timings.items() if isinstance(one, int | float)}
        seconds = {key: one for key, one in seconds.items() if not isinstance(one, bool) and 0 <= one < 1e9}
        every = {"all": sum(seconds.values())} if len(seconds) > 1 else {}
        written = {key: wording.duration(value) for key, value in {**seconds, **every}.items()}
        recorded["timings"] = {**timings, **written}
    kind = {"audit": "This audit", "flag": "This flagging"}.get(verdict.test, "This test")
    parts = facts.parts(recorded, kind, sentences_of("report.parts"))
    return {"parts": parts, "skipped": () if verdict.test == "flag" else verdict.skipped} if parts else None


@section("What innocent models showed", "leans", "audit/leans.html")
def _leans(audit: Verdict) -> dict[str, Any] | None:
    """What innocent models showed where it was measured, the largest first; nothing where it was not."""
    own = figures_of(audit)
    words = wording.beside_leans(own.leans, audit.effect, own.margin)
    return {"leans": own.leans, "margin": own.margin, "words": words} if own.leans else None


@section("What the audit could have seen", "power", "audit/power.html")
def _power_of_audit(audit: Verdict) -> dict[str, Any] | None:
    """The power at each exposure that was tried, the lightest first; nothing beside a result without one."""
    tried = _tried(audit)
    if not tried and facts.rejected(audit):
        return None
    shown = [(one, _curve(audit, one, f"power{i or ''}", "this audit")) for i, one in enumerate(tried)]
    return {"audit": audit, "powers": shown}


def _tried(audit: Verdict) -> tuple[Power, ...]:
    return figures_of(audit).powers or ((audit.planted,) if audit.planted else ())


def _curve(verdict: Verdict, found: Power, name: str, this: str) -> str:
    """The power by the number of units; nothing where it was not measured at several."""
    if not found.curve:
        return ""
    shares = ", ".join(f"{share:.0%} with {plural(number, verdict.unit)}" for number, share in found.curve)
    figure = power_curve(found, verdict.units, this=this, unit=verdict.unit)
    return to_svg(figure, name=name, label=f"Probability of seeing the planted texts: {shares}.")


@section("The generated texts", "texts", "audit/texts.html", appendix=True)
def generated(audit: Verdict) -> dict[str, Any] | None:
    """The quality of the generated texts, and a dozen of them to read; nothing where no text was generated."""
    quality = figures_of(audit).quality
    pairs = {side: pairs_of(audit, side) for side in _EXAMPLES}
    if not pairs[SUSPECT] and not quality:
        return None
    examples: list[tuple[str, Pair]] = []
    for side, some in pairs.items():  # evenly spaced, and so from as many documents as there are
        number = min(_EXAMPLES[side], len(some))
        examples += [(side, some[i * len(some) // number]) for i in range(number)]
    return {"quality": quality, "examples": examples, "total": sum(map(len, pairs.values()))}


@section("Everything that was tried", "variants", "audit/variants.html")
def variants(audit: Verdict) -> dict[str, Any]:
    """Everything else that was tried: further procedures, and audits made before this one."""
    earlier = audit.settings.get("earlier")
    entries = [] if audit.register or not isinstance(earlier, list | tuple) else earlier
    told = [facts.line(entry) if isinstance(entry, Mapping) else str(entry) for entry in entries]
    return {"variants": figures_of(audit).variants, "register": audit.register, "earlier": told}


@section("The test", "test", "flags/test.html")
def _test_of_flagging(flagged: Verdict) -> dict[str, Any]:
    """Hypothesis, rate and what was found, for each text and for the set."""
    method, shown = flagged.figures["method"], ""
    if flagged.outcome != "refused":
        figure, label, *_ = p_values(flagged)
        shown = to_svg(figure, name="pvalues", label=label)
    methods = sentences_of("report.flag_methods")
    return _numbers(flagged) | {"method": methods.get(method, method), "p_values": shown}


@section("The texts", "texts", "flags/texts.html")
def flags(flagged: Verdict) -> dict[str, Any]:
    """The texts with the highest scores, flagged or not."""
    found, told = flagged.table("flags"), flagged.outcome != "refused"
    ids, groups, scores = found["id"], found["group"], found["score"]
    recorded, sought = facts.mapping(flagged.settings.get("found")), "found" in flagged.settings
    there = {str(row["id"]): wording.percent(float(row["share"]), 0) for row in recorded.get("rows", ())}
    rows = [
        {
            "id": ids[i],
            "group": groups[i] if groups[i] != ids[i] else "",
            "score": float(scores[i]),
            **{name: wording.p_value(float(found[name][i])) if told else "–" for name in ("p", "q")},
            "flagged": told and bool(found["flagged"][i]),
            "found": there.get(ids[i], "0%") if sought else "",
        }
        for i in sorted(range(len(found)), key=lambda i: -scores[i])[:_MOST_FLAGS]
    ]
    return _numbers(flagged) | {"rows": rows, "sought": sought}


def _numbers(flagged: Verdict) -> dict[str, Any]:
    counts = flagged.figures["counts"]
    return {
        "flagged": flagged,
        "figures": flagged.figures,
        "told": flagged.outcome != "refused",
        "scored": counts["texts"],
        "asked": counts["documents"],
        "unit": "document" if counts["documents"] < counts["texts"] else "text",
        "number": counts["flagged_documents"],
        "texts_flagged": counts["flagged"],
        "documents": counts["known_documents"],
        "unscored": counts["skipped"],
        "table": "flags/" if flagged.figures.get("whole") else "flags.csv",
        "test": set_test(flagged),
    }


@section("The tables", "tables", "verdict/tables.html", appendix=True)
def tables(verdict: Verdict) -> dict[str, Any] | None:
    """The first rows of every table."""
    shown = [
        (one.name, tuple(one.columns), list(zip(*map(_cells, one.columns.values()), strict=True)), len(one))
        for one in verdict.tables
    ]
    return {"tables": shown, "most": MOST_ROWS} if shown else None


def _cells(values: tuple[str, ...] | Doubles | Bools) -> list[str]:
    if isinstance(values, tuple):
        return [named(value, 60) for value in values[:MOST_ROWS]]
    first = values[:MOST_ROWS].tolist()
    return ["–" if value is None or value != value else wording.brief(value) for value in first]


@section("What it would have seen", "power", "verdict/power.html")
def _power_of_test(verdict: Verdict) -> dict[str, Any] | None:
    power = verdict.planted
    if power is None:
        return None
    return {"power": power, "curve": _curve(verdict, power, "power", "this test"), "verdict": verdict}


_CHECKED = section("The checks", "checks", "checks.html")(
    lambda verdict: {"checks": facts.checks(verdict)} if facts.checks(verdict) else None
)
_OF_AUDIT: Sections[Verdict] = (
    section("The test", "test", "audit/test.html")(
        lambda audit: {
            "audit": audit,
            "own": figures_of(audit),
            "controls": len(documents_of(audit, CONTROL)[0]),
            "sensitivity": figures_of(audit).sensitivity if facts.rejected(audit) else None,
        }
    ),
    section(
        lambda audit: f"The placebo{'s' * (len(figures_of(audit).placebos) > 1)}",
        "placebo",
        "audit/placebo.html",
    )(lambda audit: {"own": figures_of(audit), "said": audit.statements.get("placebo")}),
    *(_leans, _CHECKED, _power_of_audit, searched, variants),
    section("What this audit cannot say", "limits", "audit/limits.html")(
        lambda audit: {
            "own": figures_of(audit),
            "power": audit.planted is not None or not facts.rejected(audit),
        }
    ),
    section("The plan", "plan", "audit/plan.html", appendix=True)(
        lambda audit: {"plan": figures_of(audit).plan} if figures_of(audit).plan else None
    ),
    section("The texts without the model", "gap", "audit/gap.html", appendix=True)(
        lambda audit: {"own": figures_of(audit)} if figures_of(audit).gaps else None
    ),
    *(generated, repeating, advice.of_verdict),
)
_OF_TEST: Sections[Verdict] = (
    lambda verdict: speaking(page_of(verdict).sections, verdict),
    section(lambda found: "The test" if found.hypothesis else "The search", "test", "verdict/test.html")(
        lambda verdict: {"verdict": verdict, "figures": facts.without_tables(verdict.figures)}
    ),
    *(_CHECKED, _power_of_test, tables, repeating, advice.of_verdict),
)
SECTIONS: Mapping[str, Sections[Verdict]] = {
    "audit": _OF_AUDIT,
    "flags": (
        *(_test_of_flagging, flags, searched, _CHECKED),
        section("What this cannot say", "limits", "flags/limits.html")(_numbers),
        *(repeating, advice.of_verdict),
    ),
    "verdict": _OF_TEST,
}
"""The sections of the technical part in reading order, by whose page it is."""


def heading(verdict: Verdict) -> str:
    """Name the report."""
    model = called(verdict.model)
    if not model:
        return f"Search: {named(verdict.corpus)}"
    kind = {"audit": "Audit", "flags": "Flagged texts"}.get(kind_of(verdict), "Test")
    return titled(kind, verdict.corpus, model)


PAGE = ReportPage(
    heading,
    (lambda verdict: speaking(SECTIONS[kind_of(verdict)], verdict),),
    lambda verdict: {"first": first_page(verdict)},
)
render = PAGE.render
