"""The plot of the null at scale: how often each test rejects by number of documents, and its p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.papers.fitted_plots import CHANCE, OTHER
from benchmarks.plots import OURS
from pretrace.report.plots import save_png
from pretrace.report.svg import styled

Row = Mapping[str, Any]
LIGHT = "#6fa8cf"
TESTS = {
    "sign_flip": ("sign flips, one value a document", OURS, "o", "-"),
    "two_sample": ("two samples, one value a document", LIGHT, "s", "-"),
    "t of snippets": ("t-test of snippets", OTHER, "o", "--"),
    "Welch of snippets": ("Welch's t-test of snippets", OTHER, "s", ":"),
}
SHOWN = ("normal, correlation 0.1", 200)
"""The law and number of documents whose p-values are drawn (or the largest number there is)."""
TICKS = (0.02, 0.05, 0.1, 0.2, 0.4)


def draw(found: Mapping[str, Any], path: Path) -> None:
    """A panel of p-values, then a panel a law with the rejections of a true null at 5%."""
    rows = [row for row in found["rows"] if "part" not in row]
    laws = list(dict.fromkeys(row["law"] for row in rows))
    across = -(-(len(laws) + 1) // 2)
    with styled():
        figure = Figure(figsize=(2.7 * across, 5.6), layout="constrained")
        panels = figure.subplots(2, across).ravel()
        _p_values(panels[0], rows)
        for axes, law in zip(panels[1:], laws, strict=False):
            _rates(axes, [row for row in rows if row["law"] == law], law)
        for axes in panels[1 + len(laws) :]:
            axes.set_axis_off()
        for axes in panels[across::across]:
            axes.set_ylabel("true nulls rejected at 5%")
        panels[1].set_ylabel("true nulls rejected at 5%")
        marks = [
            Line2D([], [], color=colour, marker=marker, linestyle=line, markersize=4, label=words)
            for words, colour, marker, line in TESTS.values()
        ]
        figure.legend(handles=marks, loc="outside lower center", ncol=4, frameon=False, fontsize=8)
        figure.suptitle(
            f"{found['settings']['audits']:,} simulated audits a point, nothing to be found in any of them",
            fontsize=9.5,
        )
    save_png(figure, path, dpi=150)


def _p_values(axes: Any, rows: Sequence[Row]) -> None:
    some = [row for row in rows if row["law"] == SHOWN[0]]
    number = SHOWN[1] if any(row["documents"] == SHOWN[1] for row in some) else some[-1]["documents"]
    for row in some:
        if row["documents"] != number:
            continue
        _, colour, _, line = TESTS[row["test"]]
        counts = row["histogram"]
        heights = [len(counts) * count / row["audits"] for count in counts]
        edges = [place / len(counts) for place in range(len(counts) + 1)]
        axes.stairs(heights, edges, color=colour, linestyle=line, linewidth=1.4)
    axes.axhline(1, color=CHANCE, linewidth=0.9)
    axes.set_ylim(0, None)
    axes.set_xlim(0, 1)
    axes.set_xlabel("p-value")
    axes.set_ylabel("density, 1 where uniform")
    axes.set_title(f"{SHOWN[0]}, {number} documents", fontsize=8.5)


def _rates(axes: Any, rows: Sequence[Row], law: str) -> None:
    axes.axhline(0.05, color=CHANCE, linewidth=0.9)
    for place, (name, (_, colour, marker, line)) in enumerate(TESTS.items()):
        points = [(row["documents"], *row["rejected_0.05"]) for row in rows if row["test"] == name]
        # A step to the side each, so that no interval hides another.
        xs = [number * 1.05 ** (place - 1.5) for number, *_ in points]
        axes.plot(xs, [value for _, value, _, _ in points], line, color=colour, marker=marker, markersize=3.6)
        for x, (_, _, low, high) in zip(xs, points, strict=True):
            axes.plot([x, x], [low, high], color=colour, linewidth=1.0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(TICKS[0], TICKS[-1] * 1.1)
    axes.set_yticks(TICKS, [f"{tick:.0%}" for tick in TICKS])
    numbers = sorted({row["documents"] for row in rows})
    axes.set_xticks(numbers, [str(number) for number in numbers])
    axes.minorticks_off()
    axes.set_xlabel("documents")
    axes.set_title(law, fontsize=8.5)
