"""The report of a test that needs no earlier checkpoint: one self-contained HTML file, the same result the same bytes.

The sentences come with the result. Each test has one figure of its own, in `report/verdict_plots.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from pretrace.backends.serving.address import called
from pretrace.report import advice, facts, wording
from pretrace.report.first_page import (
    IdentityRow,
    checks,
    first_values,
    hash_of,
    repeating,
    title_of,
    when,
    who_asked,
    why_inconclusive,
)
from pretrace.report.frame import ReportPage, Sections, fill, section, titled
from pretrace.report.svg import to_svg
from pretrace.report.verdict_plots import against_chance, draw_own, power_curve, strength
from pretrace.report.wording import named
from pretrace.types import Bools, Doubles, Verdict
from pretrace.verdicts.outcome import SECOND

MOST_ROWS = 50
"""Rows of a table in the report; its csv file has all."""
_MOST_TESTS = 5
"""Earlier tests of the same texts that page one names."""
DOCUMENTS = 5
"""Documents that are named below a text."""
WINDOWS, FEWER = 6, 3
"""Windows of the texts, and of the controls, that are shown in full."""
_MOST_TOLD = 1e6
"""Tries above which a model is said not to print a window."""
LONGEST = 1_000
"""Characters of a continuation that are shown."""
THIS = "this test"
_TITLES = ("Nothing was found", "Inconclusive", "Found", "Not found")


def first_page(verdict: Verdict) -> Markup:
    """The answer, who asked, what was compared, how far it can be trusted, the checks, what would help, the figures."""
    withheld = facts.rejected(verdict) and verdict.outcome == "inconclusive"
    values = first_values(verdict, title_of(verdict, _TITLES))
    values |= {
        "verdict": verdict,
        "why": why_inconclusive(verdict, [check for check, _ in values["failed"]]) if withheld else (),
        "rows": tuple(identity(verdict)),
        "reasons": wording.once(verdict.reasons, verdict.trust),
        "second": next((check for check in verdict.checks if check.name == SECOND), None),
        "drawn": drawn(verdict),
        "often": wording.often(verdict.p) if verdict.p is not None and not withheld else "",
    }
    return fill("verdict/first.html", values)


def identity(verdict: Verdict) -> Iterator[IdentityRow]:
    """The date, who asked, the model, and the texts."""
    said, corpus = verdict.statements, facts.mapping(verdict.settings.get("corpus"))
    made = "test" if verdict.hypothesis else "search"
    yield from who_asked(verdict, made)
    models = facts.mapping(verdict.settings.get("models"))
    if verdict.model:
        target = facts.mapping(models.get("target"))
        yield IdentityRow("Model in question", *facts.model_as_served(verdict.model, target))
    for title, role in (("Second model", "placebo"), ("Reference model", "reference")):
        for key, one in models.items():
            if key.partition(" ")[0] == role and (name := facts.mapping(one).get("name")):
                own, marks = facts.model_as_served(str(name), facts.mapping(one))
                unasked = role == "placebo" and any(
                    check.name == SECOND and check.status == "not run" for check in verdict.checks
                )
                yield IdentityRow(title, own, ((("not asked", False),) if unasked else ()) + marks)
    if said.get("placebo"):
        yield IdentityRow("How it is known not to have seen the texts", said["placebo"])
    yield IdentityRow(
        "Texts",
        f"{verdict.corpus}, {wording.plural(verdict.units, verdict.unit)} in the {made}",
        hash_of(corpus),
    )
    if verdict.register:
        first, *others = verdict.register
        yield IdentityRow(
            "Tests of these texts",
            wording.plain(first),
            tuple((named(wording.plain(one)), False) for one in others[:_MOST_TESTS]),
        )


def drawn(verdict: Verdict) -> list[tuple[Markup, str]]:
    """The figures and their captions: the test's own, and the result against chance."""
    found = draw_own(verdict)
    if verdict.null is not None:
        label = (
            f"A histogram of the {sum(verdict.null.counts)} results that chance gave, and the result of this test at "
            f"{strength(verdict.null.observed, wording.brief(verdict.null.observed, 3))}."
        )
        caption = (
            "The hill shows what chance alone gives for texts that were not used. The mark is what this model gave. At "
            "the line and beyond lie the results that chance gives in at most "
            f"{wording.share(verdict.level)} of such tests."
        )
        found.append((to_svg(against_chance(verdict.null, this=THIS), name="hill", label=label), caption))
    return found


@section(lambda found: "The test" if found.hypothesis else "The search", "test", "verdict/test.html")
def deciding_test(verdict: Verdict) -> dict[str, Any]:
    """Hypothesis, statistic, and the sentences that lead to the answer."""
    return {"verdict": verdict, "figures": facts.without_tables(verdict.figures)}


@section("What it would have seen", "power", "verdict/power.html")
def power(verdict: Verdict) -> dict[str, Any] | None:
    """What the test would have seen, where that was measured."""
    found = verdict.planted
    if found is None:
        return None
    curve = ""
    if found.curve:
        label = f"The chance that this test finds training, by the number of {verdict.unit}s."
        drawn = power_curve(found, verdict.units, this=THIS, unit=verdict.unit)
        curve = to_svg(drawn, name="power", label=label)
    return {"power": found, "curve": curve, "verdict": verdict}


@section("The tables", "tables", "verdict/tables.html", appendix=True)
def tables(verdict: Verdict) -> dict[str, Any] | None:
    """The first rows of every table."""
    shown = [
        (one.name, tuple(one.columns), list(zip(*map(_cells, one.columns.values()), strict=True)), len(one))
        for one in verdict.tables
    ]
    return {"tables": shown, "most": MOST_ROWS} if shown else None


@section("What was found", "found", "verdict/found.html")
def passages(verdict: Verdict) -> dict[str, Any] | None:
    """The texts of a search with their passages marked, and the documents that hold most of each."""
    if verdict.test != "scan":
        return None
    marked, hits = verdict.table("marked").columns, verdict.table("hits").columns
    shown: dict[str, tuple[str, list[tuple[str, int]]]] = {}
    for name, state, passage, documents in zip(
        *(marked[one] for one in ("id", "found", "passage", "documents")), strict=True
    ):
        shown.setdefault(str(name), (str(state), []))[1].append((str(passage), int(documents)))
    where: dict[str, list[tuple[str, ...]]] = {name: [] for name in shown}
    columns = ("id", "set", "file", "document", "document id", "url", "date", "before", "passage", "behind")
    for row in zip(*(hits[name] for name in columns), strict=True):
        name, kind, file, document, known, url, date, *around = row
        if kind == "texts" and name in where and len(where[name]) < DOCUMENTS:
            about = ", ".join(str(one) for one in (url, known, date) if one)
            place = f"{file}, document {int(document) + 1:,}"
            where[name].append((named(place, 200), named(about, 200), *map(str, around)))
    return {"texts": [(named(name), state, some, where[name]) for name, (state, some) in shown.items()]}


@section("What the model prints", "recited", "verdict/recited.html")
def _recitations(verdict: Verdict) -> dict[str, Any] | None:
    """What a model printed of texts and controls: beginning, text and continuation side by side, common runs marked."""
    if verdict.test != "recite":
        return None
    asked = facts.mapping(verdict.settings.get("asked"))
    columns = verdict.table("windows").columns
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    shown = (("texts", "The texts", WINDOWS), ("controls", "The control documents", FEWER))
    return {
        "verdict": verdict,
        "date": when(verdict.settings.get("time")),
        "asked": asked,
        "sets": [(title, [row for row in rows if row["set"] == kind][:most]) for kind, title, most in shown],
        "marked": _marked,
        "longest": LONGEST,
        "most": _MOST_TOLD,
    }


def _marked(text: str, runs: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is one of the runs, which are written "start-end start-end"."""
    pieces, at = [], 0
    for run in runs.split():
        start, _, end = run.partition("-")
        pieces += [(text[at : int(start)], False), (text[int(start) : int(end)], True)]
        at = int(end)
    return [piece for piece in (*pieces, (text[at:], False)) if piece[0]]


SECTIONS: Sections[Verdict] = (
    passages,
    _recitations,
    deciding_test,
    checks,
    power,
    tables,
    repeating,
    advice.of_verdict,
)
"""The sections of the technical part in reading order."""


def heading(verdict: Verdict) -> str:
    """Name the report."""
    model = called(verdict.model)
    return titled("Test", verdict.corpus, model) if model else f"Search: {named(verdict.corpus)}"


PAGE = ReportPage(heading, SECTIONS, lambda verdict: {"first": first_page(verdict)})
render = PAGE.render


def _cells(values: tuple[str, ...] | Doubles | Bools) -> list[str]:
    if isinstance(values, tuple):
        return [named(value, 60) for value in values[:MOST_ROWS]]
    return [
        "–" if value is None or value != value else wording.brief(value)
        for value in values[:MOST_ROWS].tolist()
    ]
