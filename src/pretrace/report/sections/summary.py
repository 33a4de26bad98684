"""What was asked, of which model and which texts, and what was found."""

from __future__ import annotations

from pretrace.report.facts import counts, model_name, model_names
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Run

ORDER = 10


def section(run: Run) -> Section:
    """The first page: the question, the findings, the figures of the corpus."""
    others = {role: name for role, name in model_names(run).items() if role != "target"}
    values = {"run": run, "counts": counts(run), "model": model_name(run), "others": others}
    return Section("Summary", "summary", fill("summary.html", values))
