"""The figures of a test at a training cut-off: the series, and the jump at every cut-off."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pretrace.report.figures.drawn import Drawn
from pretrace.report.svg import canvas
from pretrace.types import Bools, Doubles, Verdict

DARK, SOFT = "#1c1c1c", "#777777"
WIDTH = 7.6


def drawn(verdict: Verdict) -> Sequence[Drawn]:
    """The series over time, and the jump at the cut-off among those at other dates."""
    number = verdict.figures.get("placebo cut-offs", 0)
    series = Drawn(
        over_time(verdict),
        "The mean score of the documents over time, with the stated cut-off.",
        "What the model knows of the texts over time, after what texts and reference models predict was taken off. "
        "Filled marks lie before the stated cut-off (the line), hollow ones after it.",
    )
    changes = Drawn(
        at_every_date(verdict),
        f"The change at the stated cut-off and at {number} other dates.",
        "The drop of the mean at every date that was compared, over its standard error. The filled mark is the stated "
        "cut-off, hollow marks are dates at which nothing is known to have happened. The dotted lines are the largest "
        "of these, up and down.",
    )
    return series, changes


def over_time(verdict: Verdict) -> Figure:
    """Means by the month (by the week for less than two years) of what is left of the scores."""
    table = verdict.table("series")
    times: Any = [date.fromisoformat(one) for one in table.columns["from"]]
    means = np.asarray(table.columns["mean"], dtype=np.float64)
    line: Any = date.fromisoformat(str(verdict.figures["cut-off"]))
    with canvas(WIDTH, 2.4) as (figure, axes):
        axes.plot(times, means, color=SOFT, linewidth=0.8, zorder=1)
        _marks(axes, times, means, np.array([one < line for one in times], dtype=bool))
        axes.axvline(line, color=DARK, linewidth=1.2)
        axes.annotate(
            f"cut-off {line}",
            (line, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -8),
            textcoords="offset points",
            fontsize=8,
        )
        axes.set_ylabel(verdict.effect_unit)
    return figure


def at_every_date(verdict: Verdict) -> Figure:
    """The jump at every cut-off: the stated one filled, placebo ones hollow."""
    table = verdict.table("cutoffs")
    times = [date.fromisoformat(one) for one in table.columns["cut-off"]]
    ranked = "standard errors" in table.columns  # an earlier pretrace ranked the drops as they are
    jumps = np.asarray(table.columns["standard errors" if ranked else "jump"], dtype=np.float64)
    own = np.array([kind == "stated" for kind in table.columns["kind"]], dtype=bool)
    with canvas(WIDTH, 2.4) as (figure, axes):
        _marks(axes, times, jumps, own, size=30)
        axes.axhline(0, color=SOFT, linewidth=0.8)
        if not own.all():
            largest = float(np.abs(jumps[~own]).max())
            for height in (largest, -largest):
                axes.axhline(height, color=SOFT, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set_ylabel("drop, standard errors" if ranked else f"drop, {verdict.effect_unit}")
    return figure


def _marks(axes: Axes, times: Any, values: Doubles, filled: Bools, *, size: float = 14) -> None:
    """Marks at `times`, a list of days, filled or hollow."""
    colours = [DARK if one else "white" for one in filled.tolist()]
    axes.scatter(times, values, s=size, facecolors=colours, edgecolors=DARK, linewidths=0.8, zorder=2)
