"""The figures that only one test has: a test without one has only that of its null distribution.

Readable without colour: filled above what is expected, hollow below; light for what is compared, dark for what is in
question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

from pretrace.report.chance_plots import HELD, HILL, SIGN, TAIL, WIDTH
from pretrace.report.svg import canvas
from pretrace.report.wording import brief, named, plural
from pretrace.results.run import axis_range
from pretrace.types import Bools, Doubles, Table, Verdict

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


# The figure of a collection ranked among others: the mean of each as a dot, the suspect one filled and named.

_PLACES = 64
"""Places along the axis; collections at the same place are stacked."""


def _collections(verdict: Verdict) -> Sequence[Drawn]:
    """The figure of all collections; none where the result has no table of them."""
    if not any(table.name == "collections" for table in verdict.tables):
        return ()
    columns: Mapping[str, Any] = verdict.table("collections").columns
    ranked = "standard deviations" in columns  # an earlier pretrace ranked the means as they are
    values = columns["standard deviations" if ranked else "value"]
    assert not isinstance(values, tuple)
    unit = "standard deviations above the others" if ranked else verdict.effect_unit
    own, others = float(values[0]), values[1:]
    above = verdict.figures.get("controls at least as high", 0)
    label = (
        f"One dot for each of {plural(len(others), 'control collection')}, from {brief(float(others.min()))} to "
        f"{brief(float(others.max()))}, and a filled mark for {verdict.corpus} at {brief(own)}; {above} of the control "
        "collections are at least as high."
    )
    caption = (
        "Each hollow dot is one of the other collections, at the mean value of its documents. The filled diamond is "
        "the collection in question. Without training on it, each of them has the same chance of being the one "
        "furthest to the right."
    )
    return (Drawn(_ranked(own, others, verdict.corpus, unit), label, caption),)


def _ranked(own: float, others: Doubles, name: str, unit: str) -> Figure:
    """All means on one line: controls as hollow dots, stacked where they meet, `own` as a filled diamond."""
    with canvas(WIDTH, _RANKED_HEIGHT, constrained=False) as (figure, axes):
        figure.subplots_adjust(left=0.012, right=0.988, top=0.98, bottom=0.24)
        low, high = min(own, float(others.min())), max(own, float(others.max()))
        pad = 0.06 * (high - low) or 0.5
        axes.set_xlim(low - pad, high + pad)
        x, y = _stacked(others, (low - pad, high + pad))
        rows = max(5.0, float(y[-1 if len(y) == 1 else int(y.argmax())]) + 1)
        size = min(8.0, 0.62 * _RANKED_HEIGHT * 72 / rows)
        axes.set_ylim(-0.6, 1.45 * rows)
        axes.plot(x, y, "o", ms=size, mfc="white", mec=_CONTROL, mew=0.9)
        _suspect(axes, own, name, rows)
        axes.yaxis.set_major_locator(NullLocator())
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(ScalarFormatter(useOffset=False, useMathText=False))
        axes.set_xlabel(f"mean value of a collection ({unit})")
    return figure


def _stacked(values: Doubles, ends: tuple[float, float]) -> tuple[Doubles, Doubles]:
    """Where dots stand: each at its value, one above another where they are at the same of `COLUMNS` places."""
    low, high = ends
    column = np.floor((values - low) / (high - low) * _PLACES).astype(int)
    order = np.argsort(values, kind="stable")
    height: dict[int, int] = {}
    y = np.zeros(len(values))
    for place in order.tolist():
        y[place] = height.get(int(column[place]), 0)
        height[int(column[place])] = int(y[place]) + 1
    return (low + (column + 0.5) * (high - low) / _PLACES), y


def _suspect(axes: Axes, own: float, name: str, rows: float) -> None:
    """The mark of the suspect collection on a line that reaches over the dots, and its name."""
    low, high = axes.get_xlim()
    share = (own - low) / (high - low)
    side = "right" if share > 0.75 else "left" if share < 0.25 else "center"
    axes.plot([own, own], [-0.6, 1.12 * rows], color=SIGN, linewidth=0.9, dashes=(2, 1.6))
    axes.plot([own], [1.12 * rows], marker="D", ms=7.5, color=SIGN)
    axes.text(
        own,
        1.24 * rows,
        named(name, 60),
        ha=side,
        va="bottom",
        fontsize=9,
        fontweight="bold",
        color=SIGN,
        parse_math=False,
    )


# The figures of a test at a training cut-off: the series, and the jump at every cut-off.


def _cutoffs(verdict: Verdict) -> Sequence[Drawn]:
    """The series over time, and the jump at the cut-off among those at other dates."""
    number = verdict.figures.get("placebo cut-offs", 0)
    series = Drawn(
        _over_time(verdict),
        "The mean score of the documents over time, with the stated cut-off.",
        "What the model knows of the texts over time, after what texts and reference models predict was taken off. "
        "Filled marks lie before the stated cut-off (the line), hollow ones after it.",
    )
    changes = Drawn(
        _at_every_date(verdict),
        f"The change at the stated cut-off and at {number} other dates.",
        "The drop of the mean at every date that was compared, over its standard error. The filled mark is the stated "
        "cut-off, hollow marks are dates at which nothing is known to have happened. The dotted lines are the largest "
        "of these, up and down.",
    )
    return series, changes


def _over_time(verdict: Verdict) -> Figure:
    """Means by the month (by the week for less than two years) of what is left of the scores."""
    table = verdict.table("series")
    times: Any = [date.fromisoformat(one) for one in table.columns["from"]]
    means = np.asarray(table.columns["mean"], dtype=np.float64)
    line: Any = date.fromisoformat(str(verdict.figures["cut-off"]))
    with canvas(WIDTH, 2.4) as (figure, axes):
        axes.plot(times, means, color=_SOFT, linewidth=0.8, zorder=1)
        _marks(axes, times, means, np.array([one < line for one in times], dtype=bool))
        axes.axvline(line, color=_DARK, linewidth=1.2)
        axes.annotate(
            f"cut-off {line}",
            (line, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -8),
            textcoords="offset points",
            fontsize=8,
        )
        axes.set_ylabel(verdict.effect_unit)
    return figure


def _at_every_date(verdict: Verdict) -> Figure:
    """The jump at every cut-off: the stated one filled, placebo ones hollow."""
    table = verdict.table("cutoffs")
    times = [date.fromisoformat(one) for one in table.columns["cut-off"]]
    ranked = "standard errors" in table.columns  # an earlier pretrace ranked the drops as they are
    jumps = np.asarray(table.columns["standard errors" if ranked else "jump"], dtype=np.float64)
    own = np.array([kind == "stated" for kind in table.columns["kind"]], dtype=bool)
    with canvas(WIDTH, 2.4) as (figure, axes):
        _marks(axes, times, jumps, own, size=30)
        axes.axhline(0, color=_SOFT, linewidth=0.8)
        if not own.all():
            largest = float(np.abs(jumps[~own]).max())
            for height in (largest, -largest):
                axes.axhline(height, color=_SOFT, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set_ylabel("drop, standard errors" if ranked else f"drop, {verdict.effect_unit}")
    return figure


def _marks(axes: Axes, times: Any, values: Doubles, filled: Bools, *, size: float = 14) -> None:
    """Marks at `times`, a list of days, filled or hollow."""
    colours = [_DARK if one else "white" for one in filled.tolist()]
    axes.scatter(times, values, s=size, facecolors=colours, edgecolors=_DARK, linewidths=0.8, zorder=2)


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
    "collections": _collections,
    "cutoff": _cutoffs,
    "samples": _accuracies,
}
"""What draws the figures of a test."""
