"""`score` and `evaluate` over more texts than a shard holds, and `pretrace runs merge`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import add
from pathlib import Path
from typing import Annotated

from pretrace.cli.answer import Answer, lines
from pretrace.cli.paths import Source
from pretrace.cli.printing import finished
from pretrace.cli.progress import doing, watched
from pretrace.corpora import Columns, TextStream
from pretrace.corpora.reading import Unreadable
from pretrace.errors import OutputError
from pretrace.jobs import shards
from pretrace.jobs.engine.cluster import connected
from pretrace.jobs.engine.pool import Pool
from pretrace.jobs.engine.scoring import Ready, Scoring, work_on
from pretrace.jobs.evaluating import evaluated
from pretrace.jobs.job import Ahead, Job, Opened, missing_shards, parts_folder, work
from pretrace.jobs.manifest import check_parts
from pretrace.jobs.merge import UNREADABLE, merged, remove, said_missing
from pretrace.jobs.settings import EngineSettings, JobSettings
from pretrace.jobs.shards import Survey, check_labelled, survey
from pretrace.jobs.worker import Worker, give_free_memory_back, keep_few_shapes, old_objects_left_alone
from pretrace.results.atomic import check_writable, explained, write_atomically
from pretrace.results.output_checks import OWN
from pretrace.results.run import RUN
from pretrace.results.tables import write_lines
from pretrace.results.verdicts import FLAGGING
from pretrace.runs import save_run
from pretrace.scoring.detect import Leak, Options, leaks
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.scoring.settings import EvaluationSettings
from pretrace.scoring.workload import Workload, workload
from pretrace.settings import Option
from pretrace.types import Corpus

Out = Annotated[
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
    keep_few_shapes()
    folder, unread, size = how.parts or parts_folder(out), list[Unreadable](), size or shards.SHARD
    check_parts(folder)
    check_writable(folder / UNREADABLE, OWN)
    with doing("checking all texts before the first is scored", spinner=True):
        found = survey(stream, size, unread.append)
    if labelled:
        check_labelled(found, stream.name)
    return Sharded(stream=stream, source=source, how=how, out=out, found=found, unread=unread, size=size)


def labelled_source(source: Source, found: Path, *, skip_unreadable: bool) -> TextStream:
    """The texts with the labels that the result of a scan gives them, and no column of labels."""
    from pretrace.scan.labels import labelled_by

    plain = replace(source, columns=replace(source.columns, label=""))
    return labelled_by(found, plain.stream(skip_unreadable=skip_unreadable))


def write_unreadable(unread: list[Unreadable], folder: Path) -> None:
    """Write unreadable.jsonl into a folder: place and reason of each record."""
    write_atomically(folder / UNREADABLE, lambda path: write_lines(path, map(asdict, unread)))


def score_shards(
    sharded: Sharded,
    models: Models,
    plan: ScorePlan,
    options: Options,
    evaluation: EvaluationSettings | None,
) -> Answer:
    """Score the shards that are this worker's and merge them where it is the only one; what that gave."""
    job, made = scored_here(
        sharded, models, plan, options, lambda opened: _job(sharded, opened, plan, evaluation)
    )
    if sharded.how.turn.of > 1:
        return part_done(sharded, job, made)
    return _finish(job, sharded.folder, sharded.stream, sharded.out)


def scored_here(
    sharded: Sharded,
    models: Models,
    plan: ScorePlan,
    options: Options,
    make: Callable[[Opened], Job],
) -> tuple[Job, int]:
    """The job that `make` gives for the opened models, with this worker's shards scored, and how many were."""
    some = [one for one in (models, models.placebo) if one is not None]
    for one in some:
        plan.check(one)
    _refuse_leaks(sharded, [leak for one in some for leak in leaks(one)])
    with watched("reading") as progress:
        ahead = Ahead(progress, sharded.found.texts * plan.passes * len(some))
        options = replace(options, progress=ahead)
        with Worker(models, plan, options) as worker:
            job = make(Opened.of(worker, options))
            _begin(sharded, job)
            parts, turn = job.parts(sharded.folder), sharded.how.turn
            with old_objects_left_alone():
                made = work(job, sharded.stream, worker, parts, turn=turn, size=sharded.size)
    give_free_memory_back()
    return job, made


def part_done(sharded: Sharded, job: Job, made: int) -> Answer:
    """What one worker of several did, and what is left to do."""
    turn, lacking = sharded.how.turn, len(missing_shards(job, job.parts(sharded.folder)))
    rest = f"{lacking:,} of all shards have no part yet" if lacking else "all shards have a part"
    first = f"Worker {turn.number} of {turn.of} scored {made:,} shards; {rest}."
    said = lines(first, f"When all workers are done: pretrace runs merge {sharded.out}")
    return Answer(say=said, outcome="part", statement=first, own={"made": made, "lacking": lacking})


def score_on_ray(
    sharded: Sharded,
    task: Scoring,
    plan: ScorePlan,
    engine: EngineSettings,
    evaluation: EvaluationSettings | None,
) -> Answer:
    """Let workers on a Ray cluster score the shards, and merge them."""
    job = scored_on_ray(sharded, task, engine, lambda opened: _job(sharded, opened, plan, evaluation))
    return _finish(job, sharded.folder, sharded.stream, sharded.out)


def scored_on_ray(
    sharded: Sharded, task: Scoring, engine: EngineSettings, make: Callable[[Opened], Job]
) -> Job:
    """The job that `make` gives for what the workers opened, with all shards scored by them. No model is opened
    here."""
    with connected(engine.address) as ray, Pool(ray, task, engine) as pool:
        ready: Ready = pool.told
        _refuse_leaks(sharded, ready.leaks)
        job = make(ready.opened)
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


def _begin(sharded: Sharded, job: Job) -> None:
    """Make the folder of parts, with what the survey found."""
    folder = sharded.folder
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    job.save(folder)  # first: by it the folder is known as one of parts
    if sharded.unread:
        write_unreadable(sharded.unread, folder)


def lasting(texts: str) -> str:
    """How texts are named in the file of a job, which may be read from another folder."""
    path = Path(texts)
    return str(path.resolve()) if path.exists() else texts


def _job(sharded: Sharded, opened: Opened, plan: ScorePlan, evaluation: EvaluationSettings | None) -> Job:
    stream, found = sharded.stream, sharded.found
    texts = {
        "name": stream.name,
        "source": stream.source,
        "texts": found.texts,
        "documents": found.documents,
        "sha256": found.sha256,
        "notes": list(found.notes),
    }
    source = sharded.source
    return Job(
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


def _finish(job: Job, folder: Path, stream: TextStream, out: Path) -> Answer:
    """Merge, evaluate where that was asked for, write the run, and take the parts away."""
    parts, seed = job.parts(folder), int(job.settings["seed"])
    found = merged(job, parts, seed=seed)
    if job.evaluation is not None:
        found = evaluated(found, stream, seed=seed, **job.evaluation)
    save_run(found.run, out, beside=found.write)
    remove(parts)
    return finished(found.run, out)


def merge(
    out: Out,
    parts: Annotated[
        Path | None, Option("The folder of parts, where the workers were given one.", path="in")
    ] = None,
) -> Answer:
    """Put the parts of `score --shard`, `evaluate --shard` or `flag --shard` together: the table, the run or flagging,
    and its report. The exit code of a flagging is that of `flag`."""
    from pretrace.cli import flag_shards

    folder = parts or parts_folder(out)
    jobs = [Job.load(path) for path in sorted(folder.glob("job-*.json"))]
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
    check_writable(out, FLAGGING if flag_shards.is_flagging(job) else RUN)
    if flag_shards.is_flagging(job):
        return flag_shards.finish(job, folder, out)
    columns = Columns(**job.source["columns"])
    source, skip = Source(texts=job.source["texts"], columns=columns), bool(job.source["skip_unreadable"])
    labels = job.source.get("labels")
    stream = (
        labelled_source(source, Path(labels), skip_unreadable=skip)
        if labels
        else source.stream(skip_unreadable=skip)
    )
    return _finish(job, folder, stream, out)
