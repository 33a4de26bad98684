"""What innocent models showed where it was measured, beside what this audit found."""

from __future__ import annotations

from pretrace.report.audit import facts, wording
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 25


def section(audit: Audit) -> Section | None:
    """The measured leans, the largest first; nothing where there are none."""
    if not audit.leans:
        return None
    margin = facts.margin(audit)
    values = {
        "leans": sorted(audit.leans, key=lambda lean: -lean.value),
        "margin": wording.brief(margin, 3),
        "words": wording.beside_leans(audit.leans, audit.answer.effect, margin),
    }
    return Section("What innocent models showed", "leans", fill("audit/leans.html", values))
