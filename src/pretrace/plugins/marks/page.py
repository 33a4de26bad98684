"""What the reports of the tests of marks and of random strings have of their own."""

from __future__ import annotations

import numpy as np

from pretrace.registry import test_pages
from pretrace.report.figures import TestFigure, draw_dots
from pretrace.report.verdict import TestPage
from pretrace.results.wording import plural, say
from pretrace.types import Verdict


@test_pages.add("canaries")
@test_pages.add("marks")
class _SealedPage(TestPage):
    """The difference of each unit."""

    @staticmethod
    def draw(verdict: Verdict) -> TestFigure:
        """One dot a unit: what was published less the mean of what was not, to the left and right of 0."""
        marks, unit = verdict.test == "marks", verdict.unit
        table = verdict.table("texts" if marks else "strings")
        known = np.flatnonzero(np.isfinite(table["difference"]))
        values = table["difference"][known]
        compared = f"published {'version' if marks else unit} less the mean of the others"
        names = [f"{unit} {place + 1}" for place in known]
        figure, titles, each = draw_dots(
            {"dots": (names, values)}, f"{compared} ({verdict.effect_unit})", ("", ""), middle="no preference"
        )
        above, units = int(np.count_nonzero(values > 0)), plural(len(values), unit)
        dot = say(f"report.drawn.{'dot' if each == 1 else 'dots'}", unit=unit, each=each)
        label = say("report.drawn.differences", units=units, above=above, below=len(values) - above)
        return TestFigure(figure, label, say("report.drawn.preferred", dot=dot), titles)
