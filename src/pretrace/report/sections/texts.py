"""The scores themselves, for runs without an evaluation: ranges, and the texts from the top and the bottom."""

from __future__ import annotations

import numpy as np

from pretrace.report.facts import label
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Run

ORDER = 50
_COLUMNS = 4
_EDGE = 10


def section(run: Run) -> Section | None:
    """Two tables in the order of the first score; nothing where an evaluation speaks instead."""
    if run.evaluation is not None or not run.ids or not run.scores:
        return None
    order = np.argsort(-run.column(run.scores[0]), kind="stable").tolist()
    whole = len(order) <= 2 * _EDGE
    shown = order if whole else order[:_EDGE] + order[-_EDGE:]
    columns = run.scores[:_COLUMNS]
    values = {
        "run": run,
        "columns": columns,
        "ranges": [(score, run.quartiles(score)) for score in run.scores],
        "rows": [(rank + 1, i, label(run.members[i])) for rank, i in enumerate(order) if i in set(shown)],
        "gap": 0 if whole else _EDGE,
        "matrix": {i: [run.matrix[i, run.scores.index(score)] for score in columns] for i in shown},
        "labels": any(member is not None for member in run.members),
    }
    return Section("Scores of the texts", "texts", fill("texts.html", values))
