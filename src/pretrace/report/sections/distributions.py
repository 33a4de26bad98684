"""How each score is distributed over the texts."""

from __future__ import annotations

import numpy as np

from pretrace.report import plots
from pretrace.report.sections import Section
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.types import Doubles, Run

ORDER = 40
_LABELS = {"member": True, "nonmember": False, "unlabelled": None}
_FEWEST = 5
"""Below this a histogram shows the texts, not a distribution; the table of texts says more."""


def section(run: Run) -> Section | None:
    """One small histogram a score, in the order of the scores."""
    if len(run.ids) < _FEWEST or not run.scores:
        return None
    masks = {kind: np.array([member is label for member in run.members]) for kind, label in _LABELS.items()}
    kinds = [kind for kind, mask in masks.items() if mask.any()]
    panels = []
    for number, score in enumerate(run.scores):
        groups = {kind: run.column(score)[masks[kind]] for kind in kinds}
        label = f"Histogram of {score}: {_medians(run, score, kinds)}"
        drawn = to_svg(plots.distribution(groups), name=f"histogram-{number}", label=label)
        panels.append((score, drawn, _beyond(run.column(score))))
    values = {"panels": panels, "kinds": kinds, "colours": plots.KINDS}
    return Section("Distributions of the scores", "distributions", fill("distributions.html", values))


def _medians(run: Run, score: str, kinds: list[str]) -> str:
    return ", ".join(f"median of {kind} texts {run.median(score, _LABELS[kind]):.4g}" for kind in kinds)


def _beyond(column: Doubles) -> int:
    """Texts that stand outside the drawn axis."""
    low, high = plots.axis_range(column)
    return int(((column < low) | (column > high)).sum())
