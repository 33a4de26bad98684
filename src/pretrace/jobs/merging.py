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

from pretrace.baselines import blind as baseline
from pretrace.corpora import TextStream
from pretrace.errors import OutputError, TextsError
from pretrace.jobs.worker import COLUMNS, Manifest, PartsFolder, ShardJob, missing_shards, remove_parts
from pretrace.results.folder import arrow_table, texts_of, write_csv
from pretrace.results.run import CUT_COLUMNS, MISSING_COLUMNS, SKIPPED_COLUMNS, control_columns, score_columns
from pretrace.results.wording import say
from pretrace.scoring.detect import CutTokens, Ranked, show_ends
from pretrace.scoring.evaluation import OfTexts, evaluate_rows, placebo_name
from pretrace.scoring.holdout import drawn_documents
from pretrace.scoring.unlearning import copies_linked, reread, unlike
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
        """Those of a job; OutputError, naming the shards, where parts are missing."""
        found = tuple(one for key, _ in job.survey.shards if (one := parts.manifest(key)) is not None)
        if len(found) < len(job.survey.shards):
            raise OutputError(said_missing(job, parts))
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
    """The `rows` of a whole job on disk, and `run`, which holds the sample and counts all texts."""

    rows: ScoredRows
    run: Run

    def write(self, folder: Path) -> None:
        """Add the tables of all rows to the folder of the run: the parts, linked where they can be, and skipped.csv,
        missing.csv, cut.csv and unreadable.jsonl as streams."""
        whole, rows = self.run.whole, self.rows
        assert whole is not None
        (folder / "scores").mkdir()
        for file, part in zip(whole.parts, rows.parts, strict=True):
            rows.check(part)
            _linked(rows.place.path(part), folder / file.name)
        lost = ((t.id, t.reason, t.tokens) for part in rows.parts for t in part.skipped)
        write_csv(folder / "skipped.csv", SKIPPED_COLUMNS, lost)
        write_csv(folder / "cut.csv", CUT_COLUMNS, self._cut())
        if whole.missing:
            cells = ((t.id, t.score, t.reason) for part in rows.parts for t in part.missing)
            write_csv(folder / "missing.csv", MISSING_COLUMNS, cells)
        unreadable = rows.place.folder / UNREADABLE
        if whole.unreadable and unreadable.exists():
            shutil.copyfile(unreadable, folder / UNREADABLE)

    def _cut(self) -> Iterator[tuple[object, ...]]:
        for part in self.rows.parts:
            table = self.rows.table(part, ["id", "n_cut"])
            dropped = table.column("n_cut").to_numpy()
            ids = texts_of(table, "id")
            yield from ((ids[i], int(dropped[i])) for i in np.flatnonzero(dropped).tolist())


def said_missing(job: ShardJob, parts: PartsFolder) -> str:
    """Which shards have no part, in a sentence."""
    lacking = [index + 1 for index in missing_shards(job, parts)]
    shards = {"lacking": len(lacking), "shards": len(job.survey.shards), "named": _ranges(lacking)}
    return say("scoring.lacking", folder=parts.folder, **shards)


def merged(job: ShardJob, parts: PartsFolder, *, seed: int) -> Merged:
    """Merge a job whose shards all have parts: count all texts, draw a sample, keep the ends of each score.

    The sample are the texts with the lowest keyed hashes of their ids, so it depends on the seed and on which texts
    there are, and on neither their order nor the shards. One column of all rows is in memory at a time. TextsError
    where no text, or for one score no text, has a value; OutputError where parts are missing or damaged.
    """
    rows = ScoredRows.of_job(job, parts)
    found = rows.parts
    cut, hashes, documents, labels = CutTokens(), list[Hashes](), array("q"), Counter[int | None]()
    for manifest in found:
        table = rows.table(manifest, list(COLUMNS))
        ids, groups = texts_of(table, "id"), texts_of(table, "group")
        cut.add(ids, table.column("n_cut").to_numpy(), table.column("n_tokens").to_numpy())
        hashes.append(keyed_hashes(ids, seed))
        documents.extend([hash(group or name) for group, name in zip(groups, ids, strict=True)])
        labels.update(table.column("label").to_pylist())
    drawn = np.sort(np.argsort(np.concatenate(hashes), kind="stable")[:SAMPLE]).tolist()
    ends = _ends(rows, job.survey.texts)
    table = _rows_at(rows, [*drawn, *sorted(ends - set(drawn))])
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
    return Merged(rows, run)


def _ends(rows: ScoredRows, texts: int) -> set[int]:
    """The rows, counted through all parts, from both ends of each score. TextsError where no text has a score, or one
    score has no text, or no text has one under the placebo."""

    def column(name: str) -> Doubles:
        return np.concatenate([rows.table(one, [name]).column(name).to_numpy() for one in rows.parts])

    ends: dict[str, set[int]] = {}
    for score in rows.scores:
        values = column(score)
        have = np.flatnonzero(np.isfinite(values))
        orders = (np.argsort(sign * values[have], kind="stable")[:EXTREMES] for sign in (1, -1))
        ends[score] = {row for order in orders for row in have[order].tolist()}
    if not any(ends.values()):
        raise TextsError(say("scoring.no_tokens", texts=texts, name=rows.corpus))
    for score, some in ends.items():
        if not some:
            why = (one.reason for part in rows.parts for one in part.missing if one.score == score)
            reason = next(why, "it was skipped")
            raise TextsError(say("scoring.no_value", name=rows.corpus, score=score, reason=reason))
    placebo = [name for one in rows.outlines if one["kind"] == "placebo" for name in control_columns(**one)]
    if placebo and not any(np.isfinite(column(name)).any() for name in placebo):
        raise TextsError(say("scoring.no_placebo"))
    return set().union(*ends.values())


def _rows_at(scored: ScoredRows, rows: Sequence[int]) -> Any:
    """One table with these rows, counted through all parts, in the order given."""
    import pyarrow as pa

    ordered, begin, taken = np.sort(rows), 0, []
    for part in scored.parts:
        mine = ordered[(ordered >= begin) & (ordered < begin + part.rows)]
        if len(mine):
            taken.append(scored.table(part).take(mine - begin))
        begin += part.rows
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


_BLIND_TEXTS = 20_480
"""Texts that the blind classifier learns from and judges, drawn by document."""


def evaluated(
    merged: Merged,
    stream: TextStream,
    *,
    seed: int,
    resamples: int,
    validation: float,
    unlearned: float | None = None,
) -> Merged:
    """The run with its evaluation. Labels, numbers of documents, scores and controls of all rows are in memory, the
    texts of those alone that the blind classifier judges. TextsError where labels are missing or of one class."""
    rows = merged.rows
    everything, beside = all_rows(rows)
    members = np.array(everything.members, dtype=bool)
    judged = _judged(rows, beside, members, stream, seed)
    counted = {text.id: text.copies for text in stream.texts() if text.copies is not None}
    beside = replace(beside, judged=judged)
    if counted:
        copies_of = np.array([counted[name] for name in _ids(rows)], dtype=np.int32)
        beside = replace(beside, copies=copies_of)
    copies, withheld = 0, ""
    if unlearned is not None:
        ids = _ids(rows)
        groups, copies = copies_linked(stream.texts(), ids, beside.groups, members)
        withheld = unlike(stream.texts(), ids, groups, members, seed=seed)
        beside = replace(beside, groups=groups)
    found = evaluate_rows(everything, beside, seed=seed, resamples=resamples, validation=validation)
    if unlearned is not None:
        found = reread(found, unlearned, placebo_name(merged.run.settings), copies, withheld)
    run = replace(merged.run, evaluation=found)
    if counted:
        run = replace(run, copies=np.array([counted[name] for name in run.ids], dtype=np.int32))
    return replace(merged, run=run)


def _ids(rows: ScoredRows) -> list[str]:
    tables = (rows.table(part, ["id"]) for part in rows.parts)
    return [name for table in tables for name in texts_of(table, "id")]


def all_rows(scored: ScoredRows) -> tuple[Run, OfTexts]:
    """Read a run with all rows of the parts, and the characters and the document of each. The run has no groups, and
    the ids of those texts alone that lack a value. Each part is copied into whole arrays and let go of."""
    import pyarrow as pa

    found = scored.parts
    rows = sum(manifest.rows for manifest in found)
    matrix, counts, lengths = (
        np.empty((rows, len(scored.scores))),
        np.empty((2, rows), np.int32),
        np.empty(rows),
    )
    places = dict(
        zip((*scored.scores, "n_tokens", "n_cut", "n_chars"), (*matrix.T, *counts, lengths), strict=True)
    )
    controls: list[Control] = []
    for one in scored.outlines:
        names = control_columns(**one)
        controls.append(Control(one["score"], one["kind"], np.empty((rows, len(names)))))
        places |= zip(names, controls[-1].values.T, strict=True)
    members: list[bool | None] = []
    ids: list[str] = []
    blocks: list[Any] = []
    for manifest in found:
        table = scored.table(manifest)
        for name, place in places.items():
            place[len(members) : len(members) + table.num_rows] = table.column(name).to_numpy()
        members += [None if one is None else bool(one) for one in table.column("label").to_pylist()]
        lacking = {one.id for one in manifest.missing}
        named = texts_of(table, "id") if lacking else [""] * table.num_rows
        ids += [name if name in lacking else "" for name in named]
        blocks += table.column("group").cast(pa.large_binary()).dictionary_encode().chunks
    run = Run(
        corpus=scored.corpus,
        ids=tuple(ids),
        groups=("",) * rows,
        members=tuple(members),
        tokens=counts[0],
        cut=counts[1],
        scores=scored.scores,
        matrix=matrix,
        missing=tuple(one for manifest in found for one in manifest.missing),
        controls=tuple(controls),
        settings=scored.settings,
    )
    pa.default_memory_pool().release_unused()
    return run, OfTexts(None, lengths, in_order(blocks)[1].astype(np.int64))


def _judged(
    rows: ScoredRows, beside: OfTexts, members: Bools, stream: TextStream, seed: int
) -> baseline.BlindScores:
    """What a bag of words makes of texts drawn by whole documents; NaN for the others."""
    documents = beside.groups
    drawn = drawn_documents(documents, members, most=_BLIND_TEXTS, seed=seed)
    assert isinstance(documents, np.ndarray)
    texts = rows.texts_at(stream, drawn)
    found = baseline.bag_of_words(texts, members[drawn], documents[drawn], seed=seed)
    if found.scores is None or drawn.all():
        return found
    scores = np.full(len(members), np.nan)
    scores[drawn] = found.scores
    note = say("measured.sampled", drawn=len(texts), texts=len(members))
    return baseline.BlindScores(scores, f"{note} {found.note}".strip())
