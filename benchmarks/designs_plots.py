"""The figures of the designs' experiment: power by units and copies, and the order test beside the published one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.plots import INK, OTHER, OURS
from pretrace.report.plots import save_png
from pretrace.report.svg import styled

Row = Mapping[str, Any]
TIMES = {
    1: ("read once", OTHER, "o", ":"),
    4: ("4 times", "#6fa8cf", "s", "--"),
    16: ("16 times", OURS, "^", "-"),
}
TITLES = {
    "marks": ("marks", "documents"),
    "canaries": ("canaries", "random strings"),
    "triggers": ("triggers", "trigger sentences"),
    "options": ("order of options", "items"),
    "order": ("order of rows", "rows"),
    "collections": ("control collections", "documents a collection"),
    "cutoff": ("cut-off", "documents on each side"),
    "twins": ("twins", "pairs"),
}


def draw_power(rows: Sequence[Row], path: Path) -> None:
    """A panel a design: the share of audits of members that accuse, by units, a line for each number of copies."""
    own = [
        row
        for row in rows
        if row.get("test") is None and row.get("value") != "alone" and row.get("drafts") != "edited"
    ]
    names = [name for name in TITLES if any(row["design"] == name for row in own)]
    across = min(4, max(1, len(names)))
    down = -(-len(names) // across)
    with styled():
        figure = Figure(figsize=(2.6 * across, 2.5 * down + 0.5), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=False):
            some = [row for row in own if row["design"] == name]
            if any(row.get("level") == "rank" for row in some):
                some = [row for row in some if row.get("level") == "rank"]
            _panel(axes, some, "rows" if name == "order" else "units")
            axes.set_title(TITLES[name][0], fontsize=9)
            axes.set_xlabel(TITLES[name][1])
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        for axes in panels[::across]:
            axes.set_ylabel("audits that accuse")
        marks = [
            Line2D([], [], color=colour, marker=marker, linestyle=line, markersize=4, label=words)
            for words, colour, marker, line in TIMES.values()
        ]
        figure.legend(handles=marks, loc="outside lower center", ncol=3, frameon=False, fontsize=8)
    save_png(figure, path, dpi=150)


def draw_order(rows: Sequence[Row], path: Path) -> None:
    """The order of rows: power by rows for this test and for the t-test over shards, at their passes a shard."""
    own = [row for row in rows if row["design"] == "order"]
    tests = sorted(
        {(row.get("test") or "", row["passes"]) for row in own if row["passes"]},
        key=lambda one: (one[0], one[1]),
    )
    with styled():
        figure = Figure(figsize=(2.9 * max(1, len(tests)), 3.0), layout="constrained")
        panels = figure.subplots(1, max(1, len(tests)), squeeze=False, sharey=True).ravel()
        for axes, (test, passes) in zip(panels, tests, strict=False):
            some = [row for row in own if (row.get("test") or "", row["passes"]) == (test, passes)]
            _panel(axes, some, "rows")
            axes.set_title(f"{test or 'recombined shuffles'}, {passes} passes a shard", fontsize=8.5)
            axes.set_xlabel("rows")
        panels[0].set_ylabel("audits that accuse")
        marks = [
            Line2D([], [], color=colour, marker=marker, linestyle=line, markersize=4, label=words)
            for words, colour, marker, line in TIMES.values()
        ]
        figure.legend(handles=marks, loc="outside lower center", ncol=3, frameon=False, fontsize=8)
    save_png(figure, path, dpi=150)


def _panel(axes: Any, rows: Sequence[Row], across: str) -> None:
    axes.axhline(0.05, color=INK, linewidth=0.6)
    axes.axhline(0.8, color=INK, linewidth=0.6, linestyle=":")
    for copies, (words, colour, marker, line) in TIMES.items():
        points = sorted((row[across], *row["share"]) for row in rows if row["copies"] == copies)
        if points:
            x, y, low, high = zip(*points, strict=True)
            axes.plot(
                x, y, color=colour, marker=marker, linestyle=line, markersize=4, linewidth=1.3, label=words
            )
            axes.vlines(x, low, high, color=colour, linewidth=0.8)
    sizes = sorted({row[across] for row in rows if row["copies"] in TIMES})
    if sizes:
        axes.set_xscale("log")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xticks([], minor=True)
    axes.set_ylim(-0.03, 1.03)
