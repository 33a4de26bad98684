"""The search: what a buffer of corpus documents has in common with the texts, letter by letter and word by word.

A block is 24 bytes. The corpus is cut at every `every`-th byte, the texts at every `stride`-th, and both numbers are
such that a common run of 47 bytes or more holds a block that is cut in both. So every run of `RUN` characters is found,
wherever it stands; and since each is compared byte by byte, nothing else is. Of shorter runs about every second one is
found: several in one place tell of a copy that something else is written into.

Words are parted by white space, in lower case and without ASCII punctuation, as in the decontamination of GPT-3 (Brown
et al. 2020, appendix C) and lm-evaluation-harness. Sequences of 5 words, for near copies, and of 13, for the overlap,
are compared by hashes of 64 bits, all of them: the Jaccard index of a document and a text is no estimate.

Files are searched one by one, and what is found in one is a `ScanPart`, written when the file was read. Parts add up
in any order to the same numbers, so a scan may be killed, divided over machines, and go on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pretrace.plugins.scan.corpus import DocumentFacts, FileFacts
from pretrace.plugins.scan.folding import (
    BLOCK,
    LONGEST_TAIL,
    FoldedTexts,
    Hashes,
    HashTable,
    Numbers,
    Stream,
    Strings,
    fold_strings,
    load_kernels,
    rows_of,
)

RUN, SHORT = 50, 24
"""Letters and digits in a row in common that count as a run, and that count beside others in the same place."""
COMMON = 1000
"""Documents that hold a block, from which on it is counted and no longer followed to both sides."""
REPEATS = 64
"""Places of a block in one text, from which on it is followed from these alone: repeats take no longer."""
SPARSE = 8_000_000
"""Bytes of text from which on the texts are cut at every third byte, and the corpus at every eighth: less memory."""
ROWS = 1 << 16
"""Runs that are gathered at a time."""
_RECENT = 1 << 16
"""Runs that are remembered, so that one that a document holds several times is told once."""
SHINGLE, GRAM = 5, 13
"""Words of a sequence, for near copies and for the overlap."""
NEAR = 0.8
"""The Jaccard index from which on a document is a near copy of a text."""
NEAREST = 20
"""Near copies that are named for each text."""
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)


Runs = npt.NDArray[np.int64]
"""Runs, [runs, 7]: document (the row where it begins), text, first and last byte of the text (the last one not
included), the byte of the buffer at which the run begins, its characters, and the string of the buffer where it begins.
Of runs of a string that differ only in where they begin in it, the first is among them."""
DOCUMENT, TEXT, START, END, AT, CHARACTERS, STRING = range(7)


class BlockTable:
    """The blocks of the texts; the corpus is cut at every `every`-th byte. `places[first[i]:first[i + 1]]` of the i-th
    hash are the places of blocks that are all the same. `repeats` says of a hash whether a text holds it more than
    `REPEATS` times, of which no more are kept. Beside them the `shingles` and `grams` of the texts, where near copies
    or the overlap are wanted."""

    def __init__(
        self, texts: FoldedTexts, shingles: TextSequences | None = None, grams: TextSequences | None = None
    ) -> None:
        self.shingles, self.grams = shingles, grams
        sizes, starts = texts.sizes, texts.spans[:, 0]
        self.texts, (stride, self.every) = texts, (1, BLOCK) if sizes.sum() <= SPARSE else (3, 8)
        kind = np.int32 if len(texts.buffer) < 1 << 31 else np.int64
        some = [np.arange(one, end - BLOCK + 1, stride, dtype=kind) for one, end in texts.spans.tolist()]
        places = np.concatenate(some)
        hashes: Hashes = load_kernels().hash_blocks(texts.buffer, places)
        order = np.argsort(hashes, kind="stable")
        places, hashes = places[order], hashes[order]
        later = np.flatnonzero(hashes[REPEATS:] == hashes[:-REPEATS]) + REPEATS
        mine, before = (np.searchsorted(starts, places[one], "right") for one in (later, later - REPEATS))
        gone = later[mine == before]
        self.hashes, self.places = HashTable.of(np.delete(hashes, gone)), np.delete(places, gone)
        self.repeats: npt.NDArray[np.bool_] = np.isin(self.hashes.keys, hashes[gone])


class Sighting(NamedTuple):
    """A document that holds part of a text, or is nearly one: `amount` is the bytes of the text in one place, or the
    Jaccard index."""

    text: int
    amount: float
    file: str
    document: int
    id: str
    url: str
    date: str


def _first_sightings(some: Iterable[Sighting], most: int) -> list[Sighting]:
    """The sightings of each text that are shown, by text and the largest amount first."""
    order = sorted(some, key=lambda one: (one.text, -one.amount, one.file, one.document))
    return [one for _, mine in groupby(order, lambda one: one.text) for one in islice(mine, most)]


def _words_of(strings: Strings) -> tuple[Hashes, Numbers]:
    """The hash of each word of some strings, in order, and the number of its string."""
    apart = [b""] * len(strings.places)
    buffer, spans = fold_strings(strings, exact=False, spaced=True, behind=apart)
    found: tuple[Hashes, Numbers] = load_kernels().hash_words(buffer, spans)
    return found


def _sequences(words: Hashes, owners: Numbers, size: int) -> tuple[Hashes, Numbers]:
    """The hash of every `size` words in a row that stand in one document, and the number of the document."""
    number = max(0, len(words) - size + 1)
    inside = np.flatnonzero(owners[:number] == owners[size - 1 :])
    found = np.zeros(len(inside), np.uint64)
    for k in range(size):  # a polynomial of hashes, which are as good as random
        found = found * _FACTOR + words[inside + k]
    return found, owners[inside]


def _each_once(rows: Numbers, columns: Numbers, shape: tuple[int, int]) -> Any:
    """A sparse matrix with 1 at these places."""
    from scipy import sparse

    made = sparse.csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=shape)
    made.data[:] = 1
    return made


class TextSequences:
    """The different sequences of so many words of some texts, by their hashes: `texts` [sequences, texts] says with 1
    which text has which, `sizes` how many each has."""

    def __init__(self, texts: Sequence[bytes], size: int) -> None:
        hashes, owners = _sequences(*_words_of(Strings.of(texts)), size)
        keys, places = np.unique(hashes, return_inverse=True)
        self.table = HashTable.of(keys)
        self.texts = _each_once(places, owners, (len(keys), len(texts)))
        self.sizes: Numbers = self.texts.sum(axis=0)

    def shares(self, found: Hashes) -> npt.NDArray[np.float64]:
        """The share of each text's sequences that are among those found, NaN for a text that has none."""
        counts = self.texts.T @ np.isin(self.table.keys, found).astype(np.int64)
        return np.where(self.sizes > 0, counts / np.maximum(self.sizes, 1), np.nan)


class FileSearch:
    """Looks for the texts of a table in the streams of one file, and adds up what it finds: it depends on no other
    file."""

    def __init__(self, table: BlockTable, file: str = "") -> None:
        self._table, self._file, self._kernels = table, file, load_kernels()
        self._found = np.zeros(len(table.grams.table.keys) if table.grams else 0, dtype=np.bool_)
        self._nearest: list[Sighting] = []
        self._seen: Numbers = np.tile([0, -1], (len(table.hashes.keys), 1))
        self._recent = np.zeros(_RECENT, dtype=np.int64)
        self._reached = np.zeros((_RECENT, 2), dtype=np.int64)
        self._starts, self._sizes = table.texts.spans[:, 0], table.texts.sizes
        self._changes = list[Numbers]()
        counts = np.zeros((5, len(self._sizes)), np.int64)
        self._documents, self._wholes, self._near, self._longest, self._floor = counts
        self._last_whole = np.full(len(self._sizes), -1, dtype=np.int64)
        self._best: dict[int, list[Sighting]] = {}
        self._open: Runs = np.zeros((0, 4), dtype=np.int64)

    def _runs(self, found: Stream) -> Runs:
        """The runs of a stream, in order; those that may go on behind its end are left for the next one."""
        table, buffer = self._table, found.buffer
        places = np.arange(0, len(buffer) - BLOCK + 1, table.every)
        known, keys = self._kernels.find(self._kernels.hash_blocks(buffer, places), table.hashes)
        places = places[known]
        strings = np.searchsorted(found.spans[:, 0], places, side="right") - 1
        first, rows, gathered = 0, np.empty((ROWS, 5), dtype=np.int64), [np.empty((0, 5), dtype=np.int64)]
        same = np.zeros(len(places), dtype=np.bool_)
        texts, firsts = table.texts.buffer, table.hashes.first
        self._reached[:] = 0
        owners = found.rows[strings]
        while first < len(places):
            number, after = self._kernels.follow_blocks(
                buffer, places, keys, strings, owners, first, texts, firsts, table.places, table.repeats,
                self._seen, same, self._recent, self._reached, rows,
            )  # fmt: skip
            if after == first:  # one block alone has more runs than there is room for
                rows = np.empty((2 * len(rows), 5), dtype=np.int64)
                continue
            gathered.append(rows[:number].copy())
            first = after
        return _of_strings(np.concatenate(gathered), found, self._starts)

    def add(self, stream: Stream, facts: Callable[[int], DocumentFacts]) -> None:
        """The documents of a buffer; what covers a text to `WHOLE` in one place is whole there."""
        runs, keys = _select_runs(self._runs(stream), stream, self._sizes)
        if not len(runs):
            return
        held = np.concatenate([_held(runs, one, self._sizes) for one in keys])
        self._count(runs, rows_of(stream.tails))
        np.maximum.at(self._longest, runs[:, TEXT], runs[:, CHARACTERS])
        held = held[np.lexsort((-held[:, 2], held[:, 0], held[:, 1]))]
        held = held[np.append(True, (held[1:, :2] != held[:-1, :2]).any(axis=1))]
        whole = held[(held[:, 3] > 0) & (held[:, 1] != self._last_whole[held[:, 0]])]
        np.add.at(self._wholes, whole[:, 0], 1)
        self._last_whole[whole[:, 0]] = whole[:, 1]
        self._sight(held, facts)

    def add_words(self, stream: Stream, facts: Callable[[int], DocumentFacts]) -> None:
        """The sequences of words of the documents of a buffer, where they are wanted."""
        held, grams = self._table.shingles, self._table.grams
        if not (held or grams):
            return
        words = _words_of(stream.strings)
        if grams:
            self._found[self._kernels.find(_sequences(*words, GRAM)[0], grams.table)[1]] = True
        if not held:
            return
        hashes, owners = _sequences(*words, SHINGLE)
        at, key = self._kernels.find(hashes, held.table)
        if not len(at):
            return
        documents = _each_once(owners[at], key, (int(owners[-1]) + 1, len(held.table.keys)))
        shared = (documents @ held.texts).tocoo()  # how many different sequences they have in common
        rows = np.stack([shared.row, shared.col, shared.data], axis=1)

        @cache  # once a document, which may be long and hold many texts
        def size(place: int) -> int:
            return len(np.unique(hashes[slice(*np.searchsorted(owners, [place, place + 1]))]))

        for place, one, both in rows[shared.data >= NEAR * held.sizes[shared.col]].tolist():
            jaccard = both / (size(place) + int(held.sizes[one]) - both)
            if jaccard >= NEAR:
                self._near[one] += 1
                row = int(stream.strings.rows[place])
                self._nearest.append(Sighting(one, jaccard, self._file, row, *facts(row)))
        self._nearest = _first_sightings(self._nearest, NEAREST)

    def _count(self, runs: Runs, goes_on: set[int]) -> None:
        """Add up how many documents hold which bytes of the texts. What was counted of documents that went on is taken
        back, and counted again with what is new."""
        before, runs = self._open, np.concatenate([self._open, runs[:, :AT]])
        of, first = _places(runs, runs[:, DOCUMENT])
        begins, ends, place = _stretches(runs, of)
        runs = np.column_stack([runs[first[place], :START], begins, ends])  # which do not touch
        for some, sign in ((before, -1), (runs, 1)):
            base = self._starts[some[:, TEXT]]
            for edge, change in ((START, sign), (END, -sign)):
                self._changes.append(np.column_stack([base + some[:, edge], np.full_like(base, change)]))
            pairs = some[:, TEXT] << 32 | some[:, DOCUMENT]
            np.add.at(self._documents, np.unique(pairs) >> 32, sign)
        self._open = runs[np.isin(runs[:, DOCUMENT], [*goes_on])]
        if sum(map(len, self._changes[1:])) > _GATHERED:
            self._changes = [_add_changes(self._changes)]

    def _sight(self, held: Numbers, facts: Callable[[int], DocumentFacts]) -> None:
        """Note the documents that hold most of each text: text, document and bytes in `held`."""
        held, known = held[held[:, 2] > self._floor[held[:, 0]]], cache(facts)
        held = held[np.lexsort((held[:, 1], -held[:, 2], held[:, 0]))]
        for text, some in groupby(held.tolist(), itemgetter(0)):
            best = {one.document: one for one in self._best.get(text, ())}
            more = [row for row in some if row[1] not in best or row[2] > best[row[1]].amount]
            for _, document, covered, _ in more[:KEPT]:
                best[document] = Sighting(text, covered, self._file, document, *known(document))
            self._best[text] = first = _first_sightings(best.values(), KEPT)
            if len(first) == KEPT:
                self._floor[text] = first[-1].amount

    def part(self, facts: FileFacts) -> ScanPart:
        """What was found, with what was read of the file."""
        best = [one for text in sorted(self._best) for one in self._best[text]]
        counts = np.stack([self._documents, self._wholes, self._near], axis=1)
        grams = self._table.grams.table.keys[self._found] if self._table.grams else np.zeros(0, np.uint64)
        changes = _add_changes(self._changes)
        return ScanPart((facts,), changes, counts, self._longest, best, self._nearest, grams)


def _of_strings(rows: Numbers, found: Stream, starts: Numbers) -> Runs:
    """The runs that this stream tells of, in texts that begin at `starts`, with the string that each begins in."""
    at = rows[:, 3]
    stop = at + rows[:, 2] - rows[:, 1]
    column = np.searchsorted(found.begins, at, side="right") - 1
    told = stop >= found.fresh[column]
    if not found.last:
        size = found.ends[column] - at
        goes_on = told & (stop == found.ends[column]) & (size <= LONGEST_TAIL)
        np.maximum.at(found.holds, column[goes_on], size[goes_on])
        told &= ~goes_on
    rows, at = rows[told], at[told]
    begins = np.searchsorted(found.spans[:, 0], at, side="right") - 1
    text = np.searchsorted(starts, rows[:, 1], side="right") - 1
    first, last = (rows[:, k] - starts[text] for k in (1, 2))
    return np.column_stack([found.rows[begins], text, first, last, at, rows[:, 4], begins])


KEPT = 20
"""Documents that are named for each text: those that hold most of it."""
WHOLE, A_GAP = 0.95, 1000
"""The share of a text in one place that makes it whole there, and bytes for each stretch that may be another."""
BROKEN, _BOUNDED = 3, 4
"""Runs in one place that count although short; times as long as a text a document may be, to be one place."""
SLIGHT = 0.05
"""The share of a text's letters up to which it counts as not found, unless a long passage is among them."""
_GATHERED = 1 << 18
"""Ends of passages that are gathered before they are added up."""


@dataclass(slots=True)
class ScanPart:
    """What was found in some files. `changes` [places, 2] says at which byte of all texts how many more documents hold
    what follows. `counts` [texts, 3] are the documents that hold a part of each text, those that hold the whole, and
    its near copies, `longest` [texts] the characters of its longest run. `grams` are the hashes of the texts' sequences
    of 13 words that were found."""

    files: tuple[FileFacts, ...]
    changes: Numbers
    counts: Numbers
    longest: Numbers
    best: list[Sighting]
    nearest: list[Sighting]
    grams: Hashes

    def save(self, path: Path) -> None:
        """Write it; the caller renames."""
        plain = {"files": [asdict(one) for one in self.files], "best": self.best, "nearest": self.nearest}
        written = json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass")
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        with path.open("wb") as file:
            np.savez_compressed(file, plain=np.frombuffer(written, dtype=np.uint8), **arrays)

    @classmethod
    def load(cls, path: Path) -> ScanPart:
        """What `save` wrote; ValueError or OSError where it is damaged."""
        with np.load(path) as found:
            arrays: dict[str, Any] = {name: found[name] for name in _ARRAYS}
            plain: dict[str, Any] = json.loads(found["plain"].tobytes().decode("utf-8", "surrogatepass"))
        best, nearest = ([Sighting._make(one) for one in plain[name]] for name in ("best", "nearest"))
        files = tuple(FileFacts(**one) for one in plain["files"])
        return cls(files=files, best=best, nearest=nearest, **arrays)


_ARRAYS = ("changes", "counts", "longest", "grams")


def _select_runs(runs: Runs, stream: Stream, sizes: Numbers) -> tuple[Runs, tuple[Numbers, ...]]:
    """The runs that count, in order, and three keys of their places: all of `RUN` characters, and short ones where
    several stand in one place, which is as long as the text of `sizes`, or a document that is not much longer."""
    if not len(runs):
        return runs, ()
    runs = runs[np.lexsort((-runs[:, END], *runs[:, START::-1].T))]  # the longer one first
    size = sizes[runs[:, TEXT]]
    shift, wide = runs[:, AT] - runs[:, START], np.maximum(size // 2, 2 * SHORT)
    keys = (shift // wide, (shift + wide // 2) // wide)
    some = runs[:, CHARACTERS] >= RUN
    for key in keys:
        of, first = _places(runs, key)
        number, (covered, _) = np.bincount(of), _covered(runs, of)
        many = (number >= BROKEN) & (covered >= (BROKEN + 1) * SHORT)
        some |= (many | (number > 1) & (4 * covered >= size[first]))[of]
    runs, size = runs[some], size[some]
    spans = stream.spans[runs[:, STRING]]
    own = np.where(spans[:, 1] - spans[:, 0] <= _BOUNDED * size, runs[:, STRING], -1 - np.arange(len(runs)))
    return runs, (keys[0][some], keys[1][some], own)


def _places(runs: Runs, keys: Numbers) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The place of each run, which the runs of a text with the same key have in common; and the first run of each."""
    order = np.lexsort((runs[:, START], keys, runs[:, TEXT]))
    texts, keys = runs[order, TEXT], keys[order]
    fresh = np.append(True, (texts[1:] != texts[:-1]) | (keys[1:] != keys[:-1]))
    of = np.empty(len(runs), dtype=np.intp)
    of[order] = np.cumsum(fresh) - 1
    return of, order[fresh]


def _stretches(runs: Runs, of: npt.NDArray[np.intp]) -> tuple[Numbers, Numbers, npt.NDArray[np.intp]]:
    """The bytes that the runs of each place cover, as stretches: first, last and place of each."""
    order = np.lexsort((runs[:, START], of))
    of, starts, ends = of[order], runs[order, START], runs[order, END]
    room = int(ends.max()) + 1
    reach = np.maximum.accumulate(of * room + ends)
    opens = np.append(True, of[1:] * room + starts[1:] > reach[:-1])
    at = np.flatnonzero(opens)
    closes = np.append(at[1:], len(order)) - 1
    return starts[at], reach[closes] - of[closes] * room, of[at]


def _covered(runs: Runs, of: npt.NDArray[np.intp]) -> tuple[Numbers, Numbers]:
    """How many bytes the runs of each place cover, and how many gaps they leave between them."""
    begins, ends, place = _stretches(runs, of)
    return np.bincount(place, weights=ends - begins).astype(np.int64), np.bincount(place) - 1


def _held(runs: Runs, keys: Numbers, sizes: Numbers) -> Numbers:
    """Of the place of each key its text, the document where it begins, the bytes that it covers, and whether it is
    whole."""
    of, first = _places(runs, keys)
    (covered, gaps), texts = _covered(runs, of), runs[first, TEXT]
    whole = (covered >= WHOLE * sizes[texts]) & (gaps <= sizes[texts] // A_GAP)
    return np.column_stack([texts, runs[first, DOCUMENT], covered, whole])


def _add_changes(changes: Sequence[Numbers]) -> Numbers:
    """Changes at each place once, in order, without those that come to nothing."""
    joined = np.concatenate([np.zeros((0, 2), np.int64), *changes])
    places, where = np.unique(joined[:, 0], return_inverse=True)
    sums = np.bincount(where, weights=joined[:, 1]).astype(np.int64)
    kept = sums != 0
    return np.stack([places[kept], sums[kept]], axis=1)


def merge_parts(parts: Iterable[ScanPart | None]) -> ScanPart | None:
    """The parts as one, the same in whichever order they come; None where one of them is."""
    left, whole = iter(parts), list[ScanPart]()
    while some := [*islice(left, 64)]:
        for part in some:
            if part is None:
                return None
            whole.append(part)
        whole = [
            ScanPart(
                tuple(sorted(chain.from_iterable(one.files for one in whole), key=lambda one: one.file)),
                _add_changes([one.changes for one in whole]),
                np.sum([one.counts for one in whole], axis=0),
                np.max([one.longest for one in whole], axis=0),
                _first_sightings(chain.from_iterable(one.best for one in whole), KEPT),
                _first_sightings(chain.from_iterable(one.nearest for one in whole), NEAREST),
                np.unique(np.concatenate([one.grams for one in whole])),
            )
        ]
    return whole[0]
