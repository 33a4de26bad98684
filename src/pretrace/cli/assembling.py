"""All the models of a run, from the options that name them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pretrace.backends import open_model
from pretrace.cli.job import Job, Measuring
from pretrace.cli.progress import trained
from pretrace.corpora import open_corpus
from pretrace.frequencies import Frequencies
from pretrace.scoring.detect import check_labels
from pretrace.scoring.holdout import Parts
from pretrace.scoring.plan import Models
from pretrace.tuning.artifacts import read_adapter
from pretrace.types import Backend, Corpus, Tuned


def assemble(job: Job, divide: Callable[[Backend], Parts]) -> tuple[Models, Parts]:
    """The models, and the texts divided; `divide` is given the target, whose tokens windows are cut by."""
    asking, measuring = job.asking, job.measuring or Measuring()
    counts = Frequencies.load(asking.counts) if asking.counts else None
    given = open_corpus(asking.reference, job.source.columns) if asking.reference else None
    if given is not None:
        check_labels(given)
    if asking.tuned:
        read_adapter(asking.tuned)  # a wrong folder is said before a model is opened
    target = open_model(job.opening.model, **job.opening.settings)
    parts = divide(target)
    if parts.reference is not None:
        check_labels(parts.reference)
    models = Models(target, counts=counts, labelled=parts.reference or given)
    if asking.reference_model:
        settings = {**job.opening.settings, "revision": None}
        models = replace(models, reference=open_model(asking.reference_model, **settings))
    if asking.neighbors:
        from pretrace.backends.proposals import open_proposer

        names = ("dtype", "device", "trust_remote_code", "allow_pickle")
        settings = {name: job.opening.settings[name] for name in names} if ":" in asking.neighbors else {}
        cache = not job.running.no_cache
        proposer = open_proposer(asking.neighbors, target, cache=cache, **settings)
        models = replace(models, proposer=proposer)
    blank = None
    if measuring.placebo:  # opened before anything is trained, so that a wrong name costs nothing
        settings = {**job.opening.settings, "revision": measuring.placebo_revision}
        blank = replace(models, target=open_model(measuring.placebo, **settings))
    if asking.tuned or parts.tuning:
        models = replace(models, tuned=_tuned(job, measuring, target, parts.tuning))
        if blank:
            blank = replace(blank, tuned=_retuned(job, measuring, blank.target, parts.tuning))
    models = replace(models, placebo=blank)
    return models, parts


def _tuned(job: Job, measuring: Measuring, target: Backend, texts: Corpus | None) -> Tuned:
    """The target with the adapter that was named, or tuned on the texts set aside for it."""
    if job.asking.tuned:
        from pretrace.backends.adapters import attach

        return attach(target, job.asking.tuned)
    return _retuned(job, measuring, target, texts)


def _retuned(job: Job, measuring: Measuring, model: Backend, texts: Corpus | None) -> Tuned:
    """A model tuned as `--method` says on the texts set aside, or as the named adapter was, on the same texts."""
    from pretrace.tuning.adapter_cache import tuned_model
    from pretrace.tuning.methods import methods

    method, seed = methods.make(measuring.method), job.running.seed
    if job.asking.tuned:
        adapter = read_adapter(job.asking.tuned)
        method, seed, texts = adapter.method, adapter.seed, adapter.texts
    assert texts is not None
    with trained() as on_step:
        return tuned_model(model, texts, method, seed=seed, cache=not job.running.no_cache, on_step=on_step)
