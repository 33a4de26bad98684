"""Words that texts and documents share, whatever stands between them: near copies, and the 13-word overlap.

Words are parted by white space, in lower case and without ASCII punctuation, as in the decontamination of GPT-3 (Brown
et al. 2020, appendix C) and lm-evaluation-harness. Sequences of 5 and 13 words are compared by hashes of 64 bits, all
of them: the Jaccard index of a document and a text is no estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.plugins.scan.corpus import DocumentFacts, Sighting, first_sightings
from pretrace.plugins.scan.folding import HashTable, Stream, Strings, fold_strings, load_kernels

SHINGLE, GRAM = 5, 13
"""Words of a sequence, for near copies and for the overlap."""
NEAR = 0.8
"""The Jaccard index from which on a document is a near copy of a text."""
NEAREST = 20
"""Near copies that are named for each text."""
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
Numbers = npt.NDArray[np.uint64]


def _words_of(strings: Strings) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The hash of each word of some strings, in order, and the number of its string."""
    apart = [b""] * len(strings.places)
    buffer, spans = fold_strings(strings, exact=False, spaced=True, behind=apart)
    found: tuple[Numbers, npt.NDArray[np.int64]] = load_kernels().hash_words(buffer, spans)
    return found


def _sequences(
    words: Numbers, owners: npt.NDArray[np.int64], size: int
) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The hash of every `size` words in a row that stand in one document, and the number of the document."""
    number = max(0, len(words) - size + 1)
    inside = np.flatnonzero(owners[:number] == owners[size - 1 :])
    found = np.zeros(len(inside), np.uint64)
    for k in range(size):  # a polynomial of hashes, which are as good as random
        found = found * _FACTOR + words[inside + k]
    return found, owners[inside]


def _each_once(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], shape: tuple[int, int]) -> Any:
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
        self.sizes: npt.NDArray[np.int64] = self.texts.sum(axis=0)

    def shares(self, found: Numbers) -> npt.NDArray[np.float64]:
        """The share of each text's sequences that are among those found, NaN for a text that has none."""
        counts = self.texts.T @ np.isin(self.table.keys, found).astype(np.int64)
        return np.where(self.sizes > 0, counts / np.maximum(self.sizes, 1), np.nan)


class WordsFound:
    """Adds up what one file shares with the texts, word by word: near copies by their `shingles`, and the `grams` that
    were found, where these are wanted."""

    def __init__(self, file: str, shingles: TextSequences | None, grams: TextSequences | None) -> None:
        self._file, self._shingles, self._grams = file, shingles, grams
        self._found = np.zeros(len(grams.table.keys) if grams else 0, dtype=np.bool_)
        self.near = np.zeros(len(shingles.sizes) if shingles else 1, dtype=np.int64)
        self.nearest: list[Sighting] = []

    @property
    def grams(self) -> Numbers:
        """The hashes of the texts' sequences of 13 words that were found, in order."""
        return self._grams.table.keys[self._found] if self._grams else np.zeros(0, np.uint64)

    def add(self, stream: Stream, facts: Callable[[int], DocumentFacts]) -> None:
        """The documents of a buffer."""
        words = _words_of(stream.strings)
        if self._grams:
            self._found[self._grams.table.find(_sequences(*words, GRAM)[0])[1]] = True
        if (held := self._shingles) is None:
            return
        hashes, owners = _sequences(*words, SHINGLE)
        at, key = held.table.find(hashes)
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
                self.near[one] += 1
                row = int(stream.strings.rows[place])
                self.nearest.append(Sighting(one, jaccard, self._file, row, *facts(row)))
        self.nearest = first_sightings(self.nearest, NEAREST)
