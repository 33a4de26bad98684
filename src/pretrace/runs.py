"""A run with its report, written and read as one folder."""

from __future__ import annotations

from pathlib import Path

from pretrace.store import runs
from pretrace.types import Run

REPORT = "report.html"


def save_run(run: Run, folder: str | Path) -> None:
    """Write tables, metrics and report to `folder`, whole or not at all, in place of an earlier run there.

    Raises OutputError where nothing can be written, or where `folder` holds something else.
    """
    from pretrace.report import html

    runs.save_run(run, Path(folder), extra=lambda partial: html.write(run, partial / REPORT))


def load_run(folder: str | Path) -> Run:
    """The run that `save_run` wrote, to the last bit; OutputError where the folder holds none."""
    return runs.load_run(Path(folder))
