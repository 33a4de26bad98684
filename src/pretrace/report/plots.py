"""The figures of a report, drawn with matplotlib's object-oriented interface (never pyplot).

Names of scores are printed as they are: mathtext is switched off wherever a name is a label.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator, ScalarFormatter

from pretrace.report.svg import canvas, hide_height, styled
from pretrace.results.run import LARGEST, axis_range
from pretrace.results.wording import named
from pretrace.types import Doubles, Estimate, Measured

# Paul Tol's "muted" scheme, in an order that keeps neighbours apart for colour-blind eyes and on grey paper.
PALETTE = ("#332288", "#cc6677", "#117733", "#88ccee", "#882255", "#999933", "#44aa99", "#aa4499")
REST = "#c4c4c4"
CONTROL = "#1c1c1c"
CHANCE = "#8a8a8a"
KINDS = {"member": "#33658a", "nonmember": "#1c1c1c", "unlabelled": "#6b6b6b"}
TARGET = KINDS["member"]
_SIZES = {"o": 5.4, "D": 4.6, "s": 4.8}
_KINDS_OF_MARKS = {
    "score": ("o", TARGET, True),
    "placebo": ("s", CONTROL, False),
    "blind": ("D", CONTROL, False),
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
        _Stroke(CONTROL, next(dashes), 1.3)
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
        figure.axes[0].axvline(max(controls), color=CONTROL, linewidth=0.9, dashes=(4, 2.2))
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
                    axes.plot([auc.value], [place], marker="|", ms=7, color=CONTROL, mew=1.2)
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
            axes.axvline(float(np.clip(own, low, high)), color=TARGET, linewidth=1.6)
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
