"""The plot of a planted domain: every detector on the target, on the placebo, and on shuffled labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.papers.fitted_plots import CHANCE, OTHER, PALE
from benchmarks.papers.planted_table import survives
from benchmarks.plots import OURS
from pretrace.report.plots import save_png
from pretrace.report.svg import styled

Row = Mapping[str, Any]


def draw_domain(found: Mapping[str, Any], domain: str, path: Path) -> None:
    """One panel a number of epochs, a line a score, scores in the order of the table."""
    rows = [row for row in found["rows"] if row["domain"] == domain]
    names = list(dict.fromkeys(row["score"] for row in rows))
    epochs = sorted({row["epochs"] for row in rows})
    with styled():
        figure = Figure(figsize=(2.6 + 3.6 * len(epochs), 1.9 + 0.29 * len(names)), layout="constrained")
        panels = figure.subplots(1, len(epochs), sharex=True, sharey=True, squeeze=False)[0]
        for axes, number in zip(panels, epochs, strict=True):
            _panel(axes, names, [row for row in rows if row["epochs"] == number])
            axes.set_title("1 epoch" if number == 1 else f"{number} epochs", fontsize=9)
        marks = [
            Line2D(
                [],
                [],
                color=OURS,
                marker="o",
                linestyle="none",
                label="planted; filled: survives its controls",
            ),
            Line2D([], [], color=OTHER, marker="D", markersize=4, linestyle="none", label="placebo or blind"),
            Line2D([], [], color=PALE, linewidth=7, label="shuffled labels"),
        ]
        marks[0].set_markerfacecolor("white")
        figure.legend(handles=marks, loc="outside lower center", ncol=3, frameon=False, fontsize=8)
        settings, model = found["settings"], Path(found["settings"]["model"]).name
        figure.suptitle(
            f"{domain}: {settings['texts']} documents of {settings['tokens']} tokens, {model} in "
            f"{settings['dtype']}, learning rate {settings['learning_rate']:g}",
            fontsize=9,
        )
    save_png(figure, path, dpi=150)


def _panel(axes: Any, names: Sequence[str], rows: Sequence[Row]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.axvline(0.5, color=CHANCE, linewidth=0.9)
    axes.grid(axis="x")
    axes.set_xlabel("AUC")
    axes.spines["left"].set_visible(False)
    for row in rows:
        place = names.index(row["score"])
        if row["kind"] == "blind":
            _dot(axes, place, row["auc"], colour=OTHER, marker="D", filled=True)
            continue
        if "shuffled" in row:
            ends = row["shuffled"]["auc"][1:]
            axes.plot(ends, [place, place], color=PALE, linewidth=7, solid_capstyle="butt", zorder=1)
        _dot(axes, place + 0.2, row["placebo"]["auc"], colour=OTHER, marker="D", filled=True)
        _dot(axes, place - 0.15, row["auc"], colour=OURS, marker="o", filled=survives(row))


def _dot(axes: Any, place: float, figure: Sequence[float], *, colour: str, marker: str, filled: bool) -> None:
    value, low, high = figure
    axes.plot([low, high], [place, place], color=colour, linewidth=1.0, alpha=0.8)
    axes.plot(
        [value],
        [place],
        marker,
        markersize=5 if marker == "o" else 3.4,
        markeredgecolor=colour,
        markerfacecolor=colour if filled else "white",
    )
