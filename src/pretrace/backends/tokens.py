"""Texts to token ids, once for all back ends and for counting: start tokens, limits, spans, hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers

from pretrace.errors import ModelError
from pretrace.rewrites import readable
from pretrace.types import Encoded, Ints

STARTS = ("tokenizer", "always", "never")
_LAST = 8  # a batch is at most this part of what is left, where batches shrink towards the end
_SLICE = 256  # texts encoded at once: an encoding takes about a hundred bytes a token while it is held


class Tokens:
    """A fast tokenizer with its start rule and length limit settled.

    `start` is "tokenizer" (what the tokenizer does by itself), "always" (exactly one start token: bos,
    else eos) or "never". `max_tokens` counts everything the model reads, start token included. Tokens
    that a tokenizer puts behind a text (an end token) are never read: no text really ends there.
    """

    def __init__(self, tokenizer: Any, *, start: str = "tokenizer", max_tokens: int | None = None) -> None:
        self.rust = _plain_tokenizer(tokenizer)
        self.hash = tokenizer_hash(self.rust)
        self.prefix = _prefix(tokenizer, start)
        self.start = start
        self.max_tokens = max_tokens
        if max_tokens is not None and max_tokens < len(self.prefix) + 2:
            raise ModelError(f"--max-tokens must be at least {len(self.prefix) + 2}, found {max_tokens}.")

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Token ids of each text, without special tokens of its own, cut to the limit."""
        room = None if self.max_tokens is None else self.max_tokens - len(self.prefix)
        made = []
        for start in range(0, len(texts), _SLICE):
            some = [readable(text) for text in texts[start : start + _SLICE]]
            for encoding in self.rust.encode_batch_fast(some, add_special_tokens=False):
                ids = np.array(encoding.ids, dtype=np.int32)
                cut = 0 if room is None else max(0, len(ids) - room)
                made.append(Encoded(self.prefix, ids[: len(ids) - cut], cut))
        return made

    def spans(self, text: str) -> npt.NDArray[np.int64]:
        """Characters [start, end) of each token, shape [n, 2]: contiguous, together the whole text.

        A character that takes several tokens belongs to the first of them; the others are empty.
        """
        offsets = self.rust.encode(readable(text), add_special_tokens=False).offsets
        spans = np.zeros((len(offsets), 2), dtype=np.int64)
        if len(offsets):
            ends = np.maximum.accumulate(np.array([end for _, end in offsets], dtype=np.int64))
            ends[-1] = len(text)
            spans[:, 1] = ends
            spans[1:, 0] = ends[:-1]
        return spans


def _plain_tokenizer(tokenizer: Any) -> tokenizers.Tokenizer:
    """A copy of the Rust tokenizer inside a transformers tokenizer, without truncation, padding or template."""
    backend = tokenizer if isinstance(tokenizer, tokenizers.Tokenizer) else None
    backend = backend or getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(
            f"{type(tokenizer).__name__} has no fast tokenizer; pretrace needs a tokenizer.json beside the weights."
        )
    parts = json.loads(backend.to_str())
    parts["post_processor"] = parts["truncation"] = parts["padding"] = None
    return tokenizers.Tokenizer.from_str(json.dumps(parts))


def tokenizer_hash(tokenizer: tokenizers.Tokenizer) -> str:
    """Hash of all that decides a text's token ids: vocabulary, merges, normaliser, pre-tokenizer, added tokens."""
    parts = json.loads(tokenizer.to_str())
    deciding = {key: parts.get(key) for key in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def _prefix(tokenizer: Any, start: str) -> Ints:
    if start not in STARTS:
        raise ModelError(f"the start rule must be one of {', '.join(STARTS)}, found {start!r}.")
    own = _own_prefix(tokenizer)
    if start == "never":
        own = []
    elif start == "always" and len(own) != 1:
        ids = (getattr(tokenizer, "bos_token_id", None), getattr(tokenizer, "eos_token_id", None))
        known = [token for token in ids if token is not None]
        if not known:
            raise ModelError("start='always' needs a bos or eos token, and this tokenizer has neither.")
        own = known[:1]
    return np.array(own, dtype=np.int32)


def _own_prefix(tokenizer: Any) -> list[int]:
    """What the tokenizer puts in front of a text by itself."""
    if isinstance(tokenizer, tokenizers.Tokenizer):
        with_specials = tokenizer.encode("a", add_special_tokens=True).ids
        without = tokenizer.encode("a", add_special_tokens=False).ids
    else:
        with_specials = tokenizer("a", add_special_tokens=True)["input_ids"]
        without = tokenizer("a", add_special_tokens=False)["input_ids"]
    for at in range(len(with_specials) - len(without) + 1):
        if with_specials[at : at + len(without)] == without:
            return list(with_specials[:at])
    return []


def pack(lengths: Sequence[int], budget: int, *, least: int | None = None) -> list[tuple[int, ...]]:
    """Batches of indices, longest texts first, such that rows × longest row stays within `budget` tokens.

    Every index with a length above 0 is in exactly one batch; a text longer than the budget goes alone.
    The longest come first, so that a run that will not fit into memory says so at once. With `least`, the budget
    shrinks towards the end to that many tokens: batches that are computed side by side then end together.

    >>> pack([3, 9, 0, 8, 3], budget=16)
    [(1,), (3, 0), (4,)]
    """
    order = sorted((i for i, n in enumerate(lengths) if n > 0), key=lambda i: (-lengths[i], i))
    batches: list[tuple[int, ...]] = []
    batch: list[int] = []
    left = sum(lengths)
    limit = shrinking(budget, left, least)
    for index in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > limit:
            batches.append(tuple(batch))
            left -= sum([lengths[i] for i in batch])
            limit = shrinking(budget, left, least)
            batch = []
        batch.append(index)
    if batch:
        batches.append(tuple(batch))
    return batches


def shrinking(budget: int, left: int, least: int | None) -> int:
    """The budget of the next batch where so many tokens are left: towards the end down to `least`, if that is given."""
    return budget if least is None else max(least, min(budget, left // _LAST))


def vocabulary_of(model: object) -> frozenset[str]:
    """The words and numbers that a model's tokenizer holds as one token, without the mark of a space before them; none
    for a model that does not show its tokenizer."""
    rust = getattr(getattr(model, "tokens", None), "rust", None)
    held = rust.get_vocab() if rust is not None else ()
    return frozenset(word for word in (token.lstrip("\u0120\u2581 ") for token in held) if word.isalnum())
