"""`flag` over more texts than a shard holds, and its part of `pretrace merge`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from operator import add
from pathlib import Path
from typing import Any

from pretrace.auditing.placebo import check_placebos
from pretrace.cli.answer import Answer
from pretrace.cli.flagging import FlagCommand, printed
from pretrace.cli.printing import foretold
from pretrace.cli.progress import watched
from pretrace.cli.sharded import Sharded, part_done, surveyed, write_unreadable
from pretrace.corpora import Columns, TextStream, open_stream
from pretrace.flagging.planning import FlagSettings
from pretrace.jobs import shards
from pretrace.jobs.both import Both, Gathered
from pretrace.jobs.flagging import Planned, flagged_of, unscored
from pretrace.jobs.job import Ahead, Job, fingerprint, work
from pretrace.jobs.merge import UNREADABLE, remove
from pretrace.jobs.settings import JobSettings
from pretrace.jobs.worker import Worker
from pretrace.results.atomic import explained
from pretrace.results.folder import Write
from pretrace.results.run import SKIPPED_COLUMNS
from pretrace.results.tables import write_csv
from pretrace.runs import save_flags
from pretrace.scoring.detect import Options, check_leaks, recorded
from pretrace.scoring.plan import Models
from pretrace.scoring.workload import Workload, workload
from pretrace.types import Corpus

KEY = "flagging"
"""Under which the settings of a flagging stand in those of its job."""


def flag_shards(command: FlagCommand, asked: TextStream, known: TextStream, how: JobSettings) -> Answer:
    """The flagging of more texts than that, or the shards of one worker."""
    settings, found = command.settings, Gathered()
    both = Both(asked, known)
    sharded = surveyed(Both(asked, known, found), command.source, how, command.out, labelled=False)
    sharded = replace(sharded, stream=both)
    planned = Planned.of(both, found, settings)
    settings.plan.check_texts(sharded.first)
    models = command.opened(planned.prospect.notes)
    if command.dry_run:
        return foretold(_foreseen(sharded, models, settings))
    models = command.with_texts(models)
    if models.placebo is not None:
        check_placebos(models.target, (models.placebo.target,))
    _check(sharded, models, settings)
    job, made = _scored(command, sharded, models)
    turn = how.turn
    if turn.of > 1:
        return part_done(turn, made, job, job.parts(sharded.folder), command.out)
    return _finish(job, sharded.folder, planned, command.out)


def finish(job: Job, folder: Path, out: Path) -> Answer:
    """Conclude from parts that are all there, as `pretrace merge` does."""
    own = _own(job)
    columns, skip = Columns(**job.source["columns"]), bool(job.source["skip_unreadable"])
    asked, known = (
        open_stream(job.source[name], columns, skip_unreadable=skip) for name in ("texts", "nonmembers")
    )
    both = Both(asked, known)
    planned = Planned.of(both, both.gathered(), FlagSettings(**own["settings"]))
    return _finish(job, folder, planned, out)


def is_flagging(job: Job) -> bool:
    """Whether a job is one of `flag`."""
    return job.evaluation is not None and KEY in job.evaluation


def _own(job: Job) -> Mapping[str, Any]:
    assert job.evaluation is not None
    return job.evaluation[KEY]  # type: ignore[no-any-return]


def _check(sharded: Sharded, models: Models, settings: FlagSettings) -> None:
    """What `detect` checks before it asks a model."""
    for some in (models, models.placebo):
        if some is not None:
            settings.plan.check(some)
            if some.tuned is not None:
                for shard in shards.shards(sharded.stream, sharded.size):
                    check_leaks(Corpus(sharded.stream.name, shard.texts), some)


def _scored(command: FlagCommand, sharded: Sharded, models: Models) -> tuple[Job, int]:
    """The job with this worker's shards scored, and their number."""
    settings, turn = command.settings, sharded.how.turn
    passes = sharded.found.texts * settings.plan.passes * (2 if models.placebo else 1)
    with watched("reading") as progress:
        options = Options(cache=settings.cache, seed=settings.seed, progress=Ahead(progress, passes))
        with Worker(models, settings.plan, options) as worker:
            job = _job(command, sharded, worker, options)
            with explained(sharded.folder):
                sharded.folder.mkdir(parents=True, exist_ok=True)
            if sharded.unread:
                write_unreadable(sharded.unread, sharded.folder)
            job.save(sharded.folder)
            parts = job.parts(sharded.folder)
            return job, work(job, sharded.stream, worker, parts, turn=turn, size=sharded.size)


def _job(command: FlagCommand, sharded: Sharded, worker: Worker, options: Options) -> Job:
    settings, models = command.settings, worker.models
    asked = {name: value for name, value in asdict(settings).items() if name != "plan"}
    given = {"texts": command.source.texts, "nonmembers": command.nonmembers}
    return Job(
        fingerprint=fingerprint(models, worker.plan, options, ""),
        survey=sharded.found,
        corpus=sharded.stream.name,
        scores=tuple(worker.plan.scores),
        outlines=tuple(worker.outlines),
        settings=recorded(models, options, {}, {}, worker.scores.facts),
        source={
            **{
                name: str(Path(text).resolve()) if Path(text).exists() else text
                for name, text in given.items()
            },
            "columns": command.source.columns.recorded,
            "skip_unreadable": sharded.how.skip_unreadable,
            # Not what tells one worker from another: whichever is the last writes the file of the job.
            "command": {
                name: value for name, value in command.given.items() if name not in ("shard", "parts")
            },
        },
        evaluation={KEY: {"settings": asked, "model": models.target.name}},
    )


def _foreseen(sharded: Sharded, models: Models, settings: FlagSettings) -> tuple[Workload, ...]:
    """The work of this worker's shards, whether or not they have parts already."""
    found: tuple[Workload, ...] = ()
    for corpus in sharded.mine:
        some = workload(corpus, models, settings.plan, cache=settings.cache)
        found = tuple(map(add, found, some)) if found else some
    return found


def _finish(job: Job, folder: Path, planned: Planned, out: Path) -> Answer:
    """Conclude, write the folder, take the parts away, and say what was found."""
    parts, own = job.parts(folder), _own(job)
    flagged, tables = flagged_of(job, parts, planned, own["model"], command=job.source["command"])
    rows = ((one.id, one.reason, one.tokens) for one in unscored(job, parts))
    beside: dict[str, Write] = {
        **tables.writers(),
        "skipped.csv": lambda path: write_csv(path, SKIPPED_COLUMNS, rows),
    }
    unreadable = folder / UNREADABLE
    if job.survey.unreadable and unreadable.exists():
        beside[UNREADABLE] = lambda path: path.write_bytes(unreadable.read_bytes())
    save_flags(flagged, out, beside=beside)
    remove(parts)
    return printed(flagged, out)
