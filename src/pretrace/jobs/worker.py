"""One shard in, one part of the table out."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from pretrace.jobs.manifest import Ranked
from pretrace.jobs.shards import Shard
from pretrace.results.run import control_columns
from pretrace.results.tables import arrow_column
from pretrace.scoring.detect import Options
from pretrace.scoring.heat import heat_of, label_words
from pretrace.scoring.plan import FittedScores, Models, ScorePlan
from pretrace.scoring.scored import Scored
from pretrace.types import Control, Doubles

_SHAPES = "64"
_NEW_OBJECTS = 50_000  # before the garbage collector looks at them: those of some thousand texts
COLUMNS = ("id", "label", "group", "n_tokens", "n_cut", "n_chars")
"""The columns of a part before those of the scores and controls."""


class Worker:
    """Scores shards with models that are open. A context manager, which closes the stores of traces.

    Its scores are fitted once, when it is made; errors are those of `ScorePlan.fit`.
    """

    def __init__(self, models: Models, plan: ScorePlan, options: Options) -> None:
        self.models, self.plan = models, plan
        self._options = options
        self.scores = self._fitted(models, options)
        self._placebo = self._fitted(models.placebo, replace(options, shuffles=0)) if models.placebo else None
        self._reader = self._opened(models, self.scores)
        self._beside = (
            self._opened(models.placebo, self._placebo) if models.placebo and self._placebo else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for reader in (self._reader, self._beside):
            if reader is not None:
                reader.__exit__()

    @property
    def outlines(self) -> list[dict[str, Any]]:
        """Kind, score and number of repeats of each control, in the order of the parts' columns."""
        placebo = [(name, "placebo", 1) for name in self.scores.ready] if self._placebo else []
        shuffled = [(name, "shuffled", len(some)) for name, some in self.scores.shuffled.items()]
        return [
            {"kind": kind, "score": name, "repeats": repeats} for name, kind, repeats in (*placebo, *shuffled)
        ]

    def part(self, shard: Shard) -> tuple[Any, dict[str, Any]]:
        """The part of a shard, a pyarrow table, and what its manifest says besides."""
        found = Scored(self.scores, self.plan).read(self._reader.read(shard.texts))
        controls: tuple[Control, ...] = ()
        if self._placebo and self._beside:
            other = Scored(self._placebo, self.plan).read(self._beside.read(shard.texts))
            controls = found.held_against(other, required=False)
        return table_of(found, (*controls, *found.shuffled)), self._facts(shard, found)

    def _facts(self, shard: Shard, found: Scored) -> dict[str, Any]:
        ends = tuple(
            Ranked(score, place, label_words(text), heat_of(text, trace, self.models.target))
            for score, place, text, trace in found.extremes.ends
        )
        return {
            "index": shard.index,
            "texts": len(shard.texts),
            "seen": found.extremes.seen,
            "skipped": tuple(found.skipped),
            "missing": tuple(found.missing),
            "ends": ends,
        }

    def _fitted(self, models: Models, options: Options) -> FittedScores:
        return self.plan.fit(
            models,
            seed=options.seed,
            shuffles=options.shuffles,
            cache=options.cache,
            progress=options.progress,
        )

    def _opened(self, models: Models, scores: FittedScores) -> Any:
        options = self._options
        return models.reader(scores.needs, plan=self.plan, cache=options.cache, progress=options.progress)


def keep_few_shapes() -> None:
    """Let torch keep compiled products of few batch shapes; to be called before a model is opened.

    By itself it keeps 1,024 of them, and over many shards each batch has a shape of its own: they add up to hundreds
    of megabytes. No number depends on it. What the environment says already stays.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, _SHAPES)


def give_free_memory_back() -> None:
    """Hand what is free in this process back to the system, where its C library can: after many forward passes glibc
    keeps some 80 MB, and what follows would come on top."""
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def old_objects_left_alone() -> Iterator[None]:
    """While it lasts, the garbage collector looks at new objects alone, and seldom.

    Torch and a model are half a million that it would walk through every few thousand texts, 10 µs a text; what is made
    of a text lasts, and is no cycle.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def table_of(found: Scored, controls: tuple[Control, ...]) -> Any:
    """The rows as a pyarrow table: `COLUMNS`, a column a score, a column a repeat of each control; null for what is
    not known."""
    import pyarrow as pa

    rows = found.rows
    labels = [None if row.text.member is None else int(row.text.member) for row in rows]
    columns: Mapping[str, Any] = {
        "id": arrow_column([row.text.id for row in rows]),
        "label": pa.array(labels, pa.int8()),
        "group": arrow_column([row.text.document for row in rows]),
        "n_tokens": pa.array([row.tokens for row in rows], pa.int32()),
        "n_cut": pa.array([row.cut for row in rows], pa.int32()),
        "n_chars": pa.array([len(row.text.text) for row in rows], pa.int32()),
    }
    names = list(found.scores.ready)
    matrix = found.matrix.reshape(len(rows), len(names))
    values = {name: _nullable(matrix[:, i]) for i, name in enumerate(names)}
    for control in controls:
        for place, name in enumerate(control_columns(control.kind, control.score, control.values.shape[1])):
            values[name] = _nullable(control.values[:, place])
    return pa.table({**columns, **values})


def _nullable(column: Doubles) -> Any:
    import pyarrow as pa

    return pa.array(np.ascontiguousarray(column), pa.float64(), mask=np.isnan(column))
