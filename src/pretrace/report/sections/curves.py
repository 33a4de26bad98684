"""ROC curves on linear and on logarithmic axes."""

from __future__ import annotations

from pretrace.report import plots
from pretrace.report.facts import compared
from pretrace.report.sections import Section
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.types import Evaluation, Run

ORDER = 30


def section(run: Run) -> Section | None:
    """Both plots side by side with one legend; nothing without an evaluation."""
    rows = compared(run)
    if run.evaluation is None or not rows:
        return None
    drawn = list(zip(rows, plots.strokes(rows), strict=True))
    values = {
        "linear": to_svg(plots.roc(rows), name="roc", label="ROC curves, linear axes"),
        "logarithmic": to_svg(
            plots.roc(rows, floor=floor(run.evaluation)), name="roc-log", label="ROC curves, logarithmic axes"
        ),
        "drawn": [(row, stroke) for row, stroke in drawn if stroke.colour != plots.REST],
        "rest": sum(stroke.colour == plots.REST for _, stroke in drawn),
        "rest_colour": plots.REST,
        "chance_colour": plots.CHANCE,
        "nonmembers": run.evaluation.nonmembers,
    }
    return Section("ROC curves", "roc", fill("curves.html", values))


def floor(evaluation: Evaluation) -> float:
    """Where the logarithmic axes start: half of the smallest rate that a single text can make."""
    return 0.5 / max(10, evaluation.nonmembers, evaluation.members)
