"""Is one score better than another? Each against a baseline that was fixed beforehand, on the same resamples."""

from __future__ import annotations

from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Run

ORDER = 35


def section(run: Run) -> Section | None:
    """Table of the differences in AUC with their intervals; nothing without an evaluation of two scores or more.

    For an evaluation from before comparisons were recorded the section says that none was computed.
    """
    if run.evaluation is None or len(run.scores) < 2:
        return None
    found = run.evaluation.comparisons
    ordered = sorted(found, key=lambda one: -one.difference.value)
    values = {
        "found": ordered,
        "first": found[0] if found else None,
        "resamples": run.evaluation.resamples,
        "shown": [one for one in ordered if one.shown],
    }
    return Section("Is one score better than another?", "comparisons", fill("comparisons.html", values))
