"""One self-contained HTML file from a run: no script, no network, the same run the same bytes."""

from __future__ import annotations

from pathlib import Path

from pretrace.report.facts import model_name
from pretrace.report.sections import sections
from pretrace.report.templating import fill
from pretrace.results.atomic import atomic_text
from pretrace.types import Run


def render(run: Run) -> str:
    """The whole report of a run as one HTML document."""
    return str(fill("page.html", {"run": run, "model": model_name(run), "sections": sections(run)}))


def write(run: Run, path: Path) -> None:
    """Write the report, whole or not at all; OutputError where it cannot be written."""
    atomic_text(path, render(run))
