"""A run, an audit or a flagging with its report, written and read as one folder."""

from __future__ import annotations

from pathlib import Path

from pretrace.results import audit as audits
from pretrace.results import flags
from pretrace.results import run as runs
from pretrace.types import Audit, Flagged, Run

REPORT = "report.html"


def save_run(run: Run, folder: str | Path) -> None:
    """Write tables, metrics and report to `folder`, whole or not at all, in place of an earlier run there.

    Raises OutputError where nothing can be written, or where `folder` holds something else.
    """
    from pretrace.report import run as report

    runs.save_run(run, Path(folder), extra=lambda partial: report.write(run, partial / REPORT))


def load_run(folder: str | Path) -> Run:
    """The run that `save_run` wrote, to the last bit; OutputError where the folder holds none."""
    return runs.load_run(Path(folder))


def save_audit(audit: Audit, folder: str | Path) -> None:
    """Write verdict, tables, texts and report to `folder`, whole or not at all, in place of an earlier audit.

    Raises OutputError where nothing can be written, or where `folder` holds something else.
    """
    from pretrace.report import audit as report

    audits.save_audit(audit, Path(folder), extra=lambda partial: report.write(audit, partial / REPORT))


def load_audit(folder: str | Path) -> Audit:
    """The audit that `save_audit` wrote, to the last bit; OutputError where the folder holds none, or where
    its verdict or a table was changed since."""
    return audits.load_audit(Path(folder))


def save_flags(flagged: Flagged, folder: str | Path) -> None:
    """Write tables, words and report to `folder`, whole or not at all, in place of an earlier flagging there.

    Raises OutputError where nothing can be written, or where `folder` holds something else.
    """
    from pretrace.report import flags as report

    flags.save_flags(flagged, Path(folder), extra=lambda partial: report.write(flagged, partial / REPORT))


def load_flags(folder: str | Path) -> Flagged:
    """The flagging that `save_flags` wrote; OutputError where the folder holds none, or where it was changed."""
    return flags.load_flags(Path(folder))
