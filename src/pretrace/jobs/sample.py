"""What a large run shows of its texts: counts over all of them, a sample drawn at random, and the ends of each score.

Everything is read part by part, in order. The sample are the texts with the lowest keyed hashes of their ids, so it
depends on the seed and on which texts there are, and on neither their order nor the shards.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.jobs.job import Job
from pretrace.jobs.manifest import Manifest, Parts, Ranked
from pretrace.results.tables import texts_of
from pretrace.scoring.scored import NOTHING, SHOWN
from pretrace.types import EXTREMES, Doubles, Heat, Missing, Skipped, TablePart, Whole

SAMPLE = 20_480
"""Rows that are drawn."""
LISTED = 1000
"""Skipped texts that run.json names; all of them stand in skipped.csv."""
_REASONS = 50
Place = tuple[int, int]
"""A row by its part and its place in that."""
Numbers = npt.NDArray[np.uint64]


@dataclass(slots=True)
class Summary:
    """What was found in the parts so far. `add` takes them in order."""

    job: Job
    size: int = SAMPLE
    members: int = 0
    nonmembers: int = 0
    tokens: int = 0
    cut: Counter[str] = field(default_factory=Counter)
    cut_ids: list[str] = field(default_factory=list)
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
    _hashes: Numbers = field(default_factory=lambda: np.zeros(0, np.uint64))
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
        self.tokens += int(table.column("n_tokens").to_numpy().sum(dtype=np.int64))
        dropped = table.column("n_cut").to_numpy()
        self.cut.update(texts=int(np.count_nonzero(dropped)), tokens=int(dropped.sum(dtype=np.int64)))
        ids = texts_of(table, "id")
        self.cut_ids += [ids[i] for i in np.flatnonzero(dropped)[: 50 - len(self.cut_ids)].tolist()]
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
            raise TextsError(
                f"none of the {self.job.survey.texts} texts of {name} has a token to predict; "
                "a text needs at least two tokens."
            )
        for score in self.job.scores:
            if score not in self.known:
                reason = self.why.get(score, "it was skipped")
                raise TextsError(f"no text of {name} has a value of {score} ({reason}): leave {score} out.")
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
        many = self.seen > 2 * SHOWN
        chosen = [*self._ranked[:SHOWN], *self._ranked[-SHOWN:]] if many else self._ranked
        ranks = [*range(1, SHOWN + 1), *range(self.seen - SHOWN + 1, self.seen + 1)] if many else range(1, 99)
        return tuple(
            replace(one.heat, note=_note(rank, self.seen, one))
            for rank, one in zip(ranks, chosen, strict=False)
        )

    def whole(self, sampled: int) -> Whole:
        """The counts."""
        return Whole(
            texts=sum(file.rows for file in self.files),
            documents=len(np.unique(np.frombuffer(self._documents, np.int64))),
            members=self.members,
            nonmembers=self.nonmembers,
            tokens=self.tokens,
            skipped=self.lost["skipped"],
            missing=self.lost["cells"],
            lacking=self.lost["texts"],
            cut_texts=self.cut["texts"],
            cut_tokens=self.cut["tokens"],
            unreadable=self.job.survey.unreadable,
            sampled=sampled,
            reasons=dict(self.reasons.most_common(_REASONS)),
            parts=tuple(self.files),
        )


def keyed_hashes(ids: Sequence[str], seed: int) -> Numbers:
    """A number for each id that depends on it and the seed alone: the texts with the lowest ones are the sample."""
    key = seed.to_bytes(8, "little")
    found = b"".join(hashlib.blake2b(_bytes(one), digest_size=8, key=key).digest() for one in ids)
    return np.frombuffer(found, "<u8").astype(np.uint64)


def missing_of(manifests: Sequence[Manifest], ids: set[str]) -> tuple[Missing, ...]:
    """The cells without a value of these texts."""
    return tuple(one for manifest in manifests for one in manifest.missing if one.id in ids)


def _note(rank: int, seen: int, one: Ranked) -> str:
    note = f"rank {rank} of {seen} by score, {one.label}"
    return f"{note}; {one.heat.note}" if one.heat.note else note


def _least(values: Any, places: npt.NDArray[np.int64], most: int) -> tuple[Any, npt.NDArray[np.int64]]:
    """The least values with their places; of equal ones those that come first."""
    if len(values) <= most:
        return values, places
    kept = np.argsort(values, kind="stable")[:most]
    return values[kept], places[kept]


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
