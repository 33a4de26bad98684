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
from pretrace.scoring.evaluation import documents_of, evaluate_rows
from pretrace.scoring.holdout import drawn_documents
from pretrace.types import Bools, Doubles, Missing, Run

BLIND_TEXTS = 20_480
"""Texts that the blind classifier learns from and judges, drawn by document."""


def evaluated(merged: Merged, stream: TextStream, *, seed: int, resamples: int, validation: float) -> Merged:
    """The run with its evaluation. Ids, labels, documents, scores and controls of all rows are in memory, the texts of
    those alone that the blind classifier judges. TextsError where labels are missing or of one class."""
    job, parts = merged.job, merged.parts
    everything, lengths = all_rows(job, parts)
    members = np.array(everything.members, dtype=bool)
    judged = _judged(everything, members, stream, seed)
    found = evaluate_rows(everything, judged, lengths, seed=seed, resamples=resamples, validation=validation)
    return replace(merged, run=replace(merged.run, evaluation=found))


def all_rows(job: Job, parts: Parts) -> tuple[Run, Doubles]:
    """A run with all rows of the parts, and the characters of each text."""
    import pyarrow as pa

    tables: list[Any] = []
    missing: list[Missing] = []
    for manifest in manifests(job, parts):
        tables.append(parts.table(manifest))
        missing += manifest.missing
    table = pa.concat_tables(tables)
    lengths = table.column("n_chars").to_numpy().astype(np.float64)
    return run_of(job, table, settings=job.settings, skipped=(), missing=missing), lengths


def _judged(run: Run, members: Bools, stream: TextStream, seed: int) -> baseline.BlindScores:
    """What a bag of words makes of texts drawn by whole documents; NaN for the others."""
    documents = documents_of(run)
    drawn = drawn_documents(documents, run.members, most=BLIND_TEXTS, seed=seed)
    chosen = np.flatnonzero(drawn).tolist()
    wanted = {run.ids[i] for i in chosen}
    texts = {text.id: text.text for text in stream.texts() if text.id in wanted}
    found = baseline.bag_of_words(
        [texts[run.ids[i]] for i in chosen], members[drawn], [documents[i] for i in chosen], seed=seed
    )
    if found.scores is None or drawn.all():
        return found
    scores = np.full(len(members), np.nan)
    scores[drawn] = found.scores
    note = (
        f"The blind classifier learnt from and judged {len(chosen):,} of the {len(members):,} texts, drawn by whole "
        "documents; what is compared with it rests on these."
    )
    return baseline.BlindScores(scores, f"{note} {found.note}".strip())
