"""The figures of a report, drawn with matplotlib's object-oriented interface (never pyplot).

Names of scores are printed as they are: mathtext is switched off wherever a name is a label.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator, ScalarFormatter

from pretrace.report.svg import styled
from pretrace.report.visible import named
from pretrace.results.atomic import write_atomically
from pretrace.types import Doubles, Measured

# Paul Tol's "muted" scheme, in an order that keeps neighbours apart for colour-blind eyes and on grey paper.
PALETTE = ("#332288", "#cc6677", "#117733", "#88ccee", "#882255", "#999933", "#44aa99", "#aa4499")
REST = "#c4c4c4"
CONTROL = "#1c1c1c"
CHANCE = "#8a8a8a"
KINDS = {"member": "#33658a", "nonmember": "#1c1c1c", "unlabelled": "#6b6b6b"}
_CONTROL_DASHES = ((5.0, 2.2), (1.6, 1.6), (6.0, 1.6, 1.6, 1.6))
_LARGE = 1e100


@dataclass(frozen=True, slots=True)
class Stroke:
    """How one row is drawn: colour, dash pattern in points (empty for a solid line), width in points."""

    colour: str
    dashes: tuple[float, ...]
    width: float


def strokes(rows: Sequence[Measured]) -> tuple[Stroke, ...]:
    """One stroke a row: colours for the scores with the largest AUC, grey for the others, dashes for controls."""
    scores = [i for i, row in enumerate(rows) if row.kind == "score"]
    best = sorted(scores, key=lambda i: -rows[i].auc.value)[: len(PALETTE)]
    colours = dict(zip(sorted(best), PALETTE, strict=False))
    controls = [i for i, row in enumerate(rows) if row.kind != "score"]
    drawn = []
    for i in range(len(rows)):
        if i in controls:
            dashes = _CONTROL_DASHES[controls.index(i) % len(_CONTROL_DASHES)]
            drawn.append(Stroke(CONTROL, dashes, 1.3))
        else:
            drawn.append(Stroke(colours.get(i, REST), (), 1.4 if i in colours else 0.9))
    return tuple(drawn)


def roc(rows: Sequence[Measured], *, floor: float | None = None) -> Figure:
    """The ROC curves of an evaluation with the chance line; on log-log axes from `floor` where one is given.

    On log axes the false positive rate 0 is drawn at the left edge.
    """
    with styled():
        figure = Figure(figsize=(4.3, 4.1), layout="constrained")
        axes = figure.add_subplot()
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


def name_rows(axes: Axes, places: Sequence[float], names: Sequence[str]) -> None:
    """Names in the left margin, each at its row, as they are written: a dollar sign begins no formula."""
    axes.set_yticks(places)
    for tick, name in zip(axes.set_yticklabels(names), names, strict=True):
        tick.set_parse_math(False)
        tick.set_text(name)
        tick.set_color("#1c1c1c")
    axes.tick_params(axis="y", length=0)


def forest(rows: Sequence[Measured]) -> Figure:
    """AUC of every row as a dot with its 95% interval, against chance and the strongest control.

    A filled mark is one whose interval excludes 0.5; controls are diamonds.
    """
    names = [label_of(row.name) for row in rows]
    # A name on two lines takes more room; rows are one unit high and sit in the middle of theirs.
    heights = np.array([1.0 + 0.55 * name.count("\n") for name in names])
    places = (np.cumsum(heights) - heights / 2).tolist()
    with styled():
        figure = Figure(figsize=(8.6, 0.62 + 0.235 * heights.sum()))
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        axes.axvline(0.5, color=CHANCE, linewidth=0.9)
        controls = [row.auc.value for row in rows if row.kind != "score"]
        if controls:
            axes.axvline(max(controls), color=CONTROL, linewidth=0.9, dashes=(4, 2.2))
        for place, row in zip(places, rows, strict=True):
            _dot(axes, place, row)
        name_rows(axes, places, names)
        axes.set_ylim(heights.sum() + 0.1, -0.1)
        low = min([0.5, *(min(row.auc.low, row.auc.value) for row in rows)])
        axes.set_xlim(max(-0.01, np.floor(low * 10 - 0.3) / 10), 1.01)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5]))
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("AUC")
    return figure


def distribution(groups: Mapping[str, Doubles]) -> Figure:
    """Histograms of one score, one a kind of text ("member", "nonmember", "unlabelled"), each of area one.

    Members are filled and the others outlined; values beyond `axis_range` are counted in the outermost bars.
    """
    values = {kind: np.clip(group, -_LARGE, _LARGE) for kind, group in groups.items() if len(group)}
    low, high = axis_range(np.concatenate(list(values.values())))
    bins = int(np.clip(np.sqrt(min(map(len, values.values()))) * 1.5, 8, 32))
    edges = np.linspace(low, high, bins + 1)
    with styled():
        figure = Figure(figsize=(2.75, 1.5), layout="constrained")
        axes = figure.add_subplot()
        for kind, group in values.items():
            share = np.histogram(np.clip(group, low, high), edges)[0] / len(group)
            filled = kind == "member" or len(values) == 1
            axes.stairs(
                share,
                edges,
                fill=filled,
                color=KINDS[kind],
                alpha=0.45 if filled else 1.0,
                linewidth=0.0 if filled else 1.1,
                linestyle="-" if kind != "unlabelled" else ":",
            )
        axes.yaxis.set_major_locator(NullLocator())
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        plain = ScalarFormatter(useOffset=False, useMathText=False)
        axes.xaxis.set_major_formatter(plain)
        axes.set_xlim(low - (high - low) / 100, high + (high - low) / 100)
        axes.set_ylim(bottom=0)
    return figure


def axis_range(values: Doubles) -> tuple[float, float]:
    """Where the axis of a distribution starts and ends: all values, but at most three quartile ranges beyond
    the middle half, so that one outlier does not press the rest into a single bar."""
    values = np.clip(values, -_LARGE, _LARGE)
    # The line between drawing and statistics: these quartiles place an axis and are printed nowhere. A figure
    # that a reader could quote arrives finished in the result; tests/report/test_only_renders.py watches it.
    first, third = np.percentile(values, [25, 75])
    low, high = float(values.min()), float(values.max())
    if third > first:
        low = max(low, float(first - 3 * (third - first)))
        high = min(high, float(third + 3 * (third - first)))
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, 1e-12):
        return low, high
    # Narrower than this, floats run out of room for the bars' edges.
    pad = 1e-3 * size if size > 1e-9 else 0.5
    return low - pad, high + pad


def save_png(figure: Figure, path: Path, *, dpi: int = 200) -> None:
    """Write a figure as a PNG on white, whole or not at all; OutputError where it cannot be written."""

    def draw(beside: Path) -> None:
        with styled():
            figure.savefig(beside, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})

    write_atomically(path, draw)


def _rate_axes(axes: Axes, floor: float | None) -> None:
    """Both rates as percentages, linear from 0 or logarithmic from `floor`."""
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


def _dot(axes: Axes, place: int, row: Measured) -> None:
    control = row.kind != "score"
    colour = CONTROL if control else KINDS["member"]
    axes.plot([row.auc.low, row.auc.high], [place, place], color=colour, linewidth=1.4)
    axes.plot(
        [row.auc.value],
        [place],
        marker="D" if control else "o",
        markersize=4.6 if control else 5.4,
        markeredgecolor=colour,
        markerfacecolor=colour if row.auc.excludes > 0 else "white",
        markeredgewidth=1.3,
    )


def label_of(name: str) -> str:
    """A name on at most two lines of a margin."""
    return "\n".join(textwrap.wrap(named(name, 70), 36, break_on_hyphens=False))
