"""One shard of the source in, one part of the table out, with the manifest that makes it count."""

from __future__ import annotations

import hashlib
import io
import itertools
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.corpora.reading import Unreadable, refuse_repeated_ids
from pretrace.errors import OutputError
from pretrace.results.atomic import atomic_bytes
from pretrace.results.folder import arrow_column
from pretrace.results.run import control_columns, masked
from pretrace.results.serialization import from_json, from_plain, to_json, to_plain
from pretrace.scoring.detect import ModelScores, Ranked, Scorer, check_label_counts
from pretrace.scoring.evidence import CHUNK
from pretrace.scoring.provenance import content_of, texts_hash
from pretrace.types import Control, Missing, Skipped, Text

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
        raise OutputError(
            f"{folder} holds files that are no parts of a run ({shown}); choose another folder with --parts."
        )


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
        return OutputError(
            f"{path} is damaged ({reason}): delete it, and run the command again to make it anew."
        )

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
