"""Scores and their controls on one axis: what is left on the target once the placebo has spoken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pretrace.report.plots import CHANCE, CONTROL, KINDS, REST, label_of, name_rows
from pretrace.report.svg import styled
from pretrace.types import Estimate, Measured

TARGET = KINDS["member"]
_LANE = 0.5
"""Height of one line of marks, in rows of the forest plot."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One score's row on the target, and its controls where there are any."""

    target: Measured
    placebo: Measured | None = None
    shuffled: Measured | None = None


def contrasts(found: Sequence[Contrast]) -> Figure:
    """AUC of each score on the target (filled dot) and on the placebo (hollow square) with 95% intervals,
    and the range of the repeats with shuffled labels as a grey bar with a tick at the median."""
    names = [label_of(contrast.target.name) for contrast in found]
    lanes = [1 + sum(row is not None for row in (one.placebo, one.shuffled)) for one in found]
    heights = np.array(
        [max(0.75 + _LANE * n, 1 + 0.55 * s.count("\n")) for n, s in zip(lanes, names, strict=True)]
    )
    places = (np.cumsum(heights) - heights / 2).tolist()
    with styled():
        figure = Figure(figsize=(8.6, 0.62 + 0.235 * float(heights.sum())))
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        axes.axvline(0.5, color=CHANCE, linewidth=0.9)
        for place, number, contrast in zip(places, lanes, found, strict=True):
            _draw(axes, place - _LANE / 2 * (number - 1), contrast)
        name_rows(axes, places, names)
        axes.set_ylim(float(heights.sum()) + 0.1, -0.1)
        axes.set_xlim(_left(found), 1.01)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5]))
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("AUC")
    return figure


def _draw(axes: Axes, place: float, contrast: Contrast) -> None:
    """The lanes of one score, from `place` downwards."""
    _mark(axes, place, contrast.target.auc, "o", TARGET)
    if contrast.placebo:
        place += _LANE
        _mark(axes, place, contrast.placebo.auc, "s", CONTROL)
    if contrast.shuffled:
        place += _LANE
        auc = contrast.shuffled.auc
        axes.plot([auc.low, auc.high], [place, place], color=REST, linewidth=4.5, solid_capstyle="butt")
        axes.plot([auc.value], [place], marker="|", markersize=7, color=CONTROL, markeredgewidth=1.2)


def _mark(axes: Axes, place: float, auc: Estimate, marker: str, colour: str) -> None:
    axes.plot([auc.low, auc.high], [place, place], color=colour, linewidth=1.4)
    axes.plot(
        [auc.value],
        [place],
        marker=marker,
        markersize=5.4 if marker == "o" else 4.8,
        markeredgecolor=colour,
        markerfacecolor=colour if marker == "o" else "white",
        markeredgewidth=1.3,
    )


def _left(found: Sequence[Contrast]) -> float:
    """Where the axis starts: the tenth below everything drawn, at most 0.4."""
    rows = [row for one in found for row in (one.target, one.placebo, one.shuffled) if row is not None]
    low = min([0.5, *(min(row.auc.low, row.auc.value) for row in rows)])
    return max(-0.01, float(np.floor(low * 10 - 0.3) / 10))
