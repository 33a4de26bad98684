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
from matplotlib.ticker import MaxNLocator, NullLocator

from pretrace.report.chance_plots import HELD, HILL, SIGN, TAIL, WIDTH
from pretrace.report.svg import canvas
from pretrace.report.wording import plural
from pretrace.results.run import axis_range
from pretrace.types import Doubles, Table, Verdict

_DARK, _SOFT, _CONTROL = "#1c1c1c", "#777777", "#5a5a5a"
_RANKED_HEIGHT = 2.1


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, its label for those who cannot see it, and its caption."""

    figure: Figure
    label: str
    caption: str


def figures_of(verdict: Verdict) -> Sequence[Drawn]:
    """The figures of the test that gave this verdict, none where it has none of its own."""
    draw = _DRAWN.get(verdict.test)
    return draw(verdict) if draw else ()


# The figures of tests by lot: the difference of every text or string, and the hits of trigger sentences.

_STRIP_COLUMNS, _STRIP_HEIGHT, _MOST_DOTS = 80, 95.0, 1200
"""Columns of dots, the height of the strip in points, and the dots beyond which one stands for several units."""


def _differences(verdict: Verdict) -> Sequence[Drawn]:
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
    return (Drawn(figure, label, caption),)


def _hits(verdict: Verdict) -> Sequence[Drawn]:
    """The hits that were found over the numbers that chance gives."""
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
        _plain(axes)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.set_xlabel("sentences that end with the published word")
    expected = verdict.figures["expected by chance"]
    label = f"Chance gives about {expected:g} hits among {verdict.units} sentences; {found} were found."
    caption = (
        "The bars show how many hits chance alone gives, if the model has not seen the texts. The mark is what was "
        f"found. The dark bars, from {critical} hits on, are together no more than {verdict.level:.0%} of the whole."
    )
    return (Drawn(figure, label, caption),)


def _compared(verdict: Verdict) -> str:
    if verdict.test == "marks":
        return "published variant less the mean of the others"
    return "string in the text less the mean of fresh ones"


def _strip(axes: Axes, values: Doubles, each: int) -> None:
    """The dots in columns, those above 0 filled; 0 is an edge between columns."""
    end = max(map(abs, axis_range(values))) or 1.0
    width = 2 * end / _STRIP_COLUMNS
    column = np.ceil(np.clip(values, -end + width / 2, end - width / 2) / width).astype(int) - 1
    places, counts = np.unique(column, return_counts=True)
    dots = -(-counts // each)
    x = np.repeat((places + 0.5) * width, dots)
    y = np.concatenate([np.arange(number) + 0.5 for number in dots])
    rows = max(float(dots.max()), _STRIP_HEIGHT / (WIDTH * 72 / _STRIP_COLUMNS))
    size = 0.84 * min(WIDTH * 72 / _STRIP_COLUMNS, _STRIP_HEIGHT / rows)
    for which, colour, face in ((x > 0, SIGN, SIGN), (x <= 0, "#5a5a5a", "white")):
        axes.plot(x[which], y[which], linestyle="none", marker="o", ms=size, mfc=face, mec=colour, mew=0.8)
    axes.axvline(0.0, color=HELD, linewidth=0.9)
    axes.set_xlim(-end - 2 * width, end + 2 * width)
    axes.set_ylim(-0.4, 1.05 * rows)
    axes.text(
        0.0, 1.02, "no preference", ha="center", va="bottom", fontsize=9, transform=axes.get_xaxis_transform()
    )
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)


# The figures of the order test: every shard's published order beside the others, or the ranks of items' orders.

_MOST_SHARDS = 150
"""Shards that are drawn; of more, every second, third, … in the order of their effects."""
_MOST_BINS = 12
"""Bars of the figure of items; half of them where items have fewer orders than that."""


def _orders(verdict: Verdict) -> tuple[Drawn, ...]:
    """The figure of the shards, or that of the items; none where a model was asked for text alone."""
    if any(table.name == "questions" for table in verdict.tables):
        return ()
    if verdict.test == "options":
        return (_items(verdict.table("items")),)
    return (_shards(verdict.table("shards")),)


def _shards(table: Table) -> Drawn:
    """One column a shard, sorted by how far the published order lies above the mean of the others."""
    effects = _numbers(table, "effect")
    ranked = np.argsort(-effects, kind="stable")
    step = -(-len(ranked) // _MOST_SHARDS)
    chosen = ranked[::step]
    above = int((effects > 0).sum())
    label = (
        f"{plural(len(effects), 'shard')}, sorted. In {above} of them the published order is likelier than the other "
        "orders on average."
    )
    every = "" if step == 1 else f" One in {step} shards is drawn."
    caption = (
        "Each column is one shard. The light bar reaches from the least to the most likely of the other orders; the "
        "mark is the published order, filled where it lies above their mean (the line) and hollow where below. Without "
        f"training on this set about half of the marks are filled.{every}"
    )
    return Drawn(_shard_columns(table, chosen), label, caption)


def _items(table: Table) -> Drawn:
    """How many items have a published order of that rank, beside what chance gives."""
    ranks, orders = _numbers(table, "rank"), _numbers(table, "orders")
    bins = _MOST_BINS if orders.min() >= _MOST_BINS else _MOST_BINS // 2
    middles = ranks - 0.5 / orders  # 1 of 2, the lower of two orders, covers 0 to 0.5
    counts, edges = np.histogram(middles, bins, (0.0, 1.0))
    with canvas(WIDTH, 2.3) as (figure, axes):
        axes.bar(
            (edges[:-1] + edges[1:]) / 2, counts, width=0.9 / bins, color=HILL, edgecolor=HELD, linewidth=0.7
        )
        axes.stairs(_by_chance(orders, bins), edges, color=HELD, linewidth=1.3, linestyle=(0, (4, 2.2)))
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel(
            "place of the published order among all that were read: the likeliest is at the right"
        )
        axes.set_ylabel("items")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    upper = int((middles > 0.5).sum())
    label = f"A histogram of the places of {plural(len(ranks), 'item')}; {upper} lie above the middle."
    caption = (
        "Where the published order of an item's options stands among the orders that the model read. The dashed "
        "line is what chance gives on average. Training on the set moves items to the right."
    )
    return Drawn(figure, label, caption)


def _by_chance(orders: Doubles, bins: int) -> Doubles:
    """Items that chance puts into each bar, [bins], for items with so many orders."""
    expected = np.zeros(bins)
    for number in np.unique(orders).astype(int).tolist():
        places = (np.arange(number) + 0.5) / number
        share = np.histogram(places, bins, (0.0, 1.0))[0] / number
        expected += share * np.count_nonzero(orders == number)
    return expected


def _numbers(table: Table, name: str) -> Doubles:
    """A column of numbers."""
    return np.asarray(table.columns[name], dtype=np.float64)


def _shard_columns(table: Table, chosen: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Figure:
    mean = _numbers(table, "others_mean")[chosen]
    low, high = (_numbers(table, name)[chosen] - mean for name in ("others_low", "others_high"))
    published = _numbers(table, "published")[chosen] - mean
    places = np.arange(1, len(chosen) + 1)
    size = float(np.clip(300 / len(chosen), 2.2, 6.0))
    with canvas(WIDTH, 2.7) as (figure, axes):
        axes.vlines(places, low, high, color=HILL, linewidth=float(np.clip(size, 1.4, 5.0)))
        axes.axhline(0.0, color=HELD, linewidth=0.8)
        for filled in (True, False):
            rows = (published > 0) == filled
            face = SIGN if filled else "white"
            axes.plot(places[rows], published[rows], "o", ms=size, color=SIGN, mfc=face, mew=0.9)
        axes.set_xlim(0.0, len(chosen) + 1.0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        axes.set_xlabel("shards, sorted")
        axes.set_ylabel("nats above the mean\nof the other orders")
    return figure


# The figure of an evaluation's log: the accuracy of each side with its interval.


def _accuracies(verdict: Verdict) -> Sequence[Drawn]:
    """One mark a side, with its 95% interval."""
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
    return (Drawn(figure, f"Accuracy: {told}.", caption),)


_DRAWN: Mapping[str, Callable[[Verdict], Sequence[Drawn]]] = {
    "marks": _differences,
    "canaries": _differences,
    "triggers": _hits,
    "order": _orders,
    "options": _orders,
    "samples": _accuracies,
}
"""What draws the figures of a test."""
