"""One self-contained HTML file from a run: no script, no network, the same run the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pretrace.report import run_sections as parts
from pretrace.report.facts import model_name
from pretrace.report.fitted import fitted
from pretrace.report.frame import Section, fill, speaking, titled
from pretrace.results.atomic import atomic_text
from pretrace.types import Run

SECTIONS: tuple[Callable[[Run], Section | None], ...] = (
    parts.summary,
    parts.benchmark,
    parts.results,
    parts.controls,
    parts.curves,
    parts.comparisons,
    parts.distributions,
    fitted,
    parts.texts,
    parts.tokens,
    parts.skipped,
    parts.limits,
    parts.settings,
)
"""The sections of a run's report in reading order. One of your own: `write(run, path, (*SECTIONS, mine))`."""


def render(run: Run, sections: Sequence[Callable[[Run], Section | None]] = SECTIONS) -> str:
    """The whole report of a run as one HTML document."""
    model = model_name(run)
    title = titled("Membership report", run.corpus, model)
    values = {"run": run, "model": model, "title": title, "sections": speaking(sections, run)}
    return str(fill("run/page.html", values))


def write(run: Run, path: Path, sections: Sequence[Callable[[Run], Section | None]] = SECTIONS) -> None:
    """Write the report, whole or not at all; OutputError where it cannot be written."""
    atomic_text(path, render(run, sections))
