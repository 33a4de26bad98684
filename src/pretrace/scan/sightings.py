"""What was found of every text: how often each passage stands in the corpus, and the documents that hold most of it.

Files are searched one by one, and what is found in one is a `Part`, written when the file was read. Parts add up in any
order to the same numbers, so a scan may be killed, divided over machines, and go on.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from pretrace.scan.corpus import Facts
from pretrace.scan.folding import Bytes
from pretrace.scan.searching import AT, CHARACTERS, DOCUMENT, END, START, TEXT, Runs
from pretrace.scan.wording import NEAREST, NearCopy, WordsFound

KEPT = 20
"""Documents that are named for each text: those that hold most of it."""
SIGHTED = 1 << 13
"""Documents that are noted before those are left away that hold less of a text than others."""
_GATHERED = 1 << 18
"""Ends of passages that are gathered before they are added up."""
COMMON_DOCUMENTS, TIMES = 100, 10
"""A passage is common where it stands in so many documents or more, and in so many times as many as the text's rarest
quarter of what was found."""
_EVERYWHERE = 1000
"""Documents from which on a passage is common in any case."""


class Sighting(NamedTuple):
    """A document that holds part of a text: `covered` bytes of it, from `start` to `end` of the text over all runs,
    beginning at byte `at` of the folded document."""

    covered: int
    file: str
    document: int
    start: int
    end: int
    at: int
    facts: Facts

    @property
    def order(self) -> tuple[int, str, int]:
        """What comes first is shown first."""
        return -self.covered, self.file, self.document


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was read of a file: its documents, those left out as unreadable, bytes, and why it could not be read on."""

    file: str
    documents: int = 0
    unreadable: int = 0
    bytes: int = 0
    unread: str = ""


@dataclass(slots=True)
class Part:
    """What was found in some files. `changes` [places, 2] says at which byte of all texts how many more documents hold
    what follows; `documents`, `wholes`, `longest` and `near` go by the text's number. `grams` are the hashes of the
    texts' sequences of 13 words that were found."""

    files: tuple[FileFacts, ...] = ()
    changes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    documents: dict[int, int] = field(default_factory=dict)
    wholes: dict[int, int] = field(default_factory=dict)
    longest: dict[int, int] = field(default_factory=dict)
    best: dict[int, list[Sighting]] = field(default_factory=dict)
    near: dict[int, int] = field(default_factory=dict)
    nearest: dict[int, list[NearCopy]] = field(default_factory=dict)
    grams: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def save(self, path: Path) -> None:
        """Write it; the caller renames."""
        plain = {
            "files": [asdict(one) for one in self.files],
            "documents": self.documents,
            "wholes": self.wholes,
            "longest": self.longest,
            "best": self.best,
            "near": self.near,
            "nearest": self.nearest,
        }
        written = json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass")
        changes, grams = _packed(self.changes.tobytes()), _packed(self.grams.tobytes())
        with path.open("wb") as file:
            np.savez(file, plain=_packed(written), changes=changes, grams=grams)

    @classmethod
    def load(cls, path: Path) -> Part:
        """What `save` wrote; ValueError or OSError where it is damaged."""
        with np.load(path) as found:
            written, changes, grams = (zlib.decompress(found[name]) for name in ("plain", "changes", "grams"))
        plain: dict[str, Any] = json.loads(written.decode("utf-8", "surrogatepass"))
        documents, wholes, longest, near = (
            {int(text): int(number) for text, number in plain[name].items()}
            for name in ("documents", "wholes", "longest", "near")
        )
        best = {
            int(text): [Sighting._make((*one, Facts._make(facts))) for *one, facts in some]
            for text, some in plain["best"].items()
        }
        nearest = {
            int(text): [NearCopy._make((*one, Facts._make(facts))) for *one, facts in some]
            for text, some in plain["nearest"].items()
        }
        return cls(
            tuple(FileFacts(**one) for one in plain["files"]),
            np.frombuffer(changes, dtype=np.int64).reshape(-1, 2),
            documents,
            wholes,
            longest,
            best,
            near,
            nearest,
            np.frombuffer(grams, dtype=np.uint64),
        )


def _packed(raw: bytes) -> Bytes:
    """Bytes in fewer, quickly."""
    return np.frombuffer(zlib.compress(raw, 1), dtype=np.uint8)


class Gathering:
    """Adds up what is found in one file: `starts` and `sizes` are each text's first byte among all, and its bytes."""

    def __init__(self, file: str, starts: Sequence[int], sizes: Sequence[int]) -> None:
        self._file = file
        self._starts, self._sizes = np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int64)
        self._changes: list[npt.NDArray[np.int64]] = []
        self._pending = 0
        self._documents, self._wholes, self._longest, self._floor = np.zeros((4, len(starts)), dtype=np.int64)
        self._noted: list[npt.NDArray[np.int64]] = []
        self._fresh, self._facts = 0, dict[int, Facts]()

    def add(self, runs: Runs, facts: Callable[[int], Facts], *, first: int = 0) -> None:
        """The runs of whole documents, numbered within their buffer, whose first one is the file's `first`."""
        if not len(runs):
            return
        runs = runs[_in_order(runs)]
        pair = np.concatenate([[True], (runs[1:, :2] != runs[:-1, :2]).any(axis=1)])
        group = np.cumsum(pair) - 1
        room = int(self._sizes.max()) + 1
        reach = np.maximum.accumulate(group * room + runs[:, END])
        opens = np.concatenate([[True], group[1:] * room + runs[1:, START] > reach[:-1]])
        at = np.flatnonzero(opens)
        closes = np.append(at[1:], len(runs)) - 1
        begins, ends = runs[at, START], reach[closes] - group[closes] * room
        base = self._starts[runs[at, TEXT]]
        change = np.concatenate(
            [np.stack([base + begins, np.ones_like(at)], 1), np.stack([base + ends, -np.ones_like(at)], 1)]
        )
        self._changes.append(change.astype(np.int64))
        self._pending += len(change)
        firsts = np.flatnonzero(pair)
        texts = runs[firsts, TEXT]
        np.add.at(self._documents, texts, 1)
        np.maximum.at(self._longest, texts, np.maximum.reduceat(runs[:, CHARACTERS], firsts))
        longest = np.maximum.reduceat(runs[:, END] - runs[:, START], firsts)
        np.add.at(self._wholes, texts, (longest == self._sizes[texts]).astype(np.int64))
        covered = np.add.reduceat(ends - begins, np.flatnonzero(pair[at]))
        self._sight(runs, firsts, covered, facts, first)
        if self._pending > _GATHERED:
            self._changes, self._pending = [added_up(self._changes)], 0

    def _sight(
        self,
        runs: Runs,
        firsts: npt.NDArray[np.intp],
        covered: npt.NDArray[np.int64],
        facts: Callable[[int], Facts],
        first: int,
    ) -> None:
        """Note the documents that may be among those that hold most of a text. `firsts` say where the runs of one
        document and text begin, and `covered` how much it holds."""
        texts = runs[firsts, TEXT]
        more = np.flatnonzero(covered > self._floor[texts])
        if not len(more):
            return
        where = firsts[more]
        places = runs[where, DOCUMENT]
        ends, at = np.maximum.reduceat(runs[:, END], firsts), np.minimum.reduceat(runs[:, AT], firsts)
        self._noted.append(
            np.stack(
                [texts[more], -covered[more], first + places, runs[where, START], ends[more], at[more]],
                axis=1,
            )
        )
        for place in np.unique(places).tolist():
            self._facts[first + place] = facts(place)
        self._fresh += len(more)
        if self._fresh > max(SIGHTED, len(self._noted[0]) // 4):
            self._keep_best()

    def _keep_best(self) -> None:
        """Of the documents noted for each text keep those that hold most; of two that hold as much, the earlier one."""
        noted = np.concatenate(self._noted) if self._noted else np.zeros((0, 6), dtype=np.int64)
        noted = noted[np.lexsort((noted[:, 2], noted[:, 1], noted[:, 0]))]
        begins = np.flatnonzero(np.diff(noted[:, 0], prepend=-1))
        rank = np.arange(len(noted)) - np.repeat(begins, np.diff(begins, append=len(noted)))
        last = noted[rank == KEPT - 1]
        self._floor[last[:, 0]] = -last[:, 1]
        noted = noted[rank < KEPT]
        self._noted, self._fresh = [noted], 0
        self._facts = {document: self._facts[document] for document in np.unique(noted[:, 2]).tolist()}

    def part(self, facts: FileFacts, words: WordsFound | None = None) -> Part:
        """What was found, with what was read of the file, and what it shares with the texts word by word."""
        documents, wholes, longest = (
            {int(text): int(values[text]) for text in np.flatnonzero(values)}
            for values in (self._documents, self._wholes, self._longest)
        )
        self._keep_best()
        best: dict[int, list[Sighting]] = {}
        for text, less, document, start, end, at in self._noted[0].tolist():
            seen = Sighting(-less, self._file, document, start, end, at, self._facts[document])
            best.setdefault(text, []).append(seen)
        made = Part((facts,), added_up(self._changes), documents, wholes, longest, best)
        return (
            made
            if words is None
            else replace(made, near=words.near, nearest=words.nearest, grams=words.grams)
        )


def _in_order(runs: Runs) -> npt.NDArray[np.intp]:
    """The order by document, text, first byte, and the longer one first; by one number where the four fit into it."""
    columns = (runs[:, DOCUMENT], runs[:, TEXT], runs[:, START], runs[:, END].max() - runs[:, END])
    sizes = [int(column.max()).bit_length() for column in columns]
    if sum(sizes) > 63:
        return np.lexsort(columns[::-1])
    number = columns[0].copy()
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        number = number << size | column
    return np.argsort(number, kind="stable")


def added_up(changes: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Changes at each place once, in order, without those that come to nothing."""
    some = [one for one in changes if len(one)]
    if not some:
        return np.zeros((0, 2), dtype=np.int64)
    joined = np.concatenate(some)
    places, where = np.unique(joined[:, 0], return_inverse=True)
    sums = np.bincount(where, weights=joined[:, 1], minlength=len(places)).astype(np.int64)
    kept = sums != 0
    return np.stack([places[kept], sums[kept]], axis=1)


def merged(parts: Iterable[Part]) -> Part:
    """The parts as one, the same in whichever order they come."""
    whole = Part()
    files: list[FileFacts] = []
    changes: list[npt.NDArray[np.int64]] = []
    grams: list[npt.NDArray[np.uint64]] = []
    for part in parts:
        files += part.files
        changes.append(part.changes)
        for name in ("documents", "wholes", "near"):
            mine = getattr(whole, name)
            for text, number in getattr(part, name).items():
                mine[text] = mine.get(text, 0) + number
        for text, size in part.longest.items():
            whole.longest[text] = max(whole.longest.get(text, 0), size)
        for text, some in part.best.items():
            whole.best[text] = _first(whole.best.get(text, []), some, KEPT)
        for text, copies in part.nearest.items():
            whole.nearest[text] = _first(whole.nearest.get(text, []), copies, NEAREST)
        grams.append(part.grams)
        if len(changes) > 64:
            changes, grams = [added_up(changes)], [np.unique(np.concatenate(grams))]
    if grams:
        whole.grams = np.unique(np.concatenate(grams))
    whole.changes = added_up(changes)
    whole.files = tuple(sorted(files, key=lambda one: one.file))
    return whole


class _Ordered(Protocol):
    @property
    def order(self) -> Any: ...


_One = TypeVar("_One", bound=_Ordered)


def _first(mine: list[_One], more: list[_One], most: int) -> list[_One]:
    """The first of two lists that are in order each, up to so many."""
    if not mine:
        return more[:most]
    if len(mine) == most and mine[-1].order < more[0].order:
        return mine
    both = [*mine, *more]
    both.sort(key=lambda one: one.order)
    return both[:most]


@dataclass(frozen=True, slots=True)
class Passage:
    """Characters [start, end) of a folded text, found in so many documents (0: in none)."""

    start: int
    end: int
    documents: int


@dataclass(frozen=True, slots=True)
class FoundText:
    """What the corpus holds of one text. `coverage` is the share of its characters in runs, `common` the share in
    passages that stand in very many documents, `longest` its longest run in characters, `documents` how many hold a
    run, `copies` how many hold the whole text. `near` counts near copies, `nearest` names the nearest of them."""

    characters: int
    coverage: float
    common: float
    longest: int
    documents: int
    copies: int
    passages: tuple[Passage, ...]
    best: tuple[Sighting, ...]
    near: int = 0
    nearest: tuple[NearCopy, ...] = ()

    @property
    def own(self) -> float:
        """The share of its characters that was found in passages that are not common."""
        return self.coverage - self.common


def found_texts(whole: Part, contents: Sequence[bytes], starts: Sequence[int]) -> list[FoundText]:
    """What was found of each text, whose folded bytes begin at `starts` of all texts."""
    places = np.ascontiguousarray(whole.changes[:, 0])
    ends = np.array(starts, dtype=np.int64) + np.array([len(one) for one in contents], dtype=np.int64) + 1
    edges = zip(np.searchsorted(places, starts).tolist(), np.searchsorted(places, ends).tolist(), strict=True)
    return [
        _found_text(whole, text, content, whole.changes[first:last] - (start, 0))
        if last > first
        else _not_found(whole, text, content)
        for text, (content, start, (first, last)) in enumerate(zip(contents, starts, edges, strict=True))
    ]


def _not_found(whole: Part, text: int, content: bytes) -> FoundText:
    """A text of which no passage was found, as most."""
    total = len(content) if content.isascii() else len(_letters(content))
    passages: tuple[Passage, ...] = (Passage(0, total, 0),) if total else ()
    near, nearest = whole.near.get(text, 0), tuple(whole.nearest.get(text, ()))
    return FoundText(total, 0.0, 0.0, 0, 0, 0, passages, (), near, nearest)


def _letters(content: bytes) -> npt.NDArray[np.intp]:
    """The bytes at which characters begin."""
    return np.flatnonzero(np.frombuffer(content, dtype=np.uint8) & 0xC0 != 0x80)


def _found_text(whole: Part, text: int, content: bytes, mine: npt.NDArray[np.int64]) -> FoundText:
    """What was found of one text, whose own changes are `mine`, from its first byte on."""
    size = len(content)
    edges = [0, *mine[:, 0].tolist(), size]
    letters = edges if content.isascii() else np.searchsorted(_letters(content), edges).tolist()
    total = letters[-1]
    counts = [0, *np.cumsum(mine[:, 1]).tolist()]
    passages = tuple(
        Passage(one, other, number)
        for one, other, number in zip(letters[:-1], letters[1:], counts, strict=True)
        if other > one
    )
    covered = [one for one in passages if one.documents]
    found = sum(one.end - one.start for one in covered)
    usual = _rare_quarter(covered)
    common = sum(one.end - one.start for one in covered if is_common(one.documents, usual))
    return FoundText(
        characters=total,
        coverage=found / total if total else 0.0,
        common=common / total if total else 0.0,
        longest=whole.longest.get(text, 0),
        documents=whole.documents.get(text, 0),
        copies=whole.wholes.get(text, 0),
        passages=passages,
        best=tuple(whole.best.get(text, ())),
        near=whole.near.get(text, 0),
        nearest=tuple(whole.nearest.get(text, ())),
    )


def common_bytes(whole: Part, contents: Sequence[bytes], starts: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Which bytes of all texts stand in common passages, each text at its own first byte."""
    made = np.zeros(starts[-1] + len(contents[-1]), dtype=np.bool_)
    for content, start, text in zip(contents, starts, found_texts(whole, contents, starts), strict=True):
        found = text.passages
        usual = _rare_quarter([one for one in found if one.documents])
        first = np.append(_letters(content), len(content))
        for one in found:
            if one.documents and is_common(one.documents, usual):
                made[start + first[one.start] : start + first[one.end]] = True
    return made


def is_common(documents: int, usual: float) -> bool:
    """Whether a passage in so many documents is common, beside the `usual` number of the text's rarest quarter."""
    return documents >= _EVERYWHERE or (documents >= COMMON_DOCUMENTS and documents >= TIMES * usual)


def _rare_quarter(covered: Sequence[Passage]) -> float:
    """The number of documents of the rarest quarter of the characters that were found."""
    left = sum(one.end - one.start for one in covered) / 4
    for one in sorted(covered, key=lambda one: one.documents):
        left -= one.end - one.start
        if left <= 0:
            return float(one.documents)
    return 0.0
