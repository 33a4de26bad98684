"""From the parts of a job to a run: the counts, the sample, the tables of all rows, and an evaluation of all rows."""

from __future__ import annotations

import hashlib
import os
import shutil
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.errors import OutputError, TextsError
from pretrace.jobs.job import Job, missing_shards
from pretrace.jobs.worker import Manifest, Parts, Ranked, remove_parts
from pretrace.results.folder import texts_of, write_csv
from pretrace.results.run import CUT_COLUMNS, MISSING_COLUMNS, SKIPPED_COLUMNS, control_columns
from pretrace.scoring.detect import NO_TOKENS, NO_VALUE, NOTHING, SHOWN, CutTokens, rank_note, ranked_ends
from pretrace.types import EXTREMES, Bools, Control, Doubles, Heat, Missing, Run, Skipped, TablePart, Whole

# What a large run shows of its texts: counts over all of them, a sample drawn at random, and the ends of each
# score.
#
# Everything is read part by part, in order. The sample are the texts with the lowest keyed hashes of their ids, so
# it depends on the seed and on which texts there are, and on neither their order nor the shards.


SAMPLE = 20_480
"""Rows that are drawn."""
LISTED = 1000
"""Skipped texts that run.json names; all of them stand in skipped.csv."""
_REASONS = 50
Place = tuple[int, int]
"""A row by its part and its place in that."""
Hashes = npt.NDArray[np.uint64]


@dataclass(slots=True)
class Summary:
    """What was found in the parts so far. `add` takes them in order."""

    job: Job
    size: int = SAMPLE
    members: int = 0
    nonmembers: int = 0
    cut: CutTokens = field(default_factory=CutTokens)
    skipped: list[Skipped] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    why: dict[str, str] = field(default_factory=dict)
    seen: int = 0
    known: set[str] = field(default_factory=set)
    files: list[TablePart] = field(default_factory=list)
    _placebo: bool = False
    _documents: array[int] = field(default_factory=lambda: array("q"))
    _ranked: list[Ranked] = field(default_factory=list)
    _hashes: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    _places: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    _ends: dict[tuple[str, int], tuple[Doubles, npt.NDArray[np.int64]]] = field(default_factory=dict)

    def add(self, number: int, manifest: Manifest, parts: Parts, seed: int) -> None:
        """One part, the `number`-th from 0."""
        table = parts.table(manifest)
        self.files.append(TablePart(f"scores/part-{number:05}.parquet", manifest.rows, manifest.sha256))
        self._count(table, manifest)
        ids = texts_of(table, "id")
        hashes = keyed_hashes(ids, seed)
        places = np.column_stack([np.full(len(ids), number), np.arange(len(ids))]).astype(np.int64)
        self._hashes, self._places = _least(
            np.concatenate([self._hashes, hashes]), np.concatenate([self._places, places]), self.size
        )
        for score in self.job.scores:
            self._end(score, table.column(score).to_numpy(), places)
        self._ends_of_first(manifest)

    def _count(self, table: Any, manifest: Manifest) -> None:
        labels = table.column("label").to_numpy()
        self.members += int(np.count_nonzero(labels == 1))
        self.nonmembers += int(np.count_nonzero(labels == 0))
        ids = texts_of(table, "id")
        self.cut.add(ids, table.column("n_cut").to_numpy(), table.column("n_tokens").to_numpy())
        groups = texts_of(table, "group")
        self._documents.extend([hash(group or name) for group, name in zip(groups, ids, strict=True)])
        self.skipped += manifest.skipped[: max(0, LISTED - len(self.skipped))]
        self.reasons.update(one.reason for one in manifest.skipped)
        self.lost.update(skipped=len(manifest.skipped), cells=len(manifest.missing))
        self.lost["texts"] += len({one.id for one in manifest.missing})
        for one in manifest.missing:
            self.why.setdefault(one.score, one.reason)
        placebo = [name for name in table.column_names if name.startswith("placebo: ")]
        self._placebo |= any(table.column(name).null_count < table.num_rows for name in placebo)
        names = [name for name in self.job.scores if table.column(name).null_count < table.num_rows]
        self.known.update(names)

    def _end(self, score: str, values: Doubles, places: npt.NDArray[np.int64]) -> None:
        """Keep the rows from both ends of a score."""
        have = np.isfinite(values)
        for sign in (1, -1):
            old = self._ends.get((score, sign), (np.zeros(0), np.zeros((0, 2), np.int64)))
            found = np.concatenate([old[0], sign * values[have]])
            where = np.concatenate([old[1], places[have]])
            self._ends[score, sign] = _least(found, where, EXTREMES)

    def _ends_of_first(self, manifest: Manifest) -> None:
        moved = [replace(one, place=one.place + self.seen) for one in manifest.ends]
        self.seen += manifest.seen
        ordered = sorted([*self._ranked, *moved], key=lambda one: (-one.score, one.place))
        self._ranked = ordered if len(ordered) <= 3 * SHOWN else [*ordered[: 2 * SHOWN], *ordered[-SHOWN:]]

    def check(self) -> None:
        """TextsError where no text has a score, or one score has no text, or no text one under the placebo."""
        name = self.job.corpus
        if not self.seen and not self.known:
            raise TextsError(NO_TOKENS.format(self.job.survey.texts, name))
        for score in self.job.scores:
            if score not in self.known:
                reason = self.why.get(score, "it was skipped")
                raise TextsError(NO_VALUE.format(name, score, reason))
        if any(one["kind"] == "placebo" for one in self.job.outlines) and not self._placebo:
            raise TextsError(NOTHING)

    @property
    def rows(self) -> tuple[list[Place], list[Place]]:
        """The rows of the sample, and those from the ends of the scores that are not among them, each in order."""
        drawn = sorted((part, row) for part, row in self._places.tolist())
        ends = {(part, row) for _, places in self._ends.values() for part, row in places.tolist()}
        return drawn, sorted(ends - set(drawn))

    @property
    def heat(self) -> tuple[Heat, ...]:
        """The texts from both ends of the first score, token by token, with their ranks among all."""
        return tuple(
            replace(
                one.heat, note="; ".join(filter(None, (rank_note(rank, self.seen, one.label), one.heat.note)))
            )
            for rank, one in ranked_ends(self._ranked, self.seen)
        )

    def whole(self, sampled: int) -> Whole:
        """The counts."""
        return Whole(
            texts=sum(file.rows for file in self.files),
            documents=len(np.unique(np.frombuffer(self._documents, np.int64))),
            members=self.members,
            nonmembers=self.nonmembers,
            tokens=self.cut.of_tokens - self.cut.tokens,
            skipped=self.lost["skipped"],
            missing=self.lost["cells"],
            lacking=self.lost["texts"],
            cut_texts=self.cut.texts,
            cut_tokens=self.cut.tokens,
            unreadable=self.job.survey.unreadable,
            sampled=sampled,
            reasons=dict(self.reasons.most_common(_REASONS)),
            parts=tuple(self.files),
        )


def keyed_hashes(ids: Sequence[str], seed: int) -> Hashes:
    """A number for each id that depends on it and the seed alone: the texts with the lowest ones are the sample."""
    key = seed.to_bytes(8, "little")
    found = b"".join(hashlib.blake2b(_bytes(one), digest_size=8, key=key).digest() for one in ids)
    return np.frombuffer(found, "<u8").astype(np.uint64)


def _missing_of(manifests: Sequence[Manifest], ids: set[str]) -> tuple[Missing, ...]:
    """The cells without a value of these texts."""
    return tuple(one for manifest in manifests for one in manifest.missing if one.id in ids)


def _least(values: Any, places: npt.NDArray[np.int64], most: int) -> tuple[Any, npt.NDArray[np.int64]]:
    """The least values with their places; of equal ones those that come first."""
    if len(values) <= most:
        return values, places
    kept = np.argsort(values, kind="stable")[:most]
    return values[kept], places[kept]


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


UNREADABLE = "unreadable.jsonl"


@dataclass(frozen=True, slots=True)
class Merged:
    """The parts of a whole job: `run` holds the sample and counts all texts."""

    job: Job
    parts: Parts
    run: Run

    def write(self, folder: Path) -> None:
        """Add the tables of all rows to the folder of the run: the parts, linked where they can be, and skipped.csv,
        missing.csv, cut.csv and unreadable.jsonl as streams."""
        whole = self.run.whole
        assert whole is not None
        (folder / "scores").mkdir()
        for file, manifest in zip(whole.parts, self._manifests(), strict=True):
            self.parts.check(manifest)
            _linked(self.parts.path(manifest), folder / file.name)
        write_csv(folder / "skipped.csv", SKIPPED_COLUMNS, self._skipped())
        write_csv(folder / "cut.csv", CUT_COLUMNS, self._cut())
        if whole.missing:
            write_csv(folder / "missing.csv", MISSING_COLUMNS, self._missing())
        unreadable = self.parts.folder / UNREADABLE
        if whole.unreadable and unreadable.exists():
            shutil.copyfile(unreadable, folder / UNREADABLE)

    def _manifests(self) -> Iterator[Manifest]:
        return manifests(self.job, self.parts)

    def _skipped(self) -> Iterator[tuple[object, ...]]:
        return ((one.id, one.reason, one.tokens) for found in self._manifests() for one in found.skipped)

    def _missing(self) -> Iterator[tuple[object, ...]]:
        return ((one.id, one.score, one.reason) for found in self._manifests() for one in found.missing)

    def _cut(self) -> Iterator[tuple[object, ...]]:
        for manifest in self._manifests():
            table = self.parts.table(manifest, ["id", "n_cut"])
            dropped = table.column("n_cut").to_numpy()
            ids = texts_of(table, "id")
            yield from ((ids[i], int(dropped[i])) for i in np.flatnonzero(dropped).tolist())


def manifests(job: Job, parts: Parts) -> Iterator[Manifest]:
    """The manifests of all shards in order; OutputError, naming the shards, where parts are missing."""
    for key, _ in job.survey.shards:
        found = parts.manifest(key)
        if found is None:
            raise OutputError(said_missing(job, parts))
        yield found


def said_missing(job: Job, parts: Parts) -> str:
    """Which shards have no part, in a sentence."""
    lacking = [index + 1 for index in missing_shards(job, parts)]
    return (
        f"{len(lacking):,} of {len(job.survey.shards):,} shards have no part in {parts.folder} yet: "
        f"{_ranges(lacking)}. Run their workers again; --shard I/N does every N-th shard from the I-th."
    )


def merged(job: Job, parts: Parts, *, seed: int) -> Merged:
    """The run of a job whose shards all have parts. TextsError where no text, or for one score no text, has a value;
    OutputError where parts are missing or damaged."""
    summary = Summary(job)
    for number, manifest in enumerate(manifests(job, parts)):
        summary.add(number, manifest, parts, seed)
    summary.check()
    drawn, ends = summary.rows
    run = _sample(job, parts, [*drawn, *ends], summary)
    return Merged(job, parts, run)


def _sample(job: Job, parts: Parts, rows: list[Place], summary: Summary) -> Run:
    """The run with these rows, in the order given."""
    wanted: dict[int, list[int]] = {part: [] for part, _ in sorted(rows)}
    for part, row in rows:
        wanted[part].append(row)
    taken: dict[int, Any] = {}
    lacking: list[Missing] = []
    for number, manifest in enumerate(manifests(job, parts)):
        if number in wanted:
            taken[number] = parts.table(manifest).take(wanted[number])
            lacking += _missing_of([manifest], set(texts_of(taken[number], "id")))
    table = _in_order(taken, rows, wanted)
    whole = summary.whole(sampled=len(summary.rows[0]))
    settings = {**job.settings, "cut": asdict(summary.cut)}
    run = run_of(job, table, settings=settings, skipped=summary.skipped, missing=lacking)
    return replace(run, heat=summary.heat, whole=whole)


def _in_order(taken: dict[int, Any], rows: list[Place], wanted: dict[int, list[int]]) -> Any:
    """One table with the rows in the order given."""
    import pyarrow as pa

    start: dict[Place, int] = {}
    for part in taken:
        for row in wanted[part]:
            start[part, row] = len(start)
    return pa.concat_tables(list(taken.values())).take([start[place] for place in rows])


def run_of(
    job: Job, table: Any, *, settings: dict[str, Any], skipped: Iterable[Skipped], missing: Iterable[Missing]
) -> Run:
    """The run with the rows of a table of parts."""
    labels = table.column("label").to_pylist()
    return Run(
        corpus=job.corpus,
        ids=texts_of(table, "id"),
        groups=texts_of(table, "group"),
        members=tuple(None if label is None else bool(label) for label in labels),
        tokens=table.column("n_tokens").to_numpy().astype(np.int32),
        cut=table.column("n_cut").to_numpy().astype(np.int32),
        scores=job.scores,
        matrix=_columns(table, list(job.scores)),
        skipped=tuple(skipped),
        missing=tuple(missing),
        controls=tuple(
            Control(one["score"], one["kind"], _columns(table, control_columns(**one)))
            for one in job.outlines
        ),
        settings=settings,
    )


def _columns(table: Any, names: list[str]) -> Doubles:
    matrix = np.empty((table.num_rows, len(names)), np.float64)
    for index, name in enumerate(names):
        matrix[:, index] = table.column(name).to_numpy()
    return matrix


def _linked(source: Path, target: Path) -> None:
    """The file under another name as well, or a copy of it where the file system has no such links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def remove(parts: Parts) -> None:
    """Delete the folder of parts, once the run is written; what cannot be deleted stays."""
    remove_parts(parts.folder)


def _ranges(numbers: list[int]) -> str:
    """Numbers as a message shows them: "1 to 3, 7"; the first ten ranges."""
    runs = []
    for _, some in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in some]
        runs.append(f"{found[0]} to {found[-1]}" if len(found) > 1 else f"{found[0]}")
    return ", ".join(runs[:10]) + (", …" if len(runs) > 10 else "")


# What all rows of a job's parts share: the texts of some of them, and names as numbers in their order.


def texts_at(job: Job, parts: Parts, stream: TextStream, chosen: Bools) -> list[str]:
    """The texts of some rows, `chosen` [rows of all parts]: the parts have their ids, and the source, read once
    more, what it says under these."""
    ids: list[str] = []
    begin = 0
    for manifest in manifests(job, parts):
        rows = np.flatnonzero(chosen[begin : begin + manifest.rows])
        if len(rows):
            ids += texts_of(parts.table(manifest, ["id"]).take(rows), "id")
        begin += manifest.rows
    wanted = set(ids)
    texts = {text.id: text.text for text in stream.texts() if text.id in wanted}
    return [texts[name] for name in ids]


def in_order(blocks: Sequence[Any]) -> tuple[Any, npt.NDArray[np.int32]]:
    """The different names in blocks of them, a sorted pyarrow array of bytes, and the number of each in that order.

    `blocks` are dictionary-encoded pyarrow arrays of bytes. Bytes of UTF-8 sort as the strings do.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    unified = pa.chunked_array(blocks).unify_dictionaries()
    names = unified.chunk(0).dictionary
    order = pc.sort_indices(names).to_numpy()
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    codes = np.concatenate([place[chunk.indices.to_numpy()] for chunk in unified.chunks])
    return names.take(pa.array(order)), codes
