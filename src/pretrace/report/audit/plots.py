"""The figures of an audit: every document and their average against chance, and the power by documents.

They are made to be read without colour: filled against hollow, dark against light.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from pretrace.report.audit.chance import Chance, chance
from pretrace.report.plots import CHANCE, KINDS, axis_range
from pretrace.report.svg import styled
from pretrace.report.wording import plural
from pretrace.types import Audit, Doubles, Estimate, Power

SIGN, HELD = KINDS["member"], "#1c1c1c"
HILL, TAIL, GLASS = "#cbcbcb", "#777777", "#f3f3ef"
WIDTH = 7.6
MOST_DOTS = 1500
"""Dots a side; beyond, one stands for several documents."""
_BINS = 44


@dataclass(frozen=True, slots=True, eq=False)
class Dots:
    """Where dots stand: `x` in the unit of the axis, `y` in rows; how many rows there is room for, and the diameter
    of a dot in points."""

    x: Doubles
    y: Doubles
    rows: float
    size: float


def story(audit: Audit) -> Figure:
    """Above: one dot a document. Below, magnified: their average with its 95% interval, over the hill of averages
    that chance gives."""
    by_chance = chance(audit)
    held = len(audit.heldout_values) > 0
    with styled():
        figure = Figure(figsize=(WIDTH, 3.3 if held else 2.75))
        upper = 1.7 if held else 1.25
        top, bottom = figure.subplots(2, 1, height_ratios=(upper, 0.95), gridspec_kw={"hspace": 0.42})
        figure.subplots_adjust(left=0.006, right=0.994, top=0.935, bottom=0.085)
        if held:
            _two_sides(top, audit)
        else:
            _one_side(top, audit, by_chance.found)
        words = "the difference of the two averages" if held else "the average found, of"
        _average(bottom, by_chance, words if held else f"{words} {plural(len(audit.documents), 'document')}")
        _magnify(top, bottom, shift=float(audit.heldout_values.mean()) if held else 0.0)
    return figure


def per_dot(audit: Audit) -> int:
    """How many documents one dot of the figure stands for."""
    return -(-max(len(audit.values), len(audit.heldout_values)) // MOST_DOTS)


def power_curve(power: Power, documents: int) -> Figure:
    """The probability of seeing the planted texts against the number of documents, with 80% and this audit."""
    points = sorted({*power.curve, (documents, power.probability.value)})
    with styled():
        figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(0.8, color=CHANCE, linewidth=0.9, dashes=(4, 2.2))
        axes.plot(*zip(*points, strict=True), color=SIGN, linewidth=1.4, marker="o", markersize=3.2)
        low, high = power.probability.low, power.probability.high
        axes.plot([documents, documents], [low, high], color=SIGN, linewidth=1.6)
        axes.plot([documents], [power.probability.value], marker="D", markersize=6.5, color=SIGN)
        height = 0.42 if low > 0.6 else 0.93
        axes.plot([documents] * 2, [low, height - 0.06], color=SIGN, linewidth=0.9, dashes=(2, 1.6))
        axes.text(documents, height, f" this audit: {plural(documents, 'document')}", va="top", fontsize=9)
        if points[0][0] > 0 and points[-1][0] >= 8 * points[0][0]:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_locator(FixedLocator(_spaced([place for place, _ in points], documents)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f}%"))
        axes.set_ylim(-0.02, 1.04)
        axes.yaxis.set_major_locator(FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1.0]))
        axes.grid(axis="y")
        axes.set_xlabel("documents")
        axes.set_ylabel("probability of seeing it")
    return figure


def _spaced(places: Sequence[int], documents: int) -> list[int]:
    """Those of the places whose labels do not run into one another on a logarithmic axis; `documents` stays."""
    kept: list[int] = []
    room = (places[-1] / places[0]) ** 0.06
    for place in places:
        clear = place == documents or (documents / room >= place or place >= documents * room)
        if clear and (not kept or place >= kept[-1] * room):
            kept.append(place)
    return kept


def _one_side(axes: Axes, audit: Audit, found: Estimate) -> None:
    """The documents as dots above the axis, filled to the right of zero."""
    low, high = _range(np.concatenate([audit.values, [0.0, found.value]]))
    _frame(axes, low, high)
    dots = _stacked(audit.values, (low, high), 84.0, per_dot(audit))
    axes.set_ylim(-0.4, dots.rows * 1.13)
    axes.axvline(0.0, color=HELD, linewidth=0.9, ymax=0.92)
    _draw(axes, dots, filled=dots.x > 0)
    _note(axes, 0.0, "no sign of training")
    _directions(axes, "← imitation expected better", "true ending expected better →", 0.7)


def _two_sides(axes: Axes, audit: Audit) -> None:
    """Suspect documents (filled) over held-out ones (hollow)."""
    low, high = _range(np.concatenate([audit.values, audit.heldout_values]))
    _frame(axes, low, high)
    sides = (audit.values, audit.heldout_values)
    above, under = (_stacked(values, (low, high), 56.0, per_dot(audit)) for values in sides)
    rows, size = max(above.rows, under.rows), min(above.size, under.size)
    axes.set_ylim(-0.4, 2.2 * rows)
    mean = float(audit.heldout_values.mean())
    axes.axvline(mean, color=HELD, linewidth=0.9, ymax=0.92)
    axes.axhline(1.08 * rows - 0.4, color="#8a8a8a", linewidth=0.6)
    for dots, floor, filled, words in (
        (above, 1.08 * rows, True, "suspect texts"),
        (under, 0.0, False, "held-out texts"),
    ):
        raised = Dots(dots.x, dots.y + floor, dots.rows, size)
        _draw(axes, raised, filled=np.full(len(dots.x), filled))
        axes.text(low, floor + 0.36 * rows, words, fontsize=9, fontweight="bold", ha="left", va="center")
    _note(axes, mean, "no sign of training: the held-out average")
    _directions(axes, "← less known to the model", "better known to the model →", 0.86)


def _directions(axes: Axes, left: str, right: str, height: float) -> None:
    """What the two ends of the axis mean."""
    for end, words, side in zip(axes.get_xlim(), (left, right), ("left", "right"), strict=True):
        axes.text(end, height, words, fontsize=9, ha=side, va="center", transform=axes.get_xaxis_transform())


def _average(axes: Axes, by_chance: Chance, words: str) -> None:
    """The hill of chance, its outermost part dark, and what was found above it."""
    found, drawn = by_chance.found, by_chance.drawn
    low, high, beside = _stretch(found, drawn)
    _frame(axes, low, high)
    axes.set_ylim(0, 2.05)
    axes.set_facecolor(GLASS)
    _hill(axes, by_chance)
    axes.plot([0, 0], [0, 1.16], color=HELD, linewidth=0.9)
    axes.plot([found.value] * 2, [0, 1.32], color=SIGN, linewidth=0.9, dashes=(2, 1.6))
    axes.plot([found.low, found.high], [1.32, 1.32], color=SIGN, linewidth=2.0, solid_capstyle="butt")
    for end in (found.low, found.high):
        axes.plot([end, end], [1.24, 1.40], color=SIGN, linewidth=1.2)
    axes.plot([found.value], [1.32], marker="D", markersize=7, color=SIGN)
    near = found.value < (low + high) / 2
    where, side = (found.low, "left") if near else (found.high, "right")
    axes.text(where, 1.52, words, ha=side, va="bottom", fontsize=9, fontweight="bold", color=SIGN)
    side = "right" if found.value >= 0 else "left"
    axes.text(beside, 0.5, "what chance gives if the\ntexts were not used", ha=side, va="center", fontsize=9)


def _stretch(found: Estimate, drawn: Doubles) -> tuple[float, float, float]:
    """Where the magnified axis starts and ends, and where words fit beside the hill: on the side away from what was
    found, where room is made for them."""
    ends = np.array([*np.quantile(drawn, [0.001, 0.999]), found.low, found.high, 0.0])
    low, high = float(ends.min()), float(ends.max())
    pad = 0.04 * (high - low) or 0.5
    low, high = low - pad, high + pad
    if found.value >= 0:
        beside = float(np.quantile(drawn, 0.01)) or -0.05 * high
        low = min(low, beside - 0.3 * (high - beside))
    else:
        beside = float(np.quantile(drawn, 0.99)) or -0.05 * low
        high = max(high, beside + 0.3 * (beside - low))
    return low, high, beside


def _hill(axes: Axes, by_chance: Chance) -> None:
    drawn, bound = by_chance.drawn, by_chance.bound
    low, high = float(drawn.min()), float(drawn.max())
    if not low < high:
        return  # a single document of value 0 has no hill
    width = (high - low) / _BINS
    # the bound is an edge, so that the dark part is what lies beyond it
    edges = bound + width * np.arange(np.floor((low - bound) / width), np.ceil((high - bound) / width) + 1)
    height = np.histogram(drawn, edges)[0].astype(float)
    height /= height.max()
    dark = edges[:-1] >= bound - width / 2
    axes.stairs(np.where(dark, 0, height), edges, fill=True, color=HILL, linewidth=0)
    axes.stairs(np.where(dark, height, 0), edges, fill=True, color=TAIL, linewidth=0)


def _magnify(top: Axes, bottom: Axes, *, shift: float) -> None:
    """A pale wedge from the stretch of the upper axis that the lower one shows to the whole of the lower one."""
    figure = bottom.figure
    to_figure = figure.transFigure.inverted().transform
    ends = [float(np.clip(end + shift, *top.get_xlim())) for end in bottom.get_xlim()]
    floor = top.get_ylim()[0]
    upper = [to_figure(top.transData.transform((end, floor))) for end in ends]
    lower = [to_figure(bottom.transAxes.transform((end, 1.0))) for end in (1.0, 0.0)]
    wedge = Polygon(
        [*upper, *lower], closed=True, transform=figure.transFigure, color=GLASS, linewidth=0, zorder=-1
    )
    figure.add_artist(wedge)


def _frame(axes: Axes, low: float, high: float) -> None:
    axes.set_xlim(low, high)
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    ticks = MaxNLocator(nbins=8, steps=[1, 2, 5, 10]).tick_values(low, high)
    inner = 0.025 * (high - low)  # a label at the very edge would be cut
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if low + inner < t < high - inner]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value, 12):g}".replace("-", "−")))


def _note(axes: Axes, place: float, words: str) -> None:
    axes.text(place, 0.94, words, ha="center", va="bottom", fontsize=9, transform=axes.get_xaxis_transform())


def _range(values: Doubles) -> tuple[float, float]:
    low, high = axis_range(values)
    pad = 0.03 * (high - low)
    return low - pad, high + pad


def _stacked(values: Doubles, ends: tuple[float, float], height: float, number: int) -> Dots:
    """Dots in columns, one for `number` documents, in a strip `height` points high. Zero is an edge between columns;
    what lies beyond the axis stands at its ends."""
    low, high = ends
    for columns in (88, 104, 120, 140, 160, 180):
        width, points = (high - low) / columns, WIDTH * 72 / columns
        # half a column from the ends, so that dots there are not cut; what is 0 stands to its left
        index = np.ceil(np.clip(values, low + width / 2, high - width / 2) / width).astype(int) - 1
        places, counts = np.unique(index, return_counts=True)
        dots = -(-counts // number)
        rows = max(float(dots.max()), height / points)
        if rows * points <= 1.2 * height:
            break
    y = np.concatenate([np.arange(count) + 0.5 for count in dots])
    return Dots(np.repeat((places + 0.5) * width, dots), y, rows, 0.84 * min(points, height / rows))


def _draw(axes: Axes, dots: Dots, *, filled: np.ndarray) -> None:
    for which, colour, face in ((filled, SIGN, SIGN), (~filled, "#5a5a5a", "white")):
        axes.plot(
            dots.x[which],
            dots.y[which],
            linestyle="none",
            marker="o",
            markersize=dots.size,
            markerfacecolor=face,
            markeredgecolor=colour,
            markeredgewidth=min(0.8, dots.size / 5),
        )
