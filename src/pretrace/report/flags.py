"""One self-contained HTML file from a flagging: no script, no network, the same flagging the same bytes.

Its figures are made to be read without colour: filled against outlined, dark against light.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from pretrace.backends.serving.address import called
from pretrace.report import advice, facts
from pretrace.report.facts import shares
from pretrace.report.first_page import (
    IdentityRow,
    checks,
    first_values,
    hash_of,
    repeating,
    searched,
    who_asked,
)
from pretrace.report.frame import ReportPage, Sections, fill, section, titled
from pretrace.report.svg import to_svg
from pretrace.report.verdict_plots import draw_own, p_values
from pretrace.report.wording import count, named, p_value, plural
from pretrace.types import Verdict
from pretrace.verdicts.flag.built import expected, set_test, tried, whole

MOST_ROWS = 100
"""Texts in the table; flags.csv has all, of a large flagging the files in flags/."""
_TITLES = {
    "none": "Nothing stands out",
    "refused": "Refused",
    "missed": "Could have been missed",
    "set": "The set as a whole stands out",
}
_CLASSES = {
    "none": "nothing",
    "refused": "inconclusive",
    "missed": "inconclusive",
    "flagged": "consistent",
    "set": "consistent",
}
_ROLES = {"target": "Model in question", "placebo": "Second model"}
_METHODS = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli, for documents that depend on each other"}


def first_page(flagged: Verdict) -> Markup:
    """The answer, what was compared, how far it can be trusted, the checks, and what would help."""
    values = _numbers(flagged)
    flags = f"{count(values['number'])} of {plural(values['asked'], values['unit'])} flagged"
    title = _TITLES.get(flagged.outcome, flags)
    values |= first_values(flagged, title)
    if flagged.outcome == "refused":
        values["foreseen"] = None
    values |= {
        "css": _CLASSES[flagged.outcome],
        "expected": expected(values["number"], flagged.figures["fdr"]),
        "whole": " ".join(whole(set_test(flagged), flagged.units)),
        "tried": " ".join(tried(flagged.outcome, flagged.planted)),
        "rows": tuple(identity(flagged)),
        "drawn": draw_own(flagged),
    }
    return fill("flags/first.html", values)


def identity(flagged: Verdict) -> Iterator[IdentityRow]:
    """The date, who asked, the models, the texts and the known non-members."""
    settings, counts = flagged.settings, flagged.figures["counts"]
    yield from who_asked(flagged, "flagging")
    for role, one in facts.mapping(settings.get("models")).items():
        label = _ROLES.get(role, f"{role[:1].upper()}{role[1:]} model")
        yield IdentityRow(
            label, *facts.model_as_served(str(facts.mapping(one).get("name", "")), facts.mapping(one))
        )
    sides = (
        ("Texts", "texts", "texts", "documents"),
        ("Known non-members", "nonmembers", "known", "known_documents"),
    )
    for label, part, texts_, documents in sides:
        recorded = facts.mapping(settings.get(part))
        of = f" of {plural(counts[documents], 'document')}" if counts[documents] < counts[texts_] else ""
        name = flagged.corpus if part == "texts" else flagged.figures["nonmembers"]
        yield IdentityRow(label, f"{named(name)}, {plural(counts[texts_], 'text')}{of}", hash_of(recorded))


@section("The test", "test", "flags/test.html")
def deciding_test(flagged: Verdict) -> dict[str, Any]:
    """Hypothesis, rate and what was found, for each text and for the set."""
    drawn = ""
    if flagged.outcome != "refused":
        figure, label, *_ = p_values(flagged)
        drawn = to_svg(figure, name="pvalues", label=label)
    method = flagged.figures["method"]
    return _numbers(flagged) | {"method": _METHODS.get(method, method), "p_values": drawn}


@section("The texts", "texts", "flags/texts.html")
def texts(flagged: Verdict) -> dict[str, Any]:
    """The texts with the highest scores, flagged or not."""
    found, told = flagged.table("flags"), flagged.outcome != "refused"
    ids, groups, scores = found["id"], found["group"], found["score"]
    there, sought = shares(flagged.settings), "found" in flagged.settings
    rows = [
        {
            "id": ids[i],
            "group": groups[i] if groups[i] != ids[i] else "",
            "score": float(scores[i]),
            **{name: p_value(float(found[name][i])) if told else "–" for name in ("p", "q")},
            "flagged": told and bool(found["flagged"][i]),
            "found": there.get(ids[i], "0%") if sought else "",
        }
        for i in sorted(range(len(found)), key=lambda i: -scores[i])[:MOST_ROWS]
    ]
    return _numbers(flagged) | {"rows": rows, "sought": sought}


SECTIONS: Sections[Verdict] = (
    *(deciding_test, texts, searched, checks),
    section("What this cannot say", "limits", "flags/limits.html")(lambda flagged: _numbers(flagged)),
    *(repeating, advice.of_verdict),
)
"""The sections of the technical part in reading order."""


PAGE = ReportPage(
    lambda flagged: titled("Flagged texts", flagged.corpus, called(flagged.model)),
    SECTIONS,
    lambda flagged: {"first": first_page(flagged)},
)
render = PAGE.render


def _numbers(flagged: Verdict) -> dict[str, Any]:
    test, counts = set_test(flagged), flagged.figures["counts"]
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
        "test": test,
    }
