"""The figures of an audit: every document, the result against chance, and the power by documents.

They draw what the audit recorded. They are made to be read without colour: filled against hollow, dark against light.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from pretrace.report import facts
from pretrace.report.plots import CHANCE, KINDS, axis_range
from pretrace.report.svg import canvas
from pretrace.report.wording import fixed, plural
from pretrace.types import Audit, Doubles, Null, Power

SIGN, HELD = KINDS["member"], "#1c1c1c"
HILL, TAIL = "#cbcbcb", "#777777"
WIDTH = 7.6
MOST_DOTS = 1500
"""Dots a side; beyond, one stands for several documents."""
_VISIBLE = 0.02
"""The share of the highest bar below which a bar is too low to be in the way of words."""


@dataclass(frozen=True, slots=True, eq=False)
class Dots:
    """Where dots stand: `x` in the unit of the axis, `y` in rows; how many rows there is room for, and the diameter
    of a dot in points."""

    x: Doubles
    y: Doubles
    rows: float
    size: float


def documents(audit: Audit) -> Figure:
    """One dot a document: suspect ones over control documents, or suspect ones alone to the left and right of 0."""
    held = len(audit.heldout_values) > 0
    with canvas(WIDTH, 2.5 if held else 2.0, constrained=False) as (figure, axes):
        figure.subplots_adjust(
            left=0.006, right=0.994, top=0.99 if held else 0.9, bottom=0.17 if held else 0.21
        )
        if held:
            _two_sides(axes, audit)
        else:
            _one_side(axes, audit)
        axes.set_xlabel(_measured(audit))
    return figure


def against_chance(null: Null) -> Figure:
    """The hill of what chance gives, its part from the critical value on dark, and what was found."""
    with canvas(WIDTH, 2.0, constrained=False) as (figure, axes):
        figure.subplots_adjust(left=0.006, right=0.994, top=0.99, bottom=0.22)
        low, high, beside = _stretch(null)
        _frame(axes, low, high)
        axes.set_ylim(0, 2.0)
        _hill(axes, null)
        _found(axes, null)
        axes.text(
            beside, 0.42, "what chance gives if the\ntexts were not used", ha="right", va="center", fontsize=9
        )
        axes.set_xlabel("strength of the result: 0 is no difference, 1 is a usual chance difference")
    return figure


def per_dot(audit: Audit) -> int:
    """How many documents one dot of the figure stands for."""
    return -(-max(len(audit.values), len(audit.heldout_values)) // MOST_DOTS)


def power_curve(power: Power, number: int) -> Figure:
    """The probability of seeing the planted texts against the number of documents, with 80% and this audit."""
    points = sorted({*power.curve, (number, power.probability.value)})
    with canvas(WIDTH, 2.3) as (figure, axes):
        axes.axhline(0.8, color=CHANCE, linewidth=0.9, dashes=(4, 2.2))
        axes.plot(*zip(*points, strict=True), color=SIGN, linewidth=1.4, marker="o", ms=3.2)
        low, high = power.probability.low, power.probability.high
        axes.plot([number, number], [low, high], color=SIGN, linewidth=1.6)
        axes.plot([number], [power.probability.value], marker="D", ms=6.5, color=SIGN)
        height = 0.42 if low > 0.6 else 0.93
        axes.plot([number] * 2, [low, height - 0.06], color=SIGN, linewidth=0.9, dashes=(2, 1.6))
        axes.text(number, height, f" this audit: {plural(number, 'document')}", va="top", fontsize=9)
        if points[0][0] > 0 and points[-1][0] >= 8 * points[0][0]:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_locator(FixedLocator(_spaced([place for place, _ in points], number)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f}%"))
        axes.set_ylim(-0.02, 1.04)
        axes.yaxis.set_major_locator(FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1.0]))
        axes.grid(axis="y")
        axes.set_xlabel("documents")
        axes.set_ylabel("probability of seeing it")
    return figure


def _spaced(places: Sequence[int], number: int) -> list[int]:
    """Those of the places whose labels do not run into one another on a logarithmic axis; `number` stays."""
    kept: list[int] = []
    room = (places[-1] / places[0]) ** 0.06
    for place in places:
        clear = place == number or (number / room >= place or place >= number * room)
        if clear and (not kept or place >= kept[-1] * room):
            kept.append(place)
    return kept


def _measured(audit: Audit) -> str:
    """What the axis of the documents shows, for a reader without statistics."""
    if audit.design == "controls":
        if facts.compared_with(audit):
            return "how much better the model knows a document than the other model does"
        return "how well the model knows a document"
    if not facts.compared_with(audit):
        return "how much the model prefers the true text"
    less = ", less the margin" if facts.margin(audit) else ""
    return f"how much more the model prefers the true text than the other model does{less}"


def _one_side(axes: Axes, audit: Audit) -> None:
    """The documents as dots above the axis, filled to the right of zero."""
    low, high = _range(np.concatenate([audit.values, [0.0]]))
    _frame(axes, low, high)
    dots = _stacked(audit.values, (low, high), 100.0, per_dot(audit))
    axes.set_ylim(-0.4, dots.rows * 1.13)
    axes.axvline(0.0, color=HELD, linewidth=0.9, ymax=0.92)
    _draw(axes, dots, filled=dots.x > 0)
    axes.text(
        0.0, 0.94, "no sign of training", ha="center", va="bottom", fontsize=9,
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip
    left = "← no more than the margin" if facts.margin(audit) else "← imitation expected better"
    right = "more than the margin →" if facts.margin(audit) else "true ending expected better →"
    _directions(axes, left, right, 0.7)


def _two_sides(axes: Axes, audit: Audit) -> None:
    """Suspect documents (filled) over control documents (hollow)."""
    low, high = _range(np.concatenate([audit.values, audit.heldout_values]))
    _frame(axes, low, high)
    sides = (audit.values, audit.heldout_values)
    above, under = (_stacked(values, (low, high), 66.0, per_dot(audit)) for values in sides)
    rows, size = max(above.rows, under.rows), min(above.size, under.size)
    axes.set_ylim(-0.4, 2.12 * rows)
    axes.axhline(1.08 * rows - 0.4, color="#8a8a8a", linewidth=0.6)
    for dots, floor, filled, words in (
        (above, 1.08 * rows, True, "suspect documents"),
        (under, 0.0, False, "control documents"),
    ):
        raised = Dots(dots.x, dots.y + floor, dots.rows, size)
        _draw(axes, raised, filled=np.full(len(dots.x), filled))
        axes.text(low, floor + 0.36 * rows, words, fontsize=9, fontweight="bold", ha="left", va="center")
    left, right = ("← less well", "better →") if audit.design == "controls" else ("← less", "more →")
    _directions(axes, left, right, 0.9)


def _directions(axes: Axes, left: str, right: str, height: float) -> None:
    """What the two ends of the axis mean."""
    for end, words, side in zip(axes.get_xlim(), (left, right), ("left", "right"), strict=True):
        axes.text(end, height, words, fontsize=9, ha=side, va="center", transform=axes.get_xaxis_transform())


def _stretch(null: Null) -> tuple[float, float, float]:
    """Where the axis starts and ends, and where the words to the left of the hill end."""
    edges, counts = np.array(null.edges), np.array(null.counts)
    high_bars = np.flatnonzero(counts > _VISIBLE * counts.max())
    beside = float(edges[high_bars[0]])
    shown = float(edges[-1])
    if np.isfinite(null.critical):
        shown = max(shown, null.critical)
    width = shown - float(edges[0])
    # What was found may lie far out: then it stands at the end of the axis, with an arrow.
    found = float(np.clip(null.observed, edges[0] - width, shown + width))
    low, high = min(float(edges[0]), found), max(shown, found)
    pad = 0.05 * (high - low)
    low, high = min(low - pad, beside - 0.32 * (high + pad - beside)), high + pad
    if null.observed < null.critical < np.inf:  # whose words stand to the right of its line then
        high = max(high, null.critical + 0.5 * (null.critical - low))
        low = min(low, beside - 0.32 * (high - beside))
    return low, high, beside - 0.01 * (high - low)


def _hill(axes: Axes, null: Null) -> None:
    """The histogram as it was recorded; a bar that the critical value lies in is light to its left, dark to its
    right."""
    edges, counts = np.array(null.edges), np.array(null.counts)
    cut = float(np.clip(null.critical, edges[0], edges[-1]))
    place = int(np.searchsorted(edges, cut, side="right")) - 1
    if edges[0] < cut < edges[-1] and edges[place] < cut:
        edges = np.insert(edges, place + 1, cut)
        counts = np.insert(counts, place, counts[place])
    height = counts / max(1, counts.max())
    dark = edges[:-1] >= null.critical
    axes.stairs(np.where(dark, 0, height), edges, fill=True, color=HILL, linewidth=0)
    axes.stairs(np.where(dark, height, 0), edges, fill=True, color=TAIL, linewidth=0)


def _found(axes: Axes, null: Null) -> None:
    """The line that a result has to pass, and what was found, their words on different sides where there is room."""
    low, high = axes.get_xlim()
    if np.isfinite(null.critical):
        axes.plot([null.critical] * 2, [0, 1.2], color=HELD, linewidth=0.9)
        side = "right" if null.observed >= null.critical else "left"
        axes.text(null.critical, 1.24, "more than chance from here on", ha=side, va="bottom", fontsize=9)
    inside = float(np.clip(null.observed, low + 0.02 * (high - low), high - 0.02 * (high - low)))
    axes.plot([inside] * 2, [0, 1.56], color=SIGN, linewidth=0.9, dashes=(2, 1.6))
    axes.plot([inside], [0.12], marker="D", ms=7, color=SIGN)
    beyond = "" if inside == null.observed else " →" if null.observed > inside else " ←"
    words = f"this audit: {fixed(null.observed, 2)}{beyond}"
    share = (inside - low) / (high - low)
    side = "right" if share > 0.85 else "left" if share < 0.15 else "center"
    axes.text(inside, 1.6, words, ha=side, va="bottom", fontsize=9, fontweight="bold", color=SIGN)


def _frame(axes: Axes, low: float, high: float) -> None:
    axes.set_xlim(low, high)
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    ticks = MaxNLocator(nbins=8, steps=[1, 2, 5, 10]).tick_values(low, high)
    inner = 0.025 * (high - low)  # a label at the very edge would be cut
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if low + inner < t < high - inner]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value, 12):g}".replace("-", "−")))


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
            ms=dots.size,
            mfc=face,
            mec=colour,
            mew=min(0.8, dots.size / 5),
        )
