"""One self-contained HTML file from a flagging: no script, no network, the same flagging the same bytes.

Its figures are made to be read without colour: filled against outlined, dark against light.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

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
from pretrace.report.plots import CHANCE, KINDS
from pretrace.report.svg import canvas, hide_height, to_svg
from pretrace.report.wording import count, named, p_value, plural
from pretrace.results.run import p_bars, score_bars
from pretrace.results.serialization import from_plain
from pretrace.types import Bars, Doubles, Verdict
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
FLAG, OTHER, KNOWN = KINDS["member"], "#b9cbd8", "#1c1c1c"
WIDTH = 7.6


def first_page(flagged: Verdict) -> Markup:
    """The answer, what was compared, how far it can be trusted, the checks, and what would help."""
    values = _numbers(flagged)
    flags = f"{count(values['number'])} of {plural(values['asked'], values['unit'])} flagged"
    title = _TITLES.get(flagged.outcome, flags)
    label = (
        f"The scores of {values['scored']} texts, {values['texts_flagged']} of them flagged, beside those of "
        f"{flagged.figures['counts']['known']} known non-members."
    )
    values |= first_values(flagged, title)
    if flagged.outcome == "refused":
        values["foreseen"] = None
    values |= {
        "css": _CLASSES[flagged.outcome],
        "expected": expected(values["number"], flagged.figures["fdr"]),
        "whole": " ".join(whole(set_test(flagged), flagged.units)),
        "tried": " ".join(tried(flagged.outcome, flagged.planted)),
        "rows": tuple(identity(flagged)),
        "sides": to_svg(sides(flagged), name="sides", label=label),
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
        bars, low = _p_bars(flagged)
        due = f"{low} at or below 0.05, where 1 in 20 is due to chance."
        label = f"p-values of {sum(bars.every)} documents: {due}"
        drawn = to_svg(p_values(flagged), name="pvalues", label=label)
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


def sides(flagged: Verdict) -> Figure:
    """Above the texts, flagged ones dark; below, turned down, the known non-members; a line at the least flagged
    score, where each text is a document. Each side is drawn as shares of its own."""
    bars, least = _score_bars(flagged)
    low, high = bars.low, bars.high
    edges = np.linspace(low, high, len(bars.every) + 1)
    with canvas(WIDTH, 2.6) as (figure, axes):
        every, dark, below = _shares(bars)
        axes.stairs(every, edges, fill=True, color=OTHER)
        axes.stairs(dark, edges, fill=True, color=FLAG)
        axes.stairs(-below, edges, color=KNOWN, linewidth=1.1)
        axes.axhline(0, color=CHANCE, linewidth=0.8)
        top = max(float(every.max()), float(below.max())) * 1.25
        axes.set_ylim(-top, top)
        pad = (high - low) / 60
        axes.set_xlim(low - pad, high + pad)
        if (
            least is not None and flagged.units == flagged.figures["counts"]["texts"]
        ):  # documents have no line of their texts
            _threshold(axes, least, (low, high), top)
        axes.text(low, top, "the texts", va="top", fontsize=9)
        axes.text(low, -top, "known non-members", va="bottom", fontsize=9)
        hide_height(axes)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
        axes.set_xlabel("score (higher: more like a text the model was trained on)")
    return figure


def p_values(flagged: Verdict) -> Figure:
    """The p-values of the documents as shares, with the level that they would have if none had been seen."""
    bars, _ = _p_bars(flagged)
    edges = np.linspace(0, 1, len(bars.every) + 1)
    with canvas(WIDTH, 1.9) as (figure, axes):
        every, dark, _ = _shares(bars)
        axes.stairs(every, edges, fill=True, color=OTHER)
        axes.stairs(dark, edges, fill=True, color=FLAG)
        axes.axhline(1 / (len(edges) - 1), color=KNOWN, linewidth=0.9, dashes=(4, 2.2))
        axes.set_xlim(-0.01, 1.01)
        axes.set_xlabel("p-value")
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f}%"))
        axes.set_ylabel("documents")
        axes.grid(axis="y")
    return figure


def _score_bars(flagged: Verdict) -> tuple[Bars, float | None]:
    if whole := flagged.figures.get("whole"):
        return from_plain(Bars, whole["scores"], "scores"), whole["least"]
    texts = flagged.table("flags")
    scores, chosen = texts["score"], np.ma.filled(texts["flagged"], False)
    least = float(scores[chosen].min()) if chosen.any() else None
    return score_bars(scores, chosen, flagged.table("known")["score"]), least


def _p_bars(flagged: Verdict) -> tuple[Bars, int]:
    whole = flagged.figures.get("whole") or {}
    if whole.get("p"):
        return from_plain(Bars, whole["p"], "p"), whole["low_p"]
    texts = flagged.table("flags")  # a document has one p-value, however many texts
    first = np.unique(np.array(texts["document"], dtype=object), return_index=True)[1]
    p, chosen = texts["p"][first], texts["flagged"][first]
    return p_bars(p, chosen), int((p <= 0.05).sum())


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


def _threshold(axes: Axes, least: float, reach: tuple[float, float], top: float) -> None:
    place = float(np.clip(least, *reach))
    axes.plot([place, place], [-top, top], color=KNOWN, linewidth=0.9, dashes=(2, 1.6))
    right = place < reach[0] + 0.75 * (reach[1] - reach[0])
    words = "  flagged from here on" if right else "flagged from here on  "
    axes.text(place, top, words, ha="left" if right else "right", va="top", fontsize=9)


def _shares(bars: Bars) -> tuple[Doubles, Doubles, Doubles]:
    """Each bar as a share: of all in question, of these the flagged, and of the known ones."""
    every, known = sum(bars.every), sum(bars.known)
    counts = ((bars.every, every), (bars.flagged, every), (bars.known, known))
    all_, dark, below = (np.array(some) / max(1, of) for some, of in counts)
    return all_, dark, below
