"""The evaluation of a large run: figures of all its rows, read from the parts, and a blind classifier of some texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pretrace.baselines import blind as baseline
from pretrace.corpora import TextStream
from pretrace.jobs.job import ShardJob
from pretrace.jobs.merging import Merged, in_order, manifests, texts_at
from pretrace.jobs.worker import PartsFolder
from pretrace.results.folder import texts_of
from pretrace.results.run import control_columns
from pretrace.scoring.evaluation import OfTexts, evaluate_rows, placebo_name
from pretrace.scoring.holdout import drawn_documents
from pretrace.scoring.unlearning import copies_linked, reread, unlike
from pretrace.types import Bools, Control, Doubles, Ints, Missing, Run

_BLIND_TEXTS = 20_480
"""Texts that the blind classifier learns from and judges, drawn by document."""


def evaluated(
    merged: Merged,
    stream: TextStream,
    *,
    seed: int,
    resamples: int,
    validation: float,
    unlearned: float | None = None,
) -> Merged:
    """The run with its evaluation. Labels, numbers of documents, scores and controls of all rows are in memory, the
    texts of those alone that the blind classifier judges. TextsError where labels are missing or of one class."""
    job, parts = merged.job, merged.parts
    everything, beside = all_rows(job, parts)
    members = np.array(everything.members, dtype=bool)
    judged = _judged(job, parts, beside, members, stream, seed)
    counted = {text.id: text.copies for text in stream.texts() if text.copies is not None}
    beside = replace(beside, judged=judged, copies=_copies(counted, job, parts) if counted else None)
    copies, withheld = 0, ""
    if unlearned is not None:
        ids = _ids(job, parts)
        groups, copies = copies_linked(stream.texts(), ids, beside.groups, members)
        withheld = unlike(stream.texts(), ids, groups, members, seed=seed)
        beside = replace(beside, groups=groups)
    found = evaluate_rows(everything, beside, seed=seed, resamples=resamples, validation=validation)
    if unlearned is not None:
        found = reread(found, unlearned, placebo_name(merged.run.settings), copies, withheld)
    run = replace(merged.run, evaluation=found)
    if counted:
        run = replace(run, copies=np.array([counted[name] for name in run.ids], dtype=np.int32))
    return replace(merged, run=run)


def _copies(counted: Mapping[str, int], job: ShardJob, parts: PartsFolder) -> Ints:
    """The copies of all rows."""
    return np.array([counted[name] for name in _ids(job, parts)], dtype=np.int32)


def _ids(job: ShardJob, parts: PartsFolder) -> list[str]:
    """The ids of all rows."""
    tables = (parts.table(manifest, ["id"]) for manifest in manifests(job, parts))
    return [name for table in tables for name in texts_of(table, "id")]


def all_rows(job: ShardJob, parts: PartsFolder) -> tuple[Run, OfTexts]:
    """A run with all rows of the parts, and the characters and the document of each. The run has no groups, and the ids
    of those texts alone that lack a value."""
    import pyarrow as pa

    found = tuple(manifests(job, parts))
    rows = _EvaluatedRows.of(job, sum(manifest.rows for manifest in found))
    blocks: list[Any] = []
    missing: list[Missing] = []
    for manifest in found:
        table = parts.table(manifest)
        blocks += table.column("group").cast(pa.large_binary()).dictionary_encode().chunks
        rows.add(table, {one.id for one in manifest.missing})
        missing += manifest.missing
    run = rows.run(job, missing)
    pa.default_memory_pool().release_unused()
    return run, OfTexts(None, rows.lengths, in_order(blocks)[1].astype(np.int64))


@dataclass(slots=True)
class _EvaluatedRows:
    """All rows, filled part by part, so that no part is in memory beside what is taken from it."""

    matrix: Doubles
    controls: tuple[Control, ...]
    columns: tuple[str, ...]
    """Those of the matrix, then those of the controls."""
    tokens: Ints
    cut: Ints
    lengths: Doubles
    members: list[bool | None] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, job: ShardJob, number: int) -> _EvaluatedRows:
        """Room for so many rows."""
        names = [control_columns(**one) for one in job.outlines]
        controls = tuple(
            Control(one["score"], one["kind"], np.empty((number, len(some))))
            for one, some in zip(job.outlines, names, strict=True)
        )
        columns = (*job.scores, *(name for some in names for name in some))
        matrix, counts = np.empty((number, len(job.scores))), np.empty((2, number), np.int32)
        return cls(matrix, controls, columns, counts[0], counts[1], np.empty(number))

    def add(self, table: Any, lacking: set[str]) -> None:
        """The rows of one part, with the ids of those that lack a value."""
        here = slice(len(self.ids), len(self.ids) + table.num_rows)
        arrays = (self.matrix, *(control.values for control in self.controls))
        places = (array[here, place] for array in arrays for place in range(array.shape[1]))
        for name, place in zip(self.columns, places, strict=True):
            place[:] = table.column(name).to_numpy()
        for name, array in (("n_tokens", self.tokens), ("n_cut", self.cut), ("n_chars", self.lengths)):
            array[here] = table.column(name).to_numpy()
        self.members += [None if one is None else bool(one) for one in table.column("label").to_pylist()]
        names = texts_of(table, "id") if lacking else ()
        self.ids += [name if name in lacking else "" for name in names] or [""] * table.num_rows

    def run(self, job: ShardJob, missing: Sequence[Missing]) -> Run:
        """The run, once all parts are there."""
        ids = tuple(self.ids)
        return Run(
            corpus=job.corpus,
            ids=ids,
            groups=("",) * len(ids) if any(ids) else ids,
            members=tuple(self.members),
            tokens=self.tokens,
            cut=self.cut,
            scores=job.scores,
            matrix=self.matrix,
            skipped=(),
            missing=tuple(missing),
            controls=self.controls,
            settings=job.settings,
        )


def _judged(
    job: ShardJob, parts: PartsFolder, beside: OfTexts, members: Bools, stream: TextStream, seed: int
) -> baseline.BlindScores:
    """What a bag of words makes of texts drawn by whole documents; NaN for the others."""
    documents = beside.groups
    drawn = drawn_documents(documents, members, most=_BLIND_TEXTS, seed=seed)
    assert isinstance(documents, np.ndarray)
    texts = texts_at(job, parts, stream, drawn)
    found = baseline.bag_of_words(texts, members[drawn], documents[drawn], seed=seed)
    if found.scores is None or drawn.all():
        return found
    scores = np.full(len(members), np.nan)
    scores[drawn] = found.scores
    note = (
        f"The blind classifier learnt from and judged {len(texts):,} of the {len(members):,} texts, drawn by whole "
        "documents; what is compared with it rests on these."
    )
    return baseline.BlindScores(scores, f"{note} {found.note}".strip())
