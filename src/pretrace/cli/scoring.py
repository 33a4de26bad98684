"""`pretrace score` and `pretrace evaluate`: check all that can be checked, open, fit, ask, write."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pretrace.cli.answer import Answer, Answered
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.cli.printing import finished, foretold
from pretrace.cli.progress import doing, trained, watched
from pretrace.cli.sharded import labelled_source, score_on_ray, score_shards, surveyed, write_unreadable
from pretrace.corpora import TextStream, open_corpus, windows
from pretrace.corpora.reading import Unreadable
from pretrace.errors import ExpressionError
from pretrace.jobs import shards
from pretrace.jobs.engine.scoring import Scoring, counted, shard_size
from pretrace.jobs.settings import Division, EngineSettings, JobSettings
from pretrace.jobs.worker import old_objects_left_alone
from pretrace.results.atomic import check_writable
from pretrace.results.folder import file_hash
from pretrace.results.output_checks import RESULT
from pretrace.results.run import RUN as RUN_FOLDER
from pretrace.runs import save_run
from pretrace.scoring.detect import Options, check_labels, detect
from pretrace.scoring.detect import evaluate as measure
from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.holdout import Parts, set_aside
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.scoring.provenance import record_corpus
from pretrace.scoring.settings import (
    EvaluationSettings,
    ModelsSettings,
    ScoreSettings,
    Target,
    check_use,
)
from pretrace.scoring.workload import workload
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

_NOT_RECORDED = {"out", "shard", "parts", "dry_run", "engine", "address", "workers", "gpus_per_worker"}
"""Options that differ between commands that make the same run."""


def score(
    source: Source,
    target: Target,
    settings: ScoreSettings,
    job: JobSettings,
    engine: EngineSettings,
    out: Out,
    given: Given,
) -> Answered:
    """Score texts: one row a text, one column a score, higher = more member-like."""
    return _Command(source, target, settings, None, Division(job, engine), out, given).run()


def evaluate(
    source: Source,
    target: Target,
    settings: ScoreSettings,
    evaluation: EvaluationSettings,
    job: JobSettings,
    engine: EngineSettings,
    out: Out,
    given: Given,
) -> Answered:
    """Score labelled texts and measure: AUC, TPR at 5% FPR, accuracy, intervals, and the controls beside them."""
    return _Command(source, target, settings, evaluation, Division(job, engine), out, given).run()


@dataclass(frozen=True, slots=True)
class _Command:
    """`score`, or `evaluate` where there are settings of one."""

    source: Source
    target: Target
    settings: ScoreSettings
    evaluation: EvaluationSettings | None
    division: Division
    out: Path
    given: Given

    def run(self) -> Answered:
        """Do it; a PretraceError as early as a mistake can be known."""
        plan = ScorePlan.parse(self.settings.scores)
        check_use(plan, self.settings, self.how)
        plan.check_servers(self._wanted.roles)
        check_writable(self.out, RUN_FOLDER)
        stream = self._stream()
        unread: list[Unreadable] = []
        whole = self.settings.windows or self.how.tune_share or self.how.reference_share
        divided = self.division.named
        if whole and divided:
            raise ExpressionError(
                f"{divided} does not go with --windows, --tune-share and --reference-share, which need all texts at "
                "once: cut the texts or set them aside beforehand, and give --tuned or --reference."
            )
        corpus = None if divided else stream.whole(sys.maxsize - 1 if whole else shards.SHARD, unread.append)
        if corpus is None:
            return self._in_shards(stream, plan)
        run = self._at_once(corpus, plan)
        if isinstance(run, Answer):
            return run
        save_run(run, self.out, beside=(lambda folder: write_unreadable(unread, folder)) if unread else None)
        return finished(run, self.out)

    def _stream(self) -> TextStream:
        """The texts, with the labels of a scan where one is named."""
        job, found = self.division.job, self.how.labels
        if found is None:
            return self.source.stream(skip_unreadable=job.skip_unreadable)
        if self.source.columns.label:
            raise ExpressionError("--labels and --label-column both give the labels: give one of the two.")
        return labelled_source(self.source, found, skip_unreadable=job.skip_unreadable)

    @property
    def how(self) -> EvaluationSettings:
        """How an evaluation is made, or would be."""
        return self.evaluation or EvaluationSettings()

    def _at_once(self, corpus: Corpus, plan: ScorePlan) -> Run | Answer:
        """The run over texts that are in memory; after a dry run what it would take."""
        if self.evaluation:
            check_labels(corpus)
        plan.check_texts(corpus)  # here as well: tuning takes long
        given = self._reference()
        divide = partial(_divided, settings=self.settings, evaluation=self.evaluation)
        parts = None if self.settings.windows else divide(corpus)
        opened = self._open()
        parts = parts or divide(windows(corpus, opened.target))
        parts = replace(parts, reference=parts.reference or given)
        if self.settings.dry_run:
            cache = self.settings.cache
            return foretold(workload(parts.test, opened, plan, labelled=parts.reference, cache=cache))
        models = self._with_texts(opened, parts)
        with old_objects_left_alone(), watched("reading") as progress:
            run = detect(parts.test, models, plan, self._options(progress, parts, corpus))
        if self.evaluation is None:
            return run
        how = self.how
        return measure(
            run,
            parts.test,
            seed=self.settings.seed,
            resamples=how.resamples,
            validation=how.validation,
            unlearned=how.unlearned,
        )

    def _in_shards(self, stream: TextStream, plan: ScorePlan) -> Answered:
        """The run over more texts than that, or the shards of one worker."""
        job, engine = self.division.job, self.division.engine
        size = shard_size(counted(stream)) if engine.on_ray else None
        labelled = self.evaluation is not None
        sharded = surveyed(stream, self.source, job, self.out, labelled=labelled, size=size)
        plan.check_texts(sharded.first)
        parts = Parts(None, self._reference(), sharded.first)
        options = self._options(Silent(), parts)
        if engine.on_ray and not self.settings.dry_run:
            fitted = replace(parts, test=Corpus(stream.name, ()))
            task = Scoring(self._wanted, self.settings.scores, fitted, self.how.method, options)
            return score_on_ray(sharded, task, plan, engine, self.evaluation)
        opened = self._open()
        if self.settings.dry_run:
            work = sharded.foreseen(opened, plan, labelled=parts.reference, cache=self.settings.cache)
            return foretold(work)
        models = self._with_texts(opened, parts)
        return score_shards(sharded, models, plan, options, self.evaluation)

    def _open(self) -> Models:
        from pretrace.scoring.models import open_models

        with doing("opening the models"):
            return open_models(self._wanted)

    @property
    def _wanted(self) -> ModelsSettings:
        asked, how = self.settings, self.how
        return ModelsSettings.beside(
            self.target, [how.placebo], how.placebo_revision, asked.companions, cache=asked.cache
        )

    def _reference(self) -> Corpus | None:
        """The labelled texts that are named."""
        if not self.settings.reference:
            return None
        given = open_corpus(self.settings.reference, self.source.columns)
        check_labels(given)
        return given

    def _with_texts(self, models: Models, parts: Parts) -> Models:
        from pretrace.scoring.models import with_texts

        with trained() as on_step:
            return with_texts(
                models, self._wanted, parts, self.how.method, seed=self.settings.seed, on_step=on_step
            )

    def _options(self, progress: Progress, parts: Parts, corpus: Corpus | None = None) -> Options:
        record = _record(self.source, self.target, self.settings, self.evaluation, parts)
        record["given"] = {name: value for name, value in self.given.items() if name not in _NOT_RECORDED}
        if corpus is not None and (self.settings.windows or "set_aside" in record):  # a part of it is scored
            record["whole_texts"] = record_corpus(corpus)
        return Options(cache=self.settings.cache, seed=self.settings.seed, progress=progress, settings=record)


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
    if evaluation and evaluation.labels:
        record["labels"] = {"scan": str(evaluation.labels), "sha256": file_hash(evaluation.labels / RESULT)}
    if evaluation and (evaluation.tune_share or evaluation.reference_share):
        shares = {"tuning": evaluation.tune_share, "reference": evaluation.reference_share}
        record["set_aside"] = {
            name: {"share": share, "texts": len(getattr(parts, name) or ()) if share else 0}
            for name, share in shares.items()
        }
    return record
