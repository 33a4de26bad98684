"""Texts cut at their seams, and the distinct pieces counted: numpy finds the seams, Arrow counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pretrace.frequencies.neighbours import SEAM, Flags

if TYPE_CHECKING:
    import pyarrow as pa

START = b"\xff"
"""Stands before every text; a piece that begins with it begins a text."""

_BLOCK = 1 << 20  # bytes cut at a time: what numpy makes of them fits in a processor's cache


def joined(texts: Sequence[bytes]) -> bytes:
    """The texts in UTF-8, one after another, START before each."""
    return START + START.join(texts) if texts else b""


def cut(raw: bytes, flags: Flags) -> list[bytes]:
    """The pieces of joined texts, in order; together they are `raw`."""
    return [
        bytes(block[start:end]) for block, offsets in _blocks(raw, flags) for start, end in pairwise(offsets)
    ]


def distinct(raw: bytes, flags: Flags) -> pa.Table:
    """The distinct pieces of joined texts: columns `piece` (binary) and `count` (int64), in any order."""
    import pyarrow as pa

    tables = [empty()]
    for block, offsets in _blocks(raw, flags):
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
        counted = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers).value_counts()
        tables.append(pa.table({"piece": counted.field("values"), "count": counted.field("counts")}))
    return pa.concat_tables(tables)


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """Several tables of pieces as one, every piece once."""
    import pyarrow as pa

    together = pa.concat_tables(tables).group_by("piece", use_threads=False).aggregate([("count", "sum")])
    return pa.table({"piece": together["piece"], "count": together["count_sum"]}).combine_chunks()


def longest_first(table: pa.Table) -> pa.Table:
    """The same table with its longest pieces first."""
    import pyarrow.compute as pc

    lengths = pc.binary_length(table["piece"]).to_numpy()
    return table.take(np.argsort(-lengths, kind="stable"))


def empty() -> pa.Table:
    """A table of no pieces."""
    import pyarrow as pa

    return pa.table({"piece": pa.array([], pa.binary()), "count": pa.array([], pa.int64())})


def _blocks(raw: bytes, flags: Flags) -> Iterator[tuple[memoryview, npt.NDArray[np.int32]]]:
    """Parts of `raw` that end at a seam, each with the offsets of its pieces, int32 [pieces + 1]."""
    view = memoryview(raw)
    start, size = 0, _BLOCK
    while start < len(raw):
        block = view[start : start + size]
        seams = _seams(block, flags)
        if start + size >= len(raw):
            seams = np.append(seams, len(block))
        elif not len(seams):
            size *= 2  # one piece longer than a block
            continue
        offsets = np.zeros(len(seams) + 1, dtype=np.int32)
        offsets[1:] = seams
        yield block[: offsets[-1]], offsets
        start, size = start + int(offsets[-1]), _BLOCK


def _seams(block: memoryview, flags: Flags) -> npt.NDArray[np.intp]:
    """Positions of the seams strictly inside a block: int [seams]."""
    codes = np.frombuffer(block, dtype=np.uint8)
    pairs = codes[1:].astype(np.uint16)
    pairs <<= 8
    pairs |= codes[:-1]
    found = np.take(flags, pairs)
    # A pair's AFTER bit (2) against the CONFIRMING bit (4) of the pair before it, and its BEFORE bit (8)
    # against the FOLLOWED bit (16) of the pair behind it, all shifted onto SEAM (1).
    after = (found[1:] >> 1) & (found[:-1] >> 2)
    before = (found[:-1] >> 3) & (found[1:] >> 4)
    found[1:] |= after
    found[:-1] |= before
    found &= SEAM
    return np.flatnonzero(found.view(np.bool_)) + 1
