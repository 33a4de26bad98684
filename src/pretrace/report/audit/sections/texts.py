"""The generated texts: their quality in figures, and some of them to read."""

from __future__ import annotations

from pretrace.report.audit.wording import brief
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit, Pair

ORDER = 60
_EXAMPLES, _CONTROL_EXAMPLES = 12, 4


def section(audit: Audit) -> Section | None:
    """The quality table and a dozen pairs; nothing where no text was generated."""
    if not audit.pairs and not audit.quality:
        return None
    examples = [("suspect", pair) for pair in _spread(audit.pairs, _EXAMPLES)]
    examples += [("control", pair) for pair in _spread(audit.control_pairs, _CONTROL_EXAMPLES)]
    values = {
        "audit": audit,
        "quality": [
            (row.measure, _figure(row.true), _figure(row.generated), row.words) for row in audit.quality
        ],
        "examples": examples,
        "total": len(audit.pairs) + len(audit.control_pairs),
    }
    return Section("The generated texts", "texts", fill("audit/texts.html", values))


def _spread(pairs: tuple[Pair, ...], number: int) -> tuple[Pair, ...]:
    """So many of the pairs, evenly spaced, and so from as many documents as there are; all where there are fewer."""
    if len(pairs) <= number:
        return pairs
    return tuple(pairs[i * len(pairs) // number] for i in range(number))


def _figure(value: float | None) -> str:
    return "–" if value is None else brief(value, 3)
