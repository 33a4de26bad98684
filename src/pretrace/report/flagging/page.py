"""One self-contained HTML file from a flagging: no script, no network, the same flagging the same bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pretrace.flagging.words import expected, whole
from pretrace.report.audit import facts, wording
from pretrace.report.flagging import plots
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.report.wording import count, plural
from pretrace.results.atomic import atomic_text
from pretrace.types import Flagged

MOST_ROWS = 100
"""Texts in the table; flags.csv has all."""
_TITLES = {
    "none": "Nothing stands out",
    "refused": "Refused",
    "coarse": "Too coarse to clear",
    "set": "The set as a whole stands out",
}
_CLASSES = {
    "none": "nothing",
    "refused": "inconclusive",
    "coarse": "inconclusive",
    "flagged": "consistent",
    "set": "consistent",
}
_CODE = re.compile(r"^(\w+:)?[0-9a-fA-F]{12,}$|^\S*[/\\()=]\S*$")
_METHODS = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli, for documents that depend on each other"}


def render(flagged: Flagged) -> str:
    """The whole report of a flagging as one HTML document."""
    told = flagged.outcome != "refused"
    texts = flagged.texts
    unit = "document" if texts.number < len(texts.ids) else "text"
    scored, number = len(texts.ids), flagged.flagged_documents
    title = _TITLES.get(flagged.outcome, f"{count(number)} of {plural(texts.number, unit)} flagged")
    values = {
        "flagged": flagged,
        "title": title,
        "statement": _rest(flagged.statement, title),
        "css": _CLASSES[flagged.outcome],
        "told": told,
        "failed": any(check.status == "failed" for check in flagged.checks),
        "scored": scored,
        "number": number,
        "rate": wording.share(flagged.fdr),
        "expected": expected(number, flagged.fdr),
        "documents": flagged.known.number,
        "asked": texts.number,
        "unit": unit,
        "test": flagged.set_test,
        "whole": " ".join(whole(flagged)),
        "set_p": _set_p(flagged),
        "level": wording.share(flagged.set_test.level) if flagged.set_test else "",
        "method": _METHODS.get(flagged.method, flagged.method),
        "rows": list(_rows(flagged)),
        "sides": to_svg(plots.sides(flagged), name="sides", label=_label(flagged)),
        "p_values": to_svg(plots.p_values(flagged), name="pvalues", label=_p_label(flagged)) if told else "",
        "checks": [(check, facts.line(check.figures)) for check in flagged.checks],
        "parts": [part for part in _parts(flagged.settings) if part[1]],
    }
    return str(fill("flagging/page.html", values))


def write(flagged: Flagged, path: Path) -> None:
    """Write the report, whole or not at all; OutputError where it cannot be written."""
    atomic_text(path, render(flagged))


def _rest(statement: str, title: str) -> str:
    """The statement without the word that stands above it already."""
    rest = statement.removeprefix(f"{title}: ")
    return rest[:1].upper() + rest[1:]


def _set_p(flagged: Flagged) -> str:
    """The p-value of the set; empty where it is withheld or in results of version 0.1."""
    test = flagged.set_test
    return "" if test is None or test.p is None else wording.p_value(test.p)


def _rows(flagged: Flagged) -> Iterator[dict[str, Any]]:
    """The texts with the highest scores, flagged or not."""
    texts = flagged.texts
    for i in sorted(range(len(texts.ids)), key=lambda i: -texts.scores[i])[:MOST_ROWS]:
        told = flagged.outcome != "refused"
        yield {
            "id": texts.ids[i],
            "group": texts.groups[i] if texts.groups[i] != texts.ids[i] else "",
            "score": float(texts.scores[i]),
            "p": wording.p_value(float(texts.p[i])) if told else "–",
            "q": wording.p_value(float(texts.q[i])) if told else "–",
            "flagged": texts.flagged[i],
        }


def _label(flagged: Flagged) -> str:
    return (
        f"The scores of {len(flagged.texts.ids)} texts, {flagged.number} of them flagged, beside those of "
        f"{len(flagged.known.ids)} known non-members."
    )


def _p_label(flagged: Flagged) -> str:
    p = plots.one_a_document(flagged)[0]
    return f"p-values of {len(p)} documents: {int((p <= 0.05).sum())} at or below 0.05, where 1 in 20 is due to chance."


def _parts(settings: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, str, bool]]]]:
    """Single settings first, then those that have parts, in the order in which they were recorded."""
    nested = {key: value for key, value in settings.items() if isinstance(value, Mapping) and value}
    single = {key: value for key, value in settings.items() if key not in nested and value is not None}
    yield "This flagging", _table(single)
    for role, value in facts.mapping(nested.pop("models", None)).items():
        yield f"The {role}", _table(facts.mapping(value))
    for key, value in nested.items():
        yield key.replace("_", " ").capitalize(), _table(value)


def _table(part: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    return [(name, value, bool(_CODE.match(value))) for name, value in facts.rows(part)]
