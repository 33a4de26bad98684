"""One self-contained HTML file from an audit: no script, no network, the same audit the same bytes."""

from __future__ import annotations

from pathlib import Path

from pretrace.report.audit.first import first_page
from pretrace.report.audit.sections import sections
from pretrace.report.templating import fill
from pretrace.results.atomic import atomic_text
from pretrace.types import Audit


def render(audit: Audit) -> str:
    """The whole report of an audit as one HTML document."""
    values = {"audit": audit, "first": first_page(audit), "sections": sections(audit)}
    return str(fill("audit/page.html", values))


def write(audit: Audit, path: Path) -> None:
    """Write the report, whole or not at all; OutputError where it cannot be written."""
    atomic_text(path, render(audit))
