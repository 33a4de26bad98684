"""The plot of flagging on planted models: false share and power against the rate that was promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.papers.fitted_plots import CHANCE
from pretrace.report.plots import PALETTE, save_png
from pretrace.report.svg import styled

Row = Mapping[str, Any]
MARKS = ("o", "s", "D", "^", "v")


def draw(found: Mapping[str, Any], path: Path) -> None:
    """A column a number of epochs; above the false share of the flags, below the members found. Each line is the mean
    over the domains, half of the texts being members."""
    rows = [row for row in found["rows"] if row["part"] == "flags" and row["share"] == 0.5]
    epochs = sorted({row["epochs"] for row in rows})
    scores = list(dict.fromkeys(row["score"] for row in rows))
    with styled():
        figure = Figure(figsize=(3.3 * len(epochs) + 0.6, 5.2), layout="constrained")
        panels = figure.subplots(2, len(epochs), sharex=True, squeeze=False)
        for column, number in enumerate(epochs):
            some = [row for row in rows if row["epochs"] == number]
            _panel(panels[0][column], some, scores, "fdr")
            _panel(panels[1][column], some, scores, "power")
            panels[0][column].set_title("1 epoch" if number == 1 else f"{number} epochs", fontsize=9)
            panels[1][column].set_xlabel("rate of false flags, promised")
        panels[0][0].set_ylabel("false share of the flags, observed")
        panels[1][0].set_ylabel("members flagged")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncol=len(scores), frameon=False, fontsize=8
        )
        settings = found["settings"]
        domains = len({row["domain"] for row in rows})
        figure.suptitle(
            f"{settings['texts']} texts, half of them members, against {settings['known']} known non-members; "
            f"{settings['draws']:,} draws\nof each of {domains} planted domains, {Path(settings['model']).name} in "
            f"{settings['dtype']}",
            fontsize=9,
        )
    save_png(figure, path, dpi=150)


def _panel(axes: Any, rows: Sequence[Row], scores: Sequence[str], figure: str) -> None:
    rates = sorted({row["rate"] for row in rows})
    if figure == "fdr":
        axes.plot([0, max(rates)], [0, max(rates)], color=CHANCE, linewidth=0.9, dashes=(4, 2.2))
    for score, mark, colour in zip(scores, MARKS, PALETTE, strict=False):
        means = [
            np.mean([_value(row[figure]) for row in rows if row["score"] == score and row["rate"] == rate])
            for rate in rates
        ]
        axes.plot(rates, means, marker=mark, markersize=4.5, linewidth=1.2, color=colour, label=score)
    axes.set_xlim(0, max(rates) * 1.05)
    axes.set_ylim(0, max(rates) * 1.05 if figure == "fdr" else 1.03)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f}%"))
    axes.grid()


def _value(figure: Any) -> float:
    return float(figure[0] if isinstance(figure, list) else figure)
