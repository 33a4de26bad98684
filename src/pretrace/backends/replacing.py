"""Words put in the place of others: what may be replaced, what by, and the text that comes of it.

A text is cut into stretches, one a token, which together are the text; only the stretches that are
replaced change. Everything drawn depends on the text, the share, the seed and the neighbour's number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tokenizers
import torch

from pretrace.backends.tokens import Tokens
from pretrace.cache.location import text_key
from pretrace.errors import ModelError
from pretrace.rewrites import readable
from pretrace.types import Doubles, Ints

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Draft:
    """A text as stretches. `tokens` are the ids a model reads, token i stands at stretch i; stretches beyond
    them are beyond the model's context and stay. `open` are the positions that may be replaced."""

    key: bytes
    stretches: tuple[str, ...]
    tokens: Ints
    open: Longs

    @property
    def text(self) -> str:
        """The text as it stands."""
        return "".join(self.stretches)

    def positions(self, *, share: float, seed: int, number: int) -> Longs:
        """The share of the open positions that draw `number` falls on, at least one, in rising order."""
        count = min(len(self.open), max(1, round(share * len(self.open))))
        chosen = self.draws("positions", seed, number).choice(self.open, count, replace=False)
        return np.sort(chosen)

    def draws(self, purpose: str, seed: int, number: int) -> np.random.Generator:
        """Random numbers that depend on the text, the purpose, the seed and the number alone."""
        digest = hashlib.sha256(self.key + f" {purpose} {seed} {number}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))


@dataclass(frozen=True, slots=True)
class WordCandidates:
    """The likeliest tokens at some positions: `ids` and their `weights` [positions, candidates], each row
    by rising id, so that two of nearly equal weight do not change places with the last bit of a logit."""

    ids: Longs
    weights: Doubles

    def at(self, rows: Longs) -> WordCandidates:
        """Those of some of the positions."""
        return WordCandidates(self.ids[rows], self.weights[rows])


class Vocabulary:
    """The tokens of a tokenizer as text. A token may be proposed if it is not special and, on its own, is
    text that can be seen: no part of a character, no white space, no control character."""

    def __init__(self, rust: tokenizers.Tokenizer) -> None:
        anchor = rust.encode("a", add_special_tokens=False).ids
        before = rust.decode(anchor, skip_special_tokens=False)
        size = max(rust.get_vocab(with_added_tokens=True).values()) + 1  # ids may have gaps
        # Decoded behind another token: on its own a word may lose the space in front of it.
        decoded = rust.decode_batch([[*anchor, i] for i in range(size)], skip_special_tokens=False)
        self.pieces = [text[len(before) :] if text.startswith(before) else "" for text in decoded]
        added = rust.get_added_tokens_decoder()
        self.special = frozenset(i for i, token in added.items() if token.special)
        self.begins = np.array([piece[:1].isspace() for piece in self.pieces])
        self.sound = np.array([_is_sound(piece) for piece in self.pieces])
        self.sound[list(self.special)] = False
        normalizer = rust.normalizer
        self.lowers = normalizer is not None and normalizer.normalize_str("A") == "a"

    def draft(self, text: str, tokens: Tokens, *, first: int) -> Draft:
        """A text cut at its tokens. Position `first` is the first the model can say something about.

        White space, special tokens and what lies beyond the limit of `tokens` are not open to
        replacement, nor is anything in a text of fewer than two tokens.
        """
        shown = readable(text)
        (encoded,) = tokens.encode([shown])
        stretches = tuple(shown[start:end] for start, end in tokens.spans(shown).tolist())
        ids = encoded.tokens
        is_open = [
            i
            for i in range(first, len(ids))
            if stretches[i].strip() and int(ids[i]) not in self.special and len(ids) > 1
        ]
        return Draft(text_key(text), stretches or (shown,), ids, np.array(is_open, dtype=np.int64))

    def fitted(self, token: int, stretch: str) -> str:
        """A token in the place of a stretch: with the white space around it, and with its capitals where
        the tokenizer knows none."""
        word, own = self.pieces[token].strip(), stretch.strip()
        if self.lowers and len(own) > 1 and own.isupper():
            word = word.upper()
        elif self.lowers and own[:1].isupper():
            word = word[:1].upper() + word[1:]
        start = stretch.index(own)
        return stretch[:start] + word + stretch[start + len(own) :]

    def neighbor(
        self, draft: Draft, positions: Longs, candidates: WordCandidates, random: np.random.Generator
    ) -> str:
        """The text with a draw from its candidates at each position; one that has none stays as it is."""
        sums = np.cumsum(candidates.weights, axis=1)
        # float32: below 1 by so much that the product is below the whole sum too
        at = random.random(len(positions), dtype=np.float32).astype(np.float64)[:, None] * sums[:, -1:]
        drawn = (sums <= at).sum(axis=1)
        stretches = list(draft.stretches)
        for row, position in enumerate(positions.tolist()):
            if sums[row, -1] > 0:
                ids = np.roll(candidates.ids[row], -drawn[row])
                usable = np.roll(candidates.weights[row], -drawn[row]) > 0
                stretches[position] = self._other(stretches[position], ids[usable].tolist())
        return "".join(stretches)

    def _other(self, stretch: str, ids: Sequence[int]) -> str:
        """The first of the tokens that is not the same word by another id."""
        fitted = (self.fitted(token, stretch) for token in ids)
        return next((word for word in fitted if word != stretch), stretch)


class Ranking:
    """The likeliest tokens that may stand in a position: sound ones, other than its own, that begin a word
    where its own does and continue one where its own does."""

    def __init__(self, vocabulary: Vocabulary, device: torch.device, top: int) -> None:
        self.top = top
        sound, begins = torch.from_numpy(vocabulary.sound), torch.from_numpy(vocabulary.begins)
        self.kinds = torch.stack([sound & ~begins, sound & begins]).to(device)  # row 1: what begins a word
        self.begins = begins.to(device)

    def __call__(self, slices: Iterable[torch.Tensor], own: torch.Tensor) -> WordCandidates:
        """The candidates, weighted by their probability, at positions whose logits come in slices
        [some, vocabulary]; `own` int64 [positions] are the tokens that stand there."""
        ids, logits, at = [], [], 0
        for part in slices:
            some = self._best(part, own[at : at + len(part)])
            ids.append(some.indices.cpu())
            logits.append(some.values.cpu())
            at += len(part)
        return _weighted(torch.cat(ids).numpy(), torch.cat(logits).double().numpy())

    def _best(self, logits: torch.Tensor, own: torch.Tensor) -> torch.return_types.topk:
        size = min(
            logits.shape[1], self.kinds.shape[1]
        )  # a logits table is often larger than the tokenizer's
        own = own.to(logits.device)
        scores = logits[:, :size].masked_fill(~self.kinds[self.begins[own].long(), :size], -torch.inf)
        scores.scatter_(1, own[:, None].clamp(max=size - 1), -torch.inf)
        best = scores.topk(min(self.top, size), dim=1)
        if best.values.isnan().any():
            raise ModelError(
                "the model that proposes words gave a logit that is not a number; try another --dtype "
                "(float32 or bfloat16). If it stays, the weights are damaged."
            )
        return best


def _weighted(ids: Longs, logits: Doubles) -> WordCandidates:
    order = np.argsort(ids, axis=1)
    ids, logits = np.take_along_axis(ids, order, 1), np.take_along_axis(logits, order, 1)
    highest = logits.max(axis=1, keepdims=True)
    return WordCandidates(ids, np.exp(logits - np.where(np.isfinite(highest), highest, 0.0)))


def _is_sound(piece: str) -> bool:
    word = piece.strip()
    return bool(word) and word.isprintable() and "\ufffd" not in word
