"""The evaluation of a large run: figures of all its rows, read from the parts, and a blind classifier of some texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pretrace.baselines import blind as baseline
from pretrace.corpora import TextStream
from pretrace.jobs.job import ShardJob
from pretrace.jobs.merging import Merged, ScoredRows, in_order, manifests
from pretrace.jobs.worker import PartsFolder
from pretrace.results.folder import texts_of
from pretrace.results.run import control_columns
from pretrace.scoring.evaluation import OfTexts, evaluate_rows, placebo_name
from pretrace.scoring.holdout import drawn_documents
from pretrace.scoring.unlearning import copies_linked, reread, unlike
from pretrace.types import Bools, Control, Run

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
    beside = replace(beside, judged=judged)
    if counted:
        copies_of = np.array([counted[name] for name in _ids(job, parts)], dtype=np.int32)
        beside = replace(beside, copies=copies_of)
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


def _ids(job: ShardJob, parts: PartsFolder) -> list[str]:
    tables = (parts.table(manifest, ["id"]) for manifest in manifests(job, parts))
    return [name for table in tables for name in texts_of(table, "id")]


def all_rows(job: ShardJob, parts: PartsFolder) -> tuple[Run, OfTexts]:
    """Read a run with all rows of the parts, and the characters and the document of each. The run has no groups, and
    the ids of those texts alone that lack a value. Each part is copied into whole arrays and let go of."""
    import pyarrow as pa

    found = tuple(manifests(job, parts))
    rows = sum(manifest.rows for manifest in found)
    matrix, counts, lengths = np.empty((rows, len(job.scores))), np.empty((2, rows), np.int32), np.empty(rows)
    places = dict(
        zip((*job.scores, "n_tokens", "n_cut", "n_chars"), (*matrix.T, *counts, lengths), strict=True)
    )
    controls: list[Control] = []
    for one in job.outlines:
        names = control_columns(**one)
        controls.append(Control(one["score"], one["kind"], np.empty((rows, len(names)))))
        places |= zip(names, controls[-1].values.T, strict=True)
    members: list[bool | None] = []
    ids: list[str] = []
    blocks: list[Any] = []
    for manifest in found:
        table = parts.table(manifest)
        for name, place in places.items():
            place[len(members) : len(members) + table.num_rows] = table.column(name).to_numpy()
        members += [None if one is None else bool(one) for one in table.column("label").to_pylist()]
        lacking = {one.id for one in manifest.missing}
        named = texts_of(table, "id") if lacking else [""] * table.num_rows
        ids += [name if name in lacking else "" for name in named]
        blocks += table.column("group").cast(pa.large_binary()).dictionary_encode().chunks
    run = Run(
        corpus=job.corpus,
        ids=tuple(ids),
        groups=("",) * rows,
        members=tuple(members),
        tokens=counts[0],
        cut=counts[1],
        scores=job.scores,
        matrix=matrix,
        missing=tuple(one for manifest in found for one in manifest.missing),
        controls=tuple(controls),
        settings=job.settings,
    )
    pa.default_memory_pool().release_unused()
    return run, OfTexts(None, lengths, in_order(blocks)[1].astype(np.int64))


def _judged(
    job: ShardJob, parts: PartsFolder, beside: OfTexts, members: Bools, stream: TextStream, seed: int
) -> baseline.BlindScores:
    """What a bag of words makes of texts drawn by whole documents; NaN for the others."""
    documents = beside.groups
    drawn = drawn_documents(documents, members, most=_BLIND_TEXTS, seed=seed)
    assert isinstance(documents, np.ndarray)
    texts = ScoredRows.of_job(job, parts).texts_at(stream, drawn)
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
