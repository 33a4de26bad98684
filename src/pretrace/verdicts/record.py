"""What a verdict records of its circumstances, so that it can be repeated and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pretrace.scoring.provenance import record_corpus, record_software
from pretrace.types import Backend, Corpus


def facts_of(placebos: Sequence[Backend] = (), **models: Backend | None) -> dict[str, Mapping[str, Any]]:
    """Collect the facts of each model under its role."""
    found = {role: dict(model.facts) for role, model in models.items() if model is not None}
    return found | {
        "placebo" if i == 1 else f"placebo {i}": dict(one.facts) for i, one in enumerate(placebos, 1)
    }


def record(
    corpora: Mapping[str, Corpus | None], models: Mapping[str, Mapping[str, Any]], **more: Any
) -> dict[str, Any]:
    """Record the texts by what they are ("corpus" for the suspect ones), the facts of the models, versions and time."""
    return {
        **{name: record_corpus(one) if one is not None else None for name, one in corpora.items()},
        "models": models,
        **more,
        "software": record_software(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
