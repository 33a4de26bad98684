"""What workers on a Ray cluster do with models: they score shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from pretrace.jobs import ShardJob
from pretrace.plugins.ray.cluster import Pool
from pretrace.plugins.ray.cluster import opened_pool as opened_pool
from pretrace.scoring import parts as shards
from pretrace.scoring.detect import Leak, Options, Scorer, leaks
from pretrace.scoring.evidence import CHUNK, Progress
from pretrace.scoring.holdout import CorpusParts
from pretrace.scoring.parts import Shard
from pretrace.scoring.plan import ModelsSettings, ScorePlan, open_models, with_texts
from pretrace.tuning.plan import TuningMethod

SMALL = 32
"""Shards of a source that is smaller than a shard usually is."""
_LEAST = 16  # texts of a shard: fewer fill no batch
MANY = 512
"""Shards that a larger source has at least, as far as that keeps the batches: so many that the last ones to be done
hold nobody up."""


def open_scoring(
    wanted: ModelsSettings,
    expressions: str,
    texts: CorpusParts,
    method: TuningMethod | None,
    options: Options,
) -> tuple[tuple[ShardJob, tuple[Leak, ...]], Callable[[Any], Any]]:
    """In a worker, with its models, its scores and the texts that they are fitted on: the job, of no texts yet, with
    the texts that must not be scored; and what scores a shard."""
    plan = ScorePlan.parse(expressions)
    models = with_texts(open_models(wanted), wanted, texts, method, seed=options.seed)
    worker = Scorer(models, plan, options)  # open as long as the process
    return (ShardJob.of(worker, options), leaks(models, plan)), worker.part


def shard_size(texts: Iterable[object]) -> int:
    """Texts of a shard where workers on a cluster share them; it depends on the source alone, so that the same command
    finds its shards again whatever the number of workers. They are counted as far as it depends on them.

    A source of at least a usual shard is cut at multiples of the texts whose batches are planned together, which
    keeps the numbers of a run in one piece; a smaller one into `SMALL` shards, whose batches are others.
    """
    number = sum(1 for _ in islice(texts, MANY * shards.SHARD))
    if number >= shards.SHARD:
        return min(max(number // MANY // CHUNK, 1) * CHUNK, shards.SHARD)
    return max(-(-number // SMALL), _LEAST)


def spread_over(
    pool: Pool, job: ShardJob, progress: Progress, some: Iterable[Shard]
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Have workers score shards of a job. `progress` is told of the texts of every shard, each with as many passes as
    the job has."""
    named = f"of {len(job.survey.shards)} of {job.corpus}"
    pieces = ((shard.key, f"shard {shard.index + 1} {named}", shard) for shard in some)
    for key, answer in pool.each(pieces):
        table, facts = answer.value
        tokens = int(table.column("n_tokens").to_numpy().sum())
        progress.advance(facts["texts"], tokens, answer.seconds / pool.workers, True)
        yield key, table, facts
