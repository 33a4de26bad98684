"""The report of a run: one self-contained HTML file, no script, no network, the same run the same bytes.

A section gives a heading and markup, or None where the run has nothing to say on it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from pretrace.report import facts, plots
from pretrace.report.fitted import fitted
from pretrace.report.frame import ReportPage, Sections, section, titled
from pretrace.report.heat import MAX_PIECES, heat_step, shown
from pretrace.report.svg import to_svg
from pretrace.results import wording
from pretrace.results.run import axis_range, counts
from pretrace.types import Run

_MOST_MAPS = 24


def _many(run: Run) -> bool:
    """Whether an evaluation has so many scores that their curves and shapes are for the appendix."""
    return run.evaluation is not None and len(run.scores) > FEW


@section("Texts, token by token", "tokens", "run/tokens.html", appendix=_many)
def tokens(run: Run) -> dict[str, Any] | None:
    """Token heat maps of the texts that the run kept for this; nothing where it kept none."""
    maps = []
    for heat in run.heat[:_MOST_MAPS]:
        pieces = zip(heat.pieces[:MAX_PIECES], heat.logp[:MAX_PIECES], strict=True)
        score = run.scores[0] if heat.id in run.ids and run.scores else None
        own = {
            "heat": heat,
            "pieces": [(shown(piece), *_surprise(logp)) for piece, logp in pieces],
            "score": score and (score, float(run.column(score)[run.ids.index(heat.id)])),
        }
        maps.append(own)
    return {"maps": maps, "hidden": len(run.heat) - len(maps)} if maps else None


def _surprise(logp: float | None) -> tuple[str, str]:
    """The class and the title of a token."""
    step = heat_step(logp)
    if logp is None or step is None:
        return "hn", "not predicted: the model had nothing to read before it"
    probability = math.exp(min(logp, 0.0))
    odds = wording.one_in(probability)
    title = f"log-probability {wording.fixed(logp)} nats; probability {wording.significant(probability, 3)}"
    return f"h{step}", f"{title} ({odds})" if odds else title


_MOST_SKIPPED = 50
_FEWEST_FOR_HISTOGRAM = 5
"""Below this a histogram shows the texts, not a distribution; the table of texts says more."""
_COLUMNS, _EDGE = 4, 10
FEW = 6
"""Scores of an evaluation up to which curves, shapes and comparisons are printed with the report."""
_LABELS = {"member": True, "nonmember": False, "unlabelled": None}
_LABEL_WORDS = {True: "known member", False: "known non-member", None: "no label"}
_CARD = {"size": "Size", "licence": "Licence", "citation": "Source", "home": "Where"}
_ADDRESS = re.compile(r"https?://[^\s\"'<>]+")


@section("Summary", "summary", "run/summary.html")
def _summary(run: Run) -> dict[str, Any]:
    """What was asked, of which model and which texts, and what was found."""
    return {
        "run": run,
        "counts": counts(run),
        "model": facts.model_name(run),
        "others": {role: name for role, name in facts.model_names(run).items() if role != "target"},
        "weights": str(facts.of_model(run, "target").get("weights") or ""),
        "hash": str(facts.mapping(run.settings.get("texts")).get("sha256") or ""),
        "served": facts.served(run.settings),
    }


@section("The benchmark", "benchmark", "run/benchmark.html")
def benchmark(run: Run) -> dict[str, Any] | None:
    """The card of a published benchmark: what its texts are, and what a figure on them does not show."""
    card = facts.mapping(run.settings.get("texts")).get("card")
    if not isinstance(card, Mapping):
        return None
    flaws, home = card.get("flaws") or (), str(card.get("home") or "")
    return {
        "title": str(card.get("title") or run.corpus),
        "what": str(card.get("what") or ""),
        "flaws": list(map(str, flaws)) if isinstance(flaws, list | tuple) else [str(flaws)],
        "facts": {name: str(card[key]) for key, name in _CARD.items() if card.get(key)},
        "link": home if _ADDRESS.fullmatch(home) else "",
    }


@section("Results", "results", "run/results.html")
def _results(run: Run) -> dict[str, Any] | None:
    """How well each score told members from non-members, in a table and a plot; nothing without an evaluation."""
    rows = facts.compared(run)
    if run.evaluation is None or not rows:
        return None
    label = f"AUC of {len(rows)} rows with 95% intervals; the same numbers stand in the table."
    return {
        "evaluation": run.evaluation,
        "texts": counts(run)["texts"],
        "scores": [row for row in rows if row.kind == "score"],
        "controls": [row for row in rows if row.kind != "score"],
        "strongest": facts.control(run),
        "elsewhere": facts.elsewhere(run),
        "with_low": any(row.tpr_low is not None for row in rows),
        "forest": to_svg(plots.forest(rows), name="forest", label=label),
    }


@section("AUC by the number of copies", "copies", "run/copies.html")
def _by_copies(run: Run) -> dict[str, Any] | None:
    """The AUC of each score for members with so many copies in the training data; nothing where none were counted."""
    found = run.evaluation.by_copies if run.evaluation else ()
    if not found:
        return None
    spans = sorted({(one.least, one.most) for one in found})
    members = {least: max(one.members for one in found if one.least == least) for least, _ in spans}
    cells, scored = {(one.score, one.least): one.auc for one in found}, {one.score for one in found}
    rows = [(name, [cells.get((name, least)) for least, _ in spans]) for name in run.scores if name in scored]
    return {"spans": [(least, most, members[least]) for least, most in spans], "rows": rows}


@section("Controls", "controls", "run/controls.html")
def controls(run: Run) -> dict[str, Any] | None:
    """What the scores reach on a model that never saw the members, and with shuffled labels; nothing without either."""
    rows = run.evaluation.rows if run.evaluation else ()
    by_kind = {kind: {row.name: row for row in rows if row.kind == kind} for kind in ("placebo", "shuffled")}
    found = [
        (row, {kind: one for kind, of in by_kind.items() if (one := of.get(row.name))})
        for row in rows
        if row.kind == "score" and any(row.name in of for of in by_kind.values())
    ]
    if not found or run.evaluation is None:
        return None
    label = f"AUC of {len(found)} scores beside their controls; the same numbers stand in the tables."
    lanes = [(row.name, {one.kind: one.auc for one in (row, *beside.values())}) for row, beside in found]
    return {
        "placebos": [(row, beside["placebo"]) for row, beside in found if "placebo" in beside],
        "shuffled": [(row, beside["shuffled"]) for row, beside in found if "shuffled" in beside],
        "repeats": {c.score: c.values.shape[1] for c in run.controls if c.kind == "shuffled"},
        "placebo": facts.model_names(run).get("placebo", ""),
        "evaluation": run.evaluation,
        "plot": to_svg(plots.across(lanes, room=0.75), name="controls", label=label),
    }


@section("ROC curves", "roc", "run/curves.html", appendix=_many)
def _curves(run: Run) -> dict[str, Any] | None:
    """ROC curves on linear and on logarithmic axes with one legend; nothing without an evaluation."""
    rows, evaluation = facts.compared(run), run.evaluation
    if evaluation is None or not rows:
        return None
    drawn = list(zip(rows, plots.strokes(rows), strict=True))
    # The logarithmic axes start at half of the smallest rate that a single text can make.
    log = plots.roc(rows, floor=0.5 / max(10, evaluation.nonmembers, evaluation.members))
    return {
        "linear": to_svg(plots.roc(rows), name="roc", label="ROC curves, linear axes"),
        "logarithmic": to_svg(log, name="roc-log", label="ROC curves, logarithmic axes"),
        "drawn": [(row, stroke) for row, stroke in drawn if stroke.colour != plots.REST],
        "rest": sum(stroke.colour == plots.REST for _, stroke in drawn),
        "rest_colour": plots.REST,
        "chance_colour": plots.CHANCE,
        "nonmembers": evaluation.nonmembers,
    }


@section("Is one score better than another?", "comparisons", "run/comparisons.html", appendix=_many)
def comparisons(run: Run) -> dict[str, Any] | None:
    """The differences in AUC from the score fixed beforehand; nothing without an evaluation of two scores or more."""
    if run.evaluation is None or not run.evaluation.comparisons:
        return None
    found = run.evaluation.comparisons
    ordered = sorted(found, key=lambda one: -one.difference.value)
    return {"found": ordered, "first": found[0], "resamples": run.evaluation.resamples}


@section("Distributions of the scores", "distributions", "run/distributions.html", appendix=_many)
def _distributions(run: Run) -> dict[str, Any] | None:
    """How each score is distributed over the texts: one small histogram a score; nothing for a handful of texts."""
    sampled, run = run.whole.sampled if run.whole else 0, facts.drawn(run)
    if len(run.ids) < _FEWEST_FOR_HISTOGRAM or not run.scores:
        return None
    masks = {kind: np.array([member is label for member in run.members]) for kind, label in _LABELS.items()}
    kinds = [kind for kind, mask in masks.items() if mask.any()]
    panels = []
    for number, score in enumerate(run.scores):
        whole = run.column(score)
        known = np.isfinite(whole)
        column, (low, high) = whole[known], axis_range(whole[known])
        found = ((kind, run.median(score, _LABELS[kind])) for kind in kinds)
        medians = ", ".join(f"median of {kind} texts {one:.4g}" for kind, one in found if one is not None)
        figure = plots.distribution({kind: whole[known & masks[kind]] for kind in kinds})
        drawn = to_svg(figure, name=f"histogram-{number}", label=f"Histogram of {score}: {medians}")
        beyond = int(((column < low) | (column > high)).sum())
        panels.append((score, drawn, beyond, 0 if known.all() else len(column)))
    return {"panels": panels, "kinds": kinds, "colours": plots.KINDS, "sampled": sampled}


@section("Scores of the texts", "texts", "run/texts.html")
def _texts(run: Run) -> dict[str, Any] | None:
    """Ranges of the scores, and the texts from the top and the bottom; nothing where an evaluation speaks instead."""
    if run.evaluation is not None or not run.ids or not run.scores:
        return None
    order = np.argsort(-run.column(run.scores[0]), kind="stable").tolist()
    count, sampled = counts(run)["texts"], run.whole.sampled if run.whole else 0
    whole, ranks = len(order) <= 2 * _EDGE, [*range(1, len(order) + 1)]
    if not whole:
        order, ranks = order[:_EDGE] + order[-_EDGE:], [*ranks[:_EDGE], *range(count - _EDGE + 1, count + 1)]
    columns = run.scores[:_COLUMNS]
    drawn, every = facts.drawn(run), {score: run.quartiles(score) for score in run.scores}
    return {
        "run": run,
        "count": count,
        "sampled": sampled,
        "columns": columns,
        # the ends are those of all texts, the quarters those of the texts that were drawn
        "ranges": [(name, (q[0], *drawn.quartiles(name)[1:-1], q[-1])) for name, q in every.items()],
        "rows": [
            (rank, i, _LABEL_WORDS[run.members[i]], run.matrix[i, :_COLUMNS])
            for rank, i in zip(ranks, order, strict=True)
        ],
        "gap": 0 if whole else _EDGE,
        "labels": any(member is not None for member in run.members),
    }


@section("What was cut and skipped", "skipped", "run/skipped.html", appendix=True)
def skipped(run: Run) -> dict[str, Any]:
    """What was cut and what was skipped: counts, shares and the names of up to fifty texts of each kind."""
    cut = [(run.ids[i], int(run.tokens[i]), int(run.cut[i])) for i in np.flatnonzero(run.cut > 0)]
    reasons = Counter(text.reason for text in run.skipped).most_common()
    return {
        "run": run,
        "whole": run.whole,
        "counts": counts(run),
        "cut": cut[:_MOST_SKIPPED],
        "reasons": list(run.whole.reasons.items()) if run.whole else reasons,
        "most": _MOST_SKIPPED,
    }


@section("Settings", "settings", "run/settings.html", appendix=True)
def settings(run: Run) -> dict[str, Any] | None:
    """The settings as one table of names and values: enough to make the run again."""
    rows = facts.settings_rows(run.settings, "run.json")
    return {"rows": rows} if rows else None


@section("What the numbers mean, and what they do not", "limits", "run/limits.html")
def _limits(run: Run) -> dict[str, Any]:
    """What the figures rest on."""
    strongest, elsewhere = facts.control(run), facts.elsewhere(run)
    return {"run": run, "counts": counts(run), "strongest": strongest, "elsewhere": elsewhere}


SECTIONS: Sections[Run] = (
    *(_summary, benchmark, _results, _by_copies, controls, _curves, comparisons, _distributions, _texts),
    *(tokens, _limits, fitted, skipped, settings),
)
"""The sections of a run's report in reading order."""


PAGE = ReportPage(
    lambda run: titled("Membership report", run.corpus, facts.model_name(run)),
    SECTIONS,
    lambda run: {"run": run, "model": facts.model_name(run)},
    template="run/page.html",
)
render = PAGE.render
