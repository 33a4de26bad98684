"""Each check with its figures."""

from __future__ import annotations

from pretrace.report.audit import facts
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 30


def section(audit: Audit) -> Section | None:
    """The checks as a table, in the order in which they were made; nothing where there were none."""
    checks = [(check, facts.line(check.figures)) for check in facts.checks(audit)]
    if not checks:
        return None
    return Section("The checks", "checks", fill("audit/checks.html", {"audit": audit, "checks": checks}))
