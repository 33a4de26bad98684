"""Results as a notebook shows them: a run as a small table, anything else as the first page of its report.

A first page stands in a frame of its own, so that its style stays out of the notebook and no name in it meets another.
"""

from __future__ import annotations

from markupsafe import Markup

from pretrace.report import facts, verdict
from pretrace.report.frame import fill
from pretrace.results.run import counts
from pretrace.types import Run, Verdict

ROWS = 5
"""Rows of a run that a notebook shows."""
_SCORES, _COLUMNS = 12, 6


def html(result: Run | Verdict) -> str:
    """The result as HTML for the cell of a notebook, in which what strangers wrote is escaped."""
    if isinstance(result, Run):
        return str(_run(result))
    kind = verdict.page_of(result).made.capitalize()
    page = fill("notebook/page.html", {"title": kind, "first": verdict.first_page(result), "seal": ""})
    return str(fill("notebook/framed.html", {"kind": kind, "result": result, "page": str(page)}))


def _run(run: Run) -> Markup:
    columns = run.scores[:_COLUMNS]
    values = {
        "run": run,
        "model": facts.model_name(run),
        "texts": counts(run)["texts"],
        "figures": facts.compared(run)[:_SCORES],
        "more_figures": max(0, len(facts.compared(run)) - _SCORES),
        "columns": columns,
        "rows": [
            (run.ids[i], run.members[i], int(run.tokens[i]), [run.column(score)[i] for score in columns])
            for i in range(min(ROWS, len(run.ids)))
        ],
        "labels": any(member is not None for member in run.members),
        "hidden": len(run.scores) - len(columns),
    }
    return fill("notebook/run.html", values)
