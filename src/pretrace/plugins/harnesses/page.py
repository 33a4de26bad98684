"""What the report on the items of an evaluation has of its own."""

from __future__ import annotations

import numpy as np

from pretrace.registry import test_pages
from pretrace.report.figures import INK, TestFigure, canvas
from pretrace.report.verdict import TestPage
from pretrace.results.wording import say
from pretrace.types import Verdict


@test_pages.add("samples")
class _SamplesPage(TestPage):
    """The accuracy of each side."""

    @staticmethod
    def draw(verdict: Verdict) -> TestFigure:
        """Draw the accuracy of each side with its interval."""
        table = verdict.table("accuracy").columns
        sides = [str(name) for name in table["side"]]
        counts, values, low, high = (
            np.asarray(table[name], dtype=np.float64) for name in ("items", "accuracy", "low", "high")
        )
        places = np.arange(len(sides))[::-1]
        with canvas(7.6, 0.6 + 0.35 * len(sides)) as (figure, axes):
            axes.hlines(places, low, high, color=INK, linewidth=1.2)
            axes.plot(values, places, "o", color=INK, markersize=5)
            named = [f"{side} ({count:,.0f})" for side, count in zip(sides, counts, strict=True)]
            axes.set_yticks(places, named)
            axes.set_xlim(0, 1)
            axes.set_ylim(-0.6, len(sides) - 0.4)
            axes.set_xlabel("accuracy, with its 95% interval")
        told = ", ".join(f"{100 * value:.1f}% of {side}" for side, value in zip(sides, values, strict=True))
        return TestFigure(figure, f"Accuracy: {told}.", say("report.drawn.accuracy"))
