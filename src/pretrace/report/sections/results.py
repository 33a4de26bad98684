"""How well each score told members from non-members: the table and the same figures drawn."""

from __future__ import annotations

from pretrace.report import plots
from pretrace.report.facts import compared, control, elsewhere
from pretrace.report.sections import Section
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.types import Run

ORDER = 20


def section(run: Run) -> Section | None:
    """Table and forest plot of the evaluation; nothing where there is none."""
    rows = compared(run)
    if run.evaluation is None or not rows:
        return None
    label = f"AUC of {len(rows)} rows with 95% intervals; the same numbers stand in the table."
    values = {
        "evaluation": run.evaluation,
        "scores": [row for row in rows if row.kind == "score"],
        "controls": [row for row in rows if row.kind != "score"],
        "strongest": control(run),
        "elsewhere": elsewhere(run),
        "with_low": any(row.tpr_low is not None for row in rows),
        "forest": to_svg(plots.forest(rows), name="forest", label=label),
    }
    return Section("Results", "results", fill("results.html", values))
