"""`flag` over more texts than a shard holds, and its part of `pretrace runs merge`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from pretrace.cli.answer import Answer
from pretrace.cli.flagging import FlagCommand, printed
from pretrace.cli.found import with_found
from pretrace.cli.progress import Stages
from pretrace.cli.sharded import Sharded, lasting, part_done, scored_here, scored_on_ray, surveyed
from pretrace.corpora import Columns, TextStream, open_stream
from pretrace.jobs.both import Both, Gathered
from pretrace.jobs.engine.scoring import Scoring, counted, shard_size
from pretrace.jobs.flagging import Planned, flagged_of, unscored
from pretrace.jobs.job import Job, Opened
from pretrace.jobs.merge import UNREADABLE, remove
from pretrace.jobs.settings import Division
from pretrace.results.folder import Write
from pretrace.results.run import SKIPPED_COLUMNS
from pretrace.results.tables import write_csv
from pretrace.runs import save_verdict
from pretrace.scoring.detect import Options
from pretrace.scoring.holdout import Parts
from pretrace.types import Corpus
from pretrace.verdicts.flag.flag import Asking, check_power
from pretrace.verdicts.flag.planning import FlagSettings

KEY = "flagging"
"""Under which the settings of a flagging stand in those of its job."""


def flag_shards(command: FlagCommand, asked: TextStream, known: TextStream, division: Division) -> Answer:
    """The flagging of more texts than that, or by workers on a cluster, or the shards of one worker."""
    settings, how, engine, found = command.settings, division.job, division.engine, Gathered()
    both = Both(asked, known)
    size = shard_size(counted(both)) if engine.on_ray else None
    watched = Both(asked, known, found)
    sharded = surveyed(watched, command.source, how, command.out, labelled=False, size=size)
    sharded = replace(sharded, stream=both)
    planned = Planned.of(both, found, settings)
    settings.plan.check_texts(sharded.first)
    command.announce(planned.prospect.notes)
    options = Options(cache=settings.cache)
    make = partial(_job, command, sharded)
    if engine.on_ray and not command.dry_run:
        none = Parts(None, None, Corpus(both.name, ()))
        task = Scoring(command.wanted, settings.score, none, "lora", options)
        job = scored_on_ray(sharded, task, engine, make)
        return _finish(job, sharded.folder, planned, command.out)
    models = command.opened()
    if command.dry_run:
        work = sharded.foreseen(models, settings.plan, cache=settings.cache)
        return command.foretold(work, planned.prospect, models)
    models = command.with_texts(models)
    if settings.power:
        check_power(models)
    job, made = scored_here(sharded, models, settings.plan, options, make)
    if how.turn.of > 1:
        return part_done(sharded, job, made)
    asking = Asking(models, Stages()) if settings.power else None
    return _finish(job, sharded.folder, planned, command.out, asking)


def finish(job: Job, folder: Path, out: Path) -> Answer:
    """Conclude from parts that are all there, as `pretrace runs merge` does."""
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


def _job(command: FlagCommand, sharded: Sharded, opened: Opened) -> Job:
    settings = command.settings
    asked = {name: value for name, value in asdict(settings).items() if name != "plan"}
    return Job(
        fingerprint=opened.fingerprint,
        survey=sharded.found,
        corpus=sharded.stream.name,
        scores=tuple(settings.plan.scores),
        outlines=opened.outlines,
        settings=opened.settings,
        source={
            "texts": lasting(command.source.texts),
            "nonmembers": lasting(command.nonmembers),
            "columns": command.source.columns.recorded,
            "skip_unreadable": sharded.how.skip_unreadable,
            # Not what tells one worker from another: whichever is the last writes the file of the job.
            "command": {
                name: value for name, value in command.given.items() if name not in ("shard", "parts")
            },
            **({"found": command.found} if command.found else {}),
        },
        evaluation={KEY: {"settings": asked, "model": opened.target}},
    )


def _finish(job: Job, folder: Path, planned: Planned, out: Path, asking: Asking | None = None) -> Answer:
    """Conclude, write the folder, take the parts away, and say what was found."""
    parts, own = job.parts(folder), _own(job)
    flagged, tables = flagged_of(
        job, parts, planned, own["model"], command=job.source["command"], asking=asking
    )
    flagged = with_found(flagged, job.source.get("found"))
    rows = ((one.id, one.reason, one.tokens) for one in unscored(job, parts))
    beside: dict[str, Write] = {
        **tables.writers(),
        "skipped.csv": lambda path: write_csv(path, SKIPPED_COLUMNS, rows),
    }
    unreadable = folder / UNREADABLE
    if job.survey.unreadable and unreadable.exists():
        beside[UNREADABLE] = lambda path: path.write_bytes(unreadable.read_bytes())
    save_verdict(flagged, out, beside=beside)
    remove(parts)
    return printed(flagged, out)
