"""The deciding test: hypothesis, level and statistic first, then the figures."""

from __future__ import annotations

from pretrace.report.audit import facts, wording
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.store.audits import hypothesis
from pretrace.types import Audit

ORDER = 10


def section(audit: Audit) -> Section:
    """What was set beforehand, what was found, and the sentences that lead from there to the answer."""
    answer = audit.answer
    values = {
        "audit": audit,
        "answer": answer,
        "hypothesis": hypothesis(audit),
        "level": wording.share(audit.level),
        "p": wording.p_value(answer.p),
        "effect": answer.effect and wording.figure(answer.effect),
        "spread": answer.effect and wording.spread(answer.effect),
        "facts": facts.rounded(answer.facts),
    }
    return Section("The test", "test", fill("audit/test.html", values))
