"""What models drew at random and was kept: one sqlite file a model, a row a key and kind of draw."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from pretrace.cache.database import Database, Schema, transaction
from pretrace.cache.rows import Row, Rows, Table
from pretrace.cache.traces import cache_folder

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """What is kept: the folder below the cache, the table (labelled by the kind of draw) and its schema."""

    folder: str
    table: Table[T]
    schema: Schema


class Draws(Generic[T]):
    """Draws on disk, made by the model of that fingerprint; safe to use from several processes.

    Raises OutputError where the folder cannot be written, at once and not at the first row.
    """

    def __init__(self, kind: Kind[T], fingerprint: str, folder: Path | None = None) -> None:
        name = hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self.path = (folder or cache_folder()) / kind.folder / f"{name}-v{kind.schema.format}.sqlite"
        self._rows = Rows(kind.table)
        self._database = Database(self.path, fingerprint, kind.schema)
        self._database.run(lambda connection: None)

    def find(self, keys: Sequence[bytes], draw: str) -> dict[bytes, T]:
        """What is stored under the keys for that kind of draw, without what is missing or damaged."""
        return self._database.run(lambda connection: self._rows.find(connection, keys, draw))

    def write(self, rows: Sequence[Row]) -> None:
        """Store the rows in one transaction: all of them or none."""
        if rows:
            self._database.run(lambda connection: self._write(connection, rows))

    def close(self) -> None:
        """Let go of the file; closing twice is no mistake."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> None:
        self.close()

    def _write(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        with transaction(connection):
            self._rows.write(connection, rows)
