"""The scores of a run as tables: parquet, which gives back every bit, and csv, for people.

Columns: `id`, `label` (1 member, 0 non-member, empty where unknown; left out where no label is known),
`group`, `n_tokens`, then one a score, named exactly as its expression is written. How many tokens each text
lost to the length limit is no column, lest it be taken for a score: people find it in cut.csv, and
`read_parquet` in the file's metadata.

Controls have a table of their own: `id`, then `placebo: EXPRESSION` and `shuffled 1: EXPRESSION`,
`shuffled 2: EXPRESSION`, … for the repeats, rows in the same order.

The csv files hold ids as they are, so that they can be joined with the texts: one that begins with "=" is
a formula to a spreadsheet, so open tables of untrusted ids there as text only. A lone surrogate is written
as its escape.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pretrace.types import Control, Doubles, Ints, Run, Skipped

FIXED = ("id", "label", "group", "n_tokens")
_CUT = b"pretrace_cut"  # zlib of little-endian int32, in base64


class Columns(NamedTuple):
    """What `read_parquet` gives back: the rows of a run."""

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    members: tuple[bool | None, ...]
    tokens: Ints
    cut: Ints
    matrix: Doubles


def check_rows(run: Run) -> None:
    """Raise ValueError unless the run's arrays agree in length and its scores' names are columns' names."""
    rows = {len(run.ids), len(run.groups), len(run.members), len(run.tokens), len(run.cut)}
    if rows != {len(run.matrix)} or run.matrix.shape != (len(run.ids), len(run.scores)):
        raise ValueError("the rows of a run differ in number from array to array")
    if len({*run.scores, *FIXED}) != len(run.scores) + len(FIXED):
        raise ValueError(f"scores of a run share a name, or are called {' or '.join(FIXED)}")
    if not np.isfinite(run.matrix).all():
        raise ValueError("a score of a run is NaN or infinite")
    for control in run.controls:
        if control.values.ndim != 2 or len(control.values) != len(run.ids):
            raise ValueError("a control of a run has another number of rows than its scores")
        if not np.isfinite(control.values).all():
            raise ValueError("a control of a run is NaN or infinite")
    names = [name for control in run.controls for name in _control_names(*_outline(control))]
    if len(set(names)) != len(names):
        raise ValueError("controls of a run share a name")


def write_parquet(run: Run, path: Path) -> None:
    """Write the scores as parquet. Ids or groups with lone surrogates are stored as bytes (WTF-8)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"id": _strings(run.ids)}
    if any(member is not None for member in run.members):
        labels = [None if member is None else int(member) for member in run.members]
        columns["label"] = pa.array(labels, pa.int8())
    columns["group"] = _strings(run.groups)
    columns["n_tokens"] = pa.array(np.asarray(run.tokens, np.int32))
    for index, score in enumerate(run.scores):
        columns[score] = pa.array(np.ascontiguousarray(run.matrix[:, index], np.float64))
    with path.open("wb") as file:  # given a name, pyarrow refuses those that are not UTF-8
        packed = base64.b64encode(zlib.compress(np.asarray(run.cut, "<i4").tobytes()))
        pq.write_table(pa.table(columns).replace_schema_metadata({_CUT: packed}), file)


def read_parquet(content: bytes, scores: Sequence[str]) -> Columns:
    """The rows of a parquet file; ValueError (of which pyarrow's errors are some) or KeyError where it
    is not one that `write_parquet` wrote."""
    table = _table(content)
    names = table.column_names
    labels = table.column("label").to_pylist() if "label" in names else [None] * table.num_rows
    matrix = np.empty((table.num_rows, len(scores)), np.float64)
    for index, score in enumerate(scores):
        matrix[:, index] = table.column(score).to_numpy()
    return Columns(
        ids=_texts(table.column("id").to_pylist()),
        groups=_texts(table.column("group").to_pylist()),
        members=tuple(None if label is None else bool(label) for label in labels),
        tokens=table.column("n_tokens").to_numpy().astype(np.int32),
        cut=_unpacked(table.schema.metadata, table.num_rows),
        matrix=matrix,
    )


def write_controls(run: Run, path: Path) -> None:
    """Write the values of the run's controls as parquet, one column a repeat."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"id": _strings(run.ids)}
    for control in run.controls:
        for name, values in zip(_control_names(*_outline(control)), control.values.T, strict=True):
            columns[name] = pa.array(np.ascontiguousarray(values, np.float64))
    with path.open("wb") as file:
        pq.write_table(pa.table(columns), file)


def outline_controls(run: Run) -> list[dict[str, Any]]:
    """Which controls there are, as plain values: what `read_controls` needs beside the table."""
    return [
        dict(zip(("kind", "score", "repeats"), _outline(control), strict=True)) for control in run.controls
    ]


def read_controls(content: bytes, outline: Sequence[Mapping[str, Any]]) -> tuple[Control, ...]:
    """The controls that `write_controls` wrote, in the order of their outline; errors as in `read_parquet`."""
    table = _table(content)
    found = []
    for entry in outline:
        kind, score, repeats = str(entry["kind"]), str(entry["score"]), int(entry["repeats"])
        values = np.empty((table.num_rows, repeats), np.float64)
        for index, name in enumerate(_control_names(kind, score, repeats)):
            values[:, index] = table.column(name).to_numpy()
        found.append(Control(score, kind, values))
    return tuple(found)


def _outline(control: Control) -> tuple[str, str, int]:
    return control.kind, control.score, int(control.values.shape[1])


def _control_names(kind: str, score: str, repeats: int) -> list[str]:
    if kind == "placebo" and repeats == 1:
        return [f"{kind}: {score}"]
    return [f"{kind} {number}: {score}" for number in range(1, repeats + 1)]


def _table(content: bytes) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error


def _unpacked(metadata: Mapping[bytes, bytes] | None, rows: int) -> Ints:
    try:
        cut = np.frombuffer(zlib.decompress(base64.b64decode((metadata or {})[_CUT])), "<i4")
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(cut) != rows:
        raise ValueError("the counts of cut tokens are not one a row")
    return cut.astype(np.int32)


def write_csv(run: Run, path: Path) -> None:
    """Write the scores as csv; floats so that reading them gives the same float back."""
    labelled = any(member is not None for member in run.members)
    names = [name for name in FIXED if labelled or name != "label"]

    def rows() -> Iterable[list[object]]:
        yield [*names, *run.scores]
        for index, values in enumerate(run.matrix.tolist()):
            member = run.members[index]
            label: list[object] = [None if member is None else int(member)] if labelled else []
            yield [run.ids[index], *label, run.groups[index], int(run.tokens[index]), *values]

    _write_rows(path, rows())


def write_skipped(skipped: Sequence[Skipped], path: Path) -> None:
    """Write which texts have no score, and why, as csv."""
    head: list[list[object]] = [["id", "reason", "n_tokens"]]
    _write_rows(path, [*head, *([text.id, text.reason, int(text.tokens)] for text in skipped)])


def write_cut(run: Run, path: Path) -> None:
    """Write which texts were longer than the limit, and by how many tokens, as csv."""
    rows: list[list[object]] = [[run.ids[i], int(run.cut[i])] for i in np.flatnonzero(run.cut).tolist()]
    _write_rows(path, [["id", "n_cut"], *rows])


def _write_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.writelines(",".join(map(_cell, row)) + "\n" for row in rows)


def _cell(value: object) -> str:
    # Not csv.writer: it leaves a lone carriage return bare, where readers then see the end of a row.
    text = "" if value is None else str(value)
    quoted = isinstance(value, str) and (not text or text != text.strip() or any(c in text for c in '",\r\n'))
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _strings(texts: Sequence[str]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.binary())


def _texts(found: Sequence[str | bytes]) -> tuple[str, ...]:
    return tuple(text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text for text in found)
