"""Models that are trained here: planted ones, whose members are known, and tuned copies of others."""

from __future__ import annotations

from pathlib import Path

from pretrace.tuning.adapters import tuned_model
from pretrace.tuning.plan import OnStep, methods
from pretrace.types import Backend, Corpus, Tuned


def tune(
    model: Backend,
    corpus: Corpus,
    method: str = "lora",
    *,
    folder: str | Path | None = None,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Tuned:
    """The model tuned on the texts (on the non-members among them, where they have labels), for `fsd`, by a
    `method` such as "lora(rank=8)" (`pretrace list`). The adapter is written to `folder`, without one to the
    cache. Raises a PretraceError where method, texts or model do not suit, or the folder cannot be written."""
    how = methods.make(method)
    return tuned_model(model, corpus, how, seed=seed, cache=folder is None or Path(folder), on_step=on_step)
