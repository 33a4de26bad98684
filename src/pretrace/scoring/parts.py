"""Texts as a stream of shards, which worker takes which, the scored rows of each as a part of one table, in memory or
in a folder, and the run that these parts are."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import re
import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.corpora.opening import content_of
from pretrace.corpora.reading import Unreadable, refuse_repeated_ids
from pretrace.errors import ExpressionError, OutputError, TextsError, require
from pretrace.plugins import find_plugin
from pretrace.results.atomic import atomic_bytes
from pretrace.results.folder import (
    Column,
    arrow_table,
    from_json,
    from_plain,
    texts_of,
    to_json,
    to_plain,
    write_csv,
)
from pretrace.results.run import (
    CUT_COLUMNS,
    MISSING_COLUMNS,
    SKIPPED_COLUMNS,
    control_columns,
    run_controls,
    run_rows,
    score_columns,
)
from pretrace.results.wording import listed, say
from pretrace.scoring.evidence import CHUNK
from pretrace.settings import READING, RUN, Option, check_ranges, option
from pretrace.statistics.documents import Numbers
from pretrace.statistics.roc import ReadColumn, check_controls
from pretrace.types import EXTREMES, Bools, Doubles, Heat, Missing, Run, Skipped, Text, Whole

SHARD = 10 * CHUNK
"""Texts of a shard: a multiple of those whose batches are planned together, so that a run in shards sees the batches,
and gives the numbers, of a run in one piece."""
SAMPLE = 20_480
"""Rows that are drawn."""
LISTED = 1000
"""Skipped texts that run.json names; all of them stand in skipped.csv."""
UNREADABLE = "unreadable.jsonl"
SHOWN = 3
"""Texts from each end of the first score."""
_REASONS, _CUT_IDS = 50, 50
DAMAGED = (ValueError, TypeError, LookupError, OverflowError)
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive texts of a source, the `index`-th from 0; `key` is the hash of all that they hold."""

    index: int
    key: str
    texts: tuple[Text, ...]


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


def shards(
    stream: TextStream,
    size: int = SHARD,
    tell: Callable[[Unreadable], object] | None = None,
    digest: Any = None,
) -> Iterator[Shard]:
    """The shards of a source in order; TextsError where a record cannot be read, unless those are left out: then `tell`
    is given each. A hash `digest` is fed with what all texts hold."""
    texts = stream.texts(tell)
    for index in itertools.count():
        some = tuple(itertools.islice(texts, size))
        if not some:
            return
        content = b"".join(map(content_of, some))
        if digest:
            digest.update(content)
        copies = [text.copies for text in some if text.copies is not None]  # where a scan counted them
        key = hashlib.sha256(content + (str(copies).encode() if copies else b"")).hexdigest()[:32]
        yield Shard(index, key, some)


def survey(stream: TextStream, size: int = SHARD, unread: list[Unreadable] | None = None) -> Survey:
    """What a source holds, from one reading of it in constant memory, save for 16 bytes a text; `unread` gets what
    cannot be read. TextsError for repeated ids, and for a record that cannot be read unless those are left out."""
    unread = [] if unread is None else unread
    ids, documents = array("q"), array("q")  # Python's hashes of names, 8 bytes each
    digest, labels, unlabelled = hashlib.sha256(), Counter[bool | None](), ""
    found: list[tuple[str, int]] = []
    for shard in shards(stream, size, unread.append, digest):
        some = shard.texts
        found.append((shard.key, len(some)))
        ids.extend([hash(text.id) for text in some])
        documents.extend([hash(text.group or text.id) for text in some])
        labels.update([text.member for text in some])
        unlabelled = unlabelled or next((text.id for text in some if text.member is None), "")
    hashes: npt.NDArray[np.int64] = np.sort(np.frombuffer(ids, np.int64))
    suspected = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if suspected:  # of which the source, read again, tells whether the ids are equal too
        names = [text.id for text in stream.texts() if hash(text.id) in suspected]
        refuse_repeated_ids(names, stream.source)
    return Survey(
        texts=len(ids),
        documents=len(np.unique(np.frombuffer(documents, np.int64))),
        members=labels[True],
        nonmembers=labels[False],
        unlabelled=unlabelled,
        sha256=digest.hexdigest(),
        notes=stream.notes,
        shards=tuple(found),
        unreadable=len(unread),
    )


@dataclass(frozen=True, slots=True)
class Ranked:
    """A text from an end of the first score: its score, its place among the scored texts of the shard, and its
    tokens."""

    score: float
    place: int
    label: str
    heat: Heat


# Parts of a table on disk, each with a manifest, which alone makes it count.
#
# A part is written under a name that ends in its own hash, then its manifest under the name of the shard and the
# job. Both are written under another name, flushed and renamed. So a process that is killed leaves nothing that
# counts by half, and two that work on the same shard leave two whole parts, of which the manifest names one.


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
    there = folder.iterdir() if folder.is_dir() else ()
    names = sorted(entry.name for entry in there if not _UNDER_WAY.fullmatch(entry.name))
    ours = any(name.startswith("job-") for name in names)
    if strange := [name for name in names if not (ours and _OURS.fullmatch(name))]:
        raise OutputError(say("scoring.no_parts", folder=folder, names=listed(strange)))


class PartsFolder:
    """The parts of one job in a folder, which other jobs may share. `job` is the hash of what the numbers depend on
    besides the texts."""

    def __init__(self, folder: Path, job: str) -> None:
        self.folder, self.job = folder, job

    def manifest(self, key: str) -> Manifest | None:
        """The manifest of a shard's part; None where there is none that can be read, or where its part is missing."""
        try:
            found = from_plain(Manifest, from_json(self._place(key).read_bytes()), "manifest")
        except (OSError, *DAMAGED):
            return None
        return found if (self.folder / found.file).exists() else None

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

    def remove(self) -> None:
        """Delete what jobs wrote to the folder, and the folder where nothing else is in it; what cannot be deleted
        stays."""
        with suppress(OSError):
            for entry in list(self.folder.iterdir()):
                if _OURS.fullmatch(entry.name) or _UNDER_WAY.fullmatch(entry.name):
                    entry.unlink(missing_ok=True)
            self.folder.rmdir()

    def _place(self, key: str) -> Path:
        return self.folder / f"{key}-{self.job[:16]}.json"


COLUMNS = ("id", "label", "group", "n_tokens", "n_cut", "n_chars")
"""The columns of a part before those of the scores and controls."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """The scored rows of a source in the order of its texts, a table a part (`table_of` in `scoring.detect`): in a
    folder of parts, or in one table in memory."""

    corpus: str
    scores: tuple[str, ...]
    outlines: Sequence[Mapping[str, Any]]
    """Kind, score and number of repeats of each control, in the order of the parts' columns."""
    settings: Mapping[str, Any]
    parts: tuple[Manifest, ...]
    place: Any
    """The `PartsFolder`, or a pyarrow table."""

    @classmethod
    def of_run(cls, run: Run, texts: Iterable[Text]) -> ScoredRows:
        """Those of a run in memory; TextsError unless the texts of all rows are among `texts`, ExpressionError where a
        score or control is not a finite number and `Run.missing` does not say why."""
        lengths = {text.id: len(text.text) for text in texts}
        if not lengths.keys() >= set(run.ids):
            raise TextsError(say("measured.texts", rows=len(run.ids), texts=len(lengths)))
        for score in run.scores:
            values = run.column(score)
            wrong = np.flatnonzero(~(np.isfinite(values) | run.lacks(score)))
            if len(wrong):
                found = {"score": score, "value": values[wrong[0]], "text": repr(run.ids[wrong[0]])}
                raise ExpressionError(say("measured.infinite", number=len(wrong), **found))
        check_controls(run)
        rows, lost = len(run.ids), (run.skipped, run.missing)
        part = Manifest(0, "", rows + len(run.skipped), rows, "", "", 0, *lost, ())
        documents = tuple(group or name for group, name in zip(run.groups, run.ids, strict=True))
        further: dict[str, Column] = {
            "label": np.ma.array(np.zeros(rows, np.int8), mask=True),  # which a run without labels lacks
            "n_cut": np.asarray(run.cut, np.int32),
            "n_chars": np.array([lengths[name] for name in run.ids], np.int32),
        }
        outlines = tuple(
            {"kind": one.kind, "score": one.score, "repeats": one.values.shape[1]} for one in run.controls
        )
        columns = score_columns(replace(run, groups=documents), controls=True)
        return cls(run.corpus, run.scores, outlines, run.settings, (part,), arrow_table(further | columns))

    @property
    def on_disk(self) -> bool:
        """Whether the rows lie in a folder of parts."""
        return isinstance(self.place, PartsFolder)

    def table(self, part: Manifest, columns: list[str] | None = None) -> Any:
        """The table of a part, or some columns of it; OutputError where it is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self.on_disk:
            return self.place.select(columns) if columns else self.place
        pa.default_memory_pool().release_unused()  # what earlier parts took: some hundred bytes a text
        try:
            with (self.place.folder / part.file).open("rb") as file:
                return pq.read_table(file, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise self.damaged(part, str(error)) from error

    def check(self, part: Manifest) -> None:
        """OutputError unless a part on disk has the hash that its manifest says."""
        if self.on_disk:
            with (self.place.folder / part.file).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != part.sha256:
                    raise self.damaged(part, "its hash is another than its manifest says")

    def damaged(self, part: Manifest, reason: str) -> OutputError:
        """The error for a part on disk that cannot be used."""
        return OutputError(say("scoring.damaged", path=self.place.folder / part.file, reason=reason))

    def column(self, name: str) -> Doubles:
        """A column of numbers of all rows, NaN where there is none."""
        found = np.empty(len(self))
        for part, here in self._placed():
            found[here] = self.table(part, [name]).column(name).to_numpy()
        return found

    def __len__(self) -> int:
        return sum(part.rows for part in self.parts)

    def _placed(self) -> Iterator[tuple[Manifest, slice]]:
        """Each part, and where its rows are among all."""
        begin = 0
        for part in self.parts:
            yield part, slice(begin, begin := begin + part.rows)

    @property
    def counted(self) -> bool:
        """Whether a scan counted the copies of each text."""
        return bool(self.parts) and "copies" in self.table(self.parts[0]).column_names

    def controls(self, kind: str) -> dict[str, list[ReadColumn]]:
        """What reads the columns of the controls of a kind, by their scores, in the order of these."""
        found = {one["score"]: control_columns(**one) for one in self.outlines if one["kind"] == kind}
        return {
            score: [partial(self.column, name) for name in found[score]]
            for score in self.scores
            if score in found
        }

    @property
    def documents(self) -> Numbers:
        """The document of each row, by its number among the sorted names."""
        import pyarrow as pa

        columns = (self.table(part, ["group"]).column(0).cast(pa.large_binary()) for part in self.parts)
        blocks = [block for column in columns for block in column.dictionary_encode().chunks]
        return in_order(blocks)[1].astype(np.int64)

    @property
    def cut(self) -> dict[str, Any]:
        """How many tokens the length limit dropped, of how many, from how many texts, and the ids of the first of
        these."""
        dropped = self.column("n_cut")
        first = dropped > 0
        first[np.flatnonzero(first)[_CUT_IDS:]] = False
        return {
            "texts": int(np.count_nonzero(dropped)),
            "tokens": int(dropped.sum()),
            "of_tokens": int(dropped.sum() + self.column("n_tokens").sum()),
            "ids": self.ids(first) if first.any() else [],
        }

    def hashes(self, seed: int) -> Hashes:
        """A number for each row that depends on its id and the seed alone; those with the lowest are the sample."""
        key = seed.to_bytes(8, "little")
        found = np.empty(len(self), np.uint64)
        for part, here in self._placed():
            ids = (one.encode("utf-8", "surrogatepass") for one in texts_of(self.table(part, ["id"]), "id"))
            content = b"".join(hashlib.blake2b(one, digest_size=8, key=key).digest() for one in ids)
            found[here] = np.frombuffer(content, "<u8")
        return found

    def lost(self, score: str | None = None) -> Iterator[Missing]:
        """The cells without a value, of one score or of all."""
        return (one for part in self.parts for one in part.missing if score in (None, one.score))

    def ids(self, chosen: Bools | None = None) -> list[str]:
        """The ids of the rows, or of some of them, `chosen` [rows]."""
        ids: list[str] = []
        for part, here in self._placed():
            table = self.table(part, ["id"])
            ids += texts_of(table if chosen is None else table.filter(chosen[here]), "id")
        return ids

    def texts_at(self, stream: TextStream, chosen: Bools) -> list[str]:
        """The texts of some rows, `chosen` [rows]: the parts have their ids, and the source, read once more, what it
        says under these."""
        ids = self.ids(chosen)
        wanted = set(ids)
        texts = {text.id: text.text for text in stream.texts() if text.id in wanted}
        return [texts[name] for name in ids]

    def take(self, rows: Sequence[int]) -> Any:
        """One table with these rows, counted through all parts, in the order given."""
        import pyarrow as pa

        ordered, taken = np.sort(rows), []
        for part, here in self._placed():
            mine = ordered[(ordered >= here.start) & (ordered < here.stop)]
            if len(mine):
                taken.append(self.table(part).take(mine - here.start))
        return pa.concat_tables(taken).take(np.searchsorted(ordered, rows))

    def write(self, folder: Path, run: Run) -> None:
        """Add the tables of all rows on disk to the folder of their run: the parts, linked where they can be, and
        skipped.csv, missing.csv, cut.csv and unreadable.jsonl as streams."""
        import pyarrow.compute as pc

        whole = run.whole
        assert whole is not None
        (folder / "scores").mkdir()
        for file, part in zip(whole.parts, self.parts, strict=True):
            self.check(part)
            there, here = self.place.folder / part.file, folder / file["name"]
            try:
                os.link(there, here)
            except OSError:  # a file system that has no such links
                shutil.copyfile(there, here)
        lost = ((t.id, t.reason, t.tokens) for part in self.parts for t in part.skipped)
        dropped = (self.table(part, ["id", "n_cut"]).filter(pc.field("n_cut") > 0) for part in self.parts)
        cut = (
            row
            for some in dropped
            for row in zip(texts_of(some, "id"), some["n_cut"].to_pylist(), strict=True)
        )
        write_csv(folder / "skipped.csv", SKIPPED_COLUMNS, lost)
        write_csv(folder / "cut.csv", CUT_COLUMNS, cut)
        if whole.missing:
            cells = ((t.id, t.score, t.reason) for t in self.lost())
            write_csv(folder / "missing.csv", MISSING_COLUMNS, cells)
        unreadable = self.place.folder / UNREADABLE
        if whole.unreadable and unreadable.exists():
            shutil.copyfile(unreadable, folder / UNREADABLE)


def run_of(rows: ScoredRows, *, seed: int = 0, unreadable: int = 0) -> Run:
    """The run of scored rows, all of them in memory, or of those on disk a sample with the ends of each score, and
    `whole`, which counts all texts and the `unreadable` records.

    The sample are the texts with the lowest keyed hashes of their ids, so it depends on the seed and on which texts
    there are, and on neither their order nor the shards. One column of all rows on disk is in memory at a time.
    TextsError where no text, or for one score no text, has a value; OutputError where parts are damaged.
    """
    ends, cut, lost = _ends(rows), rows.cut, list(rows.lost())
    skipped = [one for part in rows.parts for one in part.skipped]
    whole, table = None, rows.place
    if rows.on_disk:
        drawn = np.sort(np.argsort(rows.hashes(seed), kind="stable")[:SAMPLE]).tolist()
        table, labels = rows.take([*drawn, *sorted(ends - set(drawn))]), rows.column("label")
        groups = (texts_of(rows.table(part, ["group"]), "group") for part in rows.parts)
        documents = np.concatenate([np.array(list(map(hash, some)), np.int64) for some in groups])
        whole = Whole(
            texts=len(rows),
            documents=len(np.unique(documents)),
            members=int(np.count_nonzero(labels == 1)),
            nonmembers=int(np.count_nonzero(labels == 0)),
            tokens=cut["of_tokens"] - cut["tokens"],
            skipped=len(skipped),
            missing=len(lost),
            lacking=len({one.id for one in lost}),
            cut_texts=cut["texts"],
            cut_tokens=cut["tokens"],
            unreadable=unreadable,
            sampled=len(drawn),
            reasons=dict(Counter(one.reason for one in skipped).most_common(_REASONS)),
            parts=tuple(
                {"name": f"scores/part-{number:05}.parquet", "rows": part.rows, "sha256": part.sha256}
                for number, part in enumerate(rows.parts)
            ),
        )
    has = run_rows(table, rows.scores)
    known = set(has["ids"])
    return Run(
        corpus=rows.corpus,
        **has,
        cut=table.column("n_cut").to_numpy().astype(np.int32),
        skipped=tuple(skipped[:LISTED] if whole else skipped),
        missing=tuple(one for one in lost if one.id in known),
        heat=_heat(rows.parts),
        controls=run_controls(table, rows.outlines),
        settings={**rows.settings, "cut": cut},
        whole=whole,
    )


def _ends(rows: ScoredRows) -> set[int]:
    """The rows, counted through all parts, from both ends of each score. TextsError where no text has a score, or one
    score has no text, or no text has one under the placebo."""
    ends: dict[str, set[int]] = {}
    for score in rows.scores:
        values = rows.column(score)
        have = np.flatnonzero(np.isfinite(values))
        orders = (np.argsort(sign * values[have], kind="stable")[:EXTREMES] for sign in (1, -1))
        ends[score] = {row for order in orders for row in have[order].tolist()}
    if not any(ends.values()):
        texts = sum(part.texts for part in rows.parts)
        raise TextsError(say("scoring.no_tokens", texts=texts, name=rows.corpus))
    for score, some in ends.items():
        if not some:
            reason = next((one.reason for one in rows.lost(score)), "it was skipped")
            raise TextsError(say("scoring.no_value", name=rows.corpus, score=score, reason=reason))
    placebo = [name for one in rows.outlines if one["kind"] == "placebo" for name in control_columns(**one)]
    if placebo and not any(np.isfinite(rows.column(name)).any() for name in placebo):
        raise TextsError(say("scoring.no_placebo"))
    return set().union(*ends.values())


def _heat(parts: Sequence[Manifest]) -> tuple[Heat, ...]:
    """The texts of the highest and the lowest first score, token by token: all where few were seen, else so many from
    each end. Each has its rank among all in its note."""
    ends = sorted((one for part in parts for one in part.ends), key=lambda one: -one.score)
    seen, ranks = sum(part.seen for part in parts), list(enumerate(ends, start=1))
    if seen > 2 * SHOWN:
        ranks = [*ranks[:SHOWN], *enumerate(ends[-SHOWN:], start=seen - SHOWN + 1)]
    noted = ((f"rank {rank} of {seen} by score, {one.label}", one.heat) for rank, one in ranks)
    return tuple(replace(heat, note="; ".join(filter(None, (note, heat.note)))) for note, heat in noted)


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
