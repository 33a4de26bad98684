"""Texts that are nearly the same: ten versions of one page, counted as ten, make sets stand out by chance. Texts whose
8-character strings (white space and case not counted) are mostly the same are linked into one document.

The sketches are MinHash (Broder 1997) by `rensa`: 256 hashes a text, in 32 bands of 8; two texts are linked where a
band agrees. At a Jaccard index of 0.8 that is so for 99 pairs in 100, at 0.7 for 85, at 0.6 for 42, at 0.5 for 12 and
at 0.3 for 1 in 500. Bands lie in a file, 8 bytes a text and band, of which one band at a time is kept.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pretrace.statistics.documents import Numbers, linked_numbers
from pretrace.types import Bools

SHINGLE = 8
"""Characters of a shingle, white space not counted."""
BANDS, WIDTH = 32, 8
"""Bands, and hashes a band."""
READ = 20_000
"""Characters of a text that are read."""
_BLOCK = BANDS * 8 << 12  # bytes of the bands of some thousand texts
_SEED, _MULTIPLIER = 1, 0x9E3779B97F4A7C15


class Sketches:
    """The bands of texts in order, in a temporary file that goes away with it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as this)

    def add(self, text: str, *, alone: bool = True) -> None:
        """A text; it is compared with others only where it stands `alone`."""
        self._file.write(array("q", bands(text) if alone else [0] * BANDS))

    def band(self, number: int) -> npt.NDArray[np.int64]:
        """One band of all texts, [texts]; 0 for a text that is compared with none."""
        self._file.seek(0)
        found = [np.zeros(0, dtype=np.int64)]
        while some := self._file.read(_BLOCK):
            found.append(np.frombuffer(some, dtype=np.int64)[number::BANDS].copy())
        return np.concatenate(found)


def link(
    sketches: Sketches, codes: npt.NDArray[np.integer], first: Numbers, sides: Sequence[slice | Bools]
) -> Numbers:
    """For each document the one that it is linked to, itself where to none: beyond `first` [documents], each with those
    of its side that say mostly the same. `codes` [texts] are the documents of the texts; a text is on one side."""
    linked = np.asarray(first, dtype=np.int64)
    for number in range(BANDS):
        hashes = sketches.band(number)
        for side in sides:
            rows = linked[codes[side]].astype(np.int64)
            linked = linked_numbers(hashes[side], rows, len(linked))[linked]
    return linked


def bands(text: str) -> list[int]:
    """The bands of a text, as 64-bit numbers that are never 0; all 0 for a text without a character."""
    from rensa import RMinHash

    if not text.strip():
        return [0] * BANDS
    squeezed = "".join(text[:READ].lower().split()).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(squeezed, dtype=np.uint32).astype(np.uint64)
    size = max(1, len(codes) - SHINGLE + 1)  # one shingle of the whole where it is shorter
    padded = np.concatenate([codes, np.zeros(max(0, SHINGLE - len(codes)), dtype=np.uint64)])
    strings = np.full(size, _MULTIPLIER, dtype=np.uint64)
    for place in range(SHINGLE):
        strings = (strings ^ padded[place : place + size]) * np.uint64(_MULTIPLIER)
        strings ^= strings >> np.uint64(29)
    strings = np.unique(strings)
    ends = np.array([0, len(strings)], dtype=np.uint64)
    made = RMinHash.digest_matrix_from_flat_token_hashes(strings, ends, num_perm=BANDS * WIDTH, seed=_SEED)
    hashes = np.array(made.to_rows()[0], dtype=np.uint64).reshape(BANDS, WIDTH)
    folded = np.full(BANDS, _MULTIPLIER, dtype=np.uint64)
    for column in hashes.T:
        folded = (folded ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        folded ^= folded >> np.uint64(31)
    return [int(one) or 1 for one in folded.view(np.int64)]
