"""The figures that only one test has, one file a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pretrace.report.figures import cutoff, marks, samples
from pretrace.report.figures.collections import collections
from pretrace.report.figures.drawn import Drawn
from pretrace.report.figures.order import order_figures
from pretrace.types import Verdict

_DRAWN: Mapping[str, Callable[[Verdict], Sequence[Drawn]]] = {
    "marks": marks.differences,
    "canaries": marks.differences,
    "triggers": marks.hits,
    "order": order_figures,
    "options": order_figures,
    "collections": collections,
    "cutoff": cutoff.drawn,
    "samples": samples.accuracies,
}
"""What draws the figures of a test; a test without an entry has only that of its null distribution."""


def figures_of(verdict: Verdict) -> Sequence[Drawn]:
    """The figures of the test that gave this verdict, none where it has none of its own."""
    draw = _DRAWN.get(verdict.test)
    return draw(verdict) if draw else ()
