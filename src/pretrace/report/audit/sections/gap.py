"""How far the texts can be told apart without the model."""

from __future__ import annotations

from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 50


def section(audit: Audit) -> Section | None:
    """The AUC of every classifier that saw texts alone; nothing where none was asked."""
    if not audit.gaps:
        return None
    return Section("The texts without the model", "gap", fill("audit/gap.html", {"audit": audit}))
