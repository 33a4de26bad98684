"""The figures of verdicts: a result against what chance gives, the probability of seeing training by the number of
units, the documents of an audit as dots, and what single tests have of their own.

They draw what a result recorded. They are made to be read without colour: filled against hollow, dark against light.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from pretrace.report.plots import CHANCE, KINDS
from pretrace.report.svg import canvas, hide_height
from pretrace.report.wording import brief, first_of, fixed, named, plural
from pretrace.results.run import axis_range
from pretrace.types import Doubles, Null, Power, Verdict
from pretrace.verdicts.audit.built import CONTROL, SUSPECT, documents_of
from pretrace.verdicts.audit.built import figures_of as audit_figures

SIGN, HELD = KINDS["member"], "#1c1c1c"
HILL, TAIL = "#cbcbcb", "#777777"
WIDTH = 7.6
_SCALELESS = 9_900.0
"""Strength of a result of documents that are all alike: nearly the most that a test gives, which a test holds."""
_VISIBLE = 0.02
"""The share of the highest bar below which a bar is too low to be in the way of words."""
_STRENGTH = "strength of the result: 0 is no difference, 1 is a usual chance difference"
"""The axis of a test whose statistic is a mean over its spread."""


def against_chance(null: Null, *, this: str = "this audit", axis: str = _STRENGTH) -> Figure:
    """The hill of what chance gives, its part from the critical value on dark, and what was found by `this`."""
    with canvas(WIDTH, 2.0, constrained=False) as (figure, axes):
        figure.subplots_adjust(left=0.006, right=0.994, top=0.99, bottom=0.22)
        place = _on_scale(null)
        low, high, beside = _stretch(place)
        frame(axes, low, high)
        axes.set_ylim(0, 2.0)
        _hill(axes, place)
        _found(axes, place, f"{this}: {strength(null.observed, fixed(null.observed, 2))}")
        axes.text(
            beside, 0.42, "what chance gives if the\ntexts were not used", ha="right", va="center", fontsize=9
        )
        axes.set_xlabel(axis)
    return figure


def strength(value: float, written: str) -> str:
    """The strength of a result as it is `written`, or in words where nothing varies, so that there is no scale."""
    return "off the scale, as nothing varies" if _SCALELESS <= abs(value) < np.inf else written


def _on_scale(null: Null) -> Null:
    """With what has no scale, as nothing varies, at the end of the axis."""
    low, high = null.edges[0], null.edges[-1]
    far = 0.25 * (high - low)

    def placed(value: float) -> float:
        return float(np.clip(value, low - far, high + far)) if _SCALELESS <= abs(value) < np.inf else value

    return replace(null, observed=placed(null.observed), critical=placed(null.critical))


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
        if points[0][0] > 0 and points[-1][0] >= 8 * points[0][0]:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_locator(FixedLocator(_spaced([place for place, _ in points], number)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f}%"))
        axes.set_ylim(-0.02, 1.04)
        axes.yaxis.set_major_locator(FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1.0]))
        axes.grid(axis="y")
        axes.set_xlabel(f"{unit}s")
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


# The documents of an audit as dots.


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
    own = audit_figures(audit)
    if own.design == "controls":
        if own.compared_with:
            return "how much better the model knows a document than the other model does"
        return "how well the model knows a document"
    if not own.compared_with:
        return "how much the model prefers the true text"
    less = ", less the margin" if own.margin else ""
    return f"how much more the model prefers the true text than the other model does{less}"


def _one_side(axes: Axes, audit: Verdict) -> None:
    values, margin = documents_of(audit, SUSPECT)[1], audit_figures(audit).margin
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
        ("← less well", "better →") if audit_figures(audit).design == "controls" else ("← less", "more →")
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


# The figures that only one test has: a test without one has only that of its null distribution.


@dataclass(frozen=True, slots=True)
class DrawnFigure:
    """A figure, its label for those who cannot see it, and its caption."""

    figure: Figure
    label: str
    caption: str


def figures_of(verdict: Verdict) -> Sequence[DrawnFigure]:
    """The figures of the test that gave this verdict, none where it has none of its own."""
    draw = _DRAWN.get(verdict.test)
    return draw(verdict) if draw else ()


_STRIP_HEIGHT, _MOST_IN_STRIP = 95.0, 1200
"""The height of the strip in points, and the dots beyond which one stands for several units."""


def _differences(verdict: Verdict) -> Sequence[DrawnFigure]:
    """One dot a unit: what was published less the mean of what was not, to the left and right of 0."""
    name = "texts" if verdict.test == "marks" else "strings"
    found = np.asarray(verdict.table(name).columns["difference"], dtype=np.float64)
    values = found[np.isfinite(found)]
    if not len(values):
        return ()
    each = -(-len(values) // _MOST_IN_STRIP)
    with canvas(WIDTH, 2.1, constrained=False) as (figure, axes):
        figure.subplots_adjust(left=0.006, right=0.994, top=0.9, bottom=0.22)
        _strip(axes, values, each)
        axes.set_xlabel(f"{_compared(verdict)} ({verdict.effect_unit})")
    above = int(np.count_nonzero(values > 0))
    dots = (
        f"Each dot is one {verdict.unit}"
        if each == 1
        else f"Each dot stands for up to {each} {verdict.unit}s"
    )
    label = (
        f"{plural(len(values), verdict.unit)}, each with its difference: {above} lie above 0, {len(values) - above} at "
        "or below."
    )
    caption = (
        f"{dots}. Filled dots lie to the right of 0: there the model prefers what was published. Without training the "
        "two sides are balanced, except for chance. Values far out stand at the ends."
    )
    return (DrawnFigure(figure, label, caption),)


def _hits(verdict: Verdict) -> Sequence[DrawnFigure]:
    chance = np.asarray(verdict.table("chance").columns["probability"], dtype=np.float64)
    found, critical = (
        int(verdict.figures["hits"]),
        int(verdict.figures["hits from which on the test rejects"]),
    )
    likely = np.flatnonzero(chance > 1e-4)
    low, high = max(0, min(int(likely[0]), found) - 1), max(int(likely[-1]), found, critical) + 1
    places = np.arange(low, min(high, len(chance) - 1) + 1)
    with canvas(WIDTH, 2.1, constrained=False) as (figure, axes):
        figure.subplots_adjust(left=0.006, right=0.994, top=0.86, bottom=0.22)
        colours = [TAIL if place >= critical else HILL for place in places]
        axes.bar(places, chance[places], width=0.86, color=colours, linewidth=0)
        axes.axvline(found, color=SIGN, linewidth=1.2, dashes=(2, 1.6))
        axes.plot([found], [0.06 * chance.max()], marker="D", ms=7, color=SIGN)
        side = "right" if found > (low + high) / 2 else "left"
        axes.text(
            found, 1.03, f"found: {found}", ha=side, va="bottom", fontsize=9, fontweight="bold", color=SIGN,
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip
        hide_height(axes)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.set_xlabel("sentences that end with the published word")
    expected = verdict.figures["expected by chance"]
    label = f"Chance gives about {expected:g} hits among {verdict.units} sentences; {found} were found."
    caption = (
        "The bars show how many hits chance alone gives, if the model has not seen the texts. The mark is what was "
        f"found. The dark bars, from {critical} hits on, are together no more than {verdict.level:.0%} of the whole."
    )
    return (DrawnFigure(figure, label, caption),)


def _compared(verdict: Verdict) -> str:
    if verdict.test == "marks":
        what = "variant" if verdict.unit == "text" else "order"
        return f"published {what} less the mean of the others"
    return "string in the text less the mean of fresh ones"


def _strip(axes: Axes, values: Doubles, each: int) -> None:
    """The dots in columns, those above 0 filled; 0 is an edge between columns."""
    end = max(map(abs, axis_range(values))) or 1.0
    dots = stack_dots(values, (-end, end), _STRIP_HEIGHT, each)
    draw_dots(axes, dots, "dots", filled=dots.x > 0)
    axes.axvline(0.0, color=HELD, linewidth=0.9)
    axes.set_xlim(-1.03 * end, 1.03 * end)
    axes.set_ylim(-0.4, 1.05 * dots.rows)
    axes.text(
        0.0, 1.02, "no preference", ha="center", va="bottom", fontsize=9, transform=axes.get_xaxis_transform()
    )
    hide_height(axes)


def _accuracies(verdict: Verdict) -> Sequence[DrawnFigure]:
    table = verdict.table("accuracy").columns
    sides = [str(name) for name in table["side"]]
    counts, values, low, high = (
        np.asarray(table[name], dtype=np.float64) for name in ("items", "accuracy", "low", "high")
    )
    places = np.arange(len(sides))[::-1]
    with canvas(WIDTH, 0.6 + 0.35 * len(sides)) as (figure, axes):
        axes.hlines(places, low, high, color=HELD, linewidth=1.2)
        axes.plot(values, places, "o", color=HELD, markersize=5)
        axes.set_yticks(places, [f"{side} ({count:,.0f})" for side, count in zip(sides, counts, strict=True)])
        axes.set_xlim(0, 1)
        axes.set_ylim(-0.6, len(sides) - 0.4)
        axes.set_xlabel("accuracy, with its 95% interval")
    told = ", ".join(f"{100 * value:.1f}% of {side}" for side, value in zip(sides, values, strict=True))
    caption = "The share of right answers on each side, and the number of items (documents) that it rests on."
    return (DrawnFigure(figure, f"Accuracy: {told}.", caption),)


_DRAWN: Mapping[str, Callable[[Verdict], Sequence[DrawnFigure]]] = {
    "marks": _differences,
    "canaries": _differences,
    "triggers": _hits,
    "samples": _accuracies,
}
"""What draws the figures of a test."""
