"""The placebo and how good a one it is."""

from __future__ import annotations

from pretrace.report.audit import facts
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 20


def section(audit: Audit) -> Section:
    """The model that the target is held against, its grade, or what it means that there is none."""
    found = facts.rounded(audit.placebo.facts) if audit.placebo else []
    values = {"audit": audit, "placebo": audit.placebo, "facts": found}
    return Section("The placebo", "placebo", fill("audit/placebo.html", values))
