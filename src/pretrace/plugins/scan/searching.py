"""The search: a table of the texts' blocks, and what a buffer of corpus documents has in common with them.

A block is 24 bytes. The corpus is cut at every `every`-th byte, the texts at every `stride`-th, and both numbers are
such that a common run of 47 bytes or more holds a block that is cut in both. So every run of `RUN` characters is found,
wherever it stands; and since each is compared byte by byte, nothing else is. Of shorter runs about every second one is
found: several in one place tell of a copy that something else is written into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.plugins.scan.folding import BLOCK, LONGEST_TAIL, Bytes, Numbers, Spans, Stream, load_kernels
from pretrace.results.wording import say

RUN, SHORT = 50, 24
"""Letters and digits in a row in common that count as a run, and that count beside others in the same place."""
COMMON = 1000
"""Documents that hold a block, from which on it is counted and no longer followed to both sides."""
REPEATS = 64
"""Places of a block in one text, from which on it is followed from these alone: repeats take no longer."""
FACTORS = np.array([0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], dtype=np.uint64)
"""Odd numbers by which a 64-bit number is mixed (the finalizer of MurmurHash3, in the public domain)."""
SPARSE = 8_000_000
"""Bytes of text from which on the texts are cut at every third byte, and the corpus at every eighth: less memory."""
Words = npt.NDArray[np.uint64]
ROWS = 1 << 16
"""Runs that are gathered at a time."""
_RECENT = 1 << 16
"""Runs that are remembered, so that one that a document holds several times is told once."""
NEAR = 64
"""Bytes of the texts for which it is noted which text they belong to."""
FEWEST_BITS, MOST_BITS, BITS_A_BLOCK = 10, 27, 16
"""Of the bit map: the least and the most of its words, as powers of two, and its bits for each block of the texts."""


Runs = npt.NDArray[np.int64]
"""Runs, [runs, 8]: document (the row where it begins), text, first and last byte of the text (the last one not
included), the byte of the buffer at which the run begins, its characters, and the strings of the buffer where it begins
and ends. Of runs of a string that differ only in where they begin in it, the first is among them."""
DOCUMENT, TEXT, START, END, AT, CHARACTERS, STRING, LAST = range(8)


@dataclass(frozen=True, slots=True, eq=False)
class BlockTable:
    """The blocks of the texts. `texts` is one buffer with the texts at `spans`; `keys` are the different hashes in
    order, and `places[first[i]:first[i + 1]]` the places of the blocks with the i-th, which are all the same block;
    `bitmap` has the bit of the first `bits` bits of each key, `buckets` where the keys begin that share their first
    bits. `text_near` is the text that holds every `NEAR`-th byte, or the one before it. `repeats` says of a key whether
    a text holds it more than `REPEATS` times, of which no more are kept."""

    texts: Bytes
    spans: Spans
    stride: int
    every: int
    keys: npt.NDArray[np.uint64]
    first: npt.NDArray[np.int32 | np.int64]
    places: npt.NDArray[np.int32 | np.int64]
    bitmap: npt.NDArray[np.uint64]
    bits: int
    buckets: npt.NDArray[np.int32]
    text_near: npt.NDArray[np.int32]
    repeats: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> BlockTable:
        """The table of folded texts."""
        size = sum(map(len, texts))
        stride, every = (1, BLOCK) if size <= SPARSE else (3, 8)
        joined = np.frombuffer(b"".join(one + b"\xff" * BLOCK for one in texts), dtype=np.uint8)
        ends = np.cumsum([len(one) + BLOCK for one in texts]).astype(np.int64)
        sizes = np.array([len(one) for one in texts], dtype=np.int64)
        spans = np.stack([ends - BLOCK - sizes, ends - BLOCK], axis=1)
        counts = np.maximum((sizes - BLOCK) // stride + 1, 0)
        shifts = ends - BLOCK - sizes - stride * (np.cumsum(counts) - counts)
        kind = np.int32 if len(joined) < 1 << 31 else np.int64
        places: npt.NDArray[np.int32 | np.int64] = np.arange(int(counts.sum()), dtype=kind)
        np.multiply(places, kind(stride), out=places)
        np.add(places, np.repeat(shifts.astype(kind), counts), out=places)
        words, kernels = _words(joined), load_kernels()
        hashes = np.empty(len(places), dtype=np.uint64)
        kernels.hash_blocks(words, places, hashes)
        order, hashes = _in_order(hashes)
        places = places[order]
        fresh = np.ones(len(hashes), dtype=np.bool_)
        fresh[1:] = hashes[1:] != hashes[:-1]
        keys = hashes[fresh]
        first = np.append(np.flatnonzero(fresh).astype(kind), kind(len(places)))
        again = np.flatnonzero(~fresh)
        there, model = places[again], places[again - 1]
        repeats = np.zeros(len(keys), dtype=np.bool_)
        if any((words[there + k] != words[model + k]).any() for k in (0, 8, 16)):
            raise TextsError(say("scan.refused.same_hash"))
        if (np.diff(first) > REPEATS).any():
            places, first, repeats = _thinned(places, first, spans)
        wanted = int(np.ceil(np.log2(max(1, len(keys) * BITS_A_BLOCK // 64))))
        bits = min(MOST_BITS, max(FEWEST_BITS, wanted))
        bitmap = np.zeros(1 << bits, dtype=np.uint64)
        begins = np.searchsorted(keys, np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits))
        buckets: npt.NDArray[np.int32] = np.append(begins, len(keys)).astype(np.int32)
        kernels.set_bits(keys, np.uint64(64 - bits), bitmap)
        near = np.searchsorted(spans[:, 0], np.arange(0, len(joined), NEAR), side="right") - 1
        text_near = np.maximum(near, 0).astype(np.int32)
        return cls(
            joined, spans, stride, every, keys, first, places, bitmap, bits, buckets, text_near, repeats
        )


class Search:
    """Looks for the texts of a table in the streams of one file: what is found in a file depends on no other."""

    def __init__(self, table: BlockTable) -> None:
        self._table, self._kernels = table, load_kernels()
        self._seen = np.full((len(table.keys), 2), -1, dtype=np.int64)
        self._seen[:, 0] = 0
        self._recent = np.zeros(_RECENT, dtype=np.int64)
        self._reached = np.zeros((_RECENT, 2), dtype=np.int64)

    def runs(self, found: Stream) -> Runs:
        """The runs of a stream, in order; those that may go on behind its end are left for the next one."""
        table, buffer = self._table, found.buffer
        places, keys = self._probe(buffer)
        strings = np.searchsorted(found.spans[:, 0], places, side="right") - 1
        inside = strings >= 0
        places, keys, strings = places[inside], keys[inside], strings[inside]
        first, rows, gathered = 0, np.empty((ROWS, 6), dtype=np.int64), []
        same = np.zeros(len(places), dtype=np.bool_)
        self._kernels.bring(keys, table.first, table.places, table.texts, self._seen)
        self._reached[:] = 0
        views, owners = (_words(buffer), _words(table.texts)), found.rows[strings]
        while first < len(places):
            number, after = self._kernels.followed(
                buffer, places, keys, strings, owners, first, table.texts, table.spans, table.first, table.places,
                table.text_near, table.repeats, *views, self._seen, same, self._recent, self._reached, rows,
            )  # fmt: skip
            if after == first:  # one block alone has more runs than there is room for
                rows = np.empty((2 * len(rows), 6), dtype=np.int64)
                continue
            gathered.append(rows[:number].copy())
            first = after
        return _of_strings(np.concatenate(gathered) if gathered else np.zeros((0, 6), dtype=np.int64), found)

    def _probe(self, buffer: Bytes) -> tuple[Numbers, Numbers]:
        """The places of the blocks at every `every`-th byte (a multiple of 8) that have a key, and its number."""
        table, words = self._table, buffer[: len(buffer) // 8 * 8].view(np.uint64)
        step, shift = table.every // 8, np.uint64(64 - table.bits)
        room = len(words) // step + 1
        places, found = np.empty((2, room), dtype=np.int64)
        hashes = np.empty(room, dtype=np.uint64)
        number = self._kernels.probe(
            words, step, table.bitmap, shift, table.keys, table.buckets, places, hashes, found
        )
        return places[:number] * 8, found[:number]


def _of_strings(rows: Runs, found: Stream) -> Runs:
    """The runs that this stream tells of, with the strings and the document that each stands in."""
    at = rows[:, AT]
    stop = at + rows[:, END] - rows[:, START]
    column = np.searchsorted(found.begins, at, side="right") - 1
    told = stop >= found.fresh[column]
    if not found.last:
        size = found.ends[column] - at
        goes_on = told & (stop == found.ends[column]) & (size <= LONGEST_TAIL)
        np.maximum.at(found.holds, column[goes_on], size[goes_on])
        told &= ~goes_on
    rows, at, stop = rows[told], at[told], stop[told]
    begins, ends = (np.searchsorted(found.spans[:, 0], one, side="right") - 1 for one in (at, stop - 1))
    rows[:, DOCUMENT] = found.rows[begins]
    return np.column_stack([rows, begins, ends])


def _thinned(
    places: npt.NDArray[Any], first: npt.NDArray[Any], spans: Spans
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The places of each key without those beyond the `REPEATS` first in one text, and whether there were any."""
    key = np.repeat(np.arange(len(first) - 1), np.diff(first))
    text = np.searchsorted(spans[:, 0], places, side="right")
    fresh = np.ones(len(places), dtype=np.bool_)
    fresh[1:] = (key[1:] != key[:-1]) | (text[1:] != text[:-1])
    begins = np.flatnonzero(fresh)
    rank = np.arange(len(places)) - np.repeat(begins, np.diff(np.append(begins, len(places))))
    kept = rank < REPEATS
    repeats = np.zeros(len(first) - 1, dtype=np.bool_)
    repeats[key[~kept]] = True
    sums = np.append(0, np.cumsum(kept)).astype(first.dtype)
    return places[kept], sums[first], repeats


def _in_order(hashes: Words) -> tuple[Numbers, Words]:
    """The stable order of hashes, as `argsort` gives it, and the hashes in it. Numbers sort faster than places, so the
    place takes the last bits of each hash; the few that agree in all other bits are sorted once more."""
    low = np.uint64((1 << max(1, len(hashes) - 1).bit_length()) - 1)
    ordered = hashes & ~low
    ordered |= np.arange(len(hashes), dtype=np.uint64)
    ordered.sort()
    ordered &= low
    order = ordered.view(np.int64)
    some = hashes[order]
    for i in np.flatnonzero(some[1:] < some[:-1]).tolist():
        first, last = i, i + 2
        while first and some[first - 1] | low == some[i] | low:
            first -= 1
        while last < len(some) and some[last] | low == some[i] | low:
            last += 1
        mine = np.sort(order[first:last])
        order[first:last] = mine[np.argsort(hashes[mine], kind="stable")]
        some[first:last] = hashes[order[first:last]]
    return order, some


def _words(buffer: Bytes) -> npt.NDArray[np.uint64]:
    """The 8 bytes from each place on as one number, uint64 [bytes - 7]; a view."""
    return np.ndarray(max(0, len(buffer) - 7), dtype=np.uint64, buffer=buffer.data, strides=(1,))
