"""`pretrace score` and `evaluate`, for texts in memory and for more than that, and `pretrace runs merge`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import add
from pathlib import Path
from typing import Annotated, Any

from pretrace.cli.answer import Answered, Reply, lines
from pretrace.cli.options import RawOptions
from pretrace.cli.printing import finished, foretold
from pretrace.cli.progress import doing, trained, watched
from pretrace.cli.verdicts import opened
from pretrace.corpora import Columns, TextStream, open_corpus, windows
from pretrace.corpora.opening import Source
from pretrace.corpora.reading import Unreadable
from pretrace.errors import ExpressionError, OutputError
from pretrace.jobs import worker as shards
from pretrace.jobs.engine.pool import Pool, connected
from pretrace.jobs.engine.work import Scoring, counted, shard_size, work_on
from pretrace.jobs.merging import UNREADABLE, evaluated, merged, remove, said_missing
from pretrace.jobs.settings import EngineSettings, JobSettings, divided_by
from pretrace.jobs.worker import (
    OpenedScoring,
    ShardJob,
    Survey,
    WholeJobProgress,
    Worker,
    check_labelled,
    check_parts,
    missing_shards,
    parts_folder,
    survey,
    work,
)
from pretrace.results.atomic import check_writable, explained, write_atomically
from pretrace.results.folder import file_hash, write_lines
from pretrace.results.output_checks import OWN, RESULT
from pretrace.results.run import RUN
from pretrace.results.run import RUN as RUN_FOLDER
from pretrace.results.verdicts import FLAGGING
from pretrace.scoring.detect import Leak, Options, check_labels, detect, leaks
from pretrace.scoring.detect import evaluate as measure
from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.holdout import CorpusParts, set_aside
from pretrace.scoring.outlook import EVALUATION, REPORT, Workload, workload
from pretrace.scoring.plan import Models, ScorePlan, check_use, with_texts
from pretrace.scoring.provenance import record_corpus, record_texts
from pretrace.scoring.settings import EvaluationSettings, ModelsSettings, ScoreSettings, Target
from pretrace.settings import Option
from pretrace.tuning.plan import TuningMethod, methods
from pretrace.types import Corpus, Run

# `score` and `evaluate` over more texts than a shard holds, and `pretrace runs merge`.


_Merged = Annotated[
    Path,
    Option(
        "The --out of the workers, whose parts lie beside it; the run is written there.",
        metavar="OUT",
        path="out",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharded:
    """One command over a large source, once everything that needs no model was checked: where its parts lie, and what
    a first reading of the texts found."""

    stream: TextStream
    source: Source
    how: JobSettings
    out: Path
    found: Survey
    unread: list[Unreadable]
    size: int

    @property
    def folder(self) -> Path:
        """Where the parts lie."""
        return self.how.parts or parts_folder(self.out)

    @property
    def first(self) -> Corpus:
        """The texts of the first shard, on which what concerns a corpus as a whole is checked."""
        return Corpus(self.stream.name, next(shards.shards(self.stream, self.size)).texts)

    @property
    def mine(self) -> Iterator[Corpus]:
        """The texts of each shard that is this worker's."""
        for shard in shards.shards(self.stream, self.size):
            if self.how.turn.takes(shard.index):
                yield Corpus(self.stream.name, shard.texts)

    def foreseen(
        self, models: Models, plan: ScorePlan, *, labelled: Corpus | None = None, cache: bool = True
    ) -> tuple[Workload, ...]:
        """The work of this worker's shards, whether or not they have parts already."""
        found: tuple[Workload, ...] = ()
        for corpus in self.mine:
            some = workload(corpus, models, plan, labelled=None if found else labelled, cache=cache)
            found = tuple(map(add, found, some)) if found else some
        return found


def surveyed(
    stream: TextStream,
    source: Source,
    how: JobSettings,
    out: Path,
    *,
    labelled: bool,
    size: int | None = None,
) -> Sharded:
    """The command, once its source was read from end to end; TextsError for what is wrong with that."""
    folder, unread, size = how.parts or parts_folder(out), list[Unreadable](), size or shards.SHARD
    check_parts(folder)
    check_writable(folder / UNREADABLE, OWN)
    with doing("checking all texts before the first is scored", spinner=True):
        found = survey(stream, size, unread.append)
    if labelled:
        check_labelled(found, stream.name)
    return Sharded(stream=stream, source=source, how=how, out=out, found=found, unread=unread, size=size)


def _labelled_source(source: Source, found: Path, *, skip_unreadable: bool) -> TextStream:
    """The texts with the labels that the result of a scan gives them, and no column of labels."""
    from pretrace.scan.labels import labelled_by

    plain = replace(source, columns=replace(source.columns, label=""))
    return labelled_by(found, plain.stream(skip_unreadable=skip_unreadable))


def _write_unreadable(unread: list[Unreadable], folder: Path) -> None:
    write_atomically(folder / UNREADABLE, lambda path: write_lines(path, map(asdict, unread)))


def scored_here(
    sharded: Sharded,
    models: Models,
    plan: ScorePlan,
    options: Options,
    make: Callable[[OpenedScoring], ShardJob],
) -> tuple[ShardJob, int]:
    """The job that `make` gives for the opened models, with this worker's shards scored, and how many were."""
    some = [one for one in (models, models.placebo) if one is not None]
    for one in some:
        plan.check(one)
    _refuse_leaks(sharded, [leak for one in some for leak in leaks(one)])
    with watched("reading") as progress:
        ahead = WholeJobProgress(progress, sharded.found.texts * plan.passes * len(some))
        options = replace(options, progress=ahead)
        with Worker(models, plan, options) as worker:
            job = make(OpenedScoring.of(worker, options))
            _begin(sharded, job)
            parts, turn = job.parts(sharded.folder), sharded.how.turn
            made = work(job, sharded.stream, worker, parts, turn=turn, size=sharded.size)
    return job, made


def part_done(sharded: Sharded, job: ShardJob, made: int) -> Reply:
    """What one worker of several did, and what is left to do."""
    turn, lacking = sharded.how.turn, len(missing_shards(job, job.parts(sharded.folder)))
    rest = f"{lacking:,} of all shards have no part yet" if lacking else "all shards have a part"
    first = f"Worker {turn.number} of {turn.of} scored {made:,} shards; {rest}."
    said = lines(first, f"When all workers are done: pretrace runs merge {sharded.out}")
    return Reply(say=said, outcome="part", statement=first, own={"made": made, "lacking": lacking})


def scored_on_ray(
    sharded: Sharded, task: Scoring, engine: EngineSettings, make: Callable[[OpenedScoring], ShardJob]
) -> ShardJob:
    """The job that `make` gives for what the workers opened, with all shards scored by them. No model is opened
    here."""
    with connected(engine.address) as ray, Pool(ray, task, engine) as pool:
        found: OpenedScoring = pool.told
        _refuse_leaks(sharded, found.leaks)
        job = make(found)
        _begin(sharded, job)
        parts = job.parts(sharded.folder)
        with watched("reading") as progress:
            progress.begin(sum(job.survey.shards[index][1] for index in missing_shards(job, parts)))
            work_on(pool, job, sharded.stream, parts, size=sharded.size, progress=progress)
    return job


def _refuse_leaks(sharded: Sharded, found: Sequence[Leak]) -> None:
    """LeakError where a text of the source is one that the models were tuned or fitted on."""
    if found:
        for shard in shards.shards(sharded.stream, sharded.size):
            for leak in found:
                leak.check(Corpus(sharded.stream.name, shard.texts))


def _begin(sharded: Sharded, job: ShardJob) -> None:
    folder = sharded.folder
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    job.save(folder)  # first: by it the folder is known as one of parts
    if sharded.unread:
        _write_unreadable(sharded.unread, folder)


def lasting(texts: str) -> str:
    """How texts are named in the file of a job, which may be read from another folder."""
    path = Path(texts)
    return str(path.resolve()) if path.exists() else texts


def _job(
    sharded: Sharded, opened: OpenedScoring, plan: ScorePlan, evaluation: EvaluationSettings | None
) -> ShardJob:
    stream, found = sharded.stream, sharded.found
    texts = record_texts(stream, found.texts, found.documents, found.sha256)
    source = sharded.source
    return ShardJob(
        fingerprint=opened.fingerprint,
        survey=found,
        corpus=stream.name,
        scores=tuple(plan.scores),
        outlines=opened.outlines,
        settings={**opened.settings, "texts": texts},
        source={
            "texts": lasting(source.texts),
            "columns": source.columns.recorded,
            "skip_unreadable": sharded.how.skip_unreadable,
            **({"labels": lasting(str(evaluation.labels))} if evaluation and evaluation.labels else {}),
        },
        evaluation=None
        if evaluation is None
        else {
            "resamples": evaluation.resamples,
            "validation": evaluation.validation,
            **({"unlearned": evaluation.unlearned} if evaluation.unlearned is not None else {}),
        },
    )


def _finish(job: ShardJob, folder: Path, stream: TextStream, out: Path) -> Reply:
    """Merge, evaluate where that was asked for, write the run, and take the parts away."""
    parts, seed = job.parts(folder), int(job.settings["seed"])
    found = merged(job, parts, seed=seed)
    if job.evaluation is not None:
        found = evaluated(found, stream, seed=seed, **job.evaluation)
    answer = finished(found.run, out, extra=found.write)
    remove(parts)
    return answer


def merge(
    out: _Merged,
    parts: Annotated[
        Path | None, Option("The folder of parts, where the workers were given one.", path="in")
    ] = None,
) -> Reply:
    """Put the parts of `score --shard`, `evaluate --shard` or `flag --shard` together: the table, the run or flagging,
    and its report. The exit code of a flagging is that of `flag`."""
    from pretrace.cli import flagging

    folder = parts or parts_folder(out)
    jobs = [ShardJob.load(path) for path in sorted(folder.glob("job-*.json"))]
    if not jobs:
        raise OutputError(f"{folder} holds no parts of a run: give the --out that its workers were given.")
    whole = [job for job in jobs if not missing_shards(job, job.parts(folder))]
    if not whole:
        job = min(jobs, key=lambda one: len(missing_shards(one, one.parts(folder))))
        raise OutputError(said_missing(job, job.parts(folder)))
    if len(whole) > 1:
        raise OutputError(
            f"{folder} holds the parts of {len(whole)} runs, with other texts or settings: keep the job-….json of one."
        )
    job = whole[0]
    check_writable(out, FLAGGING if flagging.is_flagging(job) else RUN)
    if flagging.is_flagging(job):
        return flagging.finish(job, folder, out)
    columns = Columns(**job.source["columns"])
    source, skip = Source(texts=job.source["texts"], columns=columns), bool(job.source["skip_unreadable"])
    labels = job.source.get("labels")
    stream = (
        _labelled_source(source, Path(labels), skip_unreadable=skip)
        if labels
        else source.stream(skip_unreadable=skip)
    )
    return _finish(job, folder, stream, out)


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
    given: RawOptions,
) -> Answered:
    """Score texts: one row a text, one column a score, higher = more member-like."""
    return _ScoreCommand(source, target, settings, None, job, engine, out, given).run()


def evaluate(
    source: Source,
    target: Target,
    settings: ScoreSettings,
    evaluation: EvaluationSettings,
    job: JobSettings,
    engine: EngineSettings,
    out: Out,
    given: RawOptions,
) -> Answered:
    """Score labelled texts and measure: AUC, TPR at 5% FPR, accuracy, intervals, and the controls beside them."""
    return _ScoreCommand(source, target, settings, evaluation, job, engine, out, given).run()


@dataclass(frozen=True, slots=True)
class _ScoreCommand:
    """`score`, or `evaluate` where there are settings of one."""

    source: Source
    target: Target
    settings: ScoreSettings
    evaluation: EvaluationSettings | None
    job: JobSettings
    engine: EngineSettings
    out: Path
    given: RawOptions

    def run(self) -> Answered:
        """Do it; a PretraceError as early as a mistake can be known."""
        plan = ScorePlan.parse(self.settings.scores)
        method = methods.make(self.how.method)
        check_use(plan, self.settings, self.how)
        plan.check_servers(self._wanted.roles)
        check_writable(self.out, RUN_FOLDER)
        stream = self._stream()
        unread: list[Unreadable] = []
        whole = self.settings.windows or self.how.tune_share or self.how.reference_share
        divided = divided_by(self.job, self.engine)
        if whole and divided:
            raise ExpressionError(
                f"{divided} does not go with --windows, --tune-share and --reference-share, which need all texts at "
                "once: cut the texts or set them aside beforehand, and give --tuned or --reference."
            )
        corpus = None if divided else stream.whole(sys.maxsize - 1 if whole else shards.SHARD, unread.append)
        if corpus is None:
            return self._in_shards(stream, plan, method)
        run = self._at_once(corpus, plan, method)
        if isinstance(run, Reply):
            return run
        beside = (lambda folder: _write_unreadable(unread, folder)) if unread else None
        return finished(run, self.out, extra=beside)

    def _stream(self) -> TextStream:
        job, found = self.job, self.how.labels
        if found is None:
            return self.source.stream(skip_unreadable=job.skip_unreadable)
        if self.source.columns.label:
            raise ExpressionError("--labels and --label-column both give the labels: give one of the two.")
        return _labelled_source(self.source, found, skip_unreadable=job.skip_unreadable)

    @property
    def how(self) -> EvaluationSettings:
        """How an evaluation is made, or would be."""
        return self.evaluation or EvaluationSettings()

    def _at_once(self, corpus: Corpus, plan: ScorePlan, method: TuningMethod) -> Run | Reply:
        if self.evaluation:
            check_labels(corpus)
        plan.check_texts(corpus)  # here as well: tuning takes long
        given = self._reference()
        divide = partial(_divided, settings=self.settings, evaluation=self.evaluation)
        parts = None if self.settings.windows else divide(corpus)
        models = opened(self._wanted)
        parts = parts or divide(windows(corpus, models.target))
        parts = replace(parts, reference=parts.reference or given)
        if self.settings.dry_run:
            cache = self.settings.cache
            return foretold(workload(parts.test, models, plan, labelled=parts.reference, cache=cache))
        models = self._with_texts(models, parts, method)
        after = REPORT + (EVALUATION if self.evaluation else 0.0)
        with watched("reading", after) as progress:
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

    def _in_shards(self, stream: TextStream, plan: ScorePlan, method: TuningMethod) -> Answered:
        """The run over more texts than that, or the shards of one worker."""
        job, engine = self.job, self.engine
        size = shard_size(counted(stream)) if engine.on_ray else None
        labelled = self.evaluation is not None
        sharded = surveyed(stream, self.source, job, self.out, labelled=labelled, size=size)
        plan.check_texts(sharded.first)
        parts = CorpusParts(None, self._reference(), sharded.first)
        options = self._options(Silent(), parts)
        make = partial(_job, sharded, plan=plan, evaluation=self.evaluation)
        if engine.on_ray and not self.settings.dry_run:
            fitted = replace(parts, test=Corpus(stream.name, ()))
            task = Scoring(self._wanted, self.settings.scores, fitted, method, options)
            return _finish(scored_on_ray(sharded, task, engine, make), sharded.folder, stream, self.out)
        models = opened(self._wanted)
        if self.settings.dry_run:
            work = sharded.foreseen(models, plan, labelled=parts.reference, cache=self.settings.cache)
            return foretold(work)
        models = self._with_texts(models, parts, method)
        done, made = scored_here(sharded, models, plan, options, make)
        if job.turn.of > 1:
            return part_done(sharded, done, made)
        return _finish(done, sharded.folder, stream, self.out)

    @property
    def _wanted(self) -> ModelsSettings:
        asked, how = self.settings, self.how
        return ModelsSettings.beside(
            self.target, [how.placebo], how.placebo_revision, asked.companions, cache=asked.cache
        )

    def _reference(self) -> Corpus | None:
        if not self.settings.reference:
            return None
        given = open_corpus(self.settings.reference, self.source.columns.of_another)
        check_labels(given)
        return given

    def _with_texts(self, models: Models, parts: CorpusParts, method: TuningMethod) -> Models:
        with trained() as on_step:
            return with_texts(models, self._wanted, parts, method, seed=self.settings.seed, on_step=on_step)

    def _options(self, progress: Progress, parts: CorpusParts, corpus: Corpus | None = None) -> Options:
        record = _record(self.source, self.target, self.settings, self.evaluation, parts)
        record["given"] = {name: value for name, value in self.given.items() if name not in _NOT_RECORDED}
        if corpus is not None and (self.settings.windows or "set_aside" in record):  # a part of it is scored
            record["whole_texts"] = record_corpus(corpus)
        return Options(cache=self.settings.cache, seed=self.settings.seed, progress=progress, settings=record)


def _divided(corpus: Corpus, settings: ScoreSettings, evaluation: EvaluationSettings | None) -> CorpusParts:
    if evaluation is None:
        return CorpusParts(None, None, corpus)
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
    parts: CorpusParts,
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
