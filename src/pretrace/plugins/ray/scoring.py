"""What workers on a Ray cluster do with models: score shards, read the batches of an audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

from pretrace.backends.adapters import Adapted
from pretrace.backends.huggingface import HuggingFace
from pretrace.corpora import TextStream
from pretrace.errors import EngineError, ExpressionError
from pretrace.jobs.settings import EngineSettings
from pretrace.jobs.worker import Executor, OpenedScoring, ShardJob
from pretrace.plugins.ray.cluster import Pool, opened_pool
from pretrace.results.wording import say
from pretrace.scoring import parts as shards
from pretrace.scoring.detect import Options, Scorer
from pretrace.scoring.evidence import CHUNK, Progress
from pretrace.scoring.holdout import CorpusParts
from pretrace.scoring.parts import Shard
from pretrace.scoring.plan import Models, ScorePlan, open_models, with_texts
from pretrace.scoring.settings import ModelsSettings
from pretrace.tuning.plan import TuningMethod
from pretrace.types import Backend, Encoded, Quantity, States, Trace

SMALL = 32
"""Shards of a source that is smaller than a shard usually is."""
_LEAST = 16  # texts of a shard: fewer fill no batch
MANY = 512
"""Shards that a larger source has at least, as far as that keeps the batches: so many that the last ones to be done
hold nobody up."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """The work of one scoring worker: which models, which scores, the texts that scores are fitted on, and how."""

    wanted: ModelsSettings
    expressions: str
    texts: CorpusParts
    method: TuningMethod | None
    options: Options

    def open(self) -> tuple[OpenedScoring, Callable[[Any], Any]]:
        """The worker's own account of itself, and what scores a shard."""
        plan, options = ScorePlan.parse(self.expressions), self.options
        models = with_texts(open_models(self.wanted), self.wanted, self.texts, self.method, seed=options.seed)
        worker = Scorer(models, plan, options)  # open as long as the process
        return OpenedScoring.of(worker, options), worker.part


def shard_size(texts: int) -> int:
    """Texts of a shard where workers on a cluster share them; it depends on the source alone, so that the same command
    finds its shards again whatever the number of workers.

    A source of at least a usual shard is cut at multiples of the texts whose batches are planned together, which
    keeps the numbers of a run in one piece; a smaller one into `SMALL` shards, whose batches are others.
    """
    if texts >= shards.SHARD:
        return min(max(texts // MANY // CHUNK, 1) * CHUNK, shards.SHARD)
    return max(-(-texts // SMALL), _LEAST)


def shard_size_of(stream: TextStream) -> int:
    """The `shard_size` of a source, whose texts are counted as far as it depends on them."""
    return shard_size(sum(1 for _ in islice(stream.texts(), MANY * shards.SHARD)))


def spread_over(pool: Pool, job: ShardJob, progress: Progress) -> Executor:
    """Have workers score the shards of a job. `progress` is told of the texts of every shard, each with as many passes
    as the job has."""

    def scored(some: Iterable[Shard]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        named = f"of {len(job.survey.shards)} of {job.corpus}"
        pieces = ((shard.key, f"shard {shard.index + 1} {named}", shard) for shard in some)
        for key, answer in pool.each(pieces):
            table, facts = answer.value
            tokens = int(table.column("n_tokens").to_numpy().sum())
            progress.advance(facts["texts"], tokens, answer.seconds / pool.room.workers, True)
            yield key, table, facts

    return scored


@dataclass(frozen=True, slots=True)
class BatchReading:
    """The work of one reading worker: which models it opens."""

    wanted: ModelsSettings

    def open(self) -> tuple[dict[str, str], Callable[[Any], Any]]:
        """The models' fingerprints by role, and what reads a batch with one of them."""
        opened = roles(open_models(self.wanted))

        def read(content: tuple[str, Sequence[Encoded], Quantity, States]) -> list[Trace]:
            role, batch, want, states = content
            return opened[role].run(batch, want, states)

        return {role: backend.fingerprint for role, backend in opened.items()}, read


class _ReadElsewhere:
    """A model whose batches are read by workers; all else is that of the model itself, which is open here too."""

    def __init__(self, backend: Backend, role: str, pool: Pool) -> None:
        self._backend, self._role, self._pool = backend, role, pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def stream(
        self, batches: Sequence[Sequence[Encoded]], want: Quantity, states: States = frozenset(), /
    ) -> Iterator[tuple[int, list[Trace]]]:
        """The traces of each batch as soon as they are there, with the batch's number."""
        pieces = (
            (number, f"batch {number + 1} of {len(batches)}", (self._role, batch, want, states))
            for number, batch in enumerate(batches)
        )
        for number, answer in self._pool.each(pieces):
            yield number, answer.value


def roles(models: Models) -> dict[str, Backend]:
    """The models that workers read with, by role; not those behind servers, which answer several at once themselves."""
    found: dict[str, Backend | None] = {"target": models.target, "reference": models.reference}
    found |= {f"placebo {number}": one for number, one in enumerate(models.placebos, 1)}
    here = (HuggingFace, Adapted)
    return {
        role: one
        for role, one in found.items()
        if one is not None and (isinstance(one, here) or not hasattr(one, "stream"))
    }


@contextmanager
def reading_elsewhere(settings: EngineSettings, wanted: ModelsSettings, models: Models) -> Iterator[Models]:
    """The models, read by workers on the cluster that the settings name; EngineError where the workers' models are
    others than those of this machine."""
    mine = roles(models)
    if not mine:
        raise ExpressionError(say("cluster.useless"))
    with opened_pool(settings, BatchReading(wanted)) as pool:
        for role, backend in mine.items():
            if pool.told.get(role) != backend.fingerprint:
                raise EngineError(say("cluster.other_model", role=role, name=backend.name))
        spread = {id(one): cast(Backend, _ReadElsewhere(one, role, pool)) for role, one in mine.items()}
        yield replace(models, elsewhere=lambda backend: spread.get(id(backend), backend))
