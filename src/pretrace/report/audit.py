"""One self-contained HTML file from an audit: no script, no network, the same audit the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pretrace.report import audit_sections as parts
from pretrace.report.audit_first import first_page
from pretrace.report.frame import Section, speaking, titled, two_parts
from pretrace.results.atomic import atomic_text
from pretrace.types import Audit

SECTIONS: tuple[Callable[[Audit], Section | None], ...] = (
    parts.deciding_test,
    parts.plan,
    parts.placebo,
    parts.leans,
    parts.checks,
    parts.power,
    parts.gap,
    parts.texts,
    parts.variants,
    parts.limits,
    parts.repeating,
)
"""The sections of the technical part in reading order. One of your own: `write(audit, path, (*SECTIONS, mine))`."""


def render(audit: Audit, sections: Sequence[Callable[[Audit], Section | None]] = SECTIONS) -> str:
    """The whole report of an audit as one HTML document."""
    title = titled("Audit", audit.corpus, audit.model)
    return two_parts(title, first_page(audit), speaking(sections, audit))


def write(audit: Audit, path: Path, sections: Sequence[Callable[[Audit], Section | None]] = SECTIONS) -> None:
    """Write the report, whole or not at all; OutputError where it cannot be written."""
    atomic_text(path, render(audit, sections))
