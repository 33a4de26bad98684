"""The figure of a collection ranked among others: the mean of each as a dot, the suspect one filled and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

from pretrace.report.figures.drawn import Drawn
from pretrace.report.plots import KINDS
from pretrace.report.svg import canvas
from pretrace.report.visible import named
from pretrace.report.wording import brief, plural
from pretrace.types import Doubles, Verdict

SIGN, CONTROL = KINDS["member"], "#5a5a5a"
WIDTH, HEIGHT = 7.6, 2.1
COLUMNS = 64
"""Places along the axis; collections at the same place are stacked."""


def collections(verdict: Verdict) -> Sequence[Drawn]:
    """The figure of all collections; none where the result has no table of them."""
    if not any(table.name == "collections" for table in verdict.tables):
        return ()
    columns: Mapping[str, Any] = verdict.table("collections").columns
    ranked = "standard deviations" in columns  # an earlier pretrace ranked the means as they are
    values = columns["standard deviations" if ranked else "value"]
    assert not isinstance(values, tuple)
    unit = "standard deviations above the others" if ranked else verdict.effect_unit
    own, others = float(values[0]), values[1:]
    above = verdict.figures.get("controls at least as high", 0)
    label = (
        f"One dot for each of {plural(len(others), 'control collection')}, from {brief(float(others.min()))} to "
        f"{brief(float(others.max()))}, and a filled mark for {verdict.corpus} at {brief(own)}; {above} of the control "
        "collections are at least as high."
    )
    caption = (
        "Each hollow dot is one of the other collections, at the mean value of its documents. The filled diamond is "
        "the collection in question. Without training on it, each of them has the same chance of being the one "
        "furthest to the right."
    )
    return (Drawn(drawn(own, others, verdict.corpus, unit), label, caption),)


def drawn(own: float, others: Doubles, name: str, unit: str) -> Figure:
    """All means on one line: controls as hollow dots, stacked where they meet, `own` as a filled diamond."""
    with canvas(WIDTH, HEIGHT, constrained=False) as (figure, axes):
        figure.subplots_adjust(left=0.012, right=0.988, top=0.98, bottom=0.24)
        low, high = min(own, float(others.min())), max(own, float(others.max()))
        pad = 0.06 * (high - low) or 0.5
        axes.set_xlim(low - pad, high + pad)
        x, y = stacked(others, (low - pad, high + pad))
        rows = max(5.0, float(y[-1 if len(y) == 1 else int(y.argmax())]) + 1)
        size = min(8.0, 0.62 * HEIGHT * 72 / rows)
        axes.set_ylim(-0.6, 1.45 * rows)
        axes.plot(x, y, "o", ms=size, mfc="white", mec=CONTROL, mew=0.9)
        _suspect(axes, own, name, rows)
        axes.yaxis.set_major_locator(NullLocator())
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(ScalarFormatter(useOffset=False, useMathText=False))
        axes.set_xlabel(f"mean value of a collection ({unit})")
    return figure


def stacked(values: Doubles, ends: tuple[float, float]) -> tuple[Doubles, Doubles]:
    """Where dots stand: each at its value, one above another where they are at the same of `COLUMNS` places."""
    low, high = ends
    column = np.floor((values - low) / (high - low) * COLUMNS).astype(int)
    order = np.argsort(values, kind="stable")
    height: dict[int, int] = {}
    y = np.zeros(len(values))
    for place in order.tolist():
        y[place] = height.get(int(column[place]), 0)
        height[int(column[place])] = int(y[place]) + 1
    return (low + (column + 0.5) * (high - low) / COLUMNS), y


def _suspect(axes: Axes, own: float, name: str, rows: float) -> None:
    """The mark of the suspect collection on a line that reaches over the dots, and its name."""
    low, high = axes.get_xlim()
    share = (own - low) / (high - low)
    side = "right" if share > 0.75 else "left" if share < 0.25 else "center"
    axes.plot([own, own], [-0.6, 1.12 * rows], color=SIGN, linewidth=0.9, dashes=(2, 1.6))
    axes.plot([own], [1.12 * rows], marker="D", ms=7.5, color=SIGN)
    axes.text(
        own,
        1.24 * rows,
        named(name, 60),
        ha=side,
        va="bottom",
        fontsize=9,
        fontweight="bold",
        color=SIGN,
        parse_math=False,
    )
