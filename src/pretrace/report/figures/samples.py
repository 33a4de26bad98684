"""The figure of an evaluation's log: the accuracy of each side with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pretrace.report.figures.drawn import Drawn
from pretrace.report.svg import canvas
from pretrace.types import Verdict

DARK, WIDTH = "#1c1c1c", 7.6


def accuracies(verdict: Verdict) -> Sequence[Drawn]:
    """One mark a side, with its 95% interval."""
    table = verdict.table("accuracy").columns
    sides = [str(name) for name in table["side"]]
    counts, values, low, high = (
        np.asarray(table[name], dtype=np.float64) for name in ("items", "accuracy", "low", "high")
    )
    places = np.arange(len(sides))[::-1]
    with canvas(WIDTH, 0.6 + 0.35 * len(sides)) as (figure, axes):
        axes.hlines(places, low, high, color=DARK, linewidth=1.2)
        axes.plot(values, places, "o", color=DARK, markersize=5)
        axes.set_yticks(places, [f"{side} ({count:,.0f})" for side, count in zip(sides, counts, strict=True)])
        axes.set_xlim(0, 1)
        axes.set_ylim(-0.6, len(sides) - 0.4)
        axes.set_xlabel("accuracy, with its 95% interval")
    told = ", ".join(f"{100 * value:.1f}% of {side}" for side, value in zip(sides, values, strict=True))
    caption = "The share of right answers on each side, and the number of items (documents) that it rests on."
    return (Drawn(figure, f"Accuracy: {told}.", caption),)
