"""The placebos and how good they are."""

from __future__ import annotations

from pretrace.report.audit import facts
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 20
_GRADES = {
    "own": "an earlier state of the target: the best kind, if from shortly before the texts can have come in",
    "sibling": "same architecture and tokenizer, other weights: a fair kind",
    "other": "another family: the weakest kind",
}


def section(audit: Audit) -> Section:
    """The models that the target is compared with, their grades, or what it means that there are none."""
    other = facts.compared_with(audit)
    values = {
        "audit": audit,
        "placebos": [(one, facts.rounded(one.facts)) for one in audit.placebos],
        "grades": _GRADES,
        "other": other,
        "tuned": other is not None and audit.placebo is None,
        "said": audit.statements.get("placebo"),
    }
    title = "The placebos" if len(audit.placebos) > 1 else "The placebo"
    return Section(title, "placebo", fill("audit/placebo.html", values))
