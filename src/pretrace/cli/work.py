"""What `score` and `evaluate` do, in order: check all that can be checked, open, fit, ask, write."""

from __future__ import annotations

from typing import Any

from pretrace.cli.assembling import assemble
from pretrace.cli.job import Job, Measuring
from pretrace.cli.progress import watched
from pretrace.corpora import open_corpus, windows
from pretrace.errors import ExpressionError
from pretrace.results.atomic import check_writable
from pretrace.runs import save_run
from pretrace.scoring.detect import Options, check_labels, detect, evaluate
from pretrace.scoring.holdout import Parts, set_aside
from pretrace.scoring.plan import ScorePlan
from pretrace.tuning.methods import methods
from pretrace.types import Corpus, Run


def carry_out(job: Job) -> Run:
    """The run, written to `job.out`; on any error nothing is left there."""
    measuring = job.measuring or Measuring()
    plan = ScorePlan.parse(job.asking.scores)
    _check(job, measuring, plan)
    check_writable(job.out)
    corpus = open_corpus(job.source.texts, job.source.columns)
    if job.measuring:
        check_labels(corpus)
    plan.check_texts(corpus)  # here as well: tuning takes long
    models, parts = assemble(job, lambda target: _parts(corpus, job, measuring, target))
    with watched("reading") as progress:
        options = Options(
            cache=not job.running.no_cache,
            seed=job.running.seed,
            progress=progress,
            settings=_settings(job, parts),
        )
        run = detect(parts.test, models, plan, options)
    if job.measuring:
        run = evaluate(
            run,
            parts.test,
            seed=job.running.seed,
            resamples=measuring.resamples,
            validation=measuring.validation,
        )
    save_run(run, job.out)
    return run


def _parts(corpus: Corpus, job: Job, measuring: Measuring, target: Any) -> Parts:
    """The corpus, cut into windows where asked, and divided into what is tuned, fitted and scored on."""
    if job.running.windows:
        corpus = windows(corpus, target)
    shares = {"tuning": measuring.tune_share, "reference": measuring.reference_share}
    parts = set_aside(corpus, **shares, seed=job.running.seed)
    if job.measuring and (parts.tuning or parts.reference):
        check_labels(parts.test)
    return parts


def _check(job: Job, measuring: Measuring, plan: ScorePlan) -> None:
    """Everything that can be known before a file or a model is opened."""
    asking = job.asking
    given = {
        "counts": asking.counts,
        "labelled": asking.reference or measuring.reference_share,
        "reference": asking.reference_model,
        "tuned": asking.tuned or measuring.tune_share,
        "neighbors": asking.neighbors,
    }
    plan.require([name for name, value in given.items() if value])
    if asking.tuned and measuring.tune_share:
        raise ExpressionError(
            "--tuned takes a finished adapter, --tune-share makes one: give one of the two."
        )
    if asking.reference and measuring.reference_share:
        raise ExpressionError(
            "--reference names reference texts, --reference-share draws them from TEXTS: give one of the two."
        )
    methods.make(measuring.method)
    for option, (value, use, kind) in {
        "--tune-share": (measuring.tune_share, "tuned", "fsd(ppl)"),
        "--tuned": (asking.tuned, "tuned", "fsd(ppl)"),
        "--neighbors": (asking.neighbors, "neighbors", "neighbor"),
        "--reference": (asking.reference, "labelled", "na_pdd or probe"),
        "--reference-share": (measuring.reference_share, "labelled", "na_pdd or probe"),
    }.items():
        if value and use not in plan.uses:
            raise ExpressionError(f"{option} has no use: none of the --scores is of the kind {kind}.")


def _settings(job: Job, parts: Parts) -> dict[str, Any]:
    measuring = job.measuring
    record: dict[str, Any] = {
        "command": "evaluate" if measuring else "score",
        "scores": job.asking.scores,
        "windows": job.running.windows,
        "columns": {name: getattr(job.source.columns, name) for name in ("text", "label", "id", "group")},
        "opening": {name: value for name, value in job.opening.settings.items() if value is not None},
    }
    if measuring and (parts.tuning or parts.reference):
        record["set_aside"] = {
            "tuning": {"share": measuring.tune_share, "texts": len(parts.tuning) if parts.tuning else 0},
            "reference": {
                "share": measuring.reference_share,
                "texts": len(parts.reference) if parts.reference else 0,
            },
        }
    return record
