"""The merges of a byte-level BPE model, applied to many short words at once.

The words of one length are the rows of a matrix of tokens. In each step every row makes its best merge: the
one learned first, the leftmost of several. That is what a BPE model does with one word at a time, but here
numpy does it to a hundred thousand words in the time a tokenizer needs for a few thousand.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Tokens = npt.NDArray[np.int64]

SPACE = "Ġ"
"""What a byte-level model calls a space; letters and digits it calls by their own names."""
_NEVER = np.iinfo(np.int64).max
_LONGEST = 32  # bytes; longer words are rare, and the tokenizer has them


class Merges:
    """The merges of one BPE model, as its JSON states them, for words of ASCII letters, digits and spaces."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        vocabulary: Mapping[str, int] = model["vocab"]
        learned: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, merge in enumerate(model["merges"]):
            left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
            learned[vocabulary[left], vocabulary[right]] = rank, vocabulary[left + right]
        self._base = 1 + max(vocabulary.values())
        pairs = np.array(list(learned), dtype=np.int64).reshape(-1, 2)
        keys = pairs[:, 0] * self._base + pairs[:, 1]
        order = np.argsort(keys)
        found = np.array(list(learned.values()), dtype=np.int64).reshape(-1, 2)
        self._keys = np.append(keys[order], _NEVER)
        self._ranks = np.append(found[order, 0], _NEVER)
        self._products = np.zeros(len(model["merges"]), dtype=np.int64)
        self._products[found[:, 0]] = found[:, 1]
        self._first = np.zeros(256, dtype=np.int64)
        for char in string.ascii_letters + string.digits:
            self._first[ord(char)] = vocabulary[char]
        self._first[32] = vocabulary[SPACE]

    @staticmethod
    def suit(model: Mapping[str, Any]) -> bool:
        """Whether a model does nothing but merge, and knows every character these words are made of."""
        if model["type"] != "BPE" or any(model.get(key) for key in _TWISTS):
            return False
        return {*string.ascii_letters, *string.digits, SPACE} <= model["vocab"].keys()

    def encode(self, words: pa.BinaryArray) -> tuple[Tokens, Tokens]:
        """The tokens of all words, each word's in order, and for each token the index of its word."""
        content = np.frombuffer(words.buffers()[2] or b"", dtype=np.uint8)
        offsets = np.frombuffer(words.buffers()[1], dtype=np.int32)[words.offset :][: len(words) + 1]
        lengths = np.diff(offsets)
        tokens, owners = [], []
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            codes = content[offsets[rows][:, None] + np.arange(length)]
            for done, of in self._merge(self._first[codes], rows):
                tokens.append(done.reshape(-1))
                owners.append(np.repeat(of, done.shape[1]))
        none = np.zeros(0, dtype=np.int64)
        return np.concatenate([none, *tokens]), np.concatenate([none, *owners])

    def _merge(self, tokens, rows):
        """Finished rows of a matrix of tokens with the numbers of their words, until none are left."""
        ranks = self._rank(tokens[:, :-1], tokens[:, 1:])
        while tokens.shape[1] > 1:
            at = ranks.argmin(axis=1)
            best = np.take_along_axis(ranks, at[:, None], axis=1)[:, 0]
            going = best != _NEVER
            if not going.all():
                yield tokens[~going], rows[~going]
                tokens, ranks, rows, at, best = (part[going] for part in (tokens, ranks, rows, at, best))
            if not len(rows):
                return
            tokens, ranks = self._step(tokens, ranks, at, self._products[best])
        yield tokens, rows

    def _step(self, tokens, ranks, at, made):
        width = tokens.shape[1] - 1
        number = np.arange(len(tokens))
        merged = np.where(np.arange(width) <= at[:, None], tokens[:, :-1], tokens[:, 1:])
        merged[number, at] = made
        kept = np.where(np.arange(width - 1) < at[:, None], ranks[:, :-1], ranks[:, 1:])
        left = np.flatnonzero(at > 0)
        kept[left, at[left] - 1] = self._rank(merged[left, at[left] - 1], made[left])
        right = np.flatnonzero(at < width - 1)
        kept[right, at[right]] = self._rank(made[right], merged[right, at[right] + 1])
        return merged, kept

    def _rank(self, left, right):
        keys = left * self._base + right
        found = np.searchsorted(self._keys, keys)
        return np.where(self._keys[found] == keys, self._ranks[found], _NEVER)

_TWISTS = ("dropout", "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix", "unk_token")
