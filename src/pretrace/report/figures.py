"""The figures that only one test has: a test without one has only that of its null distribution.

Readable without colour: filled above what is expected, hollow below; light for what is compared, dark for what is in
question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pretrace.report.audit_plots import draw_dots, stack_dots
from pretrace.report.chance_plots import HELD, HILL, SIGN, TAIL, WIDTH
from pretrace.report.svg import canvas, hide_height
from pretrace.report.wording import plural
from pretrace.results.run import axis_range
from pretrace.types import Doubles, Verdict

_DARK = "#1c1c1c"


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


_STRIP_HEIGHT, _MOST_DOTS = 95.0, 1200
"""The height of the strip in points, and the dots beyond which one stands for several units."""


def _differences(verdict: Verdict) -> Sequence[DrawnFigure]:
    """One dot a unit: what was published less the mean of what was not, to the left and right of 0."""
    name = "texts" if verdict.test == "marks" else "strings"
    found = np.asarray(verdict.table(name).columns["difference"], dtype=np.float64)
    values = found[np.isfinite(found)]
    if not len(values):
        return ()
    each = -(-len(values) // _MOST_DOTS)
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
        axes.hlines(places, low, high, color=_DARK, linewidth=1.2)
        axes.plot(values, places, "o", color=_DARK, markersize=5)
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
