"""What a verdict records of its circumstances, so that it can be repeated and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pretrace.scoring.plan import Models
from pretrace.scoring.provenance import record_corpus, record_software
from pretrace.types import Corpus
from pretrace.verdicts.settings import TestSettings


def record(
    corpora: Mapping[str, Corpus],
    models: Models,
    settings: TestSettings,
    *,
    score: str,
    seconds: Mapping[str, float],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The settings, models, texts and versions of a test; `corpora` by what they are, "corpus" for the suspect one."""
    used = {"target": models.target, "reference": models.reference}
    facts = {name: dict(model.facts) for name, model in used.items() if model is not None}
    facts |= {
        "placebo" if i == 1 else f"placebo {i}": dict(one.facts) for i, one in enumerate(models.placebos, 1)
    }
    return {
        **{name: record_corpus(corpus) for name, corpus in corpora.items()},
        "models": facts,
        "score": score,
        "test": {name: value for name, value in asdict(settings).items() if value is not None},
        **(more or {}),
        "software": record_software(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "timings": dict(seconds),
    }


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names for a message: the first few, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
