"""Histograms as counts, made where all values are at hand, so that a report can draw those of very many texts."""

from __future__ import annotations

import numpy as np

from pretrace.types import Bars, Bools, Doubles

LARGEST = 1e100
"""Values beyond it are drawn at it."""
_FEWEST, _MOST = 12, 40
_P_BARS = 20


def axis_range(values: Doubles) -> tuple[float, float]:
    """Where the axis of a distribution starts and ends: all values, but at most three quartile ranges beyond
    the middle half, so that one outlier does not press the rest into a single bar."""
    values = np.clip(values, -LARGEST, LARGEST)
    # The line between drawing and statistics: these quartiles place an axis and are printed nowhere.
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


def score_bars(scores: Doubles, chosen: Bools, known: Doubles) -> Bars:
    """The scores of the texts in question, of the flagged ones among them, and of the known ones."""
    low, high = axis_range(np.concatenate((scores, known)))
    if chosen.any():  # which lie far out by their nature, and are what the figure is about
        high = max(high, float(np.quantile(scores[chosen], 0.9)))
    number = int(np.clip(2 * np.sqrt(min(len(scores), len(known))), _FEWEST, _MOST))
    edges = np.linspace(low, high, number + 1)
    return Bars(low, high, _counts(scores, edges), _counts(scores[chosen], edges), _counts(known, edges))


def p_bars(p: Doubles, chosen: Bools) -> Bars:
    """The p-values of the documents in question, and of the flagged ones among them."""
    edges = np.linspace(0, 1, _P_BARS + 1)
    return Bars(0.0, 1.0, _counts(p, edges), _counts(p[chosen], edges))


def _counts(values: Doubles, edges: Doubles) -> tuple[int, ...]:
    counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    return tuple(counts.tolist())
