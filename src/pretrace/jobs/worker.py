"""A job over very many texts: what its workers share and record, which shards are done here, and what is missing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from pretrace.corpora import TextStream
from pretrace.errors import OutputError, TextsError
from pretrace.jobs.settings import Turn
from pretrace.results.atomic import atomic_bytes
from pretrace.results.serialization import expect, from_json, from_plain, to_json, to_plain
from pretrace.results.wording import say
from pretrace.scoring.detect import LeakCheck, Options, Scorer, leaks, recorded
from pretrace.scoring.parts import DAMAGED, PartsFolder, ScoredRows, Shard, Survey, shards
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.scoring.provenance import record_corpus, record_counts, record_software
from pretrace.types import Backend, Progress

_FORMAT = 1
_FORMAT_KEY = "pretrace_job"
_PACKAGES = ("pretrace", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True, slots=True)
class ShardJob:
    """What all workers of a job share, and what the merged run records.

    `settings` go to run.json, `outlines` are the controls in the parts, `evaluation` the settings of an evaluation
    that follows, None without one; `source` says how the texts are opened again, `target` how the model is called.
    """

    fingerprint: Mapping[str, Any]
    survey: Survey
    corpus: str
    scores: tuple[str, ...]
    outlines: tuple[dict[str, Any], ...]
    settings: dict[str, Any]
    source: dict[str, Any]
    evaluation: dict[str, Any] | None = None
    target: str = ""

    @property
    def key(self) -> str:
        """The hash of what the numbers of a text depend on besides the text."""
        return hashlib.sha256(json.dumps(self.fingerprint, sort_keys=True).encode()).hexdigest()

    @property
    def file(self) -> str:
        """The name of the job's file, which is another for another source."""
        content = f"{self.key} {self.survey.sha256} {self.evaluation}"
        return f"job-{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"

    def parts(self, folder: Path) -> PartsFolder:
        """The job's parts in a folder."""
        return PartsFolder(folder, self.key)

    def rows(self, parts: PartsFolder) -> ScoredRows:
        """The scored rows; OutputError, naming the shards, where parts are missing."""
        found = tuple(one for key, _ in self.survey.shards if (one := parts.manifest(key)) is not None)
        if len(found) < len(self.survey.shards):
            raise OutputError(said_missing(self, parts))
        return ScoredRows(self.corpus, self.scores, self.outlines, self.settings, found, parts)

    def save(self, folder: Path) -> None:
        """Write the job's file; OutputError where that fails."""
        content = {_FORMAT_KEY: _FORMAT, **to_plain(self, "job")}
        atomic_bytes(folder / self.file, to_json(content))

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


def fingerprint(models: Models, plan: ScorePlan, options: Options, reference: str) -> dict[str, Any]:
    """What the numbers of a text depend on besides the text; `reference` is the hash of the texts that scores are
    fitted on."""
    versions = record_software()
    tuned = models.tuned
    return {
        "scores": list(plan.scores),
        "models": {name: _print_of(backend) for name, backend in models.named().items()},
        "placebo": {name: _print_of(one) for name, one in models.placebo.named().items()}
        if models.placebo
        else None,
        "adapter": dict(tuned.card).get("sha256", _print_of(tuned.backend)) if tuned else None,
        "neighbors": dict(models.proposer.facts) if models.proposer else None,
        "counts": record_counts(models.counts),
        "reference": reference,
        "seed": options.seed,
        "shuffles": options.shuffles,
        "versions": {name: versions.get(name) for name in _PACKAGES},
    }


def _print_of(backend: Backend) -> str:
    return hashlib.sha256(backend.fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class OpenedScoring:
    """What a job records of the models and scores of a worker: the name of the target, what the numbers depend on, the
    controls, and the settings without what is said of the texts; and the texts that must not be scored. Two are equal
    that give the same numbers: other facts, such as the device, are not needed for it."""

    target: str = field(compare=False)
    fingerprint: dict[str, Any]
    outlines: tuple[dict[str, Any], ...] = field(compare=False)
    settings: dict[str, Any] = field(compare=False)
    leaks: tuple[LeakCheck, ...] = field(compare=False)

    @classmethod
    def of(cls, worker: Scorer, options: Options) -> OpenedScoring:
        """That of a worker whose scores are fitted."""
        models = worker.models
        reference = record_corpus(models.labelled)["sha256"] if models.labelled else ""
        return cls(
            target=models.target.name,
            fingerprint=fingerprint(models, worker.plan, options, reference),
            outlines=tuple(worker.outlines),
            settings=recorded(models, options, {}, worker.scores.facts),
            leaks=leaks(models, worker.plan),
        )


def work(
    job: ShardJob,
    stream: TextStream,
    worker: Scorer,
    parts: PartsFolder,
    *,
    turn: Turn | None = None,
    size: int,
) -> int:
    """Score the shards of a turn that have no part yet; the number of them.

    TextsError where the source is not what it was when it was surveyed.
    """
    made = 0
    for shard in shards_to_do(job, stream, parts, turn=turn, size=size):
        parts.write(shard.key, *worker.part(shard))
        made += 1
    return made


def shards_to_do(
    job: ShardJob, stream: TextStream, parts: PartsFolder, *, turn: Turn | None = None, size: int
) -> Iterator[Shard]:
    """The shards of a turn that have no part yet, in order; TextsError where the source is not what it was when it was
    surveyed."""
    turn = turn or Turn()
    for shard in shards(stream, size):
        expected = job.survey.shards[shard.index] if shard.index < len(job.survey.shards) else None
        if expected != (shard.key, len(shard.texts)):
            raise TextsError(say("scoring.changed", source=stream.source, place=shard.index * size))
        if turn.takes(shard.index) and parts.manifest(shard.key) is None:
            yield shard


def missing_shards(job: ShardJob, parts: PartsFolder) -> list[int]:
    """The indices of the shards that have no part."""
    return [i for i, (key, _) in enumerate(job.survey.shards) if parts.manifest(key) is None]


def said_missing(job: ShardJob, parts: PartsFolder) -> str:
    """Which shards have no part, in a sentence."""
    lacking = [index + 1 for index in missing_shards(job, parts)]
    runs = []
    for _, some in groupby(enumerate(lacking), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in some]
        runs.append(f"{found[0]} to {found[-1]}" if len(found) > 1 else f"{found[0]}")
    named = ", ".join(runs[:10]) + (", …" if len(runs) > 10 else "")
    shards = {"lacking": len(lacking), "shards": len(job.survey.shards)}
    return say("scoring.lacking", folder=parts.folder, named=named, **shards)


class WholeJobProgress(Progress):
    """Progress over a whole job: the work of all its shards is announced once, and that of a shard not again."""

    def __init__(self, progress: Progress, texts: int) -> None:
        self._progress = progress
        progress.begin(texts)

    def weigh(self, texts: int, work: float) -> None:
        self._progress.weigh(texts, work)

    def worked(self, work: float) -> None:
        self._progress.worked(work)

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        self._progress.advance(texts, tokens, seconds, fresh)


def parts_folder(out: Path) -> Path:
    """Where the parts of a run lie until it is whole: `.NAME.parts` beside it."""
    return out.with_name(f".{out.name}.parts")
