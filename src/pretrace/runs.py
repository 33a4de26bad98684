"""A result with its report, written and read as one folder: a run, or the verdict of a test.

The folder of a verdict has `result.json`, which a script acts on, and one csv file a table. The JSON part lists the
tables with their columns and says which hold numbers; an empty cell of those is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.errors import OutputError
from pretrace.results import atomic
from pretrace.results import run as runs
from pretrace.results.atomic import VERDICTS as VERDICTS
from pretrace.results.atomic import FolderKind, OutputFile, json_object, recorded_files
from pretrace.results.folder import (
    OpenFolder,
    Pages,
    Write,
    expect,
    from_plain,
    read_csv,
    read_folder,
    to_plain,
    truth,
    write_csv,
    write_folder,
)
from pretrace.types import Run, Table, Verdict
from pretrace.verdicts.outcome import EXIT_CODES

Result = Run | Verdict
REPORT, APPENDIX = "report.html", "appendix.html"
FLAGGING = replace(VERDICTS.of("flag"), name="flagging", writer="pretrace flag", cure="run it again")
AUDIT = replace(VERDICTS.of("audit"), name="audit", writer="pretrace audit", cure="run the audit again")
_NAMED = {one.test: one for one in (FLAGGING, AUDIT)}
MARKERS = (VERDICTS.marker, runs.RUN.marker)
"""The JSON parts by which results are known; a folder is known by the first of them that it holds."""
_FIELDS = tuple(f.name for f in fields(Verdict) if f.name not in ("tables", "settings"))


def save(result: Result, folder: str | Path, **more: Any) -> dict[str, Any]:
    """Write tables, figures and report to `folder`, whole or not at all, in place of an earlier result there, and
    return the JSON part.

    `beside` adds to the folder of a run before its report is made, or, by their names, further tables to that of a
    verdict. Raises OutputError where nothing can be written, or where `folder` holds something else.
    """
    write: Callable[..., dict[str, Any]] = runs.save_run if isinstance(result, Run) else _write_verdict
    return write(result, Path(folder), pages=_pages(result), **more)


save_run = save_verdict = save
load_run = runs.load_run


def _write_verdict(
    verdict: Verdict,
    folder: Path,
    *,
    beside: Mapping[str, Write] | None = None,
    pages: Pages | None = None,
) -> dict[str, Any]:
    """Write a verdict to `folder`, in place of an earlier one there, and return its JSON part. `beside` writes further
    tables by name, `pages` are made from it. TypeError or ValueError for what cannot be written, OutputError
    where `folder` cannot be; then nothing has changed."""
    parts: dict[str, Write] = {
        f"{table.name}.csv": partial(_write_table, table=table) for table in verdict.tables
    }
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


def load(folder: str | Path) -> Result:
    """The run or verdict that `save` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where the folder holds none, where a file is damaged or was changed, or where
    a newer pretrace wrote it.
    """
    place = Path(folder)
    return _read_verdict(place) if _holds_verdict(place) else load_run(place)


def kind_of(folder: Path) -> FolderKind:
    """What kind of result lies in a folder, by its JSON part; that of a run where there is none."""
    if not _holds_verdict(folder):
        return runs.RUN
    test = (json_object(folder / VERDICTS.marker) or {}).get("test")
    return replace(kind_of_test(str(test)), test="")


def render(folder: str | Path) -> Path:
    """The report of the result in `folder`, made anew in its place, with its appendix where it was written with one;
    errors as in `load` and `save`."""
    place = Path(folder)
    made, ours = pages_of(place), recorded_files(place)
    for name in made:
        atomic.check_file(place / name, OutputFile("report", lambda path: path.name in ours))
    for name, page in made.items():
        atomic.atomic_text(place / name, page)
    return place / REPORT


def pages_of(folder: str | Path) -> dict[str, str]:
    """The report of the result in `folder` as it would be made now, and the appendix where it was written with one, by
    the names of their files; errors as in `load`."""
    result, place = load(folder), Path(folder)
    seal, known = OpenFolder(kind_of(place), place).seal, {REPORT, *recorded_files(place)}
    return {name: make(seal) for name, make in _pages(result).items() if name in known}


def scan(folder: str | Path) -> Any:
    """All rows of a run as a `pyarrow.dataset.Dataset`, which reads them as they are wanted: of a large run the whole
    table and not the sample. Of a large flagging all texts in question. OutputError where the folder holds neither."""
    from pyarrow import dataset

    place, found = Path(folder), load(folder)
    if isinstance(found, Verdict) and found.figures.get("whole"):
        names = list(found.figures["whole"]["parts"])
    else:
        run = found if isinstance(found, Run) else load_run(folder)
        names = [part["name"] for part in run.whole.parts] if run.whole else [runs.SCORES]
    return dataset.dataset([str(place / name) for name in names], format="parquet")


def load_verdict(folder: str | Path, *tests: str) -> Verdict:
    """`load`, where nothing but a verdict will do: an audit, a flagging, or another test; one of these `tests`, where
    any are named."""
    place = Path(folder)
    _holds_verdict(place)  # which refuses a file
    found = _read_verdict(place)
    if tests and found.test not in tests:
        raise OutputError(f"{place} holds the result of another test: {found.test}.")
    return found


def _read_verdict(folder: Path) -> Verdict:
    """The verdict that `save_verdict` wrote, to the last bit; OutputError where it is none, changed, or newer."""

    def load(opened: OpenFolder) -> Verdict:
        content = opened.content
        plain = {name: content[name] for name in (*_FIELDS, "settings") if name in content}
        tables = tuple(
            opened.part(f"{name}.csv", partial(_read_table, name=name, kinds=expect(kinds, dict)))
            for name, kinds in expect(content["tables"], dict).items()
        )
        return replace(from_plain(Verdict, plain, "result"), tables=tables)

    return read_folder(VERDICTS, folder, load)


def _write_table(path: Path, *, table: Table) -> None:
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


def _read_table(content: bytes, *, name: str, kinds: Mapping[str, str]) -> Table:
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


def _holds_verdict(folder: Path) -> bool:
    if folder.is_file():
        raise OutputError(f"{folder} is a file, and a result is a folder: give the folder that --out wrote.")
    return (folder / VERDICTS.marker).exists()


def _pages(result: Result) -> Pages:
    name = "run" if isinstance(result, Run) else "verdict"
    report, appendix = import_module(f"pretrace.report.{name}").pages(result)
    return {REPORT: report} | ({APPENDIX: appendix} if appendix else {})
