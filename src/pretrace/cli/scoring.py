"""`pretrace score` and `pretrace evaluate`: check all that can be checked, open, fit, ask, write."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pretrace.cli.paths import Source
from pretrace.cli.printing import finished, foretold
from pretrace.cli.progress import trained, watched
from pretrace.corpora import open_corpus, windows
from pretrace.results.atomic import check_writable
from pretrace.runs import save_run
from pretrace.scoring.detect import Options, check_labels, detect
from pretrace.scoring.detect import evaluate as measure
from pretrace.scoring.holdout import Parts, set_aside
from pretrace.scoring.plan import ScorePlan
from pretrace.scoring.settings import (
    EvaluationSettings,
    ModelsSettings,
    ScoreSettings,
    Target,
    check_use,
)
from pretrace.settings import Option
from pretrace.types import Corpus, Run

Out = Annotated[
    Path,
    Option(
        "Folder for run.json, scores.parquet, scores.csv, skipped.csv and report.html; a run that is "
        "already there is replaced.",
        path="out",
        essential=True,
    ),
]


def score(source: Source, target: Target, settings: ScoreSettings, out: Out) -> None:
    """Score texts: one row a text, one column a score, higher = more member-like."""
    run = scored(source, target, settings, None, out)
    if run is not None:
        save_run(run, out)
        finished(run, out)


def evaluate(
    source: Source, target: Target, settings: ScoreSettings, evaluation: EvaluationSettings, out: Out
) -> None:
    """Score labelled texts and measure: AUC, TPR at 5% FPR, accuracy, intervals, and the controls beside them."""
    run = scored(source, target, settings, evaluation, out)
    if run is not None:
        save_run(run, out)
        finished(run, out)


def scored(
    source: Source, target: Target, settings: ScoreSettings, evaluation: EvaluationSettings | None, out: Path
) -> Run | None:
    """The run, evaluated where `evaluation` is given, None after a dry run; a PretraceError as early as a mistake can
    be known."""
    from pretrace.scoring.models import named_placebos, open_models, with_texts
    from pretrace.scoring.workload import workload

    how = evaluation or EvaluationSettings()
    plan = ScorePlan.parse(settings.scores)
    check_use(plan, settings, how)
    check_writable(out)
    corpus = source.open()
    if evaluation:
        check_labels(corpus)
    plan.check_texts(corpus)  # here as well: tuning takes long
    given = open_corpus(settings.reference, source.columns) if settings.reference else None
    if given is not None:
        check_labels(given)
    divide = partial(_divided, settings=settings, evaluation=evaluation)
    parts = None if settings.windows else divide(corpus)
    wanted = ModelsSettings(
        target=target,
        companions=settings.companions,
        placebos=named_placebos([how.placebo], None, target.model),
        placebo_revision=how.placebo_revision,
        cache=settings.cache,
    )
    plan.check_servers(wanted.roles)
    models = open_models(wanted)
    parts = parts or divide(windows(corpus, models.target))
    parts = replace(parts, reference=parts.reference or given)
    if settings.dry_run:
        foretold(workload(parts.test, models, plan, labelled=parts.reference, cache=settings.cache))
        return None
    with trained() as on_step:
        models = with_texts(models, wanted, parts, how.method, seed=settings.seed, on_step=on_step)
    with watched("reading") as progress:
        record = _record(source, target, settings, evaluation, parts)
        options = Options(cache=settings.cache, seed=settings.seed, progress=progress, settings=record)
        run = detect(parts.test, models, plan, options)
    if evaluation is None:
        return run
    return measure(run, parts.test, seed=settings.seed, resamples=how.resamples, validation=how.validation)


def _divided(corpus: Corpus, settings: ScoreSettings, evaluation: EvaluationSettings | None) -> Parts:
    """The corpus divided into what is tuned, fitted and scored on."""
    if evaluation is None:
        return Parts(None, None, corpus)
    shares = {"tuning": evaluation.tune_share, "reference": evaluation.reference_share}
    parts = set_aside(corpus, **shares, seed=settings.seed)
    if parts.tuning or parts.reference:
        check_labels(parts.test)
    if parts.reference is not None:
        check_labels(parts.reference)
    return parts


def _record(
    source: Source,
    target: Target,
    settings: ScoreSettings,
    evaluation: EvaluationSettings | None,
    parts: Parts,
) -> dict[str, Any]:
    """What run.json says of the command."""
    record: dict[str, Any] = {
        "command": "evaluate" if evaluation else "score",
        "scores": settings.scores,
        "windows": settings.windows,
        "columns": source.columns.recorded,
        "opening": {name: value for name, value in asdict(target.opening).items() if value is not None},
    }
    if evaluation and (evaluation.tune_share or evaluation.reference_share):
        shares = {"tuning": evaluation.tune_share, "reference": evaluation.reference_share}
        record["set_aside"] = {
            name: {"share": share, "texts": len(getattr(parts, name) or ()) if share else 0}
            for name, share in shares.items()
        }
    return record
