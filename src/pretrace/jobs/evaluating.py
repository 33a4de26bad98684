"""The evaluation of a large run: figures of all its rows, read from the parts, and a blind classifier of some texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pretrace.baselines import blind as baseline
from pretrace.corpora import TextStream
from pretrace.jobs.job import Job
from pretrace.jobs.manifest import Parts
from pretrace.jobs.merge import Merged, manifests, run_of
from pretrace.jobs.rows import in_order, texts_at
from pretrace.results.tables import texts_of
from pretrace.scoring.evaluation import OfTexts, evaluate_rows
from pretrace.scoring.holdout import drawn_documents
from pretrace.types import Bools, Missing, Run

BLIND_TEXTS = 20_480
"""Texts that the blind classifier learns from and judges, drawn by document."""


def evaluated(merged: Merged, stream: TextStream, *, seed: int, resamples: int, validation: float) -> Merged:
    """The run with its evaluation. Labels, numbers of documents, scores and controls of all rows are in memory, the
    texts of those alone that the blind classifier judges. TextsError where labels are missing or of one class."""
    job, parts = merged.job, merged.parts
    everything, beside = all_rows(job, parts)
    members = np.array(everything.members, dtype=bool)
    judged = _judged(job, parts, beside, members, stream, seed)
    beside = replace(beside, judged=judged)
    found = evaluate_rows(everything, beside, seed=seed, resamples=resamples, validation=validation)
    return replace(merged, run=replace(merged.run, evaluation=found))


def all_rows(job: Job, parts: Parts) -> tuple[Run, OfTexts]:
    """A run with all rows of the parts, and the characters and the document of each. The run has no groups, and the ids
    of those texts alone that lack a value."""
    import pyarrow as pa

    tables: list[Any] = []
    blocks: list[Any] = []
    missing: list[Missing] = []
    for manifest in manifests(job, parts):
        table = parts.table(manifest)
        groups = table.column("group").cast(pa.large_binary())
        blocks += groups.dictionary_encode().chunks
        lacking = {one.id for one in manifest.missing}
        names = texts_of(table, "id") if lacking else ()
        ids = pa.array([name if name in lacking else "" for name in names] or [""] * table.num_rows)
        table = table.drop_columns(["group", "id"])
        tables.append(table.append_column("group", pa.array([""] * table.num_rows)).append_column("id", ids))
        missing += manifest.missing
    table = pa.concat_tables(tables)
    lengths = table.column("n_chars").to_numpy().astype(np.float64)
    run = run_of(job, table, settings=job.settings, skipped=(), missing=missing)
    return run, OfTexts(None, lengths, in_order(blocks)[1].astype(np.int64))


def _judged(
    job: Job, parts: Parts, beside: OfTexts, members: Bools, stream: TextStream, seed: int
) -> baseline.BlindScores:
    """What a bag of words makes of texts drawn by whole documents; NaN for the others."""
    documents = beside.groups
    drawn = drawn_documents(documents, members, most=BLIND_TEXTS, seed=seed)
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
