"""What `score` and `evaluate` do, in order: check all that can be checked, open, ask, write."""

from __future__ import annotations

from typing import Any

from pretrace.backends import open_model
from pretrace.cli.job import Job
from pretrace.cli.progress import watched
from pretrace.corpora import open_corpus, windows
from pretrace.detection import Models, Options, check_labels, check_scores, detect, evaluate
from pretrace.frequencies import Frequencies
from pretrace.runs import save_run
from pretrace.store.atomic import check_writable
from pretrace.types import Run


def carry_out(job: Job) -> Run:
    """The run, written to `job.out`; on any error nothing is left there."""
    check_scores(job.scores, counts=job.counts is not None, reference=job.reference_model is not None)
    check_writable(job.out)
    corpus = open_corpus(job.texts, job.columns)
    if job.measuring:
        check_labels(corpus)
    counts = Frequencies.load(job.counts) if job.counts else None
    target = open_model(job.model, **job.opening)
    reference = None
    if job.reference_model:
        reference = open_model(job.reference_model, **{**job.opening, "revision": None})
    if job.windows:
        corpus = windows(corpus, target)
    with watched("reading") as progress:
        options = Options(cache=job.cache, seed=job.seed, progress=progress, settings=_settings(job))
        run = detect(corpus, Models(target, reference, counts), job.scores, options)
    if job.measuring:
        run = evaluate(
            run,
            corpus,
            seed=job.seed,
            resamples=job.measuring.resamples,
            validation=job.measuring.validation,
        )
    save_run(run, job.out)
    return run


def _settings(job: Job) -> dict[str, Any]:
    return {
        "command": "evaluate" if job.measuring else "score",
        "scores": job.scores,
        "windows": job.windows,
        "columns": {name: getattr(job.columns, name) for name in ("text", "label", "id", "group")},
        "opening": {name: value for name, value in job.opening.items() if value is not None},
    }
