"""The documents of an audit as dots.

They draw what the audit recorded. They are made to be read without colour: filled against hollow, dark against light.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pretrace.report.chance_plots import HELD, SIGN, WIDTH, frame
from pretrace.report.svg import canvas
from pretrace.report.wording import brief, first_of, named
from pretrace.results.run import axis_range
from pretrace.types import Doubles, Verdict
from pretrace.verdicts.audit.built import CONTROL, SUSPECT, documents_of, figures_of

_MOST_DOTS = 1500
"""Dots a side; beyond, one stands for several documents."""


@dataclass(frozen=True, slots=True, eq=False)
class _Dots:
    """Where dots stand: `x` in the unit of the axis, `y` in rows; how many rows there is room for, the diameter of
    a dot in points, and the places of the documents that each stands for."""

    x: Doubles
    y: Doubles
    rows: float
    size: float
    documents: tuple[tuple[int, ...], ...]


def documents(audit: Verdict) -> Figure:
    """One dot a document: suspect ones over control documents, or suspect ones alone to the left and right of 0."""
    held = len(documents_of(audit, CONTROL)[0]) > 0
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


def titles(audit: Verdict) -> dict[str, list[str]]:
    """Which documents each dot of the figure stands for, with their values, by the name of the line of dots."""
    sides = {side: documents_of(audit, side) for side in (SUSPECT, CONTROL)}
    held = len(sides[CONTROL][0]) > 0
    ends = _range(np.concatenate([sides[SUSPECT][1], sides[CONTROL][1] if held else np.zeros(1)]))
    made: dict[str, list[str]] = {}
    for side, (names, values) in sides.items():
        if not len(values):
            continue
        dots = stack_dots(values, ends, 66.0 if held else 100.0, per_dot(audit))
        for x, documents in zip(dots.x, dots.documents, strict=True):
            kind = "filled" if (side == SUSPECT if held else x > 0) else "hollow"
            called = first_of([named(names[documents[0]], 60)], len(documents))
            title = f"{called}: {brief(float(values[documents[0]]), 3)}"
            made.setdefault(f"{side}-{kind}", []).append(title)
    return made


def per_dot(audit: Verdict) -> int:
    """How many documents one dot of the figure stands for."""
    return -(-max(len(documents_of(audit, side)[0]) for side in (SUSPECT, CONTROL)) // _MOST_DOTS)


def _measured(audit: Verdict) -> str:
    own = figures_of(audit)
    if own.design == "controls":
        if own.compared_with:
            return "how much better the model knows a document than the other model does"
        return "how well the model knows a document"
    if not own.compared_with:
        return "how much the model prefers the true text"
    less = ", less the margin" if own.margin else ""
    return f"how much more the model prefers the true text than the other model does{less}"


def _one_side(axes: Axes, audit: Verdict) -> None:
    values, margin = documents_of(audit, SUSPECT)[1], figures_of(audit).margin
    low, high = _range(np.concatenate([values, [0.0]]))
    frame(axes, low, high)
    dots = stack_dots(values, (low, high), 100.0, per_dot(audit))
    axes.set_ylim(-0.4, dots.rows * 1.13)
    axes.axvline(0.0, color=HELD, linewidth=0.9, ymax=0.92)
    draw_dots(axes, dots, SUSPECT, filled=dots.x > 0)
    axes.text(
        0.0, 0.94, "no sign of training", ha="center", va="bottom", fontsize=9,
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip
    left = "← no more than the margin" if margin else "← imitation expected better"
    right = "more than the margin →" if margin else "true ending expected better →"
    _directions(axes, left, right, 0.7)


def _two_sides(axes: Axes, audit: Verdict) -> None:
    sides = tuple(documents_of(audit, side)[1] for side in (SUSPECT, CONTROL))
    low, high = _range(np.concatenate(sides))
    frame(axes, low, high)
    above, under = (stack_dots(values, (low, high), 66.0, per_dot(audit)) for values in sides)
    rows, size = max(above.rows, under.rows), min(above.size, under.size)
    axes.set_ylim(-0.4, 2.12 * rows)
    axes.axhline(1.08 * rows - 0.4, color="#8a8a8a", linewidth=0.6)
    for dots, floor, side, words in (
        (above, 1.08 * rows, SUSPECT, "suspect documents"),
        (under, 0.0, CONTROL, "control documents"),
    ):
        raised = replace(dots, y=dots.y + floor, size=size)
        draw_dots(axes, raised, side, filled=np.full(len(dots.x), side == SUSPECT))
        axes.text(low, floor + 0.36 * rows, words, fontsize=9, fontweight="bold", ha="left", va="center")
    left, right = (
        ("← less well", "better →") if figures_of(audit).design == "controls" else ("← less", "more →")
    )
    _directions(axes, left, right, 0.9)


def _directions(axes: Axes, left: str, right: str, height: float) -> None:
    for end, words, side in zip(axes.get_xlim(), (left, right), ("left", "right"), strict=True):
        axes.text(end, height, words, fontsize=9, ha=side, va="center", transform=axes.get_xaxis_transform())


def _range(values: Doubles) -> tuple[float, float]:
    low, high = axis_range(values)
    pad = 0.03 * (high - low)
    return low - pad, high + pad


def stack_dots(values: Doubles, ends: tuple[float, float], height: float, number: int) -> _Dots:
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
    columns_of = [np.flatnonzero(index == place) for place in places]
    one_each = tuple(
        tuple(column[start : start + number].tolist())
        for column in columns_of
        for start in range(0, len(column), number)
    )
    return _Dots(
        np.repeat((places + 0.5) * width, dots), y, rows, 0.84 * min(points, height / rows), one_each
    )


def draw_dots(axes: Axes, dots: _Dots, side: str, *, filled: np.ndarray) -> None:
    for which, colour, face in ((filled, SIGN, SIGN), (~filled, "#5a5a5a", "white")):
        if not which.any():
            continue
        gid = f"{side}-{'filled' if which is filled else 'hollow'}"
        edge = min(0.8, dots.size / 5)
        axes.plot(dots.x[which], dots.y[which], "o", ms=dots.size, mfc=face, mec=colour, mew=edge, gid=gid)
