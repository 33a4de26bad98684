"""What the audit could answer, settled before any model read the texts."""

from __future__ import annotations

from pretrace.report.audit.wording import DESIGNS, OUTCOMES
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 15


def section(audit: Audit) -> Section | None:
    """Documents, placebos, design and possible outcomes; nothing where no plan was recorded (format 1)."""
    plan = audit.plan
    if plan is None:
        return None
    values = {
        "plan": plan,
        "design": DESIGNS[plan.design] if plan.design else "none: no verdict was possible",
        "outcomes": ", ".join(OUTCOMES[one] for one in plan.outcomes),
    }
    return Section("The plan", "plan", fill("audit/plan.html", values))
