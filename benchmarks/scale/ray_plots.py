"""The plot of `scale_ray`: seconds with 1 and 2 workers as measured, and the simulated growth to many."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from pretrace.report.plots import save_png
from pretrace.report.svg import styled

COLOURS = ["#1f5f8b", "#c97b2b"]


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Measured seconds by number of workers, and the simulated speed-up of 10^6 and 10^8 texts."""
    with styled():
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        measured, growth = figure.subplots(1, 2, width_ratios=[1, 1.8])
        _measured(measured, found)
        _growth(growth, found["simulated"])
        busy = ", busy with other work" if found["busy"] else ""
        figure.suptitle(f"{found['texts']:,} short texts, {found['machine']['cpu']}{busy}", fontsize=9)
    save_png(figure, path, dpi=150)


def _measured(axes: Any, found: Mapping[str, Any]) -> None:
    for place, runs in enumerate(found["runs"].values()):
        seconds = [run["work"] for run in runs]
        axes.plot([place] * len(seconds), seconds, "o", color=COLOURS[0])
    axes.set_xticks(range(len(found["runs"])), ["1 worker", "2 workers"], fontsize=8)
    axes.set_xlim(-0.5, len(found["runs"]) - 0.5)
    axes.set_ylim(0)
    axes.set_title(f"measured: seconds; efficiency of two {found['efficiency_of_two']:.2f}", fontsize=8.5)
    axes.tick_params(labelsize=8, length=0)


def _growth(axes: Any, simulated: Mapping[str, Any]) -> None:
    models = [name for name, value in simulated.items() if isinstance(value, dict) and "1e+06" in value]
    most = 1
    for name, colour in zip(models, COLOURS, strict=True):
        for texts, dashes in (("1e+06", (4, 2.2)), ("1e+08", (1, 0))):
            rows = simulated[name][texts]
            most = max(most, *(row["workers"] for row in rows))
            axes.plot(
                [row["workers"] for row in rows],
                [row["speed_up"] for row in rows],
                color=colour,
                dashes=dashes,
                label=f"{name}, {'10⁶' if texts == '1e+06' else '10⁸'} texts",
            )
    axes.plot([1, most], [1, most], color="#b9b9b9", linewidth=0.8, label="as many times as workers")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_title("simulated with the measured times: times as fast, by workers", fontsize=8.5)
    axes.legend(fontsize=7.5, frameon=False)
    axes.tick_params(labelsize=8, length=0)
