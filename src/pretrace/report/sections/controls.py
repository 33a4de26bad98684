"""Controls beside the scores: what they reach on a model that never saw the members, and without labels."""

from __future__ import annotations

from pretrace.report.control_plots import Contrast, contrasts
from pretrace.report.facts import model_names
from pretrace.report.sections import Section
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.types import Measured, Run

ORDER = 25


def section(run: Run) -> Section | None:
    """Plot and tables of target against placebo and of true against shuffled labels; nothing without either."""
    rows = run.evaluation.rows if run.evaluation else ()
    placebos, shuffled = _named(rows, "placebo"), _named(rows, "shuffled")
    scores = [row for row in rows if row.kind == "score"]
    found = [Contrast(row, placebos.get(row.name), shuffled.get(row.name)) for row in scores]
    found = [one for one in found if one.placebo or one.shuffled]
    if not found or run.evaluation is None:
        return None
    label = f"AUC of {len(found)} scores beside their controls; the same numbers stand in the tables."
    values = {
        "found": found,
        "placebos": [(one.target, one.placebo) for one in found if one.placebo],
        "shuffled": [(one.target, one.shuffled) for one in found if one.shuffled],
        "repeats": {c.score: c.values.shape[1] for c in run.controls if c.kind == "shuffled"},
        "placebo": model_names(run).get("placebo", ""),
        "evaluation": run.evaluation,
        "plot": to_svg(contrasts(found), name="controls", label=label),
    }
    return Section("Controls", "controls", fill("controls.html", values))


def _named(rows: tuple[Measured, ...], kind: str) -> dict[str, Measured]:
    return {row.name: row for row in rows if row.kind == kind}
