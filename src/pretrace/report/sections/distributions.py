"""How each score is distributed over the texts."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from pretrace.report import plots
from pretrace.report.sections import Section
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.types import Doubles, Run

ORDER = 40
_FEWEST = 5
"""Below this a histogram shows the texts, not a distribution; the table of texts says more."""


def section(run: Run) -> Section | None:
    """One small histogram a score, in the order of the scores."""
    if len(run.ids) < _FEWEST or not run.scores:
        return None
    masks = {
        "member": np.array([member is True for member in run.members]),
        "nonmember": np.array([member is False for member in run.members]),
        "unlabelled": np.array([member is None for member in run.members]),
    }
    kinds = [kind for kind, mask in masks.items() if mask.any()]
    panels = []
    for number, score in enumerate(run.scores):
        groups = {kind: run.column(score)[masks[kind]] for kind in kinds}
        panels.append((score, _panel(groups, number, score), _beyond(run.column(score))))
    values = {"panels": panels, "kinds": kinds, "colours": plots.KINDS}
    return Section("Distributions of the scores", "distributions", fill("distributions.html", values))


def _panel(groups: dict[str, Doubles], number: int, score: str) -> Markup:
    medians = ", ".join(f"median of {kind} texts {np.median(group):.4g}" for kind, group in groups.items())
    label = f"Histogram of {score}: {medians}"
    return to_svg(plots.distribution(groups), name=f"histogram-{number}", label=label)


def _beyond(column: Doubles) -> int:
    """Texts that stand outside the drawn axis."""
    low, high = plots.axis_range(column)
    return int(((column < low) | (column > high)).sum())
