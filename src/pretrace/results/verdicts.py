"""A verdict on disk: `result.json`, which a script acts on, and one csv file a table.

The JSON part lists the tables with their columns and says which hold numbers; an empty cell of those is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pretrace.results.atomic import VERDICTS as VERDICTS
from pretrace.results.atomic import FolderKind
from pretrace.results.folder import (
    OpenFolder,
    Pages,
    Write,
    expect,
    from_plain,
    read_csv,
    read_folder,
    to_plain,
    write_csv,
    write_folder,
)
from pretrace.types import Bools, Outcome, Table, Verdict

T = TypeVar("T")

FLAGGING = replace(VERDICTS.of("flag"), name="flagging", writer="pretrace flag", cure="run it again")
AUDIT = replace(VERDICTS.of("audit"), name="audit", writer="pretrace audit", cure="run the audit again")
_NAMED = {one.test: one for one in (FLAGGING, AUDIT)}
EXIT_CODES: Mapping[Outcome, int] = {
    "nothing": 0, "absent": 0, "none": 0,
    "consistent": 3, "found": 3, "flagged": 3, "set": 3,
    "inconclusive": 4, "refused": 4, "missed": 4,
}  # fmt: skip
"""What the command that made a verdict leaves with, so that a script can act on it."""
_FIELDS = tuple(f.name for f in fields(Verdict) if f.name not in ("tables", "settings"))


def save_verdict(
    verdict: Verdict,
    folder: Path,
    *,
    beside: Mapping[str, Write] | None = None,
    pages: Pages | None = None,
) -> dict[str, Any]:
    """Write a verdict to `folder`, in place of an earlier one there, and return its JSON part. `beside` writes further
    tables by name, `pages` are made from it. TypeError or ValueError for what cannot be written, OutputError
    where `folder` cannot be; then nothing has changed."""
    parts: dict[str, Write] = {f"{table.name}.csv": partial(_write, table=table) for table in verdict.tables}
    if len(parts) < len(verdict.tables):
        raise ValueError("two tables of a verdict have the same name")
    for table in verdict.tables:
        if len({len(values) for values in table.columns.values()}) > 1:
            raise ValueError(f"the columns of the table {table.name} differ in length")

    def kind_in(values: object) -> str:
        return "text" if not isinstance(values, np.ndarray) else "truth" if values.dtype == bool else "number"

    found = {name: to_plain(getattr(verdict, name), name) for name in _FIELDS}
    content: dict[str, Any] = {
        "outcome": verdict.outcome,
        "exit_code": EXIT_CODES[verdict.outcome],
        **found,
        "tables": {
            table.name: {name: kind_in(values) for name, values in table.columns.items()}
            for table in verdict.tables
        },
        "settings": to_plain(verdict.settings, "settings"),
    }
    parts |= beside or {}
    return write_folder(kind_of_test(verdict.test), folder, content, parts=parts, pages=pages)


def kind_of_test(test: str) -> FolderKind:
    """The kind of the folders of a test."""
    return _NAMED.get(test) or VERDICTS.of(test)


def figure(verdict: Verdict, name: str, kind: type[T]) -> T | None:
    """A figure that was a dataclass, as that again; None where there is none of that name."""
    plain = verdict.figures.get(name)
    return None if plain is None else from_plain(kind, plain, name)


def load_verdict(folder: Path) -> Verdict:
    """The verdict that `save_verdict` wrote, to the last bit; OutputError where it is none, changed, or newer."""

    def load(opened: OpenFolder) -> Verdict:
        content = opened.content
        plain = {name: content[name] for name in (*_FIELDS, "settings") if name in content}
        tables = tuple(
            opened.part(f"{name}.csv", partial(_read, name=name, kinds=expect(kinds, dict)))
            for name, kinds in expect(content["tables"], dict).items()
        )
        return replace(from_plain(Verdict, plain, "result"), tables=tables)

    return read_folder(VERDICTS, folder, load)


def _write(path: Path, *, table: Table) -> None:
    """Write a table: nothing for a number that is NaN, and for a yes or no that is masked."""
    columns: list[Sequence[object]] = []
    for values in table.columns.values():
        if not isinstance(values, np.ndarray):
            columns.append(values)
        elif values.dtype == np.bool_:
            columns.append([None if value is None else int(value) for value in values.tolist()])
        else:
            columns.append([None if np.isnan(value) else float(value) for value in values.tolist()])
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
        elif kinds[column] == "truth":
            columns[column] = truth([bool(int(cell)) if cell else None for cell in cells])
        else:
            columns[column] = tuple(cells)
    return Table(name, columns)


def truth(values: Sequence[bool | None]) -> Bools:
    """A column of yes and no, masked where there is neither."""
    told = np.array([one is not None for one in values], dtype=np.bool_)
    found = np.array([bool(one) for one in values], dtype=np.bool_)
    return found if told.all() else np.ma.masked_array(found, mask=~told)
