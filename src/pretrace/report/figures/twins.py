"""The figures of a test of twins: p against hidden bias, and the difference of every pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pretrace.report.figures.drawn import Drawn
from pretrace.report.svg import canvas
from pretrace.types import Doubles, Table, Verdict

DARK, SOFT = "#1c1c1c", "#777777"
WIDTH = 7.6


def drawn(verdict: Verdict) -> Sequence[Drawn]:
    """p at rising Γ for the target and every placebo, and one mark a pair."""
    gamma = verdict.figures.get("gamma")
    stands = "nowhere" if gamma is None else f"up to {gamma:.2f}"
    curve = Drawn(
        withstood(verdict),
        "The p-value of the test against hidden bias, for the model in question and for the placebos. That "
        "of the model "
        f"in question is at or below the level {stands}.",
        "How much hidden bias the result withstands. The dark line is the model in question, the light lines "
        "with hollow "
        "marks are models that cannot have seen the texts. Left of where a line crosses the level, the result stands.",
    )
    strip = Drawn(
        differences(verdict),
        f"The difference between published version and draft for {verdict.units} {verdict.unit}s.",
        f"One mark a {verdict.unit}: how much likelier the model finds the published version than its draft, "
        "after what "
        "texts and reference models predict was taken off. Filled marks: the published version is likelier.",
    )
    return curve, strip


def withstood(verdict: Verdict) -> Figure:
    """p(Γ) of the target, filled, and of the placebos, hollow, with the level and Γ*."""
    table = verdict.table("sensitivity")
    names, gammas, p = np.array(table.columns["model"]), _numbers(table, "gamma"), _numbers(table, "p")
    with canvas(WIDTH, 2.8) as (figure, axes):
        for name in dict.fromkeys(names.tolist()):
            own = name == "target"
            rows = names == name
            axes.plot(
                gammas[rows],
                p[rows],
                color=DARK if own else SOFT,
                linewidth=1.8 if own else 1.0,
                marker="o",
                markersize=3.5,
                markerfacecolor=DARK if own else "white",
                label="the model in question" if own else name,
            )
        axes.axhline(verdict.level, color=SOFT, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.annotate(
            f"level {verdict.level:g}",
            (1.0, verdict.level),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 2),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
        _mark(axes, verdict)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("hidden bias Γ: how many times higher the odds could be than texts alone predict")
        axes.set_ylabel("p")
        axes.legend(frameon=False, fontsize=8)
    return figure


def _mark(axes: Axes, verdict: Verdict) -> None:
    gamma = verdict.figures.get("gamma")
    if gamma is not None:
        axes.axvline(gamma, color=DARK, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.annotate(
            f"Γ* = {gamma:.2f}",
            (gamma, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(3, 2),
            textcoords="offset points",
            fontsize=8,
        )


def differences(verdict: Verdict) -> Figure:
    """Every pair's difference on a line, filled above 0 and hollow below."""
    left = np.sort(_numbers(verdict.table("pairs"), "left"))
    heights = (np.arange(len(left)) * 0.6180339887) % 1  # spread evenly, without chance
    with canvas(WIDTH, 1.6) as (figure, axes):
        above = left > 0
        how: dict[str, Any] = {"s": 16, "edgecolors": DARK, "linewidths": 0.8}
        axes.scatter(left[above], heights[above], facecolors=DARK, **how)
        axes.scatter(left[~above], heights[~above], facecolors="white", **how)
        axes.axvline(0, color=SOFT, linewidth=0.8)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"published version less draft, {verdict.effect_unit}")
    return figure


def _numbers(table: Table, name: str) -> Doubles:
    return np.asarray(table.columns[name], dtype=np.float64)
