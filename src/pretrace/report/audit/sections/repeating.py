"""Everything needed to make the audit again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pretrace.report.audit import facts, wording
from pretrace.report.audit.calls import command_line, python_call
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Audit

ORDER = 90
_TITLES = {
    "corpus": "The texts",
    "heldout": "The control documents",
    "snippets": "How the texts were cut",
    "sampling": "How the generator wrote",
    "software": "Software",
    "timings": "Time taken",
}
_ROLES = ("target", "placebo", "generator", "reference")
_CODE = re.compile(r"^(\w+:)?[0-9a-fA-F]{12,}$|^\S*[/\\()=]\S*$")


def section(audit: Audit) -> Section | None:
    """The command, the Python call and a table for each part of the settings; nothing where none were recorded."""
    parts = [part for part in _parts(audit.settings) if part[1]]
    if not parts:
        return None
    values = {"parts": parts, "command": command_line(audit), "call": python_call(audit)}
    return Section("To repeat this audit", "repeat", fill("audit/repeating.html", values))


def _parts(settings: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, str, bool]]]]:
    """Single settings first, then those that have parts, in the order in which they were recorded."""
    nested = {key: value for key, value in settings.items() if isinstance(value, Mapping) and value}
    single = {
        key: value
        for key, value in settings.items()
        if key not in nested and key != "earlier" and value is not None
    }
    yield "This audit", _table(single)
    models = facts.mapping(nested.pop("models", None))
    for role, value in models.items():
        yield (
            f"The {role}" if role in _ROLES else role,
            _table(value if isinstance(value, Mapping) else {role: value}),
        )
    for key, value in nested.items():
        title = _TITLES.get(key, key.replace("_", " ").capitalize())
        yield title, _table(_timed(value) if key == "timings" else value)


def _table(part: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    return [(name, value, bool(_CODE.match(value))) for name, value in facts.rows(part)]


def _timed(timings: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds as people say them, and all of them together."""
    seconds = {
        key: value
        for key, value in timings.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    }
    said = {
        key: wording.duration(seconds[key]) if key in seconds else value for key, value in timings.items()
    }
    return said | ({"all": wording.duration(sum(seconds.values()))} if len(seconds) > 1 else {})
