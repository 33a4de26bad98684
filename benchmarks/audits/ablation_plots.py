"""The plot of the ablations: how far apart the texts are and what two procedures say, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.papers.fitted_plots import CHANCE, OTHER, PUBLISHED
from benchmarks.plots import OURS
from pretrace.report.plots import save_png
from pretrace.report.svg import styled

Row = Mapping[str, Any]
KINDS = {"member": OURS, "null": OTHER}
PROCEDURES = {"paper": "p of the paper's procedure", "pretrace": "p of the default procedure"}
LOWEST = 1e-5
"""Where the axis of p ends; what lies below is drawn there."""
_LEVEL = 0.05


def draw_ablations(found: Mapping[str, Any], titles: Mapping[str, str], path: Path) -> None:
    """The panels, a line a setting, as `path` with the ending .png."""
    rows = found["rows"]
    names = [name for name in titles if any(row["setting"] == name for row in rows)]
    with styled():
        figure = Figure(figsize=(11.4, 1.9 + 0.42 * len(names)), layout="constrained")
        panels = figure.subplots(1, 3, sharey=True, width_ratios=[1.1, 1, 1])
        _frame(panels[0], [titles[name] for name in names])
        _gaps(panels[0], names, rows, found["published"])
        for axes, procedure in zip(panels[1:], PROCEDURES, strict=True):
            _frame(axes, None)
            _ps(axes, names, [row for row in rows if row.get("procedure") == procedure], procedure)
            if procedure == "paper":
                _published(axes, names, found["published"])
        marks = [
            _mark(OURS, "o", "audits of texts the target was trained on"),
            _mark(OTHER, "o", "audits of others"),
            _mark(PUBLISHED, "|", "paper (its marks above: trained on, below: others)"),
        ]
        figure.legend(handles=marks, loc="outside lower center", ncol=3, frameon=False, fontsize=8)
        size = found["settings"]["pairs"]
        figure.suptitle(
            f"Leaving out parts of post-hoc dataset inference: audits of at most {size} pairs, small Llamas, one epoch",
            fontsize=9,
        )
    save_png(figure, path.with_suffix(".png"), dpi=150)


def _frame(axes: Any, labels: Sequence[str] | None) -> None:
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    if labels is not None:
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.4, -0.6)


def _gaps(axes: Any, names: Sequence[str], rows: Sequence[Row], published: Sequence[Row]) -> None:
    """AUC of the classifiers that see texts alone: bag of words above, the transformer below it."""
    kinds = [k for k in dict.fromkeys(row.get("classifier") for row in rows) if k and k != "length"]
    for lane, kind in enumerate(kinds):
        shift = 0.26 * (lane - (len(kinds) - 1) / 2)
        for row in (row for row in rows if row.get("classifier") == kind):
            place = names.index(row["setting"]) + shift
            value, low, high = row["auc"]
            axes.plot([low, high], [place, place], color=OURS, linewidth=1.2)
            fill = OURS if lane == 0 else "white"
            axes.plot([value], [place], "o", markersize=4.5, markeredgecolor=OURS, markerfacecolor=fill)
        for row in (row for row in published if row.get("classifier") == kind and row["setting"] in names):
            place = names.index(row["setting"]) + shift
            axes.plot([row["auc"]], [place], "|", color=PUBLISHED, markersize=9, markeredgewidth=1.6)
    axes.axvline(0.5, color=CHANCE, linewidth=0.9)
    axes.set_xlim(0.35, 1.02)
    axes.set_title(f"AUC from texts alone ({', then '.join(kinds)})", fontsize=9)


def _ps(axes: Any, names: Sequence[str], rows: Sequence[Row], procedure: str) -> None:
    """A point an audit."""
    for lane, (kind, colour) in enumerate(KINDS.items()):
        some = [row for row in rows if row["kind"] == kind]
        places = [names.index(row["setting"]) - 0.15 + 0.3 * lane for row in some]
        axes.plot(
            [max(row["p"], LOWEST) for row in some], places, "o", markersize=4.5, color=colour, alpha=0.7
        )
    axes.axvline(_LEVEL, color=CHANCE, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    axes.set_xlim(LOWEST / 1.5, 1.5)
    axes.set_title(PROCEDURES[procedure], fontsize=9)


def _published(axes: Any, names: Sequence[str], published: Sequence[Row]) -> None:
    for row in published:
        if "p" in row and row["setting"] in names:
            place = names.index(row["setting"]) - 0.15 + 0.3 * list(KINDS).index(row["kind"])
            axes.plot([row["p"]], [place], "|", color=PUBLISHED, markersize=9, markeredgewidth=1.6)


def _mark(colour: str, marker: str, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linestyle="none", label=label)
