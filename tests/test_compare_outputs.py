"""scripts/compare_outputs.py on made-up folders: what counts as a difference, and what it says of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
RUN = {
    "time": "today",
    "timings": {"scoring": 0.3},
    "scores": ["loss"],
    "settings": {"seed": 0, "share": float("nan")},
}
LOSSES = [-1.5, float("nan"), 0.1]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPTS)
    import compare_outputs  # type: ignore[import-not-found, unused-ignore]

    module: ModuleType = compare_outputs
    return module


def written(
    folder: Path,
    *,
    run: dict[str, Any] = RUN,
    losses: list[float] = LOSSES,
    page: str = "<p>",
    line: str = "a,1",
) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "scores.csv").write_text(f"id,loss\n{line}\n")
    (folder / "report.html").write_text(page)
    pq.write_table(pa.table({"id": ["a", "b", "c"], "loss": losses}), folder / "scores.parquet")
    np.savez(folder / "counts.npz", counts=np.arange(3))
    return folder


def differences(script: ModuleType, old: Path, new: Path, **how: bool) -> list[str]:
    """The lines that count."""
    return [line for line, counts in script.compare_folders(old, new, **how) if counts]


def test_folders_with_the_same_content_are_equal_whatever_their_names(
    script: ModuleType, tmp_path: Path
) -> None:
    old, new = (
        written(
            tmp_path / name,
            run={**RUN, "time": name, "timings": name, "sha256": name, "out": str(tmp_path / name / "x")},
        )
        for name in ("o", "n")
    )
    losses = [-1.5, -float("nan"), 0.1]  # a NaN of the other sign
    pq.write_table(pa.table({"id": ["a", "b", "c"], "loss": losses}), new / "scores.parquet")
    lines = list(script.compare_folders(old, new))
    names = ("counts.npz", "report.html", "run.json", "scores.csv", "scores.parquet")
    assert lines == [(f"equal: {name}", False) for name in names]


def test_the_last_bit_of_a_cell_is_a_difference(script: ModuleType, tmp_path: Path) -> None:
    old = written(tmp_path / "old")
    new = written(tmp_path / "new", losses=[-1.5, float("nan"), float(np.nextafter(0.1, 1.0))])
    assert differences(script, old, new) == [
        "differs: scores.parquet: row 2, column loss: 0.1 / 0.10000000000000002"
    ]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"settings": {"seed": 1, "share": float("nan")}}, "run.json: key settings.seed: 0 / 1"),
        ({"settings": {"seed": 0.0, "share": float("nan")}}, "run.json: key settings.seed: 0 / 0.0"),
        ({"settings": RUN["settings"] | {"sha256": "a"}}, "run.json: key settings.sha256 only in NEW"),
        ({"scores": ["loss", "ppl"]}, "run.json: key scores: ['loss'] / ['loss', 'ppl']"),
        ({"scores": ["ppl"]}, "run.json: key scores[0]: loss / ppl"),
    ],
)
def test_the_first_key_that_differs_is_named(
    script: ModuleType, tmp_path: Path, changed: dict[str, Any], line: str
) -> None:
    old, new = written(tmp_path / "old"), written(tmp_path / "new", run={**RUN, **changed})
    assert differences(script, old, new) == [f"differs: {line}"]


def test_new_keys_pass_only_where_they_are_allowed_and_lost_ones_never(
    script: ModuleType, tmp_path: Path
) -> None:
    old, new = written(tmp_path / "old"), written(tmp_path / "new", run={**RUN, "route": "default"})
    assert differences(script, old, new) == ["differs: run.json: key route only in NEW"]
    assert differences(script, old, new, new_keys=True) == []
    assert differences(script, new, old, new_keys=True) == ["differs: run.json: key route only in OLD"]


def test_files_that_one_side_lacks_and_lines_and_arrays_that_differ(
    script: ModuleType, tmp_path: Path
) -> None:
    old, new = written(tmp_path / "old"), written(tmp_path / "new", line="a,2")
    (old / "run.json").unlink()
    (new / "scores.parquet").unlink()
    np.savez(new / "counts.npz", counts=np.arange(3, dtype=np.uint64))
    assert differences(script, old, new) == [
        "differs: counts.npz: array counts",
        "only in NEW: run.json",
        "differs: scores.csv: line 2: b'a,1' / b'a,2'",
        "only in OLD: scores.parquet",
    ]


def test_pages_are_listed_and_count_only_when_asked(script: ModuleType, tmp_path: Path) -> None:
    old, new = written(tmp_path / "old"), written(tmp_path / "new", page="<b>")
    assert differences(script, old, new) == []
    assert ("differs (rendered, not counted): report.html", False) in script.compare_folders(old, new)
    assert differences(script, old, new, strict=True) == ["differs: report.html: line 1: b'<p>' / b'<b>'"]


@pytest.mark.parametrize(
    ("codes", "printed", "counts"),
    [((0, 0), "same", False), ((0, 0), "other", True), ((0, 3), "same", True), ((1, 1), "same", True)],
)
def test_a_command_is_equal_where_it_answers_alike_and_does_not_fail(
    script: ModuleType, tmp_path: Path, codes: tuple[int, int], printed: str, counts: bool
) -> None:
    states = []
    for name, code, said in zip(("old", "new"), codes, ("same", printed), strict=True):
        (tmp_path / name / "steps").mkdir(parents=True)
        record = {"exit_code": code, "printed": said}
        (tmp_path / name / "steps" / "gap.json").write_text(json.dumps(record))
        states.append(script.State(tmp_path, tmp_path / name, True))
    assert script.compare_step(script.Step("gap", ("gap",)), *states)[1] is counts


def test_a_wrong_argument_leaves_with_2(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compare-outputs", str(tmp_path), "HEAD"])
    assert script.main() == 2
    assert "neither a checkout with src/pretrace nor a commit" in capsys.readouterr().err
