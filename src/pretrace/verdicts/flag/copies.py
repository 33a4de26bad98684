"""Texts that are nearly the same, among texts of which nobody says which belong together.

Ten versions of one page are one page: counted as ten they make sets stand out by chance. Texts without a `group` whose
8-character strings (white space and case not counted) are mostly the same are linked into one document.

The sketches are MinHash (Broder 1997) by `rensa`: 256 hashes a text, in 32 bands of 8. Two texts are linked where a
band agrees. At a Jaccard index of 0.8 of their strings that is so for 99 pairs in 100, at 0.7 for 85, at 0.6 for 42, at
0.5 for 12 and at 0.3 for 1 in 500; among several versions one link each is enough. Bands lie in files while they are
gathered, 8 bytes a text and band, and one band at a time is read back.
"""

from __future__ import annotations

import tempfile
from array import array
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt

from pretrace.building.pages import shingles
from pretrace.statistics.documents import Numbers, linked_numbers

BANDS, WIDTH = 32, 8
"""Bands, and hashes a band."""
READ = 20_000
"""Characters of a text that are read."""
_BLOCK = 4_096
_SEED = 1


class Sketches:
    """The bands of texts in order, in temporary files that go away with it."""

    def __init__(self) -> None:
        self.texts = 0
        self._files: list[IO[bytes]] = []
        self._waiting = array("q")

    def add(self, text: str, *, alone: bool) -> None:
        """A text; it is compared with others only where it stands `alone`, without a group."""
        self._waiting.extend(bands(text) if alone else [0] * BANDS)
        self.texts += 1
        if len(self._waiting) >= _BLOCK * BANDS:
            self._write()

    def band(self, number: int) -> npt.NDArray[np.int64]:
        """One band of all texts, [texts]; 0 for a text that is compared with none."""
        self._write()
        if not self._files:
            return np.zeros(0, dtype=np.int64)
        file = self._files[number]
        file.seek(0)
        found = np.frombuffer(file.read(), dtype=np.int64)
        file.seek(0, 2)
        return found

    def _write(self) -> None:
        if not self._waiting:
            return
        if not self._files:
            self._files = [tempfile.TemporaryFile() for _ in range(BANDS)]  # noqa: SIM115 (they live as long as this)
        rows = np.frombuffer(self._waiting, dtype=np.int64).reshape(-1, BANDS)
        for file, column in zip(self._files, rows.T, strict=True):
            file.write(np.ascontiguousarray(column).tobytes())
        self._waiting = array("q")


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """`first` [documents] is the document that each is linked to, `linked` how many documents that leaves fewer, and
    `across` how many of the texts in question are near copies of known ones."""

    first: Numbers
    linked: int
    across: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What was linked, in sentences; nothing where nothing was."""
        found = []
        if self.linked:
            found.append(
                f"Near copies: {self.linked:,} texts without a group say mostly the same as others on their side, and "
                "count with these as one document."
            )
        if self.across:
            found.append(
                f"Texts in question that say mostly the same as a known non-member: {self.across:,}. What the model "
                "makes of those cannot differ; take such texts out of one of the two files."
            )
        return tuple(found)


def near_copies(sketches: Sketches, codes: npt.NDArray[np.integer], first: Numbers, asked: int) -> Copies:
    """What is linked beyond `first` [documents]: `codes` [texts] are the documents of the texts, the first `asked` of
    which are those in question. The two sides are never linked with each other."""
    linked, both = np.asarray(first, dtype=np.int64), np.zeros(asked, dtype=bool)
    before = len(np.unique(linked[codes]))
    for number in range(BANDS):
        hashes = sketches.band(number)
        theirs = hashes[:asked]
        both |= (theirs != 0) & np.isin(theirs, hashes[asked:])
        for side in (slice(0, asked), slice(asked, None)):
            rows = linked[codes[side]].astype(np.int64)
            linked = linked_numbers(hashes[side], rows, len(linked))[linked]
    after = len(np.unique(linked[codes]))
    return Copies(linked, before - after, int(both.sum()))


def bands(text: str) -> list[int]:
    """The bands of a text, as 64-bit numbers that are never 0; all 0 for a text without a character."""
    from rensa import RMinHash

    if not text.strip():
        return [0] * BANDS
    strings = shingles(text[:READ].lower())
    ends = np.array([0, len(strings)], dtype=np.uint64)
    made = RMinHash.digest_matrix_from_flat_token_hashes(strings, ends, num_perm=BANDS * WIDTH, seed=_SEED)
    hashes = np.array(made.to_rows()[0], dtype=np.uint64).reshape(BANDS, WIDTH)
    folded = np.full(BANDS, 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in hashes.T:
        folded = (folded ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        folded ^= folded >> np.uint64(31)
    return [int(one) or 1 for one in folded.view(np.int64)]
