"""A job over very many texts: how it is divided among workers, what these share and record, which shards are done here,
and what is missing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pretrace.corpora import TextStream
from pretrace.corpora.opening import record_corpus, record_texts
from pretrace.errors import ExpressionError, OutputError, TextsError, require
from pretrace.plugins import find_plugin
from pretrace.results.atomic import atomic_bytes
from pretrace.results.folder import expect, from_json, from_plain, record_software, to_json, to_plain
from pretrace.results.wording import say
from pretrace.scoring.detect import Options, Scorer, recorded
from pretrace.scoring.parts import DAMAGED, PartsFolder, ScoredRows, Shard, Survey, shards
from pretrace.scoring.plan import Models
from pretrace.settings import READING, RUN, Option, check_ranges, option
from pretrace.types import Backend

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


_FORMAT = 1
_FORMAT_KEY = "pretrace_job"
_PACKAGES = ("pretrace", "torch", "transformers", "tokenizers", "numpy")
_NO_TEXTS = Survey(0, 0, 0, 0, "", "", (), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardJob:
    """What all workers of a job share, and what the merged run records. Two are equal that give the same numbers of the
    same texts: other facts, such as the device, are not needed for it.

    `fingerprint` is what the numbers of a text depend on besides the text, `outlines` are the controls in the parts,
    `settings` go to run.json, `source` says how the texts are opened again, `evaluation` are the settings of one that
    follows, None without; `target` is how the model is called.
    """

    fingerprint: Mapping[str, Any]
    survey: Survey = _NO_TEXTS
    corpus: str = ""
    scores: tuple[str, ...]
    outlines: tuple[dict[str, Any], ...] = field(compare=False)
    settings: Mapping[str, Any] = field(compare=False)
    source: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Mapping[str, Any] | None = None
    target: str = field(compare=False)

    @classmethod
    def of(cls, worker: Scorer, options: Options) -> ShardJob:
        """The job of a worker whose scores are fitted, of no texts yet."""

        def hashed(backend: Backend) -> str:
            return hashlib.sha256(backend.fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:32]

        def of_each(some: Models) -> dict[str, str]:
            return {name: hashed(one) for name, one in some.named().items()}

        models, versions = worker.models, record_software()
        tuned = models.tuned
        fingerprint = {
            "scores": list(worker.plan.scores),
            "models": of_each(models),
            "placebo": of_each(models.placebo) if models.placebo else None,
            "adapter": dict(tuned.card).get("sha256", hashed(tuned.backend)) if tuned else None,
            "neighbors": dict(models.proposer.facts) if models.proposer else None,
            "counts": models.recorded_counts,
            "reference": record_corpus(models.labelled)["sha256"] if models.labelled else "",
            "seed": options.seed,
            "shuffles": options.shuffles,
            "versions": {name: versions.get(name) for name in _PACKAGES},
        }
        return cls(
            fingerprint=fingerprint,
            scores=tuple(worker.plan.scores),
            outlines=tuple(worker.outlines),
            settings=recorded(models, options, {}, worker.scores.facts),
            target=models.target.name,
        )

    def over(self, stream: TextStream, survey: Survey, **more: Any) -> ShardJob:
        """The same of a source that was surveyed, with its `source` and `evaluation`."""
        texts = record_texts(stream, survey.texts, survey.documents, survey.sha256)
        settings = {**self.settings, "texts": texts}
        return replace(self, survey=survey, corpus=stream.name, settings=settings, **more)

    @property
    def key(self) -> str:
        """The hash of what the numbers of a text depend on besides the text."""
        return hashlib.sha256(json.dumps(self.fingerprint, sort_keys=True).encode()).hexdigest()

    def missing(self, folder: Path, turn: Turn = EVERY) -> dict[int, int]:
        """The shards of a turn that have no part in a folder, by their indices, each with the number of its texts."""
        parts, shards = PartsFolder(folder, self.key), enumerate(self.survey.shards)
        return {i: n for i, (key, n) in shards if turn.takes(i) and parts.manifest(key) is None}

    def rows(self, folder: Path) -> ScoredRows:
        """The scored rows in a folder; OutputError, naming the shards, where parts are missing."""
        parts = PartsFolder(folder, self.key)
        found = tuple(one for key, _ in self.survey.shards if (one := parts.manifest(key)) is not None)
        if len(found) < len(self.survey.shards):
            lacking = [str(index + 1) for index in self.missing(folder)]
            named = ", ".join([*lacking[:10], *(["…"] if len(lacking) > 10 else [])])
            numbers = {"lacking": len(lacking), "shards": len(self.survey.shards), "named": named}
            raise OutputError(say("scoring.lacking", folder=folder, **numbers))
        return ScoredRows(self.corpus, self.scores, self.outlines, self.settings, found, parts)

    def save(self, folder: Path) -> None:
        """Write the job's file, whose name is another for another source; OutputError where that fails."""
        named = hashlib.sha256(f"{self.key} {self.survey.sha256} {self.evaluation}".encode()).hexdigest()
        content = {_FORMAT_KEY: _FORMAT, **to_plain(self, "job")}
        atomic_bytes(folder / f"job-{named[:16]}.json", to_json(content))

    @classmethod
    def load(cls, path: Path) -> ShardJob:
        """The job in a file; OutputError where it is none."""
        try:
            content = from_json(path.read_bytes())
            if expect(content.pop(_FORMAT_KEY), int) > _FORMAT:
                raise OutputError(f"{path} was written by a newer pretrace: upgrade.")
            return from_plain(cls, content, "job")
        except (OSError, *DAMAGED) as error:
            raise OutputError(f"{path} is damaged ({error}): run one of the workers again.") from error


Executor = Callable[[Iterable[Shard]], Iterable[tuple[str, Any, Mapping[str, Any]]]]
"""Scores shards, in whatever order: the key of each, its table, and what its manifest says besides."""


def work(
    job: ShardJob, stream: TextStream, folder: Path, scored: Executor, *, turn: Turn = EVERY, size: int
) -> int:
    """Score the shards of a turn that have no part yet, which are written here; the number of them. TextsError where
    the source is not what it was when it was surveyed."""
    made, parts = 0, PartsFolder(folder, job.key)

    def to_do() -> Iterator[Shard]:
        for shard in shards(stream, size):
            expected = job.survey.shards[shard.index] if shard.index < len(job.survey.shards) else None
            if expected != (shard.key, len(shard.texts)):
                raise TextsError(say("scoring.changed", source=stream.source, place=shard.index * size))
            if turn.takes(shard.index) and parts.manifest(shard.key) is None:
                yield shard

    for key, table, facts in scored(to_do()):
        parts.write(key, table, facts)
        made += 1
    return made


def parts_folder(out: Path) -> Path:
    """Where the parts of a run lie until it is whole: `.NAME.parts` beside it."""
    return out.with_name(f".{out.name}.parts")
