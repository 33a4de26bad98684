"""The figures of the order test: every shard's published order beside the others, or the ranks of items' orders.

Readable without colour: filled above what is expected, hollow below; light for other orders, dark for the published.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pretrace.report.chance_plots import HELD, HILL, SIGN, WIDTH
from pretrace.report.figures.drawn import Drawn
from pretrace.report.svg import canvas
from pretrace.report.wording import plural
from pretrace.types import Doubles, Table, Verdict

MOST_SHARDS = 150
"""Shards that are drawn; of more, every second, third, … in the order of their effects."""
MOST_BINS = 12
"""Bars of the figure of items; half of them where items have fewer orders than that."""


def order_figures(verdict: Verdict) -> tuple[Drawn, ...]:
    """The figure of the shards, or that of the items; none where a model was asked for text alone."""
    if any(table.name == "questions" for table in verdict.tables):
        return ()
    if verdict.test == "options":
        return (items(verdict.table("items")),)
    return (shards(verdict.table("shards")),)


def shards(table: Table) -> Drawn:
    """One column a shard, sorted by how far the published order lies above the mean of the others."""
    effects = numbers(table, "effect")
    ranked = np.argsort(-effects, kind="stable")
    step = -(-len(ranked) // MOST_SHARDS)
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
    return Drawn(_columns(table, chosen), label, caption)


def items(table: Table) -> Drawn:
    """How many items have a published order of that rank, beside what chance gives."""
    ranks, orders = numbers(table, "rank"), numbers(table, "orders")
    bins = MOST_BINS if orders.min() >= MOST_BINS else MOST_BINS // 2
    middles = ranks - 0.5 / orders  # 1 of 2, the lower of two orders, covers 0 to 0.5
    counts, edges = np.histogram(middles, bins, (0.0, 1.0))
    with canvas(WIDTH, 2.3) as (figure, axes):
        axes.bar(
            (edges[:-1] + edges[1:]) / 2, counts, width=0.9 / bins, color=HILL, edgecolor=HELD, linewidth=0.7
        )
        axes.stairs(by_chance(orders, bins), edges, color=HELD, linewidth=1.3, linestyle=(0, (4, 2.2)))
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


def by_chance(orders: Doubles, bins: int) -> Doubles:
    """Items that chance puts into each bar, [bins], for items with so many orders."""
    expected = np.zeros(bins)
    for number in np.unique(orders).astype(int).tolist():
        places = (np.arange(number) + 0.5) / number
        share = np.histogram(places, bins, (0.0, 1.0))[0] / number
        expected += share * np.count_nonzero(orders == number)
    return expected


def numbers(table: Table, name: str) -> Doubles:
    """A column of numbers."""
    return np.asarray(table.columns[name], dtype=np.float64)


def _columns(table: Table, chosen: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Figure:
    mean = numbers(table, "others_mean")[chosen]
    low, high = (numbers(table, name)[chosen] - mean for name in ("others_low", "others_high"))
    published = numbers(table, "published")[chosen] - mean
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
