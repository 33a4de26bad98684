"""Everything else that was tried: further procedures, and audits made before this one."""

from __future__ import annotations

from collections.abc import Mapping

from pretrace.report.audit import facts, wording
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Answer, Audit

ORDER = 70


def section(audit: Audit) -> Section:
    """The further procedures with their p-values, the earlier audits, or that there were none."""
    earlier = audit.settings.get("earlier")
    entries = earlier if isinstance(earlier, list | tuple) else []
    values = {
        "audit": audit,
        "variants": [_row(answer) for answer in audit.variants],
        "earlier": [facts.line(entry) if isinstance(entry, Mapping) else str(entry) for entry in entries],
    }
    return Section("Everything that was tried", "variants", fill("audit/variants.html", values))


def _row(answer: Answer) -> dict[str, object]:
    effect = answer.effect
    return {
        "answer": answer,
        "p": wording.p_value(answer.p),
        "effect": "–" if effect is None else wording.figure(effect),
        "spread": "" if effect is None else wording.spread(effect),
        "facts": facts.line(answer.facts),
    }
