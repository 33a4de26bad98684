"""The figures of reports, drawn with matplotlib's object-oriented interface (never pyplot), and how one becomes an SVG
that can stand in a page: clean, reproducible, with identifiers of its own.

Text stays text (`svg.fonttype = "none"`): it can be searched and read aloud, takes the page's typeface, prints sharp
at any size, and needs no glyph outlines, whose shared identifiers would clash between plots. Names of scores are
printed as they are: mathtext is switched off wherever a name is a label.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import textwrap
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    ScalarFormatter,
)

from pretrace.errors import shown
from pretrace.results.run import LARGEST, axis_range
from pretrace.results.wording import brief, first_of, fixed, named, plural
from pretrace.types import Doubles, Estimate, Measured, Null, Power

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "pretrace",
    "font.sans-serif": ["DejaVu Sans"], "font.size": 9.0, "text.color": "#1c1c1c",
    "axes.labelsize": 9.0, "axes.edgecolor": "#8a8a8a", "axes.labelcolor": "#333333", "axes.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "xtick.labelsize": 8.5, "xtick.color": "#8a8a8a", "xtick.labelcolor": "#333333",
    "ytick.labelsize": 8.5, "ytick.color": "#8a8a8a", "ytick.labelcolor": "#333333",
    "xtick.major.width": 0.6, "xtick.major.size": 3.0, "ytick.major.width": 0.6, "ytick.major.size": 3.0,
    "grid.color": "#e6e6e6", "grid.linewidth": 0.6, "figure.facecolor": "none", "axes.facecolor": "none",
    "lines.solid_capstyle": "round", "lines.dash_capstyle": "butt",
}  # fmt: skip
_REFERENCE = re.compile(r"^(?:url\()?#([^)]+)")
# matplotlib's settings belong to the process; two pages drawn at once must not mix them.
_LOCK = threading.RLock()


@contextmanager
def styled() -> Iterator[None]:
    """Within: matplotlib's defaults with our style on top, whatever the user's own settings are."""
    with _LOCK, style.context(["default", _STYLE]):
        yield


@contextmanager
def canvas(width: float, height: float, *, constrained: bool = True) -> Iterator[tuple[Figure, Axes]]:
    """Within: a new figure of so many inches and its axes, in our style."""
    with styled():
        figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
        yield figure, figure.add_subplot()


def hide_height(axes: Axes) -> None:
    """Leave the vertical axis out, where heights are counts that nobody reads off."""
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)


@contextmanager
def _undated() -> Iterator[None]:
    """No SOURCE_DATE_EPOCH meanwhile: a figure bears no date, and matplotlib reads that variable for its layout."""
    held = os.environ.pop("SOURCE_DATE_EPOCH", None)
    try:
        yield
    finally:
        if held is not None:
            os.environ["SOURCE_DATE_EPOCH"] = held


def to_svg(
    figure: Figure, *, name: str, label: str, titles: Mapping[str, Sequence[str]] | None = None
) -> Markup:
    """The figure as an `<svg>` element for an HTML page; the same figure gives the same bytes. Identifiers
    depend on `name`, so it must be unique in the page; `label` is read to those who cannot see the plot. `titles` are
    those of single marks, which a browser shows beside the pointer, by the `gid` of their line."""
    raw = io.BytesIO()
    with styled(), _undated(), style.context({"svg.hashsalt": name}), warnings.catch_warnings():
        # Only the width of a label is guessed without the glyph; the browser has the letters.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawn: Any = FigureCanvasSVG(figure)
        figure.set_dpi(72)  # an SVG's point
        # the layout is settled here: `savefig` draws the whole figure once for that, and throws it away
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine("none")
        drawn.print_svg(raw, metadata={"Date": None})
    root = ElementTree.fromstring(raw.getvalue())
    used: set[str] = set()
    for element in list(root.iter()):
        element.tag = _local(element.tag)
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
        # as attributes: a page's policy may forbid styles
        styles = [one.partition(":") for one in element.attrib.pop("style", "").split(";")]
        element.attrib |= {key.strip(): value.strip() for key, colon, value in styles if colon}
        used.update(target for value in element.attrib.values() for target in _REFERENCE.findall(value))
        for child in list(element):
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
    for line, words in (titles or {}).items():
        group = next(one for one in root.iter() if one.get("id") == line)
        for mark, word in zip([one for one in group.iter() if one.tag == "use"], words, strict=True):
            ElementTree.SubElement(mark, "title").text = shown(word)
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
    width, height = root.get("width", ""), root.get("height", "")
    root.attrib.clear()
    size = f"0 0 {width.removesuffix('pt')} {height.removesuffix('pt')}"
    root.attrib.update({"class": "plot", "width": width, "height": height, "viewBox": size})
    root.attrib.update({"role": "img", "aria-label": shown(label), "stroke-linejoin": "round"})
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # escaped by ElementTree


def _local(name: str) -> str:
    return name.rpartition("}")[2]


# The figures of a run.


# Paul Tol's "muted" scheme, in an order that keeps neighbours apart for colour-blind eyes and on grey paper.
PALETTE = ("#332288", "#cc6677", "#117733", "#88ccee", "#882255", "#999933", "#44aa99", "#aa4499")
REST = "#c4c4c4"
INK = "#1c1c1c"
CHANCE = "#8a8a8a"
KINDS = {"member": "#33658a", "nonmember": "#1c1c1c", "unlabelled": "#6b6b6b"}
MEMBER = KINDS["member"]
_SIZES = {"o": 5.4, "D": 4.6, "s": 4.8}
_KINDS_OF_MARKS = {
    "score": ("o", MEMBER, True),
    "placebo": ("s", INK, False),
    "blind": ("D", INK, False),
}
_LANE = 0.5
"""Height of one line of marks, in rows of a forest plot."""
_CONTROL_DASHES = ((5.0, 2.2), (1.6, 1.6), (6.0, 1.6, 1.6, 1.6))


class _Stroke(NamedTuple):
    """How one row is drawn: colour, dash pattern in points (empty for a solid line), width in points."""

    colour: str
    dashes: tuple[float, ...]
    width: float


def strokes(rows: Sequence[Measured]) -> tuple[_Stroke, ...]:
    """One stroke a row: colours for the scores with the largest AUC, grey for the others, dashes for controls."""
    scores = [i for i, row in enumerate(rows) if row.kind == "score"]
    best = sorted(scores, key=lambda i: -rows[i].auc.value)[: len(PALETTE)]
    colours = dict(zip(sorted(best), PALETTE, strict=False))
    dashes = itertools.cycle(_CONTROL_DASHES)
    return tuple(
        _Stroke(INK, next(dashes), 1.3)
        if row.kind != "score"
        else _Stroke(colours.get(i, REST), (), 1.4 if i in colours else 0.9)
        for i, row in enumerate(rows)
    )


def roc(rows: Sequence[Measured], *, floor: float | None = None) -> Figure:
    """The ROC curves of an evaluation with the chance line; on log-log axes from `floor` where one is given. On log
    axes the false positive rate 0 is drawn at the left edge."""
    with canvas(4.3, 4.1) as (figure, axes):
        start = floor or 0.0
        diagonal = np.geomspace(floor, 1.0, 50) if floor else np.array([0.0, 1.0])
        axes.plot(diagonal, diagonal, color=CHANCE, linewidth=0.8)
        drawn = zip(rows, strokes(rows), strict=True)
        # The coloured curves go over the grey ones, the controls over all.
        for row, stroke in sorted(drawn, key=lambda pair: (bool(pair[1].dashes), pair[1].colour != REST)):
            fpr, tpr = np.maximum(row.curve.fpr, start), np.maximum(row.curve.tpr, start)
            # On log axes the climb along FPR 0 would run over the axis itself: it starts where it leaves it.
            first = max(0, int((fpr <= start).sum()) - 1) if floor else 0
            line = axes.plot(fpr[first:], tpr[first:], color=stroke.colour, linewidth=stroke.width)[0]
            if stroke.dashes:
                line.set_dashes(stroke.dashes)
        _rate_axes(axes, floor)
    return figure


def forest(rows: Sequence[Measured]) -> Figure:
    """AUC of every row with its 95% interval, against chance and the strongest control."""
    figure = across([(row.name, {row.kind: row.auc}) for row in rows], room=0.5)
    if controls := [row.auc.value for row in rows if row.kind != "score"]:
        figure.axes[0].axvline(max(controls), color=INK, linewidth=0.9, dashes=(4, 2.2))
    return figure


def across(rows: Sequence[tuple[str, Mapping[str, Estimate]]], *, room: float = 0.6) -> Figure:
    """AUCs of several scores, or of one over several runs, each named, with 95% intervals: "score" as a dot, the
    controls below it: "placebo" as a hollow square, "blind" as a diamond, "shuffled" as a grey bar, the range of the
    repeats, with a tick at the median. A dot is hollow where its interval includes 0.5. A row is as high as its lanes
    and `room`."""
    rooms = [room + _LANE * len(lanes) for _, lanes in rows]
    with styled():
        drawn = [auc for _, lanes in rows for auc in lanes.values()]
        figure, axes, places = _rows([name for name, _ in rows], rooms, drawn)
        for middle, (_, lanes) in zip(places, rows, strict=True):
            for number, (kind, auc) in enumerate(lanes.items()):
                place = middle + _LANE * (number - (len(lanes) - 1) / 2)
                if kind == "shuffled":
                    ends, level = [auc.low, auc.high], [place, place]
                    axes.plot(ends, level, color=REST, linewidth=4.5, solid_capstyle="butt")
                    axes.plot([auc.value], [place], marker="|", ms=7, color=INK, mew=1.2)
                else:
                    marker, colour, filled = _KINDS_OF_MARKS[kind]
                    _mark(axes, place, auc, marker, colour, filled=filled and not auc.low <= 0.5 <= auc.high)
    return figure


def distribution(groups: Mapping[str, Doubles], *, own: float | None = None) -> Figure:
    """Histograms of one score, one a kind of text ("member", "nonmember", "unlabelled"), each of area one, and a line
    at the value of a text of one's `own`. Members are filled and the others outlined; values beyond `axis_range` are
    counted in the outermost bars."""
    values = {kind: np.clip(group, -LARGEST, LARGEST) for kind, group in groups.items() if len(group)}
    low, high = axis_range(np.concatenate([*values.values(), np.array([] if own is None else [own])]))
    bins = int(np.clip(np.sqrt(min(map(len, values.values()))) * 1.5, 8, 32))
    edges = np.linspace(low, high, bins + 1)
    with canvas(2.75, 1.5) as (figure, axes):
        for kind, group in values.items():
            share = np.histogram(np.clip(group, low, high), edges)[0] / len(group)
            filled = kind == "member" or len(values) == 1
            how: Any = {"alpha": 0.45, "linewidth": 0.0} if filled else {"linewidth": 1.1}
            line = ":" if kind == "unlabelled" else "-"
            axes.stairs(share, edges, fill=filled, color=KINDS[kind], linestyle=line, **how)
        hide_height(axes)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        plain = ScalarFormatter(useOffset=False, useMathText=False)
        axes.xaxis.set_major_formatter(plain)
        axes.set_xlim(low - (high - low) / 100, high + (high - low) / 100)
        axes.set_ylim(bottom=0)
        if own is not None:
            axes.axvline(float(np.clip(own, low, high)), color=MEMBER, linewidth=1.6)
    return figure


def _rate_axes(axes: Axes, floor: float | None) -> None:
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    axes.set_aspect("equal", adjustable="box")
    if floor:
        axes.set_xscale("log")
        axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        if floor:
            axis.set_major_locator(LogLocator(numticks=9))
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda rate, _: f"{100 * rate:g}%"))
    axes.set_xlim(floor or -0.01, 1.0 if floor else 1.01)
    axes.set_ylim(floor or -0.01, 1.0 if floor else 1.01)
    axes.grid()


def _rows(
    names: Sequence[str], rooms: Sequence[float], drawn: Sequence[Estimate]
) -> tuple[Figure, Axes, list[float]]:
    """A figure with an axis wide enough for `drawn`, rows at least as high as `rooms`, and the rows' places."""
    # A name on at most two lines of the margin.
    labels = ["\n".join(textwrap.wrap(named(name, 70), 36, break_on_hyphens=False)) for name in names]
    # A name on two lines takes more room.
    heights = np.array([max(room, 1 + 0.55 * s.count("\n")) for room, s in zip(rooms, labels, strict=True)])
    places = (np.cumsum(heights) - heights / 2).tolist()
    figure = Figure(figsize=(8.6, 0.62 + 0.235 * float(heights.sum())))
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    axes.axvline(0.5, color=CHANCE, linewidth=0.9)
    axes.set_yticks(places)
    for tick, name in zip(axes.set_yticklabels(labels), labels, strict=True):
        tick.set_parse_math(False)  # a dollar sign begins no formula
        tick.set_text(name)
        tick.set_color("#1c1c1c")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(float(heights.sum()) + 0.1, -0.1)
    low = min([0.5, *(min(auc.low, auc.value) for auc in drawn)])
    axes.set_xlim(max(-0.01, float(np.floor(low * 10 - 0.3) / 10)), 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5]))
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("AUC")
    return figure, axes, places


def _mark(axes: Axes, place: float, auc: Estimate, marker: str, colour: str, *, filled: bool) -> None:
    axes.plot([auc.low, auc.high], [place, place], color=colour, linewidth=1.4)
    face = colour if filled else "white"
    axes.plot([auc.value], [place], marker=marker, ms=_SIZES[marker], mec=colour, mfc=face, mew=1.3)


# What detectors were fitted on.


Entry = Mapping[str, float]
"""Figures by name; a yes or no is 1.0 or 0.0."""

PARAMETERS = {"threshold": "threshold τ", "alpha": "ratio α", "k": "layers used K"}
_PALE = 0.32
"""Opacity of the layers that were not chosen."""


def neurons(layers: Sequence[Entry]) -> Figure:
    """Member neurons of each layer upwards, others downwards, a dot at the difference S; layers not chosen are pale."""
    with canvas(8.6, 2.7) as (figure, axes):
        for entry in layers:
            place, alpha = entry["layer"], 1.0 if entry["chosen"] else _PALE
            axes.bar(place, entry["members"], 0.72, color=MEMBER, alpha=alpha)
            axes.bar(place, -entry["nonmembers"], 0.72, fc="white", ec=INK, alpha=alpha, lw=1.0)
        axes.axhline(0, color=CHANCE, linewidth=0.8)
        places, differences = ([entry[name] for entry in layers] for name in ("layer", "difference"))
        axes.plot(places, differences, "D", ms=4.2, mfc="#e9b44c", mec=INK, mew=0.9)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))
        axes.grid(axis="y")
        axes.set_ylabel("neurons")
        _whole_numbers(axes, "layer")
    return figure


def probe(layers: Sequence[Entry], chosen: float | None) -> Figure:
    """The AUC of the probe of each layer where the layer was chosen; the chosen one is filled."""
    with canvas(8.6, 2.3) as (figure, axes):
        _auc_line(axes, layers, "layer", chosen)
        axes.set_ylabel("AUC")
        _whole_numbers(axes, "layer")
    return figure


def sensitivity(points: Sequence[Entry], used: Mapping[str, float]) -> Figure:
    """AUC against threshold, ratio and number of layers, one panel each: a line through the points that agree
    with `used` in the other two, and a filled dot at the setting used."""
    with styled():
        figure = Figure(figsize=(8.6, 2.3), layout="constrained")
        panels = figure.subplots(1, len(PARAMETERS), sharey=True)
        for axes, (name, words) in zip(panels, PARAMETERS.items(), strict=True):
            same = [one for one in PARAMETERS if one != name]
            along = [point for point in points if all(point[one] == used.get(one) for one in same)]
            along.sort(key=lambda point: point[name])
            _auc_line(axes, along, name, used.get(name), every=points)
            axes.set_xlabel(words)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=name == "k"))
        panels[0].set_ylabel("AUC")
    return figure


def _auc_line(
    axes: Axes, points: Sequence[Entry], name: str, used: float | None, *, every: Sequence[Entry] = ()
) -> None:
    """Draw the AUCs of `points` by a parameter, that of the value used filled, on an axis with room for `every` one."""
    places, values = [one[name] for one in points], [one["auc"] for one in points]
    axes.axhline(0.5, color=CHANCE, linewidth=0.9)
    axes.plot(places, values, color=MEMBER, linewidth=1.2)
    for x, y in zip(places, values, strict=True):
        face, size = (MEMBER, 6.0) if x == used else ("white", 4.2)
        axes.plot([x], [y], marker="o", ms=size, mec=MEMBER, mfc=face, mew=1.2)
    drawn = [0.5, *(one["auc"] for one in every or points)]
    axes.set_ylim(max(-0.02, min(drawn) - 0.06), min(1.02, max(drawn) + 0.06))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5]))
    axes.grid(axis="y")


def _whole_numbers(axes: Axes, label: str) -> None:
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=16, integer=True, min_n_ticks=1))


# The figures of verdicts: a result against what chance gives, the probability of seeing training by the number of
# units, and values as dots. They draw what a result recorded. They are made to be read without colour: filled against
# hollow, dark against light.


_HILL, _TAIL = "#cbcbcb", "#777777"
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
        _axis(axes, low, high)
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
        axes.plot(*zip(*points, strict=True), color=MEMBER, linewidth=1.4, marker="o", ms=3.2)
        low, high = power.probability.low, power.probability.high
        axes.plot([number, number], [low, high], color=MEMBER, linewidth=1.6)
        axes.plot([number], [power.probability.value], marker="D", ms=6.5, color=MEMBER)
        height = 0.42 if low > 0.6 else 0.93
        axes.plot([number] * 2, [low, height - 0.06], color=MEMBER, linewidth=0.9, dashes=(2, 1.6))
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
    axes.stairs(np.where(dark, 0, height), edges, fill=True, color=_HILL, linewidth=0)
    axes.stairs(np.where(dark, height, 0), edges, fill=True, color=_TAIL, linewidth=0)


def _found(axes: Axes, null: Null, words: str) -> None:
    low, high = axes.get_xlim()
    if np.isfinite(null.critical):
        axes.plot([null.critical] * 2, [0, 1.2], color=INK, linewidth=0.9)
        side = "right" if null.observed >= null.critical else "left"
        axes.text(null.critical, 1.24, "more than chance from here on", ha=side, va="bottom", fontsize=9)
    inside = float(np.clip(null.observed, low + 0.02 * (high - low), high - 0.02 * (high - low)))
    axes.plot([inside] * 2, [0, 1.56], color=MEMBER, linewidth=0.9, dashes=(2, 1.6))
    axes.plot([inside], [0.12], marker="D", ms=7, color=MEMBER)
    beyond = "" if inside == null.observed else " →" if null.observed > inside else " ←"
    words += beyond
    share = (inside - low) / (high - low)
    side = "right" if share > 0.85 else "left" if share < 0.15 else "center"
    axes.text(inside, 1.6, words, ha=side, va="bottom", fontsize=9, fontweight="bold", color=MEMBER)


def _axis(axes: Axes, low: float, high: float) -> None:
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
        _axis(axes, low, high)
        for place, (one, (side, (names, values))) in enumerate(zip(stacks, sides.items(), strict=True), 1):
            floor = 1.08 * rows * (len(sides) - place)
            filled = np.full(len(one.x), place == 1) if several else one.x > 0
            for full, kind, edge, face in (
                (True, "filled", MEMBER, MEMBER),
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
            axes.axvline(0.0, color=INK, linewidth=0.9, ymax=0.92)
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
