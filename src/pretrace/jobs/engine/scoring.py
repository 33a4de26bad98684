"""Shards scored by workers on a cluster: each opens the models once and turns texts into the rows of a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pretrace.corpora import TextStream
from pretrace.jobs import worker as shards
from pretrace.jobs.engine.pool import Piece, Pool
from pretrace.jobs.job import Job, Opened, shards_to_do
from pretrace.jobs.worker import Parts, Worker, keep_few_shapes
from pretrace.scoring.detect import Leak, Options, leaks
from pretrace.scoring.evidence import CHUNK, Progress
from pretrace.scoring.holdout import Parts as Texts
from pretrace.scoring.plan import ScorePlan
from pretrace.scoring.settings import ModelsSettings

SMALL = 32
"""Shards of a source that is smaller than a shard usually is."""
_LEAST = 16  # texts of a shard: fewer fill no batch
MANY = 512
"""Shards that a larger source has at least, as far as that keeps the batches: so many that the last ones to be done
hold nobody up."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What a worker says when its models are open."""

    opened: Opened
    leaks: tuple[Leak, ...]

    def __eq__(self, other: object) -> bool:
        """Whether two workers give the same numbers; the same facts, such as the device, are not needed for it."""
        return isinstance(other, Ready) and self.opened.fingerprint == other.opened.fingerprint

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Scoring:
    """The work of one scoring worker: which models, which scores, the texts that scores are fitted on, and how; with
    `apart` a placebo that has the weights of the target is refused."""

    wanted: ModelsSettings
    expressions: str
    texts: Texts
    method: str
    options: Options

    def open(self) -> tuple[Ready, Callable[[Any], Any]]:
        """The worker's own account of itself, and what scores a shard."""
        from pretrace.scoring.models import open_models, with_texts

        keep_few_shapes()
        plan, options = ScorePlan.parse(self.expressions), self.options
        models = with_texts(open_models(self.wanted), self.wanted, self.texts, self.method, seed=options.seed)
        plan.check(models)
        found = leaks(models)
        if models.placebo is not None:
            plan.check(models.placebo)
            found += leaks(models.placebo)
        worker = Worker(models, plan, options)  # open as long as the process
        return Ready(Opened.of(worker, options), found), worker.part


def shard_size(texts: int) -> int:
    """Texts of a shard where workers on a cluster share them; it depends on the source alone, so that the same command
    finds its shards again whatever the number of workers.

    A source of at least a usual shard is cut at multiples of the texts whose batches are planned together, which
    keeps the numbers of a run in one piece; a smaller one into `SMALL` shards, whose batches are others.
    """
    if texts >= shards.SHARD:
        return min(max(texts // MANY // CHUNK, 1) * CHUNK, shards.SHARD)
    return max(-(-texts // SMALL), _LEAST)


def counted(stream: TextStream) -> int:
    """The texts of a source, counted as far as `shard_size` depends on them."""
    most = MANY * shards.SHARD
    return sum(1 for _, _ in zip(range(most), stream.texts(), strict=False))


def work_on(pool: Pool, job: Job, stream: TextStream, parts: Parts, *, size: int, progress: Progress) -> int:
    """Score the shards that have no part yet; the number of them. Parts are written here, by one process.

    `progress` is told of the texts of every shard, each with as many passes as the job has. TextsError where the
    source is not what it was when it was surveyed.
    """
    made = 0
    for piece, answer in pool.each(_pieces(job, stream, parts, size)):
        table, facts = answer.value
        parts.write(piece.tag, table, facts)
        tokens = int(table.column("n_tokens").to_numpy().sum())
        progress.advance(facts["texts"], tokens, answer.seconds / pool.room.workers, True)
        made += 1
    return made


def _pieces(job: Job, stream: TextStream, parts: Parts, size: int) -> Iterator[Piece]:
    total = len(job.survey.shards)
    for shard in shards_to_do(job, stream, parts, size=size):
        yield Piece(shard.key, f"shard {shard.index + 1} of {total} of {stream.source}", shard)
