"""The sentences of tests and their checks (`words.toml` of their rooms)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pretrace.results.wording import fill as fill
from pretrace.results.wording import say as say
from pretrace.results.wording import sentences_of as sentences_of
from pretrace.types import Check


def word_check(
    kind: str,
    good: bool | None,
    figures: Mapping[str, Any] | None = None,
    *,
    words: str = "words",
    **numbers: object,
) -> Check:
    """Put a check in words: one that passed, failed, or where `good` is None was not run. `words` names its sentence
    among those of the kind. A cure is given where it failed, and where it was not run and there is one for that."""
    found = sentences_of(kind)
    status, cure = ("passed", "") if good else ("failed", "cure")
    if good is None:
        status, cure = "not run", "cure_not_run"
    return Check(
        kind.rpartition(".")[2],
        fill(found["title"], **numbers),
        status,  # type: ignore[arg-type]
        fill(found[words], **numbers),
        fill(found.get(cure, ""), **numbers),
        figures or {},
    )
