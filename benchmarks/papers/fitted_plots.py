"""Plots of the fitted detectors on published benchmarks: ours with intervals, a mark a seed, beside the papers'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmarks.plots import OURS
from pretrace.report.plots import save_png
from pretrace.report.svg import styled

OTHER, PUBLISHED, CHANCE, PALE = "#c0682c", "#8c8c8c", "#8a8a8a", "#dcdcdc"
MEASURES = {"auc": ("AUC", 0.5), "tpr": ("TPR at 5% FPR", 0.05)}
Row = Mapping[str, Any]


def draw_arxivtection(found: Mapping[str, Any], path: Path) -> None:
    """Base scores and FSD under both protocols, the paper's five models, the blind baselines."""
    rows = found["rows"]
    names = _names(rows)
    with styled():
        figure = Figure(figsize=(9.4, 1.7 + 0.56 * len(names)), layout="constrained")
        for axes, measure in zip(figure.subplots(1, 2, sharey=True), MEASURES, strict=True):
            _frame(axes, names, measure)
            for protocol, colour, lane in (("passages", OURS, 0.0), ("articles", OTHER, 0.28)):
                some = [row for row in rows if row["protocol"] == protocol]
                _seeds(axes, names, some, measure=measure, colour=colour, lane=lane)
            _published(axes, names, found["published"], measure=measure)
        marks = [
            _mark(OURS, "o", "split by passage, as the paper does"),
            _mark(OTHER, "o", "split by article"),
            _mark(PUBLISHED, "|", "paper, five models of 6B to 20B"),
        ]
        figure.legend(handles=marks, loc="outside lower center", ncol=3, frameon=False, fontsize=8)
        figure.suptitle(_title("arXivTection, FSD", found), fontsize=9)
    save_png(figure, path, dpi=150)


def draw_arxiv_mia(found: Mapping[str, Any], path: Path) -> None:
    """Every score with its shuffled labels and the paper's figures; neurons by layer and sensitivity of NA-PDD."""
    rows = found["rows"]
    names = _names(rows)
    with styled():
        figure = Figure(figsize=(9.8, 4.6 + 0.42 * len(names)), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=[1.1 + 0.42 * len(names), 3.4])
        upper, lower = parts
        for axes, measure in zip(upper.subplots(1, 2, sharey=True), MEASURES, strict=True):
            _frame(axes, names, measure)
            _shuffled(axes, names, rows, measure)
            _seeds(axes, names, rows, measure=measure, colour=OURS, lane=0.1)
            _published(axes, names, found["published"], measure=measure)
        marks = [
            _mark(OURS, "o", "here, an interval a seed"),
            _mark(PUBLISHED, "|", "paper, TinyLLaMA-1.1B and OpenLLaMA-13B"),
            Line2D([], [], color=PALE, linewidth=7, label="shuffled labels, all fits of all seeds"),
        ]
        upper.legend(handles=marks, loc="outside lower center", ncol=3, frameon=False, fontsize=8)
        fitted = [run["fitted"]["na_pdd"] for run in found["runs"] if "na_pdd" in run.get("fitted", {})]
        if fitted:
            _inside(lower, fitted)
        figure.suptitle(_title("ArxivMIA", found), fontsize=9)
    save_png(figure, path, dpi=150)


def _frame(axes: Any, names: Sequence[str], measure: str) -> None:
    """The empty panel: a line a score, chance marked, the axis from 0 to 1 for rates and around 0.5 for AUC."""
    title, chance = MEASURES[measure]
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.axvline(chance, color=CHANCE, linewidth=0.9)
    for place in range(1, len(names)):
        axes.axhline(place - 0.5, color="#f0f0f0", linewidth=0.6, zorder=0)
    axes.grid(axis="x")
    axes.set_xlabel(title)
    axes.spines["left"].set_visible(False)


def _seeds(
    axes: Any, names: Sequence[str], rows: Sequence[Row], *, measure: str, colour: str, lane: float
) -> None:
    """A dot with its interval for every seed, a little apart."""
    seeds = sorted({row["seed"] for row in rows})
    for row in rows:
        value, low, high = row[measure]
        place = names.index(row["score"]) + lane + 0.08 * (seeds.index(row["seed"]) - (len(seeds) - 1) / 2)
        axes.plot([low, high], [place, place], color=colour, linewidth=0.9, alpha=0.75)
        axes.plot([value], [place], "o", color=colour, markersize=3.4)


def _published(axes: Any, names: Sequence[str], rows: Sequence[Row], *, measure: str) -> None:
    """A tick for every model of the paper, at the upper edge of the score's line."""
    for row in rows:
        if measure in row and row["score"] in names:
            place = names.index(row["score"]) - 0.27
            axes.plot([row[measure]], [place], "|", color=PUBLISHED, markersize=7, markeredgewidth=1.5)


def _shuffled(axes: Any, names: Sequence[str], rows: Sequence[Row], measure: str) -> None:
    """From the lowest to the highest figure of any fit on shuffled labels."""
    for name in names:
        ranges = [row["shuffled"][measure] for row in rows if row["score"] == name and "shuffled" in row]
        if ranges:
            place = names.index(name) + 0.1
            ends = [min(low for _, low, _ in ranges), max(high for _, _, high in ranges)]
            axes.plot(ends, [place, place], color=PALE, linewidth=7, solid_capstyle="butt", zorder=1)


def _inside(figure: Any, fitted: Sequence[Row]) -> None:
    """S by layer, a line a seed, and how the AUC within the reference depends on each parameter."""
    layers, *panels = figure.subplots(1, 4, width_ratios=[1.6, 1, 1, 1])
    for facts in fitted:
        places = [entry["layer"] for entry in facts["layers"]]
        values = [entry["difference"] for entry in facts["layers"]]
        layers.plot(places, values, color=OURS, linewidth=1.0)
        chosen = [(p, v) for p, v, e in zip(places, values, facts["layers"], strict=True) if e["chosen"]]
        layers.plot(*zip(*chosen, strict=True), "o", color=OURS, markersize=3.2, linestyle="none")
    layers.axhline(0, color=CHANCE, linewidth=0.9)
    layers.set_xlabel("layer (dots: chosen)")
    layers.xaxis.set_major_locator(MaxNLocator(integer=True))
    layers.set_ylabel("S: member minus non-member neurons", fontsize=8)
    words = {"threshold": "threshold τ", "alpha": "ratio α", "k": "layers K"}
    for axes, (name, label) in zip(panels, words.items(), strict=True):
        axes.axhline(0.5, color=CHANCE, linewidth=0.9)
        for facts in fitted:
            along = _along(facts, name)
            axes.plot([p for p, _ in along], [v for _, v in along], ".-", color=OURS, linewidth=1.0)
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=name == "k"))
        axes.sharey(panels[0])
        axes.grid(axis="y")
    panels[0].set_ylabel("AUC, halves of the reference", fontsize=8)


def _along(facts: Row, name: str) -> list[tuple[float, float]]:
    """The points of a sensitivity that differ from the settings used in one parameter alone."""
    layers = len(facts["layers"])
    used = {**facts["settings"], "k": min(facts["settings"]["k"], layers)}
    others = [other for other in ("threshold", "alpha", "k") if other != name]
    return sorted(
        (point[name], point["auc"])
        for point in facts["sensitivity"]
        if all(point[other] == used[other] for other in others)
    )


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["score"] for row in rows))


def _mark(colour: str, marker: str, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linestyle="none", label=label, markeredgewidth=1.5)


def _title(what: str, found: Mapping[str, Any]) -> str:
    settings, seeds = found["settings"], {run["seed"] for run in found["runs"]}
    texts, model = found["texts"]["number"], Path(settings["model"]).name
    return (
        f"{what}: {texts:,} texts, {model} in {settings['dtype']}, {len(seeds)} seed{'s' * (len(seeds) > 1)}"
    )
