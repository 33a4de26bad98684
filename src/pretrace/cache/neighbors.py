"""Neighbours of texts kept between runs: one sqlite file a proposer, a row a text and kind of draw.

The neighbours of one text are nearly the same text many times over, so they are kept as one list and
compressed together. A longer list takes the place of a shorter one, of which it is the continuation.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from pretrace.cache.draws import Draws, Kind
from pretrace.cache.rows import Row, Table, checksum, schema

Neighbors = tuple[str, ...]


class NeighborStore(Draws[Neighbors]):
    """Neighbours on disk, made by the proposer of that fingerprint; safe to use from several processes.

    Raises OutputError where the folder cannot be written, at once and not at the first text.
    """

    def __init__(self, fingerprint: str, folder: Path | None = None) -> None:
        super().__init__(_KIND, fingerprint, folder)

    def get(self, keys: Sequence[bytes], *, share: float, seed: int) -> list[Neighbors]:
        """For each key (`text_key`) the first neighbours, as many as are stored: none where there are none."""
        found = self.find(keys, _draw(share, seed))
        return [found.get(key, ()) for key in keys]

    def put(self, keys: Sequence[bytes], neighbors: Sequence[Neighbors], *, share: float, seed: int) -> None:
        """Store each text's first neighbours in one transaction: of all the texts or of none."""
        draw = _draw(share, seed)
        self.write([_encode(key, draw, some) for key, some in zip(keys, neighbors, strict=True)])


class NoNeighbors:
    """A store that keeps nothing, so that whoever asks need not care whether there is a cache."""

    def get(self, keys: Sequence[bytes], *, share: float, seed: int) -> list[Neighbors]:
        """No neighbours for any key."""
        return [()] * len(keys)

    def put(self, keys: Sequence[bytes], neighbors: Sequence[Neighbors], *, share: float, seed: int) -> None:
        """Nothing is kept."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        pass


def open_neighbors(fingerprint: str | None) -> NeighborStore | NoNeighbors:
    """The neighbours stored for a proposer's fingerprint; for None a store that keeps nothing."""
    return NoNeighbors() if fingerprint is None else NeighborStore(fingerprint)


def _draw(share: float, seed: int) -> str:
    return f"share={float(share)!r} seed={int(seed)}"


def _encode(key: bytes, draw: str, neighbors: Neighbors) -> Row:
    plain = json.dumps(neighbors, ensure_ascii=False).encode("utf-8", "surrogatepass")
    body = zlib.compress(plain)
    return key, draw, len(neighbors), _checksum(key, draw.encode(), len(neighbors), body), body


def _decode(row: Sequence[object]) -> Neighbors | None:
    key, draw, number, expected, body = row
    # sqlite gives back whatever type a cell holds; a damaged one may hold any.
    if not (isinstance(key, bytes) and isinstance(draw, bytes) and isinstance(body, bytes)):
        return None
    if not isinstance(number, int) or expected != _checksum(key, draw, number, body):
        return None
    return tuple(json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass")))


def _checksum(key: bytes, draw: bytes, number: int, body: bytes) -> int:
    return checksum(key, draw, struct.pack("<q", number), body)


NEIGHBORS: Table[Neighbors] = Table(
    "neighbors", _decode, label="draw", carries={"number": "INTEGER"}, better="excluded.number > number"
)
_KIND = Kind("neighbors", NEIGHBORS, schema("neighbour cache", "neighbours", NEIGHBORS))
