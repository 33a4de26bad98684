"""What the reports of the tests of marks, of random strings and of trigger sentences have of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from pretrace.registry import test_pages
from pretrace.report import verdict_plots as plots
from pretrace.report.svg import canvas, hide_height
from pretrace.report.verdict import TestPage
from pretrace.report.verdict_plots import TestFigure
from pretrace.report.wording import plural
from pretrace.results.wording import say
from pretrace.types import Verdict


@test_pages.add("canaries")
@test_pages.add("marks")
class SealedPage(TestPage):
    """The difference of each unit."""

    @staticmethod
    def draw(verdict: Verdict) -> TestFigure | None:
        """One dot a unit: what was published less the mean of what was not, to the left and right of 0."""
        marks, unit = verdict.test == "marks", verdict.unit
        table = verdict.table("texts" if marks else "strings")
        known = np.flatnonzero(np.isfinite(table["difference"]))
        values = table["difference"][known]
        if not len(values):
            return None
        compared = "string in the text less the mean of fresh ones"
        if marks:
            compared = f"published {'variant' if unit == 'text' else 'order'} less the mean of the others"
        names = [f"{unit} {place + 1}" for place in known]
        figure, titles, each = plots.draw_dots(
            {"dots": (names, values)}, f"{compared} ({verdict.effect_unit})", ("", ""), middle="no preference"
        )
        above, units = int(np.count_nonzero(values > 0)), plural(len(values), unit)
        dot = say(f"report.drawn.{'dot' if each == 1 else 'dots'}", unit=unit, each=each)
        label = say("report.drawn.differences", units=units, above=above, below=len(values) - above)
        return TestFigure(figure, label, say("report.drawn.preferred", dot=dot), titles)


@test_pages.add("triggers")
class TriggersPage(TestPage):
    """The hits."""

    @staticmethod
    def draw(verdict: Verdict) -> TestFigure:
        """The chance of each number of hits, dark where the test rejects, and a line at the number found."""
        chance = np.asarray(verdict.table("chance").columns["probability"], dtype=np.float64)
        found = int(verdict.figures["hits"])
        critical = int(verdict.figures["hits from which on the test rejects"])
        likely = np.flatnonzero(chance > 1e-4)
        low, high = max(0, min(int(likely[0]), found) - 1), max(int(likely[-1]), found, critical) + 1
        places = np.arange(low, min(high, len(chance) - 1) + 1)
        with canvas(plots.WIDTH, 2.1, constrained=False) as (figure, axes):
            figure.subplots_adjust(left=0.006, right=0.994, top=0.86, bottom=0.22)
            colours = [plots.TAIL if place >= critical else plots.HILL for place in places]
            axes.bar(places, chance[places], width=0.86, color=colours, linewidth=0)
            axes.axvline(found, color=plots.SIGN, linewidth=1.2, dashes=(2, 1.6))
            axes.plot([found], [0.06 * chance.max()], marker="D", ms=7, color=plots.SIGN)
            how: Any = {"fontsize": 9, "fontweight": "bold", "color": plots.SIGN, "va": "bottom"}
            side = "right" if found > (low + high) / 2 else "left"
            axes.text(found, 1.03, f"found: {found}", ha=side, transform=axes.get_xaxis_transform(), **how)
            hide_height(axes)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
            axes.set_xlabel("sentences that end with the published word")
        numbers = {"expected": verdict.figures["expected by chance"], "units": verdict.units, "found": found}
        caption = say("report.drawn.chance", critical=critical, level=verdict.level)
        return TestFigure(figure, say("report.drawn.hits", **numbers), caption)
