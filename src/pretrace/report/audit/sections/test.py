"""The deciding test: hypothesis, level and statistic first, then the figures."""

from __future__ import annotations

from pretrace.report.audit import facts, wording
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.results.audit import hypothesis
from pretrace.types import Answer, Audit

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
        "observed": audit.null and wording.brief(audit.null.observed),
        "critical": audit.null and wording.brief(audit.null.critical),
        "answers": [_row(one) for one in audit.answers],
        **_sensitivity(audit),
    }
    return Section("The test", "test", fill("audit/test.html", values))


def _row(answer: Answer) -> tuple[str, str, str, str]:
    """The test against one placebo: its name, p, the effect and its interval."""
    effect = answer.effect
    name = answer.facts.get("placebo")
    return (
        name if isinstance(name, str) else "none",
        wording.p_value(answer.p),
        "–" if effect is None else wording.figure(effect),
        "" if effect is None else wording.spread(effect),
    )


def _sensitivity(audit: Audit) -> dict[str, object]:
    """The bounds on hidden bias as rows, and what they mean in a sentence."""
    found = audit.sensitivity
    if found is None or not facts.rejected(audit):
        return {"sensitivity": [], "sensitivity_words": ""}
    if audit.heldout_values.size:
        shift = "none" if found.shift is None else f"{wording.brief(found.shift, 3)} {audit.answer.unit}"
        words = (
            "Largest shift: so much can be taken off every suspect document, for whatever reason it lies higher than "
            "control documents, before the test no longer rejects."
        )
        return {"sensitivity": [("Largest shift", shift)], "sensitivity_words": words}
    bounds = (("Γ* of the sign test", found.gamma_sign), ("Γ* of Wilcoxon’s test", found.gamma_wilcoxon))
    rows = [(name, "does not reject" if one is None else wording.brief(one, 3)) for name, one in bounds]
    words = (
        "Rosenbaum’s Γ*: the odds at which a document that was not used may lie above 0, for whatever reason, before "
        "that test no longer rejects. At 1 any bias explains the result; at 3 it stands even if three in four such "
        "documents lie above 0."
    )
    return {"sensitivity": rows, "sensitivity_words": words}
