"""What the audit could have seen."""

from __future__ import annotations

from markupsafe import Markup

from pretrace.report.audit import facts, plots, wording
from pretrace.report.sections import Section
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.types import Audit, Power

ORDER = 40


def section(audit: Audit) -> Section | None:
    """The power with its curve, or what it means that it was not measured; nothing beside a result without one."""
    if audit.power is None and facts.rejected(audit):
        return None
    values: dict[str, object] = {"audit": audit, "power": audit.power, "level": wording.share(audit.level)}
    if audit.power:
        values |= _values(audit.power, audit.answer.documents)
    return Section("What the audit could have seen", "power", fill("audit/power.html", values))


def _values(power: Power, documents: int) -> dict[str, object]:
    plot: Markup | str = ""
    if power.curve:
        words = ", ".join(f"{share:.0%} with {number} documents" for number, share in power.curve)
        label = f"Probability of seeing the planted texts: {words}."
        plot = to_svg(plots.power_curve(power, documents), name="power", label=label)
    return {
        "times": wording.times(power.epochs),
        "plot": plot,
        "effect": wording.figure(power.effect),
        "spread": wording.spread(power.effect),
        "facts": facts.rounded(power.facts),
    }
