"""The figures of verdicts: a result against what chance gives, the probability of seeing training by the number of
units, and values as dots. They draw what a result recorded. They are made to be read without colour: filled against
hollow, dark against light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from pretrace.report.plots import CHANCE, KINDS
from pretrace.report.svg import canvas, hide_height
from pretrace.results.run import axis_range
from pretrace.results.wording import brief, first_of, fixed, named, plural
from pretrace.types import Doubles, Null, Power

SIGN, HELD = KINDS["member"], "#1c1c1c"
HILL, TAIL = "#cbcbcb", "#777777"
WIDTH = 7.6
_SCALELESS = 9_900.0
"""Strength of a result of documents that are all alike: nearly the most that a test gives, which a test holds."""
_MOST_DOTS = 1500
"""Dots a side; beyond, one stands for several units."""
_VISIBLE = 0.02
"""The share of the highest bar below which a bar is too low to be in the way of words."""


def against_chance(null: Null, *, this: str = "this audit") -> Figure:
    """The hill of what chance gives, its part from the critical value on dark, and what was found by `this`."""
    with canvas(WIDTH, 2.0, constrained=False) as (figure, axes):
        figure.subplots_adjust(left=0.006, right=0.994, top=0.99, bottom=0.22)
        # what has no scale, as nothing varies, stands at the end of the axis
        start, end = null.edges[0], null.edges[-1]
        far = start - 0.25 * (end - start), end + 0.25 * (end - start)
        observed, critical = (
            float(np.clip(one, *far)) if _SCALELESS <= abs(one) < np.inf else one
            for one in (null.observed, null.critical)
        )
        place = replace(null, observed=observed, critical=critical)
        low, high, beside = _stretch(place)
        frame(axes, low, high)
        axes.set_ylim(0, 2.0)
        _hill(axes, place)
        _found(axes, place, f"{this}: {strength(null.observed, fixed(null.observed, 2))}")
        words = "what chance gives if the\ntexts were not used"
        axes.text(beside, 0.42, words, ha="right", va="center", fontsize=9)
        axes.set_xlabel("strength of the result: 0 is no difference, 1 is a usual chance difference")
    return figure


def strength(value: float, written: str) -> str:
    """The strength of a result as it is `written`, or in words where nothing varies, so that there is no scale."""
    return "off the scale, as nothing varies" if _SCALELESS <= abs(value) < np.inf else written


def power_curve(power: Power, number: int, *, this: str = "this audit", unit: str = "document") -> Figure:
    """The probability of seeing the planted texts against the number of units, with 80% and `this` one."""
    points = sorted({*power.curve, (number, power.probability.value)})
    with canvas(WIDTH, 2.3) as (figure, axes):
        axes.axhline(0.8, color=CHANCE, linewidth=0.9, dashes=(4, 2.2))
        axes.plot(*zip(*points, strict=True), color=SIGN, linewidth=1.4, marker="o", ms=3.2)
        low, high = power.probability.low, power.probability.high
        axes.plot([number, number], [low, high], color=SIGN, linewidth=1.6)
        axes.plot([number], [power.probability.value], marker="D", ms=6.5, color=SIGN)
        height = 0.42 if low > 0.6 else 0.93
        axes.plot([number] * 2, [low, height - 0.06], color=SIGN, linewidth=0.9, dashes=(2, 1.6))
        axes.text(number, height, f" {this}: {plural(number, unit)}", va="top", fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f}%"))
        axes.set_ylim(-0.02, 1.04)
        axes.yaxis.set_major_locator(FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1.0]))
        axes.grid(axis="y")
        axes.set_xlabel(f"{unit}s")
        axes.set_ylabel("probability of seeing it")
    return figure


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
    """The histogram as it was recorded; a bar that holds the critical value is light to its left, dark to its right."""
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


def _found(axes: Axes, null: Null, words: str) -> None:
    low, high = axes.get_xlim()
    if np.isfinite(null.critical):
        axes.plot([null.critical] * 2, [0, 1.2], color=HELD, linewidth=0.9)
        side = "right" if null.observed >= null.critical else "left"
        axes.text(null.critical, 1.24, "more than chance from here on", ha=side, va="bottom", fontsize=9)
    inside = float(np.clip(null.observed, low + 0.02 * (high - low), high - 0.02 * (high - low)))
    axes.plot([inside] * 2, [0, 1.56], color=SIGN, linewidth=0.9, dashes=(2, 1.6))
    axes.plot([inside], [0.12], marker="D", ms=7, color=SIGN)
    beyond = "" if inside == null.observed else " →" if null.observed > inside else " ←"
    words += beyond
    share = (inside - low) / (high - low)
    side = "right" if share > 0.85 else "left" if share < 0.15 else "center"
    axes.text(inside, 1.6, words, ha=side, va="bottom", fontsize=9, fontweight="bold", color=SIGN)


def frame(axes: Axes, low: float, high: float) -> None:
    axes.set_xlim(low, high)
    hide_height(axes)
    ticks = MaxNLocator(nbins=8, steps=[1, 2, 5, 10]).tick_values(low, high)
    inner = 0.025 * (high - low)  # a label at the very edge would be cut
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if low + inner < t < high - inner]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value, 12):g}".replace("-", "−")))


class TestFigure(NamedTuple):
    """A figure, its label for those who cannot see it, its caption, and the titles of single marks by their line."""

    figure: Figure
    label: str
    caption: str
    titles: Mapping[str, Sequence[str]] = {}


class _Dots(NamedTuple):
    """Dots: `x` in the unit of the axis, `y` in `rows`, their `size` in points, and the places of the units of each."""

    x: Doubles
    y: Doubles
    rows: float
    size: float
    units: tuple[tuple[int, ...], ...]


def draw_dots(
    sides: Mapping[str, tuple[Sequence[str], Doubles]], label: str, ends: tuple[str, str], *, middle: str
) -> tuple[Figure, dict[str, list[str]], int]:
    """Draw the named values of one or two sides as dots, with words at both ends of the axis. The first side is filled
    and lies above the other; one that is alone is filled to the right of 0, where `middle` stands. With it come the
    titles of the dots, by the identifiers of their lines, and how many units each stands for."""
    several, every = len(sides) > 1, np.concatenate([values for _, values in sides.values()])
    low, high = axis_range(every if several else np.append(every, 0.0))
    low, high = low - 0.03 * (high - low), high + 0.03 * (high - low)
    each = -(-max(len(values) for _, values in sides.values()) // _MOST_DOTS)
    height = 66.0 if several else 100.0
    stacks = [_stack(values, (low, high), height, each) for _, values in sides.values()]
    rows, size = max(one.rows for one in stacks), min(one.size for one in stacks)
    titles: dict[str, list[str]] = {}
    with canvas(WIDTH, 2.5 if several else 2.0, constrained=False) as (figure, axes):
        top, bottom = (0.99, 0.17) if several else (0.9, 0.21)
        figure.subplots_adjust(left=0.006, right=0.994, top=top, bottom=bottom)
        frame(axes, low, high)
        for place, (one, (side, (names, values))) in enumerate(zip(stacks, sides.items(), strict=True), 1):
            floor = 1.08 * rows * (len(sides) - place)
            filled = np.full(len(one.x), place == 1) if several else one.x > 0
            for full, kind, edge, face in (
                (True, "filled", SIGN, SIGN),
                (False, "hollow", "#5a5a5a", "white"),
            ):
                if (which := filled == full).any():
                    how: Any = {"mfc": face, "mec": edge, "mew": min(0.8, size / 5), "gid": f"{side}-{kind}"}
                    axes.plot(one.x[which], one.y[which] + floor, "o", ms=size, **how)
            for full, units in zip(filled, one.units, strict=True):
                called = first_of([named(names[units[0]], 60)], len(units))
                line = titles.setdefault(f"{side}-{'filled' if full else 'hollow'}", [])
                line.append(f"{called}: {brief(float(values[units[0]]), 3)}")
            if several:
                bold: Any = {"fontsize": 9, "fontweight": "bold", "va": "center"}
                axes.text(low, floor + 0.36 * rows, f"{side} documents", **bold)
        small: Any = {"fontsize": 9, "transform": axes.get_xaxis_transform()}
        for end, words, where in zip((low, high), ends, ("left", "right"), strict=True):
            axes.text(end, 0.9 if several else 0.7, words, ha=where, va="center", **small)
        if several:
            axes.axhline(1.08 * rows - 0.4, color=CHANCE, linewidth=0.6)
        else:
            axes.axvline(0.0, color=HELD, linewidth=0.9, ymax=0.92)
            axes.text(0.0, 0.94, middle, ha="center", va="bottom", **small)
        axes.set_ylim(-0.4, (2.12 if several else 1.13) * rows)
        axes.set_xlabel(label)
    return figure, titles, each


def _stack(values: Doubles, ends: tuple[float, float], height: float, number: int) -> _Dots:
    """Dots in columns, one for `number` units, in a strip `height` points high; what lies out stands at its ends."""
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
    columns_of = [np.flatnonzero(index == place) for place in places]
    units = tuple(
        tuple(column[start : start + number].tolist())
        for column in columns_of
        for start in range(0, len(column), number)
    )
    size = 0.84 * min(points, height / rows)
    return _Dots(np.repeat((places + 0.5) * width, dots), y, rows, size, units)
