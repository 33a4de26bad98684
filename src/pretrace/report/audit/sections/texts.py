"""The generated texts: their quality in figures, and some of them to read."""

from __future__ import annotations

from pretrace.inference.quality import examples
from pretrace.report.audit.wording import brief
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 60
_EXAMPLES = 12


def section(audit: Audit) -> Section | None:
    """The quality table and a dozen pairs; nothing where no text was generated."""
    if not audit.pairs and not audit.quality:
        return None
    values = {
        "audit": audit,
        "quality": [
            (row.measure, _figure(row.true), _figure(row.generated), row.words) for row in audit.quality
        ],
        "examples": examples(audit.pairs, _EXAMPLES, seed=0),
    }
    return Section("The generated texts", "texts", fill("audit/texts.html", values))


def _figure(value: float | None) -> str:
    return "–" if value is None else brief(value, 3)
