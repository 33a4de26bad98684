"""Tables on disk: csv for people, parquet, which gives back every bit, and lines of JSON.

Names stand in csv as they are, so that they can be joined with the texts: one that begins with "=" is a formula
to a spreadsheet, so open tables of untrusted names there as text only. A lone surrogate is written as its
escape in csv and JSON, and as bytes (WTF-8) in parquet.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.results.serialization import from_json

Column = Sequence[str] | npt.NDArray[Any]
_SPECIAL = frozenset('",\r\n')


def write_csv(
    path: Path, names: Sequence[str], rows: Iterable[Sequence[object]], *, quoted: bool = False
) -> None:
    """Write rows below their names; floats so that reading them gives the same float back, None as nothing.

    Texts stand in quotes where they must, or with `quoted` all of them.
    """
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.write(",".join([_cell(name, quoted) for name in names]) + "\n")
        for row in rows:
            file.write(",".join([_cell(value, quoted) for value in row]) + "\n")


def _cell(value: object, quoted: bool) -> str:
    # Not csv.writer: it leaves a lone carriage return bare, where readers then see the end of a row.
    if not isinstance(value, str):
        return "" if value is None else str(value)
    if quoted or not value or value != value.strip() or not _SPECIAL.isdisjoint(value):
        return '"' + value.replace('"', '""') + '"'
    return value


def read_csv(content: bytes) -> tuple[tuple[str, ...], list[list[str]]]:
    """The names and rows of a csv file; ValueError where a row has another length."""
    csv.field_size_limit(max(csv.field_size_limit(), len(content)))  # an id may be as long as it likes
    try:
        names, *rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    if any(len(row) != len(names) for row in rows):
        raise ValueError("its rows differ in length")
    return tuple(names), rows


def write_parquet(
    path: Path, columns: Mapping[str, Column], facts: Mapping[bytes, bytes] | None = None
) -> None:
    """Write columns of texts or numbers (a masked array where some are missing), and `facts` beside them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: arrow_column(values) for name, values in columns.items()})
    with path.open("wb") as file:  # given a name, pyarrow refuses those that are not UTF-8
        pq.write_table(table.replace_schema_metadata(facts) if facts else table, file)


def read_parquet(content: bytes) -> Any:
    """The pyarrow table in a parquet file; ValueError where there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error


def texts_of(table: Any, name: str) -> tuple[str, ...]:
    """A column of texts of a table that `write_parquet` wrote; KeyError, TypeError or ValueError without one."""
    found = table.column(name).to_pylist()
    texts = tuple(t.decode("utf-8", "surrogatepass") if isinstance(t, bytes) else t for t in found)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"the column {name} holds something else than texts")
    return texts


def arrow_column(values: Column) -> Any:
    """Texts or numbers as a pyarrow array; texts with a lone surrogate as bytes."""
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return pa.array(np.ascontiguousarray(values) if not np.ma.isMaskedArray(values) else values)
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array([text.encode("utf-8", "surrogatepass") for text in values], pa.binary())


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_lines(content: bytes) -> list[dict[str, Any]]:
    """The objects that `write_lines` wrote; ValueError or TypeError where it did not."""
    # Split at line feeds alone: a text may hold other characters that end a line.
    return [from_json(line) for line in content.split(b"\n") if line]
