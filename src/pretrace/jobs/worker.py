"""A job over very many texts: the source in shards, and the folder of parts that workers fill, one part of the table
for each shard, with the manifest that makes it count."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.corpora.reading import Unreadable, refuse_repeated_ids
from pretrace.errors import ExpressionError, OutputError, TextsError
from pretrace.results.atomic import atomic_bytes
from pretrace.results.folder import arrow_column
from pretrace.results.run import control_columns, masked
from pretrace.results.serialization import expect, from_json, from_plain, to_json, to_plain
from pretrace.results.wording import say
from pretrace.scoring.detect import (
    Leak,
    ModelScores,
    Options,
    Ranked,
    Scorer,
    check_label_counts,
    leaks,
    recorded,
)
from pretrace.scoring.evidence import CHUNK
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.scoring.provenance import content_of, record_corpus, record_counts, record_software, texts_hash
from pretrace.types import Backend, Control, Missing, Progress, Skipped, Text

SHARD = 10 * CHUNK
"""Texts of a shard: a multiple of those whose batches are planned together, so that a run in shards sees the batches,
and gives the numbers, of a run in one piece."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive texts of a source, the `index`-th from 0; `key` is the hash of all that they hold."""

    index: int
    key: str
    texts: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """What one reading of a source found: its texts by label, its documents, the hash of ids, texts, labels and
    groups, what was mended on the way, and the key and number of texts of every shard. `unlabelled` names the first
    text without a label, "" where there is none."""

    texts: int
    documents: int
    members: int
    nonmembers: int
    unlabelled: str
    sha256: str
    notes: tuple[str, ...]
    shards: tuple[tuple[str, int], ...]
    unreadable: int = 0


def shards(stream: TextStream, size: int = SHARD) -> Iterator[Shard]:
    """The shards of a source in order; TextsError where a record cannot be read."""
    texts = stream.texts()
    for index in itertools.count():
        some = tuple(itertools.islice(texts, size))
        if not some:
            return
        yield Shard(index, texts_hash(some)[:32], some)


def survey(
    stream: TextStream, size: int = SHARD, tell: Callable[[Unreadable], object] | None = None
) -> Survey:
    """What a source holds, from one reading of it in constant memory, save for 16 bytes a text; `tell` is given what
    cannot be read. TextsError for repeated ids, and for a record that cannot be read unless those are left out."""
    ids, documents, digest = (
        array("q"),
        array("q"),
        hashlib.sha256(),
    )  # Python's hashes of names, 8 bytes each
    found: list[tuple[str, int]] = []
    labels, unlabelled, unreadable = Counter[bool | None](), "", 0

    def told(record: Unreadable) -> None:
        nonlocal unreadable
        unreadable += 1
        if tell is not None:
            tell(record)

    texts = stream.texts(told)
    while some := tuple(itertools.islice(texts, size)):
        content = b"".join(map(content_of, some))
        digest.update(content)
        found.append((hashlib.sha256(content).hexdigest()[:32], len(some)))
        ids.extend([hash(text.id) for text in some])
        documents.extend([hash(text.group or text.id) for text in some])
        labels.update([text.member for text in some])
        unlabelled = unlabelled or next((text.id for text in some if text.member is None), "")
    _refuse_repeated(ids, stream)
    return Survey(
        texts=len(ids),
        documents=len(np.unique(np.frombuffer(documents, np.int64))),
        members=labels[True],
        nonmembers=labels[False],
        unlabelled=unlabelled,
        sha256=digest.hexdigest(),
        notes=stream.notes,
        shards=tuple(found),
        unreadable=unreadable,
    )


def _refuse_repeated(ids: array[int], stream: TextStream) -> None:
    """TextsError where ids repeat. Equal hashes are only a suspicion: the source is then read again for the ids that
    have them."""
    hashes: npt.NDArray[np.int64] = np.sort(np.frombuffer(ids, np.int64))
    suspected = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if suspected:
        names = [text.id for text in stream.texts() if hash(text.id) in suspected]
        refuse_repeated_ids(names, stream.source)


def check_labelled(found: Survey, name: str) -> None:
    """TextsError unless every text is labelled and both classes are there."""
    check_label_counts(name, found.members, found.nonmembers, found.texts, found.unlabelled)


# Parts of a table on disk, each with a manifest, which alone makes it count.
#
# A part is written under a name that ends in its own hash, then its manifest under the name of the shard and the
# job. Both are written under another name, flushed and renamed. So a process that is killed leaves nothing that
# counts by half, and two that work on the same shard leave two whole parts, of which the manifest names one.


_DAMAGED = (ValueError, TypeError, LookupError, OverflowError)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a part holds: `rows` and `texts` of the shard `index`, its file and the SHA-256 of that, the texts without
    a score, the cells without a value, and the texts from both ends of the first score. `seen` counts the texts that
    have it."""

    index: int
    key: str
    texts: int
    rows: int
    file: str
    sha256: str
    seen: int
    skipped: tuple[Skipped, ...]
    missing: tuple[Missing, ...]
    ends: tuple[Ranked, ...]


_OURS = re.compile(r"(job-[0-9a-f]{16}|[0-9a-f]{32}-[0-9a-f]{16})\.(json|parquet)|unreadable\.jsonl")
_UNDER_WAY = re.compile(r"\..+\.(partial|old)-\d+-.+")


def check_parts(folder: Path) -> None:
    """OutputError where a folder of parts holds anything that no job wrote."""
    if not folder.is_dir():
        return
    names = sorted(entry.name for entry in folder.iterdir() if not _UNDER_WAY.fullmatch(entry.name))
    strange = [name for name in names if not _OURS.fullmatch(name)]
    if not strange and not any(name.startswith("job-") for name in names):
        strange = names
    if strange:
        shown = ", ".join(strange[:3]) + (", …" if len(strange) > 3 else "")
        raise OutputError(say("scoring.no_parts", folder=folder, names=shown))


def remove_parts(folder: Path) -> None:
    """Delete what jobs wrote to a folder of parts, and the folder where nothing else is in it; what cannot be deleted
    stays."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            if _OURS.fullmatch(entry.name) or _UNDER_WAY.fullmatch(entry.name):
                entry.unlink(missing_ok=True)
        folder.rmdir()


class PartsFolder:
    """The parts of one job in a folder, which other jobs may share. `job` is the hash of what the numbers depend on
    besides the texts."""

    def __init__(self, folder: Path, job: str) -> None:
        self.folder, self.job = folder, job

    def manifest(self, key: str) -> Manifest | None:
        """The manifest of a shard's part; None where there is none that can be read, or where its part is missing."""
        try:
            found = from_plain(Manifest, from_json(self._place(key).read_bytes()), "manifest")
        except (OSError, *_DAMAGED):
            return None
        return found if self.path(found).exists() else None

    def path(self, manifest: Manifest) -> Path:
        """Where a part lies."""
        return self.folder / manifest.file

    def write(self, key: str, table: Any, facts: Mapping[str, Any]) -> None:
        """Write the part of a shard, a pyarrow table, and then its manifest with these facts; OutputError where
        that fails."""
        import pyarrow.parquet as pq

        made = io.BytesIO()
        pq.write_table(table, made)
        content = made.getvalue()
        checksum = hashlib.sha256(content).hexdigest()
        file = f"{key}-{checksum[:16]}.parquet"
        atomic_bytes(self.folder / file, content)
        manifest = Manifest(key=key, rows=table.num_rows, file=file, sha256=checksum, **facts)
        atomic_bytes(self._place(key), to_json(to_plain(manifest, "manifest")))

    def table(self, manifest: Manifest, columns: list[str] | None = None) -> Any:
        """The table of a part, or some columns of it; OutputError where it is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with self.path(manifest).open("rb") as file:
                return pq.read_table(file, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise self.damaged(manifest, str(error)) from error

    def check(self, manifest: Manifest) -> None:
        """OutputError unless the part has the hash that its manifest says."""
        with self.path(manifest).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != manifest.sha256:
                raise self.damaged(manifest, "its hash is another than its manifest says")

    def damaged(self, manifest: Manifest, reason: str) -> OutputError:
        """The error for a part that cannot be used."""
        path = self.path(manifest)
        return OutputError(say("scoring.damaged", path=path, reason=reason))

    def _place(self, key: str) -> Path:
        return self.folder / f"{key}-{self.job[:16]}.json"


COLUMNS = ("id", "label", "group", "n_tokens", "n_cut", "n_chars")
"""The columns of a part before those of the scores and controls."""


class Worker(Scorer):
    """Scores shards."""

    @property
    def outlines(self) -> list[dict[str, Any]]:
        """Kind, score and number of repeats of each control, in the order of the parts' columns."""
        placebo = [(name, "placebo", 1) for name in self.scores.ready] if self.placebo else []
        shuffled = [(name, "shuffled", len(some)) for name, some in self.scores.shuffled.items()]
        return [
            {"kind": kind, "score": name, "repeats": repeats} for name, kind, repeats in (*placebo, *shuffled)
        ]

    def part(self, shard: Shard) -> tuple[Any, dict[str, Any]]:
        """The part of a shard, a pyarrow table, and what its manifest says besides."""
        found = self.read(shard.texts)
        controls = self.controls(found, shard.texts, required=False)
        facts = {
            "index": shard.index,
            "texts": len(shard.texts),
            "seen": found.extremes.seen,
            "skipped": tuple(found.skipped),
            "missing": tuple(found.missing),
            "ends": found.extremes.ranked(self.models.target),
        }
        return table_of(found, controls), facts


def table_of(found: ModelScores, controls: tuple[Control, ...]) -> Any:
    """The rows as a pyarrow table: `COLUMNS`, a column a score, a column a repeat of each control; null for what is
    not known."""
    import pyarrow as pa

    rows = found.rows
    labels = [None if row.text.member is None else int(row.text.member) for row in rows]
    columns: Mapping[str, Any] = {
        "id": arrow_column([row.text.id for row in rows]),
        "label": pa.array(labels, pa.int8()),
        "group": arrow_column([row.text.document for row in rows]),
        "n_tokens": pa.array([row.tokens for row in rows], pa.int32()),
        "n_cut": pa.array([row.cut for row in rows], pa.int32()),
        "n_chars": pa.array([len(row.text.text) for row in rows], pa.int32()),
    }
    names = list(found.scores.ready)
    matrix = found.matrix.reshape(len(rows), len(names))
    values = {name: arrow_column(masked(matrix[:, i])) for i, name in enumerate(names)}
    for control in controls:
        for place, name in enumerate(control_columns(control.kind, control.score, control.values.shape[1])):
            values[name] = arrow_column(masked(control.values[:, place]))
    return pa.table({**columns, **values})


_FORMAT = 1
_FORMAT_KEY = "pretrace_job"
_PACKAGES = ("pretrace", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True, slots=True)
class Turn:
    """Which shards a worker takes: every `of`-th, from the `number`-th, both counted from 1."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, written: str) -> Turn:
        """The turn that "3/64" names; ExpressionError for anything else."""
        number, slash, of = written.partition("/")
        if not (slash and number.strip().isdecimal() and of.strip().isdecimal()):
            raise ExpressionError(f"--shard is written I/N, as in 3/64, found {written!r}.")
        turn = cls(int(number), int(of))
        if not 1 <= turn.number <= turn.of:
            raise ExpressionError(f"--shard {written}: the first number goes from 1 to the second.")
        return turn

    def takes(self, index: int) -> bool:
        """Whether the shard `index`, from 0, is this worker's."""
        return index % self.of == self.number - 1


@dataclass(frozen=True, slots=True)
class ShardJob:
    """What all workers of a job share, and what the merged run records.

    `settings` go to run.json, `outlines` are the controls in the parts, `evaluation` the settings of an evaluation
    that follows, None without one; `source` says how the texts are opened again.
    """

    fingerprint: Mapping[str, Any]
    survey: Survey
    corpus: str
    scores: tuple[str, ...]
    outlines: tuple[dict[str, Any], ...]
    settings: dict[str, Any]
    source: dict[str, Any]
    evaluation: dict[str, Any] | None = None

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
        except (OSError, ValueError, TypeError, LookupError, OverflowError) as error:
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
    leaks: tuple[Leak, ...] = field(compare=False)

    @classmethod
    def of(cls, worker: Worker, options: Options) -> OpenedScoring:
        """That of a worker whose scores are fitted."""
        models = worker.models
        reference = record_corpus(models.labelled)["sha256"] if models.labelled else ""
        return cls(
            target=models.target.name,
            fingerprint=fingerprint(models, worker.plan, options, reference),
            outlines=tuple(worker.outlines),
            settings=recorded(models, options, {}, {}, worker.scores.facts),
            leaks=tuple(leak for some in (models, models.placebo) if some for leak in leaks(some)),
        )


def work(
    job: ShardJob,
    stream: TextStream,
    worker: Worker,
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
