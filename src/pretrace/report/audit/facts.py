"""Facts that procedures, checks and models tell of themselves, as rows and lines: any plain value, read with care."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pretrace.report import wording
from pretrace.report.audit.wording import brief
from pretrace.report.sections.settings import flattened
from pretrace.types import Audit, Check, Placebo

_LONGEST = 1000


def rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every fact as (name, value), exactly as it was recorded.

    >>> rows({"lora": {"rank": 32}, "temperature": 1.0})
    [('lora.rank', '32'), ('temperature', '1.0')]
    """
    return [(name.replace("_", " "), _short(value)) for name, value in flattened(facts)]


def rounded(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same for figures: no more digits than a reader can use.

    >>> rounded({"effective_pieces": 487.21931, "rejections": 12345})
    [('effective pieces', '487.2'), ('rejections', '12,345')]
    """
    return rows({name: _figure(value) for name, value in facts.items()})


def line(facts: Mapping[str, Any]) -> str:
    """The figures in one line; nothing where there are none.

    >>> line({"auc": 0.512345, "folds": 5})
    'auc 0.5123 · folds 5'
    """
    return " · ".join(f"{name} {value}" for name, value in rounded(facts))


def mapping(found: Any) -> Mapping[str, Any]:
    """What was found, if it is a mapping; nothing otherwise."""
    return found if isinstance(found, Mapping) else {}


def of_model(audit: Audit, role: str) -> Mapping[str, Any]:
    """What was recorded of the model in this role; nothing where it was not."""
    return mapping(mapping(audit.settings.get("models")).get(role))


def of_placebo(audit: Audit, placebo: Placebo) -> Mapping[str, Any]:
    """What was recorded of a placebo that took part; nothing where it was not."""
    models = mapping(audit.settings.get("models"))
    parts = [mapping(part) for role, part in models.items() if str(role).startswith("placebo")]
    return next((part for part in parts if part.get("name") == placebo.name), {})


def compared_with(audit: Audit) -> str | None:
    """The name of the placebo of the deciding test, which may be one that the audit tuned itself; None without."""
    found = audit.answer.facts.get("placebo")
    return found if isinstance(found, str) else None


def margin(audit: Audit) -> float:
    """What was taken off the values, since innocent models lean towards true text as well; 0 where nothing was."""
    found = audit.answer.facts.get("margin")
    return float(found) if isinstance(found, int | float) and audit.design == "placebos" else 0.0


def rejected(audit: Audit) -> bool:
    """Whether the test gave a result."""
    return audit.answer.p <= audit.level


def checks(audit: Audit) -> tuple[Check, ...]:
    """The checks that have something to say: what could have been missed is no question beside a result."""
    return tuple(check for check in audit.checks if not (check.name == "power" and rejected(audit)))


def _figure(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _figure(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_figure(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return wording.count(int(value)).replace("-", wording.MINUS)
    return brief(value)


def _short(value: str) -> str:
    if len(value) <= _LONGEST:
        return value
    return f"{value[:_LONGEST]}… ({wording.count(len(value))} characters; verdict.json has them all)"
