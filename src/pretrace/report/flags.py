"""One self-contained HTML file from a flagging: no script, no network, the same flagging the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from pretrace.flagging.words import expected, whole
from pretrace.report import facts, wording
from pretrace.report import flags_plots as plots
from pretrace.report.frame import Section, Sections, fill, speaking, titled, two_parts
from pretrace.report.svg import to_svg
from pretrace.report.wording import count, p_value, plural
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
_METHODS = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli, for documents that depend on each other"}


def first_page(flagged: Flagged) -> Markup:
    """The answer, what was compared, how far it can be trusted, the checks, and what would help."""
    values = _numbers(flagged)
    flags = f"{count(values['number'])} of {plural(values['asked'], values['unit'])} flagged"
    title = _TITLES.get(flagged.outcome, flags)
    label = (
        f"The scores of {len(flagged.texts.ids)} texts, {flagged.number} of them flagged, beside those of "
        f"{len(flagged.known.ids)} known non-members."
    )
    values |= {
        "title": title,
        "statement": wording.after(flagged.statement, f"{title}: "),
        "css": _CLASSES[flagged.outcome],
        "failed": any(check.status == "failed" for check in flagged.checks),
        "expected": expected(values["number"], flagged.fdr),
        "whole": " ".join(whole(flagged)),
        "sides": to_svg(plots.sides(flagged), name="sides", label=label),
    }
    return _filled("first", values)


def deciding_test(flagged: Flagged) -> Section:
    """Hypothesis, rate and what was found, for each text and for the set."""
    test, drawn = flagged.set_test, ""
    if flagged.outcome != "refused":
        p = plots.one_a_document(flagged)[0]
        due = f"{int((p <= 0.05).sum())} at or below 0.05, where 1 in 20 is due to chance."
        label = f"p-values of {len(p)} documents: {due}"
        drawn = to_svg(plots.p_values(flagged), name="pvalues", label=label)
    values = {
        "set_p": "" if test is None or test.p is None else p_value(test.p),
        "method": _METHODS.get(flagged.method, flagged.method),
        "p_values": drawn,
    }
    return Section("The test", "test", _filled("test", _numbers(flagged) | values))


def texts(flagged: Flagged) -> Section:
    """The texts with the highest scores, flagged or not."""
    found, told = flagged.texts, flagged.outcome != "refused"
    rows = [
        {
            "id": found.ids[i],
            "group": found.groups[i] if found.groups[i] != found.ids[i] else "",
            "score": float(found.scores[i]),
            "p": p_value(float(found.p[i])) if told else "–",
            "q": p_value(float(found.q[i])) if told else "–",
            "flagged": found.flagged[i],
        }
        for i in sorted(range(len(found.ids)), key=lambda i: -found.scores[i])[:MOST_ROWS]
    ]
    return Section("The texts", "texts", _filled("texts", _numbers(flagged) | {"rows": rows}))


def checks(flagged: Flagged) -> Section:
    """Each check with its figures."""
    return Section("The checks", "checks", _filled("checks", _numbers(flagged)))


def limits(flagged: Flagged) -> Section:
    """What a flagging cannot say."""
    return Section("What this cannot say", "limits", _filled("limits", _numbers(flagged)))


def repeating(flagged: Flagged) -> Section:
    """Everything needed to make the flagging again."""
    parts = facts.parts(flagged.settings, "This flagging", {})
    return Section("To repeat this", "repeat", _filled("repeating", {"parts": parts}))


SECTIONS: Sections[Flagged] = (deciding_test, texts, checks, limits, repeating)
"""The sections of the technical part in reading order. One of your own: `write(flagged, path, (*SECTIONS, mine))`."""


def render(flagged: Flagged, sections: Sections[Flagged] = SECTIONS) -> str:
    """The whole report of a flagging as one HTML document."""
    title = titled("Flagged texts", flagged.corpus, flagged.model)
    return two_parts(title, first_page(flagged), speaking(sections, flagged))


def write(flagged: Flagged, path: Path, sections: Sections[Flagged] = SECTIONS) -> None:
    """Write the report, whole or not at all; OutputError where it cannot be written."""
    atomic_text(path, render(flagged, sections))


def _filled(template: str, values: dict[str, Any]) -> Markup:
    return Markup(fill(f"flags/{template}.html", values).rstrip("\n"))


def _numbers(flagged: Flagged) -> dict[str, Any]:
    """What the first page and several sections print."""
    judged, test = flagged.texts, flagged.set_test
    return {
        "flagged": flagged,
        "told": flagged.outcome != "refused",
        "scored": len(judged.ids),
        "asked": judged.number,
        "unit": "document" if judged.number < len(judged.ids) else "text",
        "number": flagged.flagged_documents,
        "documents": flagged.known.number,
        "rate": wording.share(flagged.fdr),
        "test": test,
        "level": wording.share(test.level) if test else "",
        "checks": [(check, facts.line(check.figures)) for check in flagged.checks],
    }
