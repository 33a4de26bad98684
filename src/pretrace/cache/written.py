"""What models wrote, kept between runs: continuations, neighbours of texts, answers and translations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pretrace.cache.database import Kind
from pretrace.cache.entries import NEIGHBORS, TEXT, WRITTEN, CacheEntry, Entries, EntryCodec
from pretrace.cache.location import text_key
from pretrace.registry import require
from pretrace.types import Sampling, Written

T = TypeVar("T")

Neighbors = tuple[str, ...]
Batch = tuple[Sequence[str], Sequence[Written]]
Write = Callable[[Mapping[str, Written]], Iterable[Batch]]
"""Given what is known already, yields batches of texts that are not, with what was written for each."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How texts are continued: by so many tokens, with which sampling, and the seed of what is drawn.

    ExpressionError for a value out of its range.
    """

    tokens: int = 32
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0

    def __post_init__(self) -> None:
        t, p, r = self.sampling.temperature, self.sampling.top_p, self.sampling.repetition_penalty
        require(0 <= t < float("inf"), f"sampling: temperature must be 0 or more, found {t}.")
        require(0 < p <= 1, f"sampling: top_p must be above 0 and at most 1, found {p}.")
        require(0 < r < float("inf"), f"sampling: repetition_penalty must be above 0, found {r}.")
        require(self.tokens >= 1, f"sampling: tokens must be at least 1, found {self.tokens}.")
        require(self.seed >= 0, f"sampling: seed must be 0 or more, found {self.seed}.")

    @property
    def label(self) -> str:
        """The same as text, all of it: what tells the continuations of one prompt apart."""
        t, p, r = (
            float(value).hex()
            for value in (self.sampling.temperature, self.sampling.top_p, self.sampling.repetition_penalty)
        )
        return f"tokens={int(self.tokens)} temperature={t} top_p={p} repetition_penalty={r} seed={int(self.seed)}"


class WrittenStore(Entries, Generic[T]):
    """What one model wrote, a content for each key and label (how it was written)."""

    def __init__(
        self, kind: Kind, codec: EntryCodec[T], fingerprint: str | None, folder: Path | None
    ) -> None:
        super().__init__(kind, fingerprint, folder)
        self._codec = codec

    def get(self, keys: Sequence[bytes], label: str) -> list[T | None]:
        """For each key (`text_key`) the stored content, or None."""
        found = self.find(keys, label, self._codec)
        return [found.get(key) for key in keys]

    def put(self, keys: Sequence[bytes], contents: Sequence[T], label: str) -> None:
        """Store one content a key in one transaction: all of them or none."""
        pairs = zip(keys, contents, strict=True)
        self.write([CacheEntry(key, label, content, self._codec) for key, content in pairs])


def open_continuations(fingerprint: str | None, folder: Path | None = None) -> WrittenStore[str]:
    """The continuations stored for a generator's fingerprint, labelled by `Draw.label`; for None a store that keeps
    nothing. Raises OutputError where the folder cannot be written."""
    return WrittenStore(
        Kind("continuations", "cache of generated texts", "continuations"), TEXT, fingerprint, folder
    )


def open_neighbors(fingerprint: str | None, folder: Path | None = None) -> WrittenStore[Neighbors]:
    """The neighbours stored for a proposer's fingerprint, the first ones of each text; for None a store that keeps
    nothing. Raises OutputError where the folder cannot be written."""
    return WrittenStore(Kind("neighbors", "neighbour cache", "neighbours"), NEIGHBORS, fingerprint, folder)


def open_written(fingerprint: str | None, folder: Path | None = None) -> WrittenStore[Written]:
    """What the model of that fingerprint wrote until it said itself that it was done, or was cut off: whether it was
    is kept too. For None a store that keeps nothing. Raises OutputError where the folder cannot be written."""
    return WrittenStore(Kind("written", "cache of written texts", "texts"), WRITTEN, fingerprint, folder)


def written_once(fingerprint: str | None, texts: Sequence[str], label: str, write: Write) -> list[Written]:
    """What was written for each text, in order: from disk where it is there, else by `write`.

    Every batch that `write` yields is stored before the next is begun, so a killed process loses at most one. An
    empty answer is not stored: it is asked for again the next time. For the fingerprint None nothing is kept.
    Raises OutputError where the cache cannot be written.
    """
    with open_written(fingerprint) as store:
        stored = zip(texts, store.get([text_key(text) for text in texts], label), strict=True)
        known = {text: written for text, written in stored if written is not None}
        for some, written in write(dict(known)):
            given = [(text_key(text), one) for text, one in zip(some, written, strict=True) if one.text]
            store.put([key for key, _ in given], [one for _, one in given], label)
            known.update(zip(some, written, strict=True))
    return [known[text] for text in texts]
