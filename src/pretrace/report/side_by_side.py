"""The page of several runs: one self-contained HTML file, no script, no network, the same runs the same bytes.

What does not compare stands first, then a table and a figure for each score.
"""

from __future__ import annotations

from typing import Any

from pretrace.report import plots, wording
from pretrace.report.frame import ReportPage, Section, Sections, fill, section
from pretrace.report.svg import to_svg
from pretrace.report.wording import named
from pretrace.types import SideBySide

_LANES = ("score", "placebo", "blind")
_NAME = 32
"""Characters of a model's and of a corpus's name in a figure."""


@section("What can be compared", "differences", "side_by_side/differences.html")
def _summary(found: SideBySide) -> dict[str, Any]:
    """The settings in which the runs differ, those that forbid a comparison first."""
    return {
        "found": found,
        "blind": any(run.blind for run in found.runs),
        "placebo": any(one.placebo for run in found.runs for one in run.scores),
    }


def _score(found: SideBySide, name: str, place: int) -> Section:
    """One score: models by corpora with the controls beside it, and the same as a figure."""
    rows = [(model, [found.cell(model, corpus, name) for corpus in found.corpora]) for model in found.models]
    drawn = [
        (
            f"{run.number}  {named(run.model, _NAME)}, {named(run.corpus, _NAME)}",
            {kind: auc for kind, auc in zip(_LANES, (one.auc, one.placebo, run.blind), strict=True) if auc},
        )
        for model in found.models
        for corpus in found.corpora
        for run, one in found.cell(model, corpus, name)
        if one.auc is not None
    ]
    label = f"AUC of {name} in {wording.plural(len(drawn), 'run')} with 95% intervals, beside the controls."
    values = {
        "name": name,
        "corpora": found.corpora,
        "rows": rows,
        "several": any(len(cell) > 1 for _, cells in rows for cell in cells),
        "plot": to_svg(plots.across(drawn), name=f"across-{place}", label=label) if drawn else "",
        "kinds": {kind for _, lanes in drawn for kind in lanes},
    }
    return Section(named(name), f"score-{place}", fill("side_by_side/score.html", values))


SECTIONS: Sections[SideBySide] = (
    _summary,
    lambda found: [_score(found, name, place) for place, name in enumerate(found.scores, 1)],
    section("The runs", "runs", "side_by_side/runs.html")(lambda found: {"runs": found.runs}),
)
"""The sections in reading order."""


PAGE = ReportPage(
    lambda found: f"{wording.plural(len(found.runs), 'run')} side by side",
    SECTIONS,
    lambda found: {"found": found},
    template="side_by_side/page.html",
)
render = PAGE.render
