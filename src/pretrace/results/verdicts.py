"""A verdict on disk: `result.json`, which a script acts on, and one csv file a table.

The JSON part lists the tables with their columns and says which hold numbers; an empty cell of those is NaN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.results.audit import EXIT_CODES
from pretrace.results.folder import Kind, Opened, Rendered, Write, read_folder, write_folder
from pretrace.results.output_checks import RESULT, RESULT_KEY
from pretrace.results.serialization import expect, from_plain, to_plain
from pretrace.results.tables import read_csv, write_csv
from pretrace.types import Table, Verdict

VERDICTS = Kind("test result", RESULT, RESULT_KEY, 1, "one of pretrace's tests", "run the test again")
_FIELDS = tuple(f.name for f in dataclasses.fields(Verdict) if f.name not in ("tables", "settings"))


def save_verdict(
    verdict: Verdict, folder: Path, *, extra: Write | None = None, rendered: Rendered | None = None
) -> None:
    """Write a verdict to `folder`, in place of an earlier one there; on failure nothing has changed.

    `extra` may add files, `rendered` is what is made from it (a report). Raises TypeError or ValueError
    where it holds what cannot be written, OutputError where `folder` cannot be.
    """
    parts: dict[str, Write] = {f"{table.name}.csv": partial(_write, table=table) for table in verdict.tables}
    if len(parts) < len(verdict.tables):
        raise ValueError("two tables of a verdict have the same name")
    fields = {name: to_plain(getattr(verdict, name), name) for name in _FIELDS}
    content: dict[str, Any] = {
        "outcome": verdict.outcome,
        "exit_code": EXIT_CODES[verdict.outcome],
        **fields,
        "tables": {
            table.name: {name: _kind(values) for name, values in table.columns.items()}
            for table in verdict.tables
        },
        "settings": to_plain(verdict.settings, "settings"),
    }
    write_folder(VERDICTS.of(verdict.test), folder, content, parts=parts, extra=extra, rendered=rendered)


def load_verdict(folder: Path) -> Verdict:
    """The verdict that `save_verdict` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where `folder` holds none, where a file is damaged or was changed, or where a
    newer pretrace wrote it.
    """
    return read_folder(VERDICTS, folder, _load)


def _load(opened: Opened) -> Verdict:
    content = opened.content
    plain = {name: content[name] for name in (*_FIELDS, "settings") if name in content}
    listed = expect(content["tables"], dict)
    tables = tuple(
        opened.part(f"{name}.csv", partial(_read, name=name, kinds=expect(kinds, dict)))
        for name, kinds in listed.items()
    )
    return dataclasses.replace(from_plain(Verdict, plain, "result"), tables=tables)


def _write(path: Path, *, table: Table) -> None:
    columns = [
        [None if np.isnan(value) else float(value) for value in values.tolist()]
        if isinstance(values, np.ndarray)
        else values
        for values in table.columns.values()
    ]
    write_csv(path, tuple(table.columns), zip(*columns, strict=True), quoted=True)


def _read(content: bytes, *, name: str, kinds: Mapping[str, str]) -> Table:
    found, rows = read_csv(content)
    if found != tuple(kinds):
        raise ValueError(f"columns {', '.join(kinds)} expected")
    columns: dict[str, Any] = {}
    for place, column in enumerate(found):
        cells = [row[place] for row in rows]
        if kinds[column] == "number":
            columns[column] = np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
        else:
            columns[column] = tuple(cells)
    return Table(name, columns)


def _kind(values: object) -> str:
    return "number" if isinstance(values, np.ndarray) else "text"
