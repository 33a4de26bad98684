"""Who asked, which model and which texts: the rows at the head of the first page, for a reader without statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pretrace.report.audit import facts
from pretrace.report.visible import named
from pretrace.report.wording import plural
from pretrace.types import Audit

UNSTATED = "not stated"
_GRADES = {
    "own": "an earlier state of the model in question",
    "sibling": "a model of the same kind, trained apart from it",
    "other": "a model of another family",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A row: what it is about, what is recorded, and smaller lines beneath it, each with whether it is a code."""

    label: str
    value: str
    notes: tuple[tuple[str, bool], ...] = ()


def identity(audit: Audit) -> tuple[Row, ...]:
    """The date, who asked, the model, those it is compared with, the texts and the control documents."""
    said = audit.statements
    return (
        Row("Date of the audit", when(audit.settings.get("time"))),
        Row("Requested by", said.get("requested_by") or UNSTATED),
        Row("Model in question", named(audit.model), _marks(facts.of_model(audit, "target"))),
        *_compared(audit),
        Row("Suspect texts", _counted(audit, "documents", len(audit.documents)), _hash(audit, "corpus")),
        *_controls(audit),
    )


def when(found: object) -> str:
    """A recorded time as people write it, the day alone where it cannot be read.

    >>> when("2026-11-22T14:03:09+00:00"), when(None)
    ('22 November 2026, 14:03 UTC', 'not recorded')
    """
    if not isinstance(found, str):
        return "not recorded"
    try:
        moment = datetime.fromisoformat(found)
    except ValueError:
        return named(found)
    month = _MONTHS[moment.month - 1]
    zone = moment.tzname() or ""
    return f"{moment.day} {month} {moment.year}, {moment:%H:%M} {zone}".strip()


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


def _compared(audit: Audit) -> Iterator[Row]:
    """Each model that never saw the texts, and how that is known."""
    used = [placebo for placebo in audit.placebos if placebo.grade != "other" or len(audit.placebos) == 1]
    if not used:
        yield Row("Compared with", "no other model")
        return
    how = audit.statements.get("placebo") or UNSTATED
    for placebo in used:
        notes = (
            (_GRADES[placebo.grade], False),
            *_marks({**placebo.facts, **facts.of_placebo(audit, placebo)}),
        )
        yield Row("Compared with", named(placebo.name), notes)
    each = "it" if len(used) == 1 else "each"
    yield Row(f"How {each} is known not to have seen the texts", how)


def _controls(audit: Audit) -> Iterator[Row]:
    if audit.design == "placebos":
        yield Row("Control documents", "none")
        return
    counted = _counted(audit, "control documents", len(audit.heldout_documents))
    yield Row("Control documents", counted, _hash(audit, "heldout"))
    yield Row("Where they come from", audit.statements.get("controls") or UNSTATED)


def _counted(audit: Audit, noun: str, number: int) -> str:
    return f"{plural(number, noun.removesuffix('s'))}, each listed in documents.csv"


def _hash(audit: Audit, part: str) -> tuple[tuple[str, bool], ...]:
    found = facts.mapping(audit.settings.get(part)).get("sha256")
    return (("SHA-256 of the texts:", False), (named(found), True)) if isinstance(found, str) else ()


def _marks(found: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
    """Revision and weights of a model, which name it exactly."""
    revision, weights = found.get("revision"), found.get("weights")
    lines: list[tuple[str, bool]] = [(f"revision {named(str(revision))}", False)] if revision else []
    if isinstance(weights, str) and weights:
        lines += [("fingerprint of its weights:", False), (named(weights), True)]
    return tuple(lines)
