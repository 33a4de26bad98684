"""One database of a result: its rows, keys and types, hostile names, large runs part by part, whole or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report import audits
from report.test_flagging_report import made as flagging

from pretrace.errors import OutputError
from pretrace.results import export as exporting
from pretrace.results.folder import file_hash, write_csv, write_csv_columns, write_parquet
from pretrace.runs import export, save, save_run
from pretrace.types import (
    Control,
    Curve,
    Estimate,
    Evaluation,
    Measured,
    Missing,
    Run,
    Skipped,
    TablePart,
    Whole,
)

AUC = Estimate(0.75, 0.6, 0.9)


def made(rows: int = 6, **changes: Any) -> Run:
    row = Measured("loss", "score", AUC, AUC, AUC, float("-inf"), Curve((0.0, 1.0), (0.0, 1.0)))
    run = Run(
        corpus="c",
        ids=tuple(f"t{i}" for i in range(rows)),
        groups=tuple(f"d{i // 2}" for i in range(rows)),
        members=tuple((True, False, None)[i % 3] for i in range(rows)),
        tokens=np.arange(rows, dtype=np.int32),
        cut=np.arange(rows, dtype=np.int32) // 4,
        scores=("loss", "LOSS", "row", 'a"b'),
        matrix=np.arange(4.0 * rows).reshape(rows, 4),
        skipped=(Skipped("\ud800", 'no "text"\n', 0),),
        evaluation=Evaluation((row,), 2, 2, 3, 1000, 0),
        controls=(Control("loss", "shuffled", np.ones((rows, 2))),),
        settings={
            "seed": 3,
            "models": {"target": {"name": "m", "prefix": [0]}},
            "windows": False,
            "none": None,
        },
    )
    return replace(run, **changes)


def read(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def of(result: Any, folder: Path) -> Path:
    """The database of a result."""
    save(result, folder / "RESULT")
    export(folder / "RESULT", folder / "run.sqlite")
    return folder / "run.sqlite"


def test_the_tables_of_a_run(tmp_path: Path) -> None:
    run = made()
    run.matrix[2, 0] = np.nan
    path = of(replace(run, missing=(Missing("t2", "loss", "too short"),)), tmp_path)
    texts = 'SELECT "row", id, label, "group", n_tokens, n_cut FROM texts'
    assert read(path, f"{texts} LIMIT 3") == [
        (1, "t0", 1, "d0", 0, 0),
        (2, "t1", 0, "d0", 1, 0),
        (3, "t2", None, "d1", 2, 0),
    ]
    wanted = [(i + 1, *run.matrix[i], 1.0, 1.0) for i in range(6)]
    wanted[2] = (3, None, *wanted[2][2:])
    assert read(path, "SELECT * FROM scores") == wanted
    assert read(path, "SELECT id, score, reason FROM missing") == [("t2", "loss", "too short")]
    assert read(path, "SELECT id, reason, n_tokens FROM skipped") == [("\\ud800", 'no "text"\n', 0)]
    assert read(path, "SELECT name, kind, auc, auc_lowest, threshold FROM metrics") == [
        ("loss", "score", 0.75, 0.6, None)
    ]
    settings = dict(read(path, "SELECT name, value FROM settings"))
    assert settings == {
        "seed": 3, "models.target.name": "m", "models.target.prefix": "[0]", "windows": 0, "none": None,
    }  # fmt: skip
    assert dict(read(path, "SELECT name, value FROM summary"))["counts.texts"] == 6
    assert read(path, "SELECT id, loss FROM scored WHERE n_cut = 1") == [("t4", 16.0), ("t5", 20.0)]


def test_keys_and_names(tmp_path: Path) -> None:
    path = of(made(), tmp_path)
    names = [name for _, name, *_ in read(path, "PRAGMA table_info(scores)")]
    assert names == ["row", "loss", "LOSS #2", "row #2", 'a"b', "shuffled 1: loss", "shuffled 2: loss"]
    kinds = {name: (kind, key) for _, name, kind, _, _, key in read(path, "PRAGMA table_info(texts)")}
    assert kinds["row"] == ("INTEGER", 1)
    assert kinds["id"] == ("TEXT", 0)
    assert [found[2:5] for found in read(path, "PRAGMA foreign_key_list(scores)")] == [
        ("texts", "row", "row")
    ]
    assert read(path, "PRAGMA integrity_check") == [("ok",)]
    assert read(path, "PRAGMA foreign_key_check") == []


def large(folder: Path) -> Path:
    """The folder of a run of 50 texts in two parts, which holds a sample of 6."""
    counts = dict.fromkeys(
        ("documents", "members", "nonmembers", "tokens", "missing", "lacking", "cut_texts", "cut_tokens"), 0
    )

    def beside(partial: Path) -> None:
        (partial / "scores").mkdir()
        for number in range(2):
            rows = np.arange(25) + 25 * number
            columns = {
                "id": [f"all{i}" for i in rows], "label": np.ma.masked_all(25, np.int8), "group": [""] * 25,
                "n_tokens": rows.astype(np.int32), "n_cut": rows, "n_chars": rows, "loss": rows * 0.5,
            }  # fmt: skip
            write_parquet(partial / f"scores/part-{number:05}.parquet", columns)
        write_csv(
            partial / "skipped.csv", ("id", "reason", "n_tokens"), [(f"s{i}", "empty", 0) for i in range(9)]
        )

    beside(folder)
    names = [f"scores/part-{number:05}.parquet" for number in range(2)]
    parts = tuple(TablePart(name, 25, file_hash(folder / name)) for name in names)
    whole = Whole(texts=50, skipped=9, unreadable=0, sampled=6, parts=parts, **counts)
    run = made(scores=("loss",), matrix=np.ones((6, 1)), controls=(), evaluation=None, whole=whole)
    save_run(run, folder / "R", beside=beside)
    return folder / "R"


def test_a_large_run_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_BATCH", 7)
    run, path = large(tmp_path), tmp_path / "run.sqlite"
    export(run, path)
    wanted = [(i + 1, f"all{i}", i, i, i * 0.5) for i in range(50)]
    assert read(path, 'SELECT "row", id, n_tokens, n_chars, loss FROM scored ORDER BY "row"') == wanted
    assert read(path, "SELECT count(*) FROM skipped") == [(9,)]
    before = path.read_bytes()
    (run / "scores/part-00001.parquet").write_bytes(b"PAR1")
    with pytest.raises(OutputError, match=r"part-00001\.parquet is gone, damaged or was changed"):
        export(run, path)
    assert path.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["R", "run.sqlite", "scores", "skipped.csv"]


def test_an_audit_and_a_flagging(tmp_path: Path) -> None:
    audit = audits.controls()
    path = of(audit, tmp_path)
    sides = dict(read(path, "SELECT side, count(*) FROM documents GROUP BY side"))
    assert sides == {"suspect": 120, "control": 74}
    assert read(path, "SELECT name, status FROM checks") == [(one.name, one.status) for one in audit.checks]
    summary = dict(read(path, "SELECT name, value FROM summary"))
    assert (summary["outcome"], summary["p"]) == (audit.outcome, audit.p)
    path = of(flagging(), tmp_path / "F")
    assert read(path, "SELECT count(*), sum(flagged) FROM flags") == [(60, 7)]
    assert read(path, "SELECT count(*) FROM known") == [(200,)]
    path = of(flagging("refused"), tmp_path / "F")
    assert read(path, "SELECT count(p), count(flagged) FROM flags") == [(0, 0)]


def test_bad_places_and_too_many_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(made(), tmp_path / "R")
    with pytest.raises(OutputError, match="no such folder"):
        export(tmp_path / "NOWHERE", tmp_path / "run.sqlite")
    monkeypatch.setattr(exporting, "MOST_COLUMNS", 5)
    with pytest.raises(OutputError, match="has 6 scores and controls"):
        export(tmp_path / "R", tmp_path / "run.sqlite")
    assert not (tmp_path / "run.sqlite").exists()


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
