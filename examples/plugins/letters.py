"""A back end: a model that has read one file, a character at a time."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.errors import ModelError
from pretrace.registry import backends
from pretrace.types import Encoded, Quantity, States, Trace


class Letters:
    offers = Quantity.LOGP
    tokenizer_hash = "characters"
    vocabulary = 0x110000

    def __init__(self, sample: str, max_tokens: int) -> None:
        counts = np.ones(self.vocabulary)
        np.add.at(counts, [ord(character) for character in sample], 1)
        self.logp = np.log(counts / counts.sum()).astype(np.float32)
        self.max_tokens = max_tokens
        self.name = "letters"
        self.fingerprint = f"letters 1 {max_tokens} {hashlib.sha256(sample.encode()).hexdigest()}"
        self.facts: Mapping[str, Any] = {"name": self.name, "sample": len(sample)}

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        start = np.zeros(0, dtype=np.int32)
        ids = [np.array([ord(c) for c in text], dtype=np.int32) for text in texts]
        limit = self.max_tokens
        return [Encoded(start, one[:limit], cut=max(0, len(one) - limit)) for one in ids]

    def spans(self, text: str, /) -> np.ndarray:
        places = np.arange(len(text), dtype=np.int64)
        return np.stack([places, places + 1], axis=1)

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        return [(i,) for i, one in enumerate(encoded) if one.predicted]

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        # No hidden states can be had, so `states` is empty: `offers` says so.
        # No start token, so the first token is context and the trace begins with the second.
        return [Trace(one.tokens[1:], self.logp[one.tokens[1:]], cut=one.cut) for one in batch]


@backends.add("letters")
def letters(name: str, settings: Any) -> Letters:
    """Predicts each character by how often it occurs in the file NAME."""
    if not Path(name).is_file():
        raise ModelError(f"letters: there is no file {name}: give the path of a text file.")
    return Letters(Path(name).read_text(encoding="utf-8"), settings.max_tokens or 4096)
