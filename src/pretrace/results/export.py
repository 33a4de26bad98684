"""Results for other tools: rows as tables of pyarrow and pandas, and a result folder as one SQLite database.

Of a large run all rows are read, part by part, and never held together.
"""

from __future__ import annotations

import csv
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.errors import MissingPackageError, OutputError
from pretrace.results.atomic import write_atomically
from pretrace.results.folder import Column, arrow_column, file_hash
from pretrace.results.output_checks import OutputFile
from pretrace.results.run import MISSING_COLUMNS, SKIPPED_COLUMNS, control_columns, score_columns
from pretrace.types import Check, Estimate, Measured, Run, SideBySide, Table, Verdict

# Tables as one SQLite database, written whole or not at all, a row at a time: datasette opens it.


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
class _SqlTable:
    """A table: its columns, each with its type and what holds of it ("INTEGER PRIMARY KEY"), and its rows, which are
    read once. Columns of `indexes` are searched quickly."""

    name: str
    columns: Mapping[str, str]
    rows: Iterable[Sequence[Any]]
    indexes: tuple[str, ...] = ()


def _write_database(path: Path, tables: Iterable[_SqlTable], views: Mapping[str, str] | None = None) -> None:
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


def _write(database: sqlite3.Connection, table: _SqlTable) -> None:
    declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in table.columns.items())
    database.execute(f"CREATE TABLE {quoted(table.name)} ({declared})")
    blanks = ", ".join("?" * len(table.columns))
    database.executemany(f"INSERT INTO {quoted(table.name)} VALUES ({blanks})", _cells_of(table.rows))
    for column in table.indexes:
        index = quoted(f"{table.name} by {column}")
        database.execute(f"CREATE INDEX {index} ON {quoted(table.name)} ({quoted(column)})")


def _cells_of(rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    return ([_plain(value) if isinstance(value, str) else value for value in row] for row in rows)


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


_BATCH = 10_000
_TEXTS = ("id", "label", "group", "n_tokens", "copies", "n_cut", "n_chars")
_OWN = ("settings", "skipped", "missing", "files", "checks", "pairs", "tables", "runs", "differences")
"""What the JSON part holds besides the summary: it has tables of its own."""
_ROW = "INTEGER PRIMARY KEY"
_SCORED = "scored"


def export(result: Any, content: Mapping[str, Any], folder: Path, file: Path) -> None:
    """Write a result to an SQLite database at `file`, in place of an earlier one. `content` is the JSON part of its
    `folder`, from which the rows of a large run are read.

    OutputError where the file cannot be written, where a part of the run is damaged, or for more scores than SQLite
    has columns.
    """
    tables, views = _tables(result, folder, content)
    shared = (_pairs("summary", _summary(content)), _pairs("settings", content.get("settings", {})))
    _write_database(file, [*tables, *shared], views)


def _tables(
    result: Any, folder: Path, content: Mapping[str, Any]
) -> tuple[Iterable[_SqlTable], dict[str, str]]:
    if isinstance(result, Run):
        return _of_run(result, folder)
    if isinstance(result, Verdict):
        whole = result.figures.get("whole")
        rows = _of_parts(result, whole, folder, content["files"]) if whole else _of_verdict(result)
        skipped = _listed("skipped", folder / "skipped.csv", SKIPPED_COLUMNS) if whole else _skipped(result)
        return [*rows, _checks(result.checks), skipped], {}
    assert isinstance(result, SideBySide)
    raise OutputError(f"{folder} is a comparison, which is a table already: {folder / 'table.csv'}.")


def _of_run(run: Run, folder: Path) -> tuple[Iterable[_SqlTable], dict[str, str]]:
    controls = (control_columns(one.kind, one.score, one.values.shape[1]) for one in run.controls)
    names = [*run.scores, *(name for found in controls for name in found)]
    if len(names) > MOST_COLUMNS:
        raise OutputError(
            f"{folder} has {len(names):,} scores and controls, more than SQLite has columns: use scores.parquet."
        )
    columns = apart(["row", *names])[1:]
    texts = {
        "row": _ROW, "id": "TEXT NOT NULL", "label": "INTEGER", "group": "TEXT", "n_tokens": "INTEGER NOT NULL",
        "copies": "INTEGER", "n_cut": "INTEGER NOT NULL", "n_chars": "INTEGER",
    }  # fmt: skip
    own = {"row": f"{_ROW} REFERENCES texts(row)", **dict.fromkeys(columns, "REAL")}
    view = ", ".join(["texts.*", *(f"scores.{quoted(name)}" for name in columns)])
    tables = [
        _SqlTable("texts", texts, _rows(run, folder, _TEXTS), ("id", "group")),
        _SqlTable("scores", own, _rows(run, folder, names)),
        _metrics(run),
        _listed("skipped", folder / "skipped.csv", SKIPPED_COLUMNS),
        _listed("missing", folder / "missing.csv", MISSING_COLUMNS),
    ]
    return tables, {_SCORED: f"SELECT {view} FROM texts JOIN scores ON scores.row = texts.row"}


def _rows(run: Run, folder: Path, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The number of each row, then its values in these columns; None for a column that the run does not have."""
    number = 0
    for batch in _batches(run, folder, names):
        there = set(batch.schema.names)
        nothing = [None] * batch.num_rows
        columns = [batch.column(name).to_pylist() if name in there else nothing for name in names]
        for values in zip(*columns, strict=True):
            number += 1
            yield number, *(_text(one) if isinstance(one, bytes) else one for one in values)


def _batches(run: Run, folder: Path, names: Sequence[str]) -> Iterator[Any]:
    """The rows of a run in batches of pyarrow, with those of these columns that it has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if run.whole is None:
        columns = {**score_columns(run, controls=True), "n_cut": run.cut}
        chosen = {name: arrow_column(columns[name]) for name in names if name in columns}
        yield from pa.table(chosen).to_batches(_BATCH)
        return
    for part in run.whole.parts:
        path = folder / part.name
        if not path.is_file() or file_hash(path) != part.sha256:
            raise OutputError(f"{path} is gone, damaged or was changed; run the detection again.")
        with pq.ParquetFile(path) as file:
            there = [name for name in names if name in file.schema_arrow.names]
            yield from file.iter_batches(_BATCH, columns=there, use_threads=False)


def _text(found: bytes) -> str:
    return found.decode("utf-8", "surrogatepass")


def _metrics(run: Run) -> _SqlTable:
    figures = ("auc", "tpr", "accuracy", "tpr_low", "lead")
    titles = {"tpr": "tpr_at_5_fpr", "tpr_low": "tpr_at_0_1_fpr"}
    numbers = {
        f"{titles.get(name, name)}{end}": "REAL" for name in figures for end in ("", "_lowest", "_highest")
    }
    own = {"row": _ROW, "name": "TEXT NOT NULL", "kind": "TEXT NOT NULL", "texts": "INTEGER"}

    def cells(row: Measured) -> list[float | None]:
        found: list[Estimate | None] = [getattr(row, name) for name in figures]
        return [end for one in found for end in ((one.value, one.low, one.high) if one else (None,) * 3)]

    measured = run.evaluation.rows if run.evaluation else ()
    rows = [
        (number, row.name, row.kind, row.texts, *cells(row), _finite(row.threshold), row.survives)
        for number, row in enumerate(measured, 1)
    ]
    return _SqlTable("metrics", {**own, **numbers, "threshold": "REAL", "survives": "TEXT"}, rows)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _listed(name: str, path: Path, columns: Sequence[str]) -> _SqlTable:
    """The rows of a csv file of a run, as they come; none where there is no such file."""
    kinds = {one: "INTEGER" if one == "n_tokens" else "TEXT" for one in columns}

    def rows() -> Iterator[list[Any]]:
        if not path.exists():
            return
        csv.field_size_limit(max(csv.field_size_limit(), path.stat().st_size))
        with path.open(encoding="utf-8", newline="") as file:
            read = csv.reader(file)
            next(read, None)
            for number, row in enumerate(read, 1):
                yield [number, *row]

    return _SqlTable(name, {"row": _ROW, **kinds}, rows(), ("id",))


def _of_parts(
    verdict: Verdict, whole: Mapping[str, Any], folder: Path, files: Mapping[str, str]
) -> list[_SqlTable]:
    """The tables of a verdict that holds a sample of each, with all rows: from the files of its folder, whose hashes
    are `files`, where there are such."""
    found = []
    for made, parts in zip(_of_verdict(verdict), (whole["parts"], whole["known_parts"]), strict=True):
        rows = _numbered(_rows_of_parts(folder, parts, files, made.columns)) if parts else made.rows
        found.append(replace(made, rows=rows))
    return found


def _rows_of_parts(
    folder: Path, parts: Sequence[str], files: Mapping[str, str], columns: Mapping[str, str]
) -> Iterator[tuple[Any, ...]]:
    """The rows of parts; OutputError where one has another hash than was recorded."""
    import pyarrow.parquet as pq

    names = [name for name in columns if name != "row"]
    for part in parts:
        path = folder / part
        if not path.is_file() or file_hash(path) != files.get(part):
            raise OutputError(f"{path} is gone, damaged or was changed; run the flagging again.")
        with pq.ParquetFile(path) as file:
            there = [name for name in names if name in file.schema_arrow.names]
            for batch in file.iter_batches(_BATCH, columns=there, use_threads=False):
                nothing = [None] * batch.num_rows
                found = [batch.column(name).to_pylist() if name in there else nothing for name in names]
                for values in zip(*found, strict=True):
                    yield tuple(_text(one) if isinstance(one, bytes) else one for one in values)


def _names(verdict: Verdict) -> list[str]:
    """The names of the tables of a verdict in the database."""
    return apart(["summary", "settings", "checks", "skipped", *(one.name for one in verdict.tables)])[4:]


def _of_verdict(verdict: Verdict) -> list[_SqlTable]:
    found = []
    for name, one in zip(_names(verdict), verdict.tables, strict=True):
        columns = apart(["row", *one.columns])[1:]
        kinds = map(_kind, one.columns.values())
        rows = zip(*(_values(values) for values in one.columns.values()), strict=True)
        declared = {"row": _ROW, **dict(zip(columns, kinds, strict=True))}
        indexes = tuple(column for column in ("id", "document") if column in columns)
        found.append(_SqlTable(name, declared, _numbered(rows), indexes))
    return found


def _kind(column: Any) -> str:
    if not isinstance(column, np.ndarray):
        return "TEXT"
    return "INTEGER" if column.dtype == np.bool_ else "REAL"


def _values(column: Any) -> list[Any]:
    if not isinstance(column, np.ndarray):
        return list(column)
    found: list[Any] = column.tolist()
    return [None if one is None else int(one) for one in found] if column.dtype == np.bool_ else found


def _checks(checks: Sequence[Check]) -> _SqlTable:
    columns = {
        "name": "TEXT PRIMARY KEY",
        "title": "TEXT",
        "status": "TEXT",
        "words": "TEXT",
        "advice": "TEXT",
    }
    names = apart(one.name for one in checks)
    rows = [
        (name, one.title, one.status, one.words, one.cure) for name, one in zip(names, checks, strict=True)
    ]
    return _SqlTable("checks", columns, rows)


def _skipped(result: Verdict) -> _SqlTable:
    rows = ((one.id, one.reason, one.tokens) for one in result.skipped)
    columns = {"row": _ROW, "id": "TEXT", "reason": "TEXT", "n_tokens": "INTEGER"}
    return _SqlTable("skipped", columns, _numbered(rows), ("id",))


def _numbered(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    return ((number, *row) for number, row in enumerate(rows, 1))


def _summary(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in _OWN}


def _pairs(name: str, facts: Mapping[str, Any]) -> _SqlTable:
    """Facts as rows of a dotted name and a value; a list stands there as JSON."""
    columns = {"row": _ROW, "name": "TEXT NOT NULL", "value": ""}
    return _SqlTable(name, columns, _numbered(_flattened(facts)), ("name",))


def _flattened(facts: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if isinstance(value, Mapping) and value:
            yield from _flattened(value, f"{path}{key}.")
        elif isinstance(value, Mapping | list | tuple) or (isinstance(value, int) and abs(value) >= 2**63):
            yield f"{path}{key}", json.dumps(value, ensure_ascii=False)
        else:
            yield f"{path}{key}", value


# Rows of results as tables of pyarrow and pandas, with the columns of the tables on disk.


def to_arrow(result: object) -> Any:
    """The rows of a run or of a table, or those of the first table of a verdict, as a `pyarrow.Table`.

    A cell without a value is null. A column with a lone surrogate is of bytes (WTF-8), as on disk.
    """
    import pyarrow as pa

    return pa.table({name: arrow_column(values) for name, values in _columns(result).items()})


def to_pandas(result: object) -> Any:
    """The same as a `pandas.DataFrame`; labels as Int8 with NA. MissingPackageError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackageError("pandas", "to_pandas()") from None
    import pyarrow as pa

    return to_arrow(result).to_pandas(types_mapper={pa.int8(): pd.Int8Dtype()}.get)


@singledispatch
def _columns(result: object) -> dict[str, Column]:
    raise TypeError(f"a {type(result).__name__} has no rows")


@_columns.register
def _(run: Run) -> dict[str, Column]:
    return score_columns(run, controls=True)


@_columns.register
def _(verdict: Verdict) -> dict[str, Column]:
    if not verdict.tables:
        raise TypeError("this verdict has no table")
    return _columns(verdict.tables[0])


@_columns.register
def _(table: Table) -> dict[str, Column]:
    return {
        name: np.ma.masked_invalid(values) if isinstance(values, np.ndarray) else values
        for name, values in table.columns.items()
    }
