"""The report of a verdict: one self-contained HTML file, no script, no network, the same result the same bytes.

Page one is for everybody: the answer, who asked, what was compared, how far it can be trusted, the checks, what would
help. The sentences come with the result. Behind it stands a technical part, made of sections: each gives a heading and
markup, or None where the result has nothing to say on it. What a test has of its own is in its `TestPage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, cast

import numpy as np
from markupsafe import Markup

from pretrace.backends.serving.address import called
from pretrace.registry import test_pages
from pretrace.report import advice, facts
from pretrace.report.frame import ReportPage, Section, Sections, fill, section, speaking, titled
from pretrace.report.svg import to_svg
from pretrace.report.verdict_plots import TestFigure, against_chance, power_curve, strength
from pretrace.results import wording
from pretrace.results.wording import named, plural, say, sentences_of
from pretrace.types import Bools, Doubles, Power, Verdict
from pretrace.verdicts.outcome import SECOND

UNSTATED = "not stated"
_GAVE = "The test gave p ="
"""How the reason begins that says what the test found."""
"""Texts that the section on a search names; the result has up to 1,000, and the folder of the search all."""
MOST_ROWS = 50
"""Rows of a table in the report; its csv file has all."""
_MOST_TESTS = 5
"""Earlier tests of the same texts that page one names."""


IdentityRow = tuple[str, str, Sequence[tuple[str, bool]]]
"""What a row is about, what is recorded, and smaller lines beneath it, each with whether it is a code."""


class TestPage:
    """What the report of a test is made of; what one test has of its own is registered in `registry.test_pages` as a
    class that inherits from this, by the test's name."""

    kind, made = "Test", "test"
    """What the report, and what it is on, are called."""
    template = "verdict/first.html"
    """That of page one."""
    needs_figures = names_skipped = False
    """Whether a refused verdict, which has no figures, is shown as any test; whether a section names skipped texts."""
    sections: ClassVar[Sections[Verdict]] = ()
    every: ClassVar[Sections[Verdict]] = ()
    """Sections of the test's own, and behind them those of every test, in reading order."""

    @staticmethod
    def draw(verdict: Verdict) -> TestFigure | None:
        """Draw the test's own figure; None where there is none."""
        return None

    @classmethod
    def values(cls, verdict: Verdict, shared: Mapping[str, Any]) -> dict[str, Any]:
        """What the template of page one takes beside, or instead of, what all `shared`."""
        return {}

    @staticmethod
    def exposures(verdict: Verdict) -> Sequence[Power]:
        """What planting brought at each exposure that was tried, the lightest first."""
        return (verdict.planted,) if verdict.planted else ()

    @classmethod
    def identify(cls, verdict: Verdict, models: Mapping[str, Any]) -> Iterator[IdentityRow]:
        """Name the models and the texts."""
        if verdict.model:
            yield identify_model("Model in question", verdict.model, models.get("target"))
        unasked = any(check.name == SECOND and check.status == "not run" for check in verdict.checks)
        for title, role in (("Second model", "placebo"), ("Reference model", "reference")):
            for key, one in models.items():
                if key.partition(" ")[0] == role and (name := facts.mapping(one).get("name")):
                    notes = ("not asked",) if unasked and role == "placebo" else ()
                    yield identify_model(title, str(name), one, *notes)
        if said := verdict.statements.get("placebo"):
            yield "How it is known not to have seen the texts", said, ()
        yield from cls.identify_texts(verdict)

    @staticmethod
    def identify_texts(verdict: Verdict) -> Iterator[IdentityRow]:
        """Name the texts."""
        counted = f"{verdict.corpus}, {plural(verdict.units, verdict.unit)} in the {_made(verdict)}"
        yield "Texts", counted, hash_of(verdict, "corpus")


def page_of(verdict: Verdict) -> type[TestPage]:
    """Find what the report of this test has of its own."""
    found = cast(type[TestPage], test_pages.factory(verdict.test)) if verdict.test in test_pages else TestPage
    return found if verdict.figures or not found.needs_figures else TestPage


def _made(verdict: Verdict) -> str:
    made = page_of(verdict).made
    return made if verdict.hypothesis or made != TestPage.made else "search"


def draw_own(verdict: Verdict) -> list[tuple[Markup, str]]:
    """Draw the figure of the test that gave this verdict, with its caption; nothing where it has none of its own."""
    found = page_of(verdict).draw(verdict)
    if found is None:
        return []
    return [(to_svg(found.figure, name="own", label=found.label, titles=found.titles), found.caption)]


def first_page(verdict: Verdict) -> Markup:
    """The answer, who asked, what was compared, how far it can be trusted, the checks, what would help, the figures."""
    page, checks, titles = page_of(verdict), facts.checks(verdict), sentences_of("report.titles")
    head, colon, rest = verdict.statement.partition(": ")
    begins = bool(colon) and head in titles.values()
    failed = [(one, wording.plain(one.words)) for one in checks if one.status == "failed"]
    told = [f"{check.title}: no. {words}" for check, words in failed]
    reasons = [one for one in verdict.reasons if not any(one.startswith(check.title) for check, _ in failed)]
    kept = [one for one in reasons if not one.startswith(_GAVE)]
    if facts.rejected(verdict) and (kept or told):  # then what the test gave is no reason
        reasons = kept
    withheld = facts.rejected(verdict) and verdict.outcome == "inconclusive"
    says_why = verdict.outcome == "inconclusive" or not verdict.hypothesis
    hill, made = draw_chance(verdict), _made(verdict)
    caption = say("report.drawn.hill", level=wording.share(verdict.level), draws=_draws(verdict))
    rows = [
        (f"Date of the {made}", when(verdict.settings.get("time")), ()),
        ("Requested by", verdict.statements.get("requested_by") or UNSTATED, ()),
        *page.identify(verdict, facts.mapping(verdict.settings.get("models"))),
    ]
    if verdict.register:
        first, *others = map(wording.plain, verdict.register)
        rows.append(("Tests of these texts", first, [(named(one), False) for one in others[:_MOST_TESTS]]))
    values: dict[str, Any] = {
        "verdict": verdict,
        "made": made,
        "title": head if begins else titles[verdict.outcome],
        "statement": rest[:1].upper() + rest[1:] if begins else verdict.statement,
        "why": (*told[:3], *wording.once(reasons, verdict.trust)) if says_why else (),
        "withheld": withheld,
        "failed": [(check, "" if says_why else words) for check, words in failed],
        "others": sorted(
            (one for one in checks if one.status != "failed"), key=lambda one: one.status == "not run"
        ),
        "second": next((check for check in verdict.checks if check.name == SECOND), None),
        "advised": wording.once(verdict.advice),
        "served": facts.served(verdict.settings),
        "foreseen": advice.foreseeable(verdict) if verdict.outcome != "refused" else None,
        "p": wording.p_value(verdict.p) if verdict.p is not None else "",
        "often": wording.often(verdict.p) if verdict.p is not None and not withheld else "",
        "rows": rows,
        "drawn": draw_own(verdict) + ([(hill, caption)] if hill else []),
    }
    return fill(page.template, values | page.values(verdict, values))


def identify_model(label: str, name: str, recorded: object, *notes: str) -> IdentityRow:
    """A model by what was `recorded` of it."""
    own, marks = facts.model_as_served(name, facts.mapping(recorded))
    return label, own, (*((note, False) for note in notes), *marks)


def hash_of(verdict: Verdict, part: str) -> tuple[tuple[str, bool], ...]:
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
    return f"{moment.day} {moment:%B %Y, %H:%M %Z}".strip()


def draw_chance(verdict: Verdict) -> Markup:
    """The result against what chance gives; nothing where that was not recorded."""
    null, this = verdict.null, f"this {_made(verdict)}"
    if null is None:
        return Markup("")
    observed, critical = (strength(one, wording.brief(one, 3)) for one in (null.observed, null.critical))
    label = (
        f"A histogram of the {_draws(verdict)} results that chance gave, the result of {this} at {observed}"
    )
    label += f", and a line at {critical}." if np.isfinite(null.critical) else "."
    return to_svg(against_chance(null, this=this), name="hill", label=label)


def _draws(verdict: Verdict) -> str:
    return wording.count(sum(verdict.null.counts)) if verdict.null else ""


# The technical part: sections of every test, or of several.


@section("To repeat this", "repeat", "repeating.html", appendix=True)
def repeating(verdict: Verdict) -> dict[str, Any] | None:
    """Show everything needed to make the result again; nothing where no settings were recorded."""
    recorded = {
        "timings (seconds)" if key == "timings" else key: one for key, one in verdict.settings.items()
    }
    rows = facts.settings_rows(recorded, "result.json")
    skipped = () if page_of(verdict).names_skipped else verdict.skipped
    return {"rows": rows, "skipped": skipped} if rows else None


def _draw_power(verdict: Verdict, found: Power, number: int) -> str:
    """The power by the number of units; nothing where it was not measured at several."""
    if not found.curve:
        return ""
    shares = ", ".join(f"{share:.0%} with {plural(number, verdict.unit)}" for number, share in found.curve)
    figure = power_curve(found, verdict.units, this=f"this {_made(verdict)}", unit=verdict.unit)
    return to_svg(
        figure, name=f"power{number or ''}", label=f"Probability of seeing the planted texts: {shares}."
    )


@section("The tables", "tables", "verdict/tables.html", appendix=True)
def _tables(verdict: Verdict) -> dict[str, Any] | None:
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
def power(verdict: Verdict) -> dict[str, Any] | None:
    """The power at each exposure that was tried."""
    tried = page_of(verdict).exposures(verdict)
    drawn = [(one, _draw_power(verdict, one, number)) for number, one in enumerate(tried)]
    return {"powers": drawn, "verdict": verdict, "made": _made(verdict)} if drawn else None


checked = section("The checks", "checks", "checks.html")(
    lambda verdict: {"checks": facts.checks(verdict)} if facts.checks(verdict) else None
)
TestPage.every = (
    section(lambda found: "The test" if found.hypothesis else "The search", "test", "verdict/test.html")(
        lambda verdict: {"verdict": verdict, "figures": facts.without_tables(verdict.figures)}
    ),
    *(checked, power, _tables, repeating, advice.of_verdict),
)


def technical_part(verdict: Verdict) -> Sequence[Section]:
    """The sections behind page one."""
    page = page_of(verdict)
    return speaking((*page.sections, *page.every), verdict)


def _heading(verdict: Verdict) -> str:
    """Name the report."""
    model = called(verdict.model)
    if not model:
        return f"Search: {named(verdict.corpus)}"
    return titled(page_of(verdict).kind, verdict.corpus, model)


PAGE = ReportPage(_heading, (technical_part,), lambda verdict: {"first": first_page(verdict)})
render = PAGE.render
