"""Generated texts kept between runs: one sqlite file a generator, a row a prompt and kind of draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from pretrace.cache.draws import Draws, Kind
from pretrace.cache.rows import Row, Table, checksum, schema
from pretrace.registry import require
from pretrace.types import Sampling


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


class ContinuationStore(Draws[str]):
    """Continuations on disk, by the generator of that fingerprint; safe to use from several processes.

    Raises OutputError where the folder cannot be written, at once and not at the first text.
    """

    def __init__(self, fingerprint: str, folder: Path | None = None) -> None:
        super().__init__(_KIND, fingerprint, folder)

    def get(self, keys: Sequence[bytes], draw: Draw) -> list[str | None]:
        """For each key (`text_key` of the prompt) the stored continuation, which may be "", or None."""
        found = self.find(keys, draw.label)
        return [found.get(key) for key in keys]

    def put(self, keys: Sequence[bytes], texts: Sequence[str], draw: Draw) -> None:
        """Store one continuation a key in one transaction: all of them or none."""
        self.write([_encode(key, draw.label, text) for key, text in zip(keys, texts, strict=True)])


class NoContinuations:
    """A store that keeps nothing, so that whoever asks need not care whether there is a cache."""

    def get(self, keys: Sequence[bytes], draw: Draw) -> list[str | None]:
        """None for every key."""
        return [None] * len(keys)

    def put(self, keys: Sequence[bytes], texts: Sequence[str], draw: Draw) -> None:
        """Nothing is kept."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        pass


def open_continuations(fingerprint: str | None) -> ContinuationStore | NoContinuations:
    """The continuations stored for a generator's fingerprint; for None a store that keeps nothing."""
    return NoContinuations() if fingerprint is None else ContinuationStore(fingerprint)


def _encode(key: bytes, draw: str, text: str) -> Row:
    body = text.encode("utf-8", "surrogatepass")
    return key, draw, checksum(key, draw.encode(), body), body


def _decode(row: Sequence[object]) -> str | None:
    key, draw, expected, body = row
    # sqlite gives back whatever type a cell holds; a damaged one may hold any.
    if not (isinstance(key, bytes) and isinstance(draw, bytes) and isinstance(body, bytes)):
        return None
    return body.decode("utf-8", "surrogatepass") if expected == checksum(key, draw, body) else None


CONTINUATIONS: Table[str] = Table("continuations", _decode, label="draw")
_KIND = Kind(
    "continuations", CONTINUATIONS, schema("cache of generated texts", "continuations", CONTINUATIONS)
)
