"""Tables on disk: columns are written as their rows are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pretrace.results.folder import write_csv, write_csv_columns


def test_columns_are_written_as_their_rows_are(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "plain": ["a", "b1", "ü"],
        "id": ["", 'say "no"', "a,b"],
        "end": [" a", "b\r", "c"],
        "last": ["a", "b ", "c"],
        "half": ["\ud800", "b\n", "c\x1f"],
        "n": [1, 2, 3],
        "label": [None, 1, 0],
        "score": [-3.5e-07, 1e22, None],
    }
    write_csv_columns(tmp_path / "columns.csv", columns)
    write_csv(tmp_path / "rows.csv", tuple(columns), zip(*columns.values(), strict=True))
    assert (tmp_path / "columns.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()
    for name, values in columns.items():
        write_csv_columns(tmp_path / "columns.csv", {name: values})
        write_csv(tmp_path / "rows.csv", (name,), zip(values, strict=True))
        assert (tmp_path / "columns.csv").read_bytes() == (tmp_path / "rows.csv").read_bytes()
