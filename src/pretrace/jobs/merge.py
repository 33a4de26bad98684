"""From the parts of a job to a run: the counts, the sample, the tables of all rows, and an evaluation of all rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.errors import OutputError
from pretrace.jobs.job import Job, missing_shards
from pretrace.jobs.manifest import Manifest, Parts, remove_parts
from pretrace.jobs.sample import Place, Summary, missing_of
from pretrace.results.run import CUT_COLUMNS, MISSING_COLUMNS, SKIPPED_COLUMNS, control_columns
from pretrace.results.tables import texts_of, write_csv
from pretrace.types import Control, Doubles, Missing, Run, Skipped

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
            lacking += missing_of([manifest], set(texts_of(taken[number], "id")))
    table = _in_order(taken, rows, wanted)
    whole = summary.whole(sampled=len(summary.rows[0]))
    cut = {
        "texts": whole.cut_texts,
        "tokens": whole.cut_tokens,
        "of_tokens": whole.cut_tokens + whole.tokens,
        "ids": summary.cut_ids,
    }
    settings = {**job.settings, "cut": cut}
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
