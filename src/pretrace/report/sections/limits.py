"""What the numbers mean and what they do not, in plain words."""

from __future__ import annotations

from pretrace.report.facts import control, counts, elsewhere
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Run

ORDER = 80


def section(run: Run) -> Section:
    """The limits of the method and of this run."""
    values = {"run": run, "counts": counts(run), "strongest": control(run), "elsewhere": elsewhere(run)}
    return Section("What the numbers mean, and what they do not", "limits", fill("limits.html", values))
