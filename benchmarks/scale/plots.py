"""The plot of memory and time against the number of texts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from pretrace.report.plots import save_png
from pretrace.report.svg import styled

LIMIT = 1.3
"""What the peak of the largest run may be, as a multiple of that of the smallest."""
_PALETTE = [
    "#1f5f8b",
    "#c97b2b",
    "#4f8f5b",
    "#8a5fa8",
    "#b04a4a",
    "#6d8fb3",
    "#9a8a4d",
    "#b9b9b9",
    "#d9c7b0",
    "#777777",
    "#3d3d6b",
    "#c2a5cf",
]


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Peak memory by number of texts, a line a command; microseconds a text by part, a bar a command and size."""
    with styled():
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        memory, parts = figure.subplots(1, 2, width_ratios=[1, 1.6])
        _memory(memory, found)
        _parts(parts, found)
        newest = list(found.values())[-1]
        figure.suptitle(
            f"a model of one layer, texts of about 12 tokens, {newest['machine']['cpu']}", fontsize=9
        )
    save_png(figure, path, dpi=150)


def _memory(axes: Any, found: Mapping[str, Any]) -> None:
    lines = [(name, command, rows) for name, state in found.items() for command, rows in _by_command(state)]
    for (name, command, rows), colour in zip(lines, _PALETTE, strict=False):
        label = command if len(found) == 1 else f"{command}, {name}"
        sizes, peaks = [row["texts"] for row in rows], [row["peak_mb"] for row in rows]
        axes.plot(sizes, peaks, "o-", color=colour, label=label)
        axes.axhline(LIMIT * peaks[0], color=colour, linewidth=0.8, dashes=(4, 2.2))
    axes.set_xscale("log")
    axes.set_ylim(0)
    axes.set_title(f"peak MB by texts; dashed: {LIMIT} × the fewest", fontsize=8.5)
    axes.legend(fontsize=7.5, frameon=False)
    axes.tick_params(labelsize=8, length=0)


def _by_command(state: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The rows of each command, by number of texts."""
    rows = sorted(state["rows"], key=lambda row: (row["command"], row["texts"]))
    return [(command, list(some)) for command, some in groupby(rows, lambda row: str(row["command"]))]


def _parts(axes: Any, found: Mapping[str, Any]) -> None:
    rows = [
        (f"{row['command']}\n{row['texts']:,}", row["microseconds_a_text"])
        for state in found.values()
        for _, some in _by_command(state)
        for row in some
        if "microseconds_a_text" in row
    ]
    names = sorted(
        {part for _, parts in rows for part in parts}, key=lambda part: (part != "forward pass", part)
    )
    for place, (_, parts) in enumerate(rows):
        left = 0.0
        for part, colour in zip(names, _PALETTE, strict=False):
            value = parts.get(part, 0.0)
            axes.barh(place, value, 0.6, left=left, color=colour, label=part if not place else None)
            left += value
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=7.5)
    axes.invert_yaxis()
    axes.set_title("microseconds a text by part", fontsize=8.5)
    axes.legend(fontsize=7, frameon=False, ncol=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.tick_params(labelsize=8, length=0)
