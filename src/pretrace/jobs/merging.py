"""From the parts of a job to a run: the counts, the sample, the tables of all rows, and an evaluation of all rows."""

from __future__ import annotations

import hashlib
import os
import shutil
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.errors import OutputError, TextsError
from pretrace.jobs.job import ShardJob, missing_shards
from pretrace.jobs.worker import COLUMNS, Manifest, PartsFolder, remove_parts
from pretrace.results.folder import arrow_table, texts_of, write_csv
from pretrace.results.run import CUT_COLUMNS, MISSING_COLUMNS, SKIPPED_COLUMNS, control_columns, score_columns
from pretrace.scoring.detect import NO_TOKENS, NO_VALUE, NOTHING, CutTokens, Ranked, show_ends
from pretrace.types import EXTREMES, Bools, Control, Doubles, Heat, Run, TablePart, Whole

SAMPLE = 20_480
"""Rows that are drawn."""
LISTED = 1000
"""Skipped texts that run.json names; all of them stand in skipped.csv."""
_REASONS = 50
Hashes = npt.NDArray[np.uint64]


def keyed_hashes(ids: Sequence[str], seed: int) -> Hashes:
    """A number for each id that depends on it and the seed alone: the texts with the lowest ones are the sample."""
    key = seed.to_bytes(8, "little")
    found = b"".join(
        hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest() for one in ids
    )
    return np.frombuffer(found, "<u8").astype(np.uint64)


UNREADABLE = "unreadable.jsonl"


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """The scored rows of a source in the order of its texts, a table a part (`worker.table_of`): in a folder of parts,
    or in one table in memory."""

    corpus: str
    scores: tuple[str, ...]
    outlines: tuple[dict[str, Any], ...]
    settings: Mapping[str, Any]
    parts: tuple[Manifest, ...]
    place: Any
    """The `PartsFolder`, or a pyarrow table."""

    @classmethod
    def of_job(cls, job: ShardJob, parts: PartsFolder) -> ScoredRows:
        """Those of a job; OutputError where parts are missing."""
        found = tuple(manifests(job, parts))
        return cls(job.corpus, job.scores, job.outlines, job.settings, found, parts)

    @classmethod
    def of_run(cls, run: Run, lengths: Sequence[int]) -> ScoredRows:
        """Those of a run in memory, whose texts have so many characters."""
        rows, lost = len(run.ids), (run.skipped, run.missing)
        part = Manifest(0, "", rows + len(run.skipped), rows, "", "", 0, *lost, ())
        further = {"n_cut": np.asarray(run.cut, np.int32), "n_chars": np.array(lengths, np.int32)}
        outlines = tuple(
            {"kind": one.kind, "score": one.score, "repeats": one.values.shape[1]} for one in run.controls
        )
        table = arrow_table({**score_columns(run, controls=True), **further})
        return cls(run.corpus, run.scores, outlines, run.settings, (part,), table)

    @property
    def on_disk(self) -> bool:
        """Whether the rows lie in a folder of parts."""
        return isinstance(self.place, PartsFolder)

    def table(self, part: Manifest, columns: list[str] | None = None) -> Any:
        """The table of a part, or some columns of it; OutputError where it is damaged."""
        if isinstance(self.place, PartsFolder):
            return self.place.table(part, columns)
        return self.place.select(columns) if columns else self.place

    def check(self, part: Manifest) -> None:
        """OutputError unless a part on disk has the hash that its manifest says."""
        if isinstance(self.place, PartsFolder):
            self.place.check(part)

    def texts_at(self, stream: TextStream, chosen: Bools) -> list[str]:
        """The texts of some rows, `chosen` [rows]: the parts have their ids, and the source, read once more, what it
        says under these."""
        ids: list[str] = []
        begin = 0
        for part in self.parts:
            rows = np.flatnonzero(chosen[begin : begin + part.rows])
            if len(rows):
                ids += texts_of(self.table(part, ["id"]).take(rows), "id")
            begin += part.rows
        wanted = set(ids)
        texts = {text.id: text.text for text in stream.texts() if text.id in wanted}
        return [texts[name] for name in ids]


@dataclass(frozen=True, slots=True)
class Merged:
    """The parts of a whole job: `run` holds the sample and counts all texts."""

    job: ShardJob
    parts: PartsFolder
    run: Run

    def write(self, folder: Path) -> None:
        """Add the tables of all rows to the folder of the run: the parts, linked where they can be, and skipped.csv,
        missing.csv, cut.csv and unreadable.jsonl as streams."""
        whole = self.run.whole
        assert whole is not None
        (folder / "scores").mkdir()
        found = tuple(manifests(self.job, self.parts))
        for file, manifest in zip(whole.parts, found, strict=True):
            self.parts.check(manifest)
            _linked(self.parts.path(manifest), folder / file.name)
        write_csv(
            folder / "skipped.csv",
            SKIPPED_COLUMNS,
            ((t.id, t.reason, t.tokens) for m in found for t in m.skipped),
        )
        write_csv(folder / "cut.csv", CUT_COLUMNS, self._cut(found))
        if whole.missing:
            lost = ((t.id, t.score, t.reason) for m in found for t in m.missing)
            write_csv(folder / "missing.csv", MISSING_COLUMNS, lost)
        unreadable = self.parts.folder / UNREADABLE
        if whole.unreadable and unreadable.exists():
            shutil.copyfile(unreadable, folder / UNREADABLE)

    def _cut(self, found: Sequence[Manifest]) -> Iterator[tuple[object, ...]]:
        for manifest in found:
            table = self.parts.table(manifest, ["id", "n_cut"])
            dropped = table.column("n_cut").to_numpy()
            ids = texts_of(table, "id")
            yield from ((ids[i], int(dropped[i])) for i in np.flatnonzero(dropped).tolist())


def manifests(job: ShardJob, parts: PartsFolder) -> Iterator[Manifest]:
    """The manifests of all shards in order; OutputError, naming the shards, where parts are missing."""
    for key, _ in job.survey.shards:
        found = parts.manifest(key)
        if found is None:
            raise OutputError(said_missing(job, parts))
        yield found


def said_missing(job: ShardJob, parts: PartsFolder) -> str:
    """Which shards have no part, in a sentence."""
    lacking = [index + 1 for index in missing_shards(job, parts)]
    return (
        f"{len(lacking):,} of {len(job.survey.shards):,} shards have no part in {parts.folder} yet: "
        f"{_ranges(lacking)}. Run their workers again; --shard I/N does every N-th shard from the I-th."
    )


def merged(job: ShardJob, parts: PartsFolder, *, seed: int) -> Merged:
    """Merge a job whose shards all have parts: count all texts, draw a sample, keep the ends of each score.

    The sample are the texts with the lowest keyed hashes of their ids, so it depends on the seed and on which texts
    there are, and on neither their order nor the shards. One column of all rows is in memory at a time. TextsError
    where no text, or for one score no text, has a value; OutputError where parts are missing or damaged.
    """
    found = tuple(manifests(job, parts))
    cut, hashes, documents, labels = CutTokens(), list[Hashes](), array("q"), Counter[int | None]()
    for manifest in found:
        table = parts.table(manifest, list(COLUMNS))
        ids, groups = texts_of(table, "id"), texts_of(table, "group")
        cut.add(ids, table.column("n_cut").to_numpy(), table.column("n_tokens").to_numpy())
        hashes.append(keyed_hashes(ids, seed))
        documents.extend([hash(group or name) for group, name in zip(groups, ids, strict=True)])
        labels.update(table.column("label").to_pylist())
    drawn = np.sort(np.argsort(np.concatenate(hashes), kind="stable")[:SAMPLE]).tolist()
    ends = _ends(job, parts, found)
    table = _rows_at(parts, found, [*drawn, *sorted(ends - set(drawn))])
    lost = [one for manifest in found for one in manifest.missing]
    skipped = [one for manifest in found for one in manifest.skipped]
    whole = Whole(
        texts=sum(labels.values()),
        documents=len(np.unique(np.frombuffer(documents, np.int64))),
        members=labels[1],
        nonmembers=labels[0],
        tokens=cut.of_tokens - cut.tokens,
        skipped=len(skipped),
        missing=len(lost),
        lacking=len({one.id for one in lost}),
        cut_texts=cut.texts,
        cut_tokens=cut.tokens,
        unreadable=job.survey.unreadable,
        sampled=len(drawn),
        reasons=dict(Counter(one.reason for one in skipped).most_common(_REASONS)),
        parts=tuple(
            TablePart(f"scores/part-{number:05}.parquet", manifest.rows, manifest.sha256)
            for number, manifest in enumerate(found)
        ),
    )
    kept = texts_of(table, "id")
    run = Run(
        corpus=job.corpus,
        ids=kept,
        groups=texts_of(table, "group"),
        members=tuple(None if label is None else bool(label) for label in table.column("label").to_pylist()),
        tokens=table.column("n_tokens").to_numpy().astype(np.int32),
        cut=table.column("n_cut").to_numpy().astype(np.int32),
        scores=job.scores,
        matrix=_columns(table, list(job.scores)),
        skipped=tuple(skipped[:LISTED]),
        missing=tuple(one for one in lost if one.id in set(kept)),
        heat=_heat(found),
        controls=tuple(
            Control(one["score"], one["kind"], _columns(table, control_columns(**one)))
            for one in job.outlines
        ),
        settings={**job.settings, "cut": asdict(cut)},
        whole=whole,
    )
    return Merged(job, parts, run)


def _ends(job: ShardJob, parts: PartsFolder, found: Sequence[Manifest]) -> set[int]:
    """The rows, counted through all parts, from both ends of each score. TextsError where no text has a score, or one
    score has no text, or no text has one under the placebo."""

    def column(name: str) -> Doubles:
        return np.concatenate([parts.table(one, [name]).column(name).to_numpy() for one in found])

    ends: dict[str, set[int]] = {}
    for score in job.scores:
        values = column(score)
        have = np.flatnonzero(np.isfinite(values))
        orders = (np.argsort(sign * values[have], kind="stable")[:EXTREMES] for sign in (1, -1))
        ends[score] = {row for order in orders for row in have[order].tolist()}
    if not any(ends.values()):
        raise TextsError(NO_TOKENS.format(job.survey.texts, job.corpus))
    for score, some in ends.items():
        if not some:
            why = (one.reason for manifest in found for one in manifest.missing if one.score == score)
            raise TextsError(NO_VALUE.format(job.corpus, score, next(why, "it was skipped")))
    placebo = [name for one in job.outlines if one["kind"] == "placebo" for name in control_columns(**one)]
    if placebo and not any(np.isfinite(column(name)).any() for name in placebo):
        raise TextsError(NOTHING)
    return set().union(*ends.values())


def _rows_at(parts: PartsFolder, found: Sequence[Manifest], rows: Sequence[int]) -> Any:
    """One table with these rows, counted through all parts, in the order given."""
    import pyarrow as pa

    ordered, begin, taken = np.sort(rows), 0, []
    for manifest in found:
        mine = ordered[(ordered >= begin) & (ordered < begin + manifest.rows)]
        if len(mine):
            taken.append(parts.table(manifest).take(mine - begin))
        begin += manifest.rows
    return pa.concat_tables(taken).take(np.searchsorted(ordered, rows))


def _heat(found: Sequence[Manifest]) -> tuple[Heat, ...]:
    """The texts from both ends of the first score, token by token, with their ranks among all."""
    ranked, seen = list[Ranked](), 0
    for manifest in found:
        ranked += [replace(one, place=one.place + seen) for one in manifest.ends]
        seen += manifest.seen
    ranked.sort(key=lambda one: (-one.score, one.place))
    return show_ends(ranked, seen)


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


def remove(parts: PartsFolder) -> None:
    """Delete the folder of parts, once the run is written; what cannot be deleted stays."""
    remove_parts(parts.folder)


def _ranges(numbers: list[int]) -> str:
    """Numbers as a message shows them: "1 to 3, 7"; the first ten ranges."""
    runs = []
    for _, some in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in some]
        runs.append(f"{found[0]} to {found[-1]}" if len(found) > 1 else f"{found[0]}")
    return ", ".join(runs[:10]) + (", …" if len(runs) > 10 else "")


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
