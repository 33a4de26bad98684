"""The figures of a flagging: where the texts stand beside the known non-members, and how their p-values lie.

They are made to be read without colour: filled against outlined, dark against light.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from pretrace.report.plots import CHANCE, KINDS, axis_range
from pretrace.report.svg import styled
from pretrace.types import Bools, Doubles, Flagged

FLAG, OTHER, KNOWN = KINDS["member"], "#b9cbd8", "#1c1c1c"
WIDTH = 7.6
_FEWEST_BINS, _MOST_BINS = 12, 40


def sides(flagged: Flagged) -> Figure:
    """Above the texts, flagged ones dark; below, turned down, the known non-members; a line at the least flagged
    score, where each text is a document. Each side is drawn as shares of its own."""
    texts, known = flagged.texts.scores, flagged.known.scores
    chosen = np.array(flagged.texts.flagged, dtype=bool)
    low, high = axis_range(np.concatenate((texts, known)))
    if chosen.any():  # which lie far out by their nature, and are what the figure is about
        high = max(high, float(np.quantile(texts[chosen], 0.9)))
    edges = np.linspace(low, high, _bins(min(len(texts), len(known))) + 1)
    with styled():
        figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
        axes = figure.add_subplot()
        every, dark = _shares(texts, edges, len(texts)), _shares(texts[chosen], edges, len(texts))
        below = _shares(known, edges, len(known))
        axes.stairs(every, edges, fill=True, color=OTHER)
        axes.stairs(dark, edges, fill=True, color=FLAG)
        axes.stairs(-below, edges, color=KNOWN, linewidth=1.1)
        axes.axhline(0, color=CHANCE, linewidth=0.8)
        top = max(float(every.max()), float(below.max())) * 1.25
        axes.set_ylim(-top, top)
        pad = (high - low) / 60
        axes.set_xlim(low - pad, high + pad)
        if chosen.any() and flagged.texts.number == len(texts):  # documents have no line of their texts
            _threshold(axes, float(texts[chosen].min()), (low, high), top)
        axes.text(low, top, "the texts", va="top", fontsize=9)
        axes.text(low, -top, "known non-members", va="bottom", fontsize=9)
        _plain(axes)
        axes.set_xlabel("score (higher: more like a text the model was trained on)")
    return figure


def one_a_document(flagged: Flagged) -> tuple[Doubles, Bools]:
    """The p-value of each document, and whether it is flagged; each once, however many texts it has."""
    first = np.unique(np.array(flagged.texts.documents, dtype=object), return_index=True)[1]
    return flagged.texts.p[first], np.array(flagged.texts.flagged, dtype=bool)[first]


def p_values(flagged: Flagged) -> Figure:
    """The p-values of the documents as shares, with the level that they would have if none had been seen."""
    p, chosen = one_a_document(flagged)
    edges = np.linspace(0, 1, 21)
    with styled():
        figure = Figure(figsize=(WIDTH, 1.9), layout="constrained")
        axes = figure.add_subplot()
        every, dark = _shares(p, edges, len(p)), _shares(p[chosen], edges, len(p))
        axes.stairs(every, edges, fill=True, color=OTHER)
        axes.stairs(dark, edges, fill=True, color=FLAG)
        axes.axhline(1 / 20, color=KNOWN, linewidth=0.9, dashes=(4, 2.2))
        axes.set_xlim(-0.01, 1.01)
        axes.set_xlabel("p-value")
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f}%"))
        axes.set_ylabel("documents")
        axes.grid(axis="y")
    return figure


def _threshold(axes: Axes, least: float, reach: tuple[float, float], top: float) -> None:
    place = float(np.clip(least, *reach))
    axes.plot([place, place], [-top, top], color=KNOWN, linewidth=0.9, dashes=(2, 1.6))
    right = place < reach[0] + 0.75 * (reach[1] - reach[0])
    words = "  flagged from here on" if right else "flagged from here on  "
    axes.text(place, top, words, ha="left" if right else "right", va="top", fontsize=9)


def _shares(values: Doubles, edges: Doubles, of: int) -> Doubles:
    return np.asarray(np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / max(1, of))


def _bins(number: int) -> int:
    return int(np.clip(2 * np.sqrt(number), _FEWEST_BINS, _MOST_BINS))


def _plain(axes: Axes) -> None:
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
