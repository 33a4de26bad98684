"""The report of a verdict: one self-contained HTML file, no script, no network, the same result the same bytes.

Page one is for everybody: the answer, who asked, what was compared, how far it can be trusted, the checks, what would
help. The sentences come with the result. Behind it stands a technical part, made of sections: each gives a heading and
markup, or None where the result has nothing to say on it. What a test has of its own is in its `TestPage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, cast

import numpy as np
from markupsafe import Markup

from pretrace.backends.naming import called, served_as
from pretrace.registry import test_pages
from pretrace.report.figures import TestFigure, against_chance, power_curve, strength, to_svg
from pretrace.report.frame import (
    UNNAMED,
    Pages,
    Section,
    Sections,
    fill,
    make_pages,
    of_model,
    section,
    served,
    settings_rows,
    speaking,
    titled,
    without_tables,
)
from pretrace.results import wording
from pretrace.results.folder import mapping
from pretrace.results.wording import named, plural, say, sentences_of
from pretrace.types import Bools, Check, Doubles, Power, Situation, Verdict
from pretrace.verdicts.advise import Names, advise, chance, enough, expected_for, needed, picture
from pretrace.verdicts.audit.data import AuditFigures, figures_of
from pretrace.verdicts.outcome import EXIT_CODES, SECOND

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
                if key.partition(" ")[0] == role and (name := mapping(one).get("name")):
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


def _page_of(verdict: Verdict) -> type[TestPage]:
    """Find what the report of this test has of its own."""
    found = cast(type[TestPage], test_pages.factory(verdict.test)) if verdict.test in test_pages else TestPage
    return found if verdict.figures or not found.needs_figures else TestPage


def _made(verdict: Verdict) -> str:
    made = _page_of(verdict).made
    return made if verdict.hypothesis or made != TestPage.made else "search"


def draw_own(verdict: Verdict) -> list[tuple[Markup, str]]:
    """Draw the figure of the test that gave this verdict, with its caption; nothing where it has none of its own."""
    found = _page_of(verdict).draw(verdict)
    if found is None:
        return []
    return [(to_svg(found.figure, name="own", label=found.label, titles=found.titles), found.caption)]


def _first_page(verdict: Verdict) -> Markup:
    """The answer, who asked, what was compared, how far it can be trusted, the checks, what would help, the figures."""
    page, checks, titles = _page_of(verdict), _checks(verdict), sentences_of("report.titles")
    head, colon, rest = verdict.statement.partition(": ")
    begins = bool(colon) and head in titles.values()
    failed = [(one, wording.plain(one.words)) for one in checks if one.status == "failed"]
    told = [f"{check.title}: this check failed. {words}" for check, words in failed]
    reasons = [one for one in verdict.reasons if not any(one.startswith(check.title) for check, _ in failed)]
    kept = [one for one in reasons if not one.startswith(_GAVE)]
    if rejected(verdict) and (kept or told):  # then what the test gave is no reason
        reasons = kept
    withheld = rejected(verdict) and verdict.outcome == "inconclusive"
    says_why = verdict.outcome == "inconclusive" or not verdict.hypothesis
    hill, made = _draw_chance(verdict), _made(verdict)
    caption = say("report.drawn.hill", level=wording.share(verdict.level), draws=_draws(verdict))
    rows = [
        (f"Date of the {made}", when(verdict.settings.get("time")), ()),
        ("Requested by", verdict.statements.get("requested_by") or UNSTATED, ()),
        *page.identify(verdict, mapping(verdict.settings.get("models"))),
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
        "served": served(verdict.settings),
        "foreseen": _foreseeable(verdict) if verdict.outcome != "refused" else None,
        "p": wording.p_value(verdict.p) if verdict.p is not None else "",
        "often": wording.often(verdict.p) if verdict.p is not None and not withheld else "",
        "rows": rows,
        "drawn": draw_own(verdict) + ([(hill, caption)] if hill else []),
    }
    return fill(page.template, values | page.values(verdict, values))


def identify_model(label: str, name: str, recorded: object, *notes: str) -> IdentityRow:
    """A model by what was `recorded` of it: its name, beneath it `notes`, the address of its server, its revision, and
    the fingerprint of its weights."""
    found, (own, url) = mapping(recorded), served_as(name)
    own = str(found.get("served_model") or own or UNNAMED)
    server = str(found.get("server", ""))
    url = url or (server if "://" in server else "")
    lines = [(note, False) for note in notes]
    lines += [("served at", False), (named(url), True)] if url else []
    if revision := found.get("revision"):
        lines.append((f"revision {named(str(revision))}", False))
    weights = found.get("weights")
    if weights == "unknown":
        lines.append(("its weights are not known", False))
    elif isinstance(weights, str) and weights:
        lines += [("fingerprint of its weights:", False), (named(weights), True)]
    return label, named(own), tuple(lines)


def hash_of(verdict: Verdict, part: str) -> tuple[tuple[str, bool], ...]:
    """The hash of some texts, by what was recorded of them; nothing where it was not."""
    found = mapping(verdict.settings.get(part)).get("sha256")
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


def _draw_chance(verdict: Verdict) -> Markup:
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


def rejected(verdict: Verdict) -> bool:
    """Whether the test gave a result."""
    return verdict.p is not None and verdict.p <= verdict.level


def _checks(verdict: Verdict) -> tuple[Check, ...]:
    """The checks that have something to say: beside a result of an audit nobody asks what could have been missed."""
    told = verdict.test == "audit" and rejected(verdict)
    return tuple(check for check in verdict.checks if not (told and check.name == "power"))


# How an inconclusive report ends: which other test could answer, with what is known of this case filled in.


def other_tests(verdict: Verdict) -> Section | None:
    """The other tests beside a verdict without an answer; nothing beside one that has an answer."""
    if EXIT_CODES[verdict.outcome] != EXIT_CODES["inconclusive"]:
        return None
    target, command = of_model(verdict, "target"), mapping(verdict.settings.get("command"))
    has, made, model, names = _sized(verdict), verdict.test, verdict.model, Names()
    texts = command.get("texts") or mapping(verdict.settings.get("corpus")).get("source")
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
    found = advise(has, known, model=model, names=names)
    values = {"rows": found.rows, "made": made, "enough": enough, "situation": has}
    return Section("Which other test could answer", "advice", fill("advice.html", values), appendix=True)


def _sized(verdict: Verdict) -> Situation:
    size, known = of_model(verdict, "target").get("parameters"), verdict.situation
    return replace(known, parameters=float(size)) if isinstance(size, int | float) else known


def _foreseeable(verdict: Verdict) -> dict[str, object] | None:
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


def _audited(own: AuditFigures, typed: object) -> tuple[str, str]:
    """What an audit is called in the advice, and the first earlier state of the target as it was typed, "" for none."""
    made = "placebo" if own.design == "placebos" else "controls-placebo" if own.placebos else "controls"
    earlier = next((one.name for one in own.placebos if one.grade == "own"), "")
    if earlier and isinstance(typed, list | tuple) and typed:
        return made, str(typed[0])
    return made, earlier


# The technical part: sections of every test, or of several.


@section("To repeat this", "repeat", "repeating.html", appendix=True)
def repeating(verdict: Verdict) -> dict[str, Any] | None:
    """Show everything needed to make the result again; nothing where no settings were recorded."""
    recorded = {
        "timings (seconds)" if key == "timings" else key: one for key, one in verdict.settings.items()
    }
    rows = settings_rows(recorded, "result.json")
    skipped = () if _page_of(verdict).names_skipped else verdict.skipped
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
    tried = _page_of(verdict).exposures(verdict)
    drawn = [(one, _draw_power(verdict, one, number)) for number, one in enumerate(tried)]
    return {"powers": drawn, "verdict": verdict, "made": _made(verdict)} if drawn else None


checked = section("The checks", "checks", "checks.html")(
    lambda verdict: {"checks": _checks(verdict)} if _checks(verdict) else None
)
TestPage.every = (
    section(lambda found: "The test" if found.hypothesis else "The search", "test", "verdict/test.html")(
        lambda verdict: {"verdict": verdict, "figures": without_tables(verdict.figures)}
    ),
    *(checked, power, _tables, repeating, other_tests),
)


def pages(verdict: Verdict) -> Pages:
    """Make the pages of a verdict."""
    page, model = _page_of(verdict), called(verdict.model)
    title = titled(page.kind, verdict.corpus, model) if model else f"Search: {named(verdict.corpus)}"
    technical = speaking((*page.sections, *page.every), verdict)
    return make_pages(title, technical, lambda: {"first": _first_page(verdict)})
