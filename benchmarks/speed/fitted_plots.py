"""The plot of what fitted detectors cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.plots import OTHER, OURS
from pretrace.report.plots import save_png
from pretrace.report.svg import styled

_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
"""Under a number, which may stand on a line."""
TARGETS = {"hooks": 1.15, "tuning": 3.0, "fsd": 1.15}
Row = Mapping[str, Any]


def draw_cost(found: Mapping[str, Any], path: Path) -> None:
    """One panel a part that was measured; the dashed line is what was aimed for."""
    parts = {part: [row for row in found["rows"] if row["part"] == part] for part in _PANELS}
    parts = {part: rows for part, rows in parts.items() if rows}
    with styled():
        figure = Figure(figsize=(3.3 * len(parts), 3.3), layout="constrained")
        panels = figure.subplots(1, len(parts), squeeze=False)[0]
        for axes, (part, rows) in zip(panels, parts.items(), strict=True):
            _PANELS[part](axes, rows)
        settings, machine = found["settings"], found["machine"]
        figure.suptitle(
            f"{settings['texts']} {settings['corpus']}, {Path(settings['model']).name}, {machine['cpu']}, "
            f"{machine['cores']} cores",
            fontsize=9,
        )
    save_png(figure, path, dpi=150)


def _hooks(axes: Any, rows: Sequence[Row]) -> None:
    _ratios(axes, [row for row in rows if row["what"] != "bare forward"], TARGETS["hooks"])
    axes.set_title("one pass, over a bare forward", fontsize=8.5)


def _tuning(axes: Any, rows: Sequence[Row]) -> None:
    _ratios(axes, [row for row in rows if row["what"] != "bare forward"], TARGETS["tuning"])
    axes.set_title("tuning a token, over a bare forward", fontsize=8.5)


def _ratios(axes: Any, rows: Sequence[Row], target: float) -> None:
    names = [f"{row['what']}\n{row['dtype']}" for row in rows]
    axes.set_yticks(range(len(names)), names, fontsize=7)
    for place, row in enumerate(rows):
        value, low, high = row["over_bare"]
        axes.barh(place, value, 0.6, color=OURS)
        axes.plot([low, high], [place, place], color="#1c1c1c", linewidth=1.0)
        axes.text(high, place, f"  {value:.2f}", va="center", fontsize=7.5).set_bbox(_PLATE)
    axes.axvline(1.0, color=OTHER, linewidth=0.9)
    axes.axvline(target, color="#1c1c1c", linewidth=0.9, dashes=(4, 2.2))
    axes.set_xlim(0, 1.2 * max(target, *(row["over_bare"][2] for row in rows)))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)


def _memory(axes: Any, rows: Sequence[Row]) -> None:
    rows = sorted(rows, key=lambda row: row["scored"])
    _peaks(axes, rows, [OURS] * len(rows), [""] * len(rows))
    axes.set_xticks(range(len(rows)), [str(row["scored"]) for row in rows])
    axes.set_xlabel(f"texts of {rows[0]['tokens']} tokens")
    axes.set_ylabel("MB above the loaded model")
    axes.set_title("na_pdd, peak memory", fontsize=8.5)


def _fsd(axes: Any, rows: Sequence[Row]) -> None:
    colours = [OURS if "copies" in row else OTHER for row in rows]
    notes = [f"\n{row['copies']:.2f} copies" if "copies" in row else "" for row in rows]
    _peaks(axes, rows, colours, notes)
    axes.set_xticks(range(len(rows)), [f"{row['what']}\n{row['dtype']}" for row in rows], fontsize=7)
    axes.set_ylabel("MB, model and libraries included")
    axes.set_title(f"peak of an evaluation (aim: {TARGETS['fsd']} copies)", fontsize=8.5)


def _peaks(axes: Any, rows: Sequence[Row], colours: Sequence[str], notes: Sequence[str]) -> None:
    """A bar a row up to its median, a line from the lowest to the highest process."""
    for place, (row, colour, note) in enumerate(zip(rows, colours, notes, strict=True)):
        value, low, high = row["peak_mb"]
        axes.bar(place, value, 0.6, color=colour)
        axes.plot([place, place], [low, high], color="#1c1c1c", linewidth=1.0)
        axes.text(place, high, f"{value:.0f}{note}", ha="center", va="bottom", fontsize=7)
    axes.set_ylim(0, max(1.0, *(1.2 * row["peak_mb"][2] for row in rows)))


_PANELS = {"hooks": _hooks, "memory": _memory, "tuning": _tuning, "fsd": _fsd}
