"""The merges of a BPE model, made in many short words at once.

The words of one length are the rows of a matrix of tokens. In each step every row makes its best merge: the
one learned first, the leftmost of several. That is what a BPE model does with a word, and numpy does it to
a hundred thousand words in a few strokes, several times as fast as a tokenizer that takes them one by one.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Ids = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

LONGEST = 32
"""Bytes of the longest word taken; longer ones are rare, and cost the more steps."""

_CHARS = string.ascii_letters + string.digits + " "
_NEVER = np.int32(np.iinfo(np.int32).max)
_SEVERAL = -1
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits well spread: a multiplier for hashing
_TWISTS = ("dropout", "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")


def only_merges(model: Mapping[str, Any], space: str) -> bool:
    """Whether a model, given as its JSON, does nothing to ASCII letters, digits and spaces but merge them.

    `space` is what the model calls a space.
    """
    if model["type"] != "BPE" or any(model.get(key) for key in _TWISTS):
        return False
    vocabulary: Mapping[str, int] = model["vocab"]
    return set(_CHARS.replace(" ", space)) <= vocabulary.keys()


class Merges:
    """The merges of one BPE model, for words of ASCII letters, digits and spaces."""

    def __init__(self, model: Mapping[str, Any], space: str) -> None:
        vocabulary: Mapping[str, int] = model["vocab"]
        self._base = 1 + max(vocabulary.values())
        learned: dict[int, tuple[int, int]] = {}
        for rank, merge in enumerate(model["merges"]):
            left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
            learned[vocabulary[left] * self._base + vocabulary[right]] = rank, vocabulary[left + right]
        keys = np.array(sorted(learned), dtype=np.int64)
        found = np.array([learned[key] for key in keys.tolist()], dtype=np.int32).reshape(-1, 2)
        # One more key than there are merges, which no pair has: where pairs without a merge are sent.
        self._keys = np.append(keys, np.iinfo(np.int64).max)
        self._ranks = np.append(found[:, 0], _NEVER)
        self._products = np.zeros(len(model["merges"]), dtype=np.int32)
        self._products[found[:, 0]] = found[:, 1]
        self._shift = np.uint64(64 - 3 - len(keys).bit_length())
        self._slots = self._hashed(keys)
        self._first = np.zeros(256, dtype=np.int32)
        for char in _CHARS:
            self._first[ord(char)] = vocabulary[char.replace(" ", space)]

    def encode(self, words: pa.BinaryArray) -> tuple[Ids, Ids]:
        """The tokens of all words, each word's in order, and for each token the index of its word."""
        content = np.frombuffer(words.buffers()[2] or b"", dtype=np.uint8)
        offsets = np.frombuffer(words.buffers()[1] or b"", dtype=np.int32)[words.offset :][: len(words) + 1]
        lengths = np.diff(offsets)
        tokens, owners = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            codes = content[offsets[rows][:, None] + np.arange(length)]
            for done, of in self._merged(self._first[codes], rows):
                tokens.append(done.reshape(-1))
                owners.append(np.repeat(of, done.shape[1]))
        return np.concatenate(tokens).astype(np.int64), np.concatenate(owners)

    def _merged(self, tokens: Small, rows: Ids) -> Iterator[tuple[Small, Ids]]:
        """The rows of a matrix of tokens when they have no merge left, with their numbers."""
        ranks = self._rank(tokens[:, :-1], tokens[:, 1:])
        while len(rows) and tokens.shape[1] > 1:
            at = ranks.argmin(axis=1)
            best = ranks[np.arange(len(at)), at]
            going = best != _NEVER
            if not going.all():
                yield tokens[~going], rows[~going]
                tokens, ranks, rows, at, best = (part[going] for part in (tokens, ranks, rows, at, best))
            tokens, ranks = self._step(tokens, ranks, at, self._products[best])
        yield tokens, rows

    def _step(self, tokens: Small, ranks: Small, at: Ids, made: Small) -> tuple[Small, Small]:
        """One merge in every row: the tokens `at` and behind it become `made`."""
        width = tokens.shape[1] - 1
        merged = np.where(np.arange(width) <= at[:, None], tokens[:, :-1], tokens[:, 1:])
        merged[np.arange(len(at)), at] = made
        updated = np.where(np.arange(width - 1) < at[:, None], ranks[:, :-1], ranks[:, 1:])
        left = np.flatnonzero(at > 0)
        updated[left, at[left] - 1] = self._rank(merged[left, at[left] - 1], made[left])
        right = np.flatnonzero(at < width - 1)
        updated[right, at[right]] = self._rank(made[right], merged[right, at[right] + 1])
        return merged, updated

    def _rank(self, left: Small, right: Small) -> Small:
        """How early the merge of each pair was learned; _NEVER where there is none."""
        keys = left * np.int64(self._base) + right
        found = self._slots[self._slot(keys)]
        several = found == _SEVERAL
        found[several] = np.searchsorted(self._keys, keys[several])
        return np.where(self._keys[found] == keys, self._ranks[found], _NEVER)

    def _slot(self, keys: Ids) -> npt.NDArray[np.uint64]:
        return (keys.view(np.uint64) * _MIX) >> self._shift

    def _hashed(self, keys: Ids) -> Small:
        """For each hash the index of its only key, the number of keys if it has none, or _SEVERAL."""
        slots = self._slot(keys)
        table = np.full(1 << int(64 - self._shift), len(keys), dtype=np.int32)
        table[slots] = np.arange(len(keys))
        taken, times = np.unique(slots, return_counts=True)
        table[taken[times > 1]] = _SEVERAL
        return table
