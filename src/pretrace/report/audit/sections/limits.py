"""What an audit cannot say."""

from __future__ import annotations

from pretrace.report.audit import facts
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 80


def section(audit: Audit) -> Section:
    """The limits of the method, short, those of this design and outcome among them."""
    values = {
        "audit": audit,
        "other": facts.compared_with(audit),
        "own": audit.placebo is not None and audit.placebo.grade == "own",
        "power": audit.power is not None or not facts.rejected(audit),
    }
    return Section("What this audit cannot say", "limits", fill("audit/limits.html", values))
