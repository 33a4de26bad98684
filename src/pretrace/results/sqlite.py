"""Tables as one SQLite database, written whole or not at all, a row at a time: datasette opens it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrace.errors import OutputError
from pretrace.results.atomic import write_atomically
from pretrace.results.output_checks import OutputFile

_MARK = int.from_bytes(b"ptrc", "big")
"""By this number in its header a database is known as one of pretrace's."""


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(72)
    return header.startswith(b"SQLite format 3\0") and header[68:] == _MARK.to_bytes(4, "big")


DATABASE = OutputFile("database", _is_ours)
MOST_COLUMNS = 1900
"""SQLite takes 2,000 columns in a table or view; the rest is left to views."""


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table: its columns, each with its type and what holds of it ("INTEGER PRIMARY KEY"), and its rows, which are
    read once. Columns of `indexes` are searched quickly."""

    name: str
    columns: Mapping[str, str]
    rows: Iterable[Sequence[Any]]
    indexes: tuple[str, ...] = ()


def write_database(path: Path, tables: Iterable[SqlTable], views: Mapping[str, str] | None = None) -> None:
    """Write the tables and views (name and SELECT) to `path`, in place of an earlier database of pretrace there.

    Rows are written as they come. A lone surrogate becomes its escape. On failure nothing has changed. OutputError
    where the file cannot be written.
    """

    def write(partial: Path) -> None:
        with closing(sqlite3.connect(partial, isolation_level=None)) as database:
            # The file is new and takes its place when it is whole: no journal is needed to undo anything.
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            database.execute(f"PRAGMA application_id = {_MARK}")
            database.execute("BEGIN")
            for table in tables:
                _write(database, table)
            for name, select in (views or {}).items():
                database.execute(f"CREATE VIEW {quoted(name)} AS {select}")
            database.execute("COMMIT")

    try:
        write_atomically(path, write, DATABASE)
    except sqlite3.Error as error:
        raise OutputError(
            f"{path} cannot be written: {error}; choose a place with room where files can be made."
        ) from error


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever it holds."""
    return '"' + _plain(name).replace("\0", "\\0").replace('"', '""') + '"'


def apart(names: Iterable[str]) -> list[str]:
    """The names, with numbers behind those that SQLite cannot tell apart: it does not look at case."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        one, number = name, 1
        while one.lower() in taken:
            number += 1
            one = f"{name} #{number}"
        taken.add(one.lower())
        found.append(one)
    return found


def _write(database: sqlite3.Connection, table: SqlTable) -> None:
    declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in table.columns.items())
    database.execute(f"CREATE TABLE {quoted(table.name)} ({declared})")
    blanks = ", ".join("?" * len(table.columns))
    database.executemany(f"INSERT INTO {quoted(table.name)} VALUES ({blanks})", _rows(table.rows))
    for column in table.indexes:
        index = quoted(f"{table.name} by {column}")
        database.execute(f"CREATE INDEX {index} ON {quoted(table.name)} ({quoted(column)})")


def _rows(rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    return ([_plain(value) if isinstance(value, str) else value for value in row] for row in rows)


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
