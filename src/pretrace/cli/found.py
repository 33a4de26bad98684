"""`--found`: what a scan found of the same texts, shown beside a test of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pretrace.errors import ExpressionError
from pretrace.settings import CONTROLS, option
from pretrace.types import Text, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInputs:
    """What a scan found of the same texts."""

    found: Path | None = option(
        None,
        "The --out of a `pretrace scan` of the same texts: what was found is shown beside the answer. It is no part of "
        "the test or its p-value.",
        panel=CONTROLS,
        path="in",
    )


def found_of(found: Path | None, texts: Callable[[], Iterable[Text]], source: str) -> dict[str, Any] | None:
    """What `--found` names, checked against the texts of the test; None where nothing is named. ExpressionError for
    texts that can be read only once."""
    from pretrace.scan.labels import found_beside

    if found is None:
        return None
    if source == "-":
        raise ExpressionError("--found reads the texts twice: give them as a file or a folder.")
    return found_beside(found, texts(), source)


def with_found(made: Verdict, found: Mapping[str, Any] | None) -> Verdict:
    """The result with what was found of its texts; as it is where nothing was named."""
    return made if found is None else replace(made, settings={**made.settings, "found": dict(found)})
