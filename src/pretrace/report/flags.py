"""What the report of a flagging has of its own: its first page, its sections, and the scores of both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from pretrace.registry import test_pages
from pretrace.report import verdict
from pretrace.report.figures import CHANCE, INK, MEMBER, WIDTH, TestFigure, canvas, hide_height
from pretrace.report.frame import section
from pretrace.results import wording
from pretrace.results.run import score_bars
from pretrace.results.wording import named, plural, say, sentences_of
from pretrace.types import Verdict
from pretrace.verdicts.flag.flag import expected, set_test, tried, whole

_MOST = 100
"""Texts in the report; flags.csv has all."""
_OTHER = "#b9cbd8"


@section("The test", "test", "flags/test.html")
def _test_of_flagging(flagged: Verdict) -> dict[str, Any]:
    """Hypothesis, rate and what was found, for each text and for the set."""
    methods, method = sentences_of("report.flag_methods"), flagged.figures["method"]
    return _numbers(flagged) | {"method": methods.get(method, method)}


@section("The texts", "texts", "flags/texts.html")
def _texts(flagged: Verdict) -> dict[str, Any]:
    """The texts with the highest scores, flagged or not."""
    found, told = flagged.table("flags"), flagged.outcome != "refused"
    ids, groups, scores = found["id"], found["group"], found["score"]
    rows = [
        {
            "id": ids[i],
            "group": groups[i] if groups[i] != ids[i] else "",
            "score": float(scores[i]),
            **{name: wording.p_value(float(found[name][i])) if told else "–" for name in ("p", "q")},
            "flagged": told and bool(found["flagged"][i]),
        }
        for i in sorted(range(len(found)), key=lambda i: -scores[i])[:_MOST]
    ]
    table = "flags/" if flagged.figures.get("whole") else "flags.csv"
    return _numbers(flagged) | {"rows": rows, "table": table}


def _numbers(flagged: Verdict) -> dict[str, Any]:
    counts = flagged.figures["counts"]
    return {
        "flagged": flagged,
        "figures": flagged.figures,
        "counts": counts,
        "told": flagged.outcome != "refused",
        "unit": "document" if counts["documents"] < counts["texts"] else "text",
        "number": counts["flagged_documents"],
        "test": set_test(flagged),
    }


@test_pages.add("flag")
class _FlagPage(verdict.TestPage):
    """The texts in question beside the known non-members."""

    kind, made, template = "Flagged texts", "flagging", "flags/first.html"
    names_skipped = True
    every = (
        *(_test_of_flagging, _texts, verdict.checked),
        section("What this cannot say", "limits", "flags/limits.html")(_numbers),
        *(verdict.repeating, verdict.other_tests),
    )

    @classmethod
    def values(cls, flagged: Verdict, shared: Mapping[str, Any]) -> dict[str, Any]:
        numbers, title = _numbers(flagged), shared["title"]
        if flagged.outcome == "flagged":
            every = plural(numbers["counts"]["documents"], numbers["unit"])
            title = f"{wording.count(numbers['number'])} of {every} flagged"
        return numbers | {
            "title": title,
            "often": "",
            "expected": expected(numbers["number"], flagged.figures["fdr"]),
            "whole": " ".join(whole(set_test(flagged), flagged.units)),
            "tried": " ".join(tried(flagged.outcome, flagged.planted)),
        }

    @staticmethod
    def identify_texts(flagged: Verdict) -> Iterator[verdict.IdentityRow]:
        counts = flagged.figures["counts"]
        for label, part, name, texts, documents in (
            ("Texts", "texts", flagged.corpus, "texts", "documents"),
            ("Known non-members", "nonmembers", flagged.figures["nonmembers"], "known", "known_documents"),
        ):
            of = f" of {plural(counts[documents], 'document')}" if counts[documents] < counts[texts] else ""
            counted = f"{named(name)}, {plural(counts[texts], 'text')}{of}"
            yield label, counted, verdict.hash_of(flagged, part)

    @staticmethod
    def draw(flagged: Verdict) -> TestFigure:
        """Above the texts, flagged ones dark; below the known ones, both as shares; a line at the least flagged."""
        counts = flagged.figures["counts"]
        if whole := flagged.figures.get("whole"):
            bars, least = whole["scores"], whole["least"]
        else:
            found = flagged.table("flags")
            scores, chosen = found["score"], np.ma.filled(found["flagged"], False)
            bars = score_bars(scores, chosen, flagged.table("known")["score"])
            least = float(scores[chosen].min()) if chosen.any() else None
        low, high = bars["low"], bars["high"]
        with canvas(WIDTH, 2.6) as (figure, axes):
            edges = np.linspace(low, high, len(bars["every"]) + 1)
            texts, others = max(1, sum(bars["every"])), max(1, sum(bars["known"]))
            every, dark = (np.divide(bars[one], texts) for one in ("every", "flagged"))
            known = np.divide(bars["known"], others)
            axes.stairs(every, edges, fill=True, color=_OTHER)
            axes.stairs(dark, edges, fill=True, color=MEMBER)
            axes.stairs(-known, edges, color=INK, linewidth=1.1)
            axes.axhline(0, color=CHANCE, linewidth=0.8)
            top = max(float(every.max()), float(known.max())) * 1.25
            axes.set_ylim(-top, top)
            pad = (high - low) / 60
            axes.set_xlim(low - pad, high + pad)
            # documents have no line of their texts
            if least is not None and flagged.units == counts["texts"]:
                place = float(np.clip(least, low, high))
                axes.plot([place, place], [-top, top], color=INK, linewidth=0.9, dashes=(2, 1.6))
                right = place < low + 0.75 * (high - low)
                words = "  flagged from here on" if right else "flagged from here on  "
                axes.text(place, top, words, ha="left" if right else "right", va="top", fontsize=9)
            axes.text(low, top, "the texts", va="top", fontsize=9)
            axes.text(low, -top, "known non-members", va="bottom", fontsize=9)
            hide_height(axes)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
            axes.set_xlabel("score (higher: more like a text the model was trained on)")
        flags = ", the flagged ones dark" if counts["flagged_documents"] else ""
        shape = say("report.drawn.shape") if flagged.outcome != "refused" else ""
        label = say("report.drawn.scores", **{name: counts[name] for name in ("texts", "flagged", "known")})
        return TestFigure(figure, label, say("report.drawn.above", dark=flags, shape=shape and f" {shape}"))
