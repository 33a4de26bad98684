"""Words that texts and documents share, whatever stands between them: near copies, and the 13-word overlap.

Words are parted by white space, in lower case and without ASCII punctuation, as in the decontamination of GPT-3 (Brown
et al. 2020, appendix C) and lm-evaluation-harness. Sequences of 5 and 13 words are compared by hashes of 64 bits, all
of them: the Jaccard index of a document and a text is no estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.plugins.scan.corpus import CorpusDocuments, Sighting
from pretrace.plugins.scan.folding import HashTable, Strings, fold_strings, load_kernels

SHINGLE, GRAM = 5, 13
"""Words of a sequence, for near copies and for the overlap."""
NEAR = 0.8
"""The Jaccard index from which on a document is a near copy of a text."""
NEAREST = 20
"""Near copies that are named for each text."""
Numbers = npt.NDArray[np.uint64]


def words_of(strings: Strings) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The hash of each word of some strings, in order, and the number of its string."""
    apart = [b""] * len(strings.places)
    buffer, spans = fold_strings(strings, exact=False, spaced=True, behind=apart)
    found, owners = np.empty(len(buffer) // 2 + 1, np.uint64), np.empty(len(buffer) // 2 + 1, np.int64)
    number = load_kernels().words(buffer, spans, found, owners)
    return found[:number], owners[:number]


def sequences(
    words: Numbers, owners: npt.NDArray[np.int64], size: int
) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The hash of every `size` words in a row that stand in one document, and the number of the document."""
    found, theirs = np.empty_like(words), np.empty_like(owners)
    number = load_kernels().sequences(words, owners, size, found, theirs)
    return found[:number], theirs[:number]


class Held:
    """The hashes of the sequences of `number` texts, `texts[first[i]:first[i + 1]]` that hold the i-th, and how many
    each text has."""

    def __init__(self, hashes: Numbers, owners: npt.NDArray[np.int64], number: int) -> None:
        order = np.lexsort((owners, hashes))
        hashes, owners = hashes[order], owners[order]
        fresh = np.ones(len(hashes), dtype=np.bool_)
        fresh[1:] = (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])
        self.table, self.texts = HashTable.of(hashes[fresh]), owners[fresh]
        self.sizes = np.bincount(self.texts, minlength=number)

    def shares(self, found: Numbers) -> npt.NDArray[np.float64]:
        """The share of each text's sequences that are among those found, NaN for a text that has none."""
        there = np.repeat(np.isin(self.table.keys, found), np.diff(self.table.first))
        counts = np.bincount(self.texts, weights=there, minlength=len(self.sizes))
        return np.where(self.sizes > 0, counts / np.maximum(self.sizes, 1), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Wording:
    """The sequences of words of the texts: those of 5 where near copies are wanted, those of 13 for the overlap."""

    shingles: Held | None
    grams: Held | None

    @classmethod
    def of(cls, texts: Sequence[bytes], *, near: bool, overlap: bool) -> Wording | None:
        """That of some texts; None where neither is wanted."""
        if not (near or overlap):
            return None
        words, owners = words_of(Strings.of(texts))

        def held(size: int) -> Held:
            return Held(*sequences(words, owners, size), len(texts))

        return cls(held(SHINGLE) if near else None, held(GRAM) if overlap else None)


class WordsFound:
    """Adds up what one file shares with the texts, word by word."""

    def __init__(self, file: str, wording: Wording) -> None:
        self._file, self._wording = file, wording
        self._grams = np.zeros(len(wording.grams.table.keys) if wording.grams else 0, dtype=np.bool_)
        self.near = np.zeros(len(wording.shingles.sizes) if wording.shingles else 1, dtype=np.int64)
        self.nearest: dict[int, list[Sighting]] = {}

    @property
    def grams(self) -> Numbers:
        """The hashes of the texts' sequences of 13 words that were found, in order."""
        held = self._wording.grams
        return np.zeros(0, np.uint64) if held is None else held.table.keys[self._grams]

    def add(self, found: CorpusDocuments) -> None:
        """The documents of a buffer."""
        words, owners = words_of(found.strings)
        if self._wording.grams is not None:
            self._grams[self._wording.grams.table.find(sequences(words, owners, GRAM)[0])[1]] = True
        if self._wording.shingles is not None:
            self._near(self._wording.shingles, *sequences(words, owners, SHINGLE), found)

    def _near(
        self, held: Held, hashes: Numbers, owners: npt.NDArray[np.int64], found: CorpusDocuments
    ) -> None:
        (keys, first, *_), (at, key) = held.table, held.table.find(hashes)
        if not len(at):
            return
        pairs = np.unique(owners[at] * len(keys) + key)  # each sequence of a document once
        document, key = pairs // len(keys), pairs % len(keys)
        many = first[key + 1] - first[key]
        skipped = np.repeat(np.cumsum(many) - many, many)
        texts = held.texts[np.repeat(first[key], many) + np.arange(len(skipped)) - skipped]
        both, shared = np.unique(np.repeat(document, many) * len(held.sizes) + texts, return_counts=True)
        text = both % len(held.sizes)
        for i in np.flatnonzero(shared >= NEAR * held.sizes[text]).tolist():
            place, one = int(both[i] // len(held.sizes)), int(text[i])
            begin, end = np.searchsorted(owners, [place, place + 1])
            size = len(np.unique(hashes[begin:end]))
            jaccard = int(shared[i]) / (size + int(held.sizes[one]) - int(shared[i]))
            if jaccard >= NEAR:
                self.near[one] += 1
                row = int(found.strings.rows[place])
                mine = [*self.nearest.get(one, ()), Sighting(jaccard, self._file, row, found.facts(row))]
                self.nearest[one] = sorted(mine, key=lambda copy: copy.order)[:NEAREST]
