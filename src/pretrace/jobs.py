"""A job over very many texts: what its workers share and record, which shards are done here, and what is missing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pretrace.corpora import TextStream
from pretrace.corpora.opening import record_corpus, record_texts
from pretrace.errors import OutputError, TextsError
from pretrace.results.atomic import atomic_bytes
from pretrace.results.folder import expect, from_json, from_plain, record_software, to_json, to_plain
from pretrace.results.wording import say
from pretrace.scoring.detect import Options, Scorer, recorded
from pretrace.scoring.parts import DAMAGED, EVERY, PartsFolder, ScoredRows, Shard, Survey, Turn, shards
from pretrace.scoring.plan import Models
from pretrace.types import Backend

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
