"""How a job over very many texts is divided among workers, and what becomes of records that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrace.errors import ExpressionError, require
from pretrace.plugins import find_plugin
from pretrace.results.wording import say
from pretrace.settings import READING, RUN, Option, check_ranges, option

RAY = Option("Have workers on a Ray cluster read, as in address=HOST:PORT.", name="ray", panel=RUN)


@dataclass(frozen=True, slots=True)
class Turn:
    """Which shards a worker takes: every `of`-th, from the `number`-th, both counted from 1."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, written: str) -> Turn:
        """The turn that "3/64" names; ExpressionError for anything else."""
        number, _, of = written.partition("/")
        numbers = [int(one) for one in (number, of) if one.strip().isdecimal()]
        if len(numbers) < 2 or not 1 <= numbers[0] <= numbers[1]:
            raise ExpressionError(
                f"--shard is written I/N, as in 3/64, with I from 1 to N; found {written!r}."
            )
        return cls(*numbers)

    def takes(self, index: int) -> bool:
        """Whether the shard `index`, from 0, is this worker's."""
        return index % self.of == self.number - 1


EVERY = Turn()
"""The turn of one worker alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Which shards are done here, where parts lie, what is left out; ExpressionError for a turn that is none."""

    shard: str | None = option(
        None,
        "I/N: process every N-th shard of TEXTS, starting with the I-th, as one of N jobs of a cluster; then "
        "`pretrace runs merge OUT`.",
        panel=RUN,
    )
    parts: Path | None = option(
        None,
        "Folder for the parts of the table until all are there, shared by the workers; .OUT.parts unless given.",
        panel=RUN,
        path="out",
    )
    skip_unreadable: bool = READING.key(
        False, "Skip records that cannot be read, list them in unreadable.jsonl, and go on."
    )

    def __post_init__(self) -> None:
        _ = self.turn  # which refuses what is none

    @property
    def turn(self) -> Turn:
        """The shards that are done here."""
        return Turn.parse(self.shard) if self.shard is not None else EVERY


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Who reads: workers on Ray, where anything is given, else this process.

    Without a number there are as many workers as the cluster has room for: by its GPUs where each takes some, else by
    its processors.
    """

    address: str | None = RAY.key(
        None,
        "HOST:PORT of the cluster, auto for the one on this machine, or local to start one here, as without it.",
    )
    workers: int | None = RAY.key(
        None, "How many workers; as many as the cluster has room for unless given.", least=0
    )
    gpus_per_worker: float = RAY.key(0.0, "GPUs that each worker takes; 0.5 puts two on one.", least=0.0)

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def on_ray(self) -> bool:
        """Whether workers on Ray read."""
        return self != EngineSettings()

    def spread(self, threads: int) -> AbstractContextManager[Spread | None]:
        """Who works: workers on the cluster, or None for the threads of this process; ExpressionError for a number of
        threads that nobody uses, and where the plug-in for Ray is not there."""
        require(
            not (self.on_ray and threads), "--workers counts threads here: with --ray, write --ray workers=N."
        )
        found: AbstractContextManager[Spread | None] = nullcontext()
        return find_plugin("ray.cluster").spread_on_cluster(self) if self.on_ray else found


Task = Callable[[], tuple[Any, Callable[[Any], Any]]]
"""What all workers of an engine do; it is sent to them pickled, and called in each once: what all of them must agree
on, and what turns the content of a piece into an answer."""
Spread = Callable[[Task, Iterable[tuple[Any, str, Any]]], Iterator[tuple[Any, Any]]]
"""Does a task over pieces, each with its tag, its name in messages and its content, in other processes: the tag of each
with what was made of it, as they come."""


def divided_by(job: JobSettings, engine: EngineSettings) -> str:
    """The option that divides the work, "" where nothing does; ExpressionError for --shard and --ray at once."""
    if job.shard and engine.on_ray:
        raise ExpressionError(say("cluster.both"))
    return "--shard" if job.shard else "--ray" if engine.on_ray else ""
