"""Tables of checked rows: found by key, believed only where they decode, mended when they are put again.

A row is its identity (`key`, and a label where a key may have several rows), what it carries, a checksum
over all of that, and a body.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pretrace.cache.database import DamagedError, Schema

T = TypeVar("T")

Row = tuple[Any, ...]

_CHUNK = 500  # keys a query: older sqlite takes at most 999 variables


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """How a table is laid out and read.

    `label` names the second column of the identity, "" where the key is all of it. `carries` are columns
    with their types. `decode` gives what a row stands for, None for one that is damaged. `better` is the
    condition, in SQL, under which a new row (`excluded`) takes the place of one that is there; "" is never.
    """

    name: str
    decode: Callable[[Sequence[object]], T | None]
    label: str = ""
    carries: Mapping[str, str] | None = None
    better: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns no two rows share."""
        return ("key", self.label) if self.label else ("key",)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row as `put` and `decode` take it."""
        return (*self.identity, *(self.carries or ()), "checksum", "body")

    @property
    def create(self) -> str:
        """The statement that makes the table where it is missing."""
        # A rowid table: WITHOUT ROWID would carry the blobs in the index's own tree, at twice the size.
        kinds = {
            "key": "BLOB",
            self.label: "TEXT",
            **(self.carries or {}),
            "checksum": "INTEGER",
            "body": "BLOB",
        }
        columns = ", ".join(f"{column} {kinds[column]} NOT NULL" for column in self.columns)
        unique = ", ".join(self.identity)
        return (
            f"CREATE TABLE IF NOT EXISTS {self.name} (id INTEGER PRIMARY KEY, {columns}, UNIQUE ({unique}))"
        )

    @property
    def select(self) -> str:
        """The query for all rows, to be narrowed."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"

    @property
    def insert(self) -> str:
        """The statement that puts a row."""
        marks = ", ".join("?" * len(self.columns))
        rest = self.columns[len(self.identity) :]
        change = ", ".join(f"{column} = excluded.{column}" for column in rest)
        clash = f"UPDATE SET {change} WHERE {self.better}" if self.better else "NOTHING"
        return (
            f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({marks}) "
            f"ON CONFLICT ({', '.join(self.identity)}) DO {clash}"
        )


def schema(noun: str, contents: str, *tables: Table[Any]) -> Schema:
    """The schema of a file with these tables; the words are for messages."""
    return Schema(
        noun,
        contents,
        statements=tuple(table.create for table in tables),
        probes=tuple(f"{table.select} LIMIT 0" for table in tables),
    )


class Rows(Generic[T]):
    """The rows of one table. It remembers the damaged ones it met: the next write replaces them."""

    def __init__(self, table: Table[T]) -> None:
        self.table = table
        self._damaged: set[Row] = set()

    def find(self, connection: sqlite3.Connection, keys: Iterable[bytes], label: str = "") -> dict[bytes, T]:
        """What stands under the keys (and the label), without those that are missing or damaged.

        Raises DamagedError where sqlite answers with other rows than were asked for.
        """
        table, found = self.table, dict[bytes, T]()
        wanted = dict.fromkeys(keys)
        own = (label.encode(),) if table.label else ()
        for some in _chunks(list(wanted)):
            query = f"{table.select} WHERE key IN ({','.join('?' * len(some))})"
            query, values = (f"{query} AND {table.label} = ?", [*some, label]) if own else (query, some)
            for row in connection.execute(query, values):
                identity = row[: len(table.identity)]
                if row[0] not in wanted or identity[1:] != own:
                    raise DamagedError("its index points to other rows")
                content = table.decode(row)
                if content is None:
                    self._damaged.add(identity)
                else:
                    found[row[0]] = content
        return found

    def write(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        """Put rows, inside a transaction that is open."""
        table = self.table
        size = len(table.identity)
        where = " AND ".join(f"{column} = ?" for column in table.identity)
        given = {_identity(row[:size]): row[:size] for row in rows}
        # Looked at again inside the transaction: another process may have mended the row by now.
        for identity in self._damaged & given.keys():
            found = connection.execute(f"{table.select} WHERE {where}", given[identity]).fetchone()
            if found is not None and table.decode(found) is None:
                connection.execute(f"DELETE FROM {table.name} WHERE {where}", given[identity])
        connection.executemany(table.insert, rows)


def checksum(*parts: bytes) -> int:
    """A checksum over the parts in their order."""
    value = 0
    for part in parts:
        value = zlib.crc32(part, value)
    return value


def _identity(given: Row) -> Row:
    """An identity as sqlite gives it back: text as bytes (see `database`)."""
    return tuple(part.encode() if isinstance(part, str) else part for part in given)


def _chunks(keys: list[bytes]) -> Iterator[list[bytes]]:
    return (keys[start : start + _CHUNK] for start in range(0, len(keys), _CHUNK))
