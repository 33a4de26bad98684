"""scripts/compare-outputs on made-up folders: what counts as a difference, and what it says of it."""

import json
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PLACE = str(Path(__file__).resolve().parents[1] / "scripts" / "compare-outputs")
LOADER = SourceFileLoader("compare_outputs", PLACE)
SCRIPT = module_from_spec(ModuleSpec("compare_outputs", LOADER, origin=PLACE))
SCRIPT.__file__ = PLACE
LOADER.exec_module(SCRIPT)
RUN = {
    "time": "today",
    "timings": {"scoring": 0.3},
    "scores": ["loss"],
    "settings": {"seed": 0, "share": float("nan")},
}
LOSSES = [-1.5, float("nan"), 0.1]


def written(folder, *, run=RUN, losses=LOSSES, page="<p>", line="a,1"):
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "scores.csv").write_text(f"id,loss\n{line}\n")
    (folder / "report.html").write_text(page)
    pq.write_table(pa.table({"id": ["a", "b", "c"], "loss": losses}), folder / "scores.parquet")
    np.savez(folder / "counts.npz", counts=np.arange(3))
    return folder


def differences(old, new):
    """The lines that count."""
    return [line for line, counts in SCRIPT.compare_folders(old, new) if counts]


def test_folders_with_the_same_content_are_equal_whatever_their_names(tmp_path):
    old, new = (
        written(
            tmp_path / name,
            run={**RUN, "time": name, "timings": name, "sha256": name, "out": str(tmp_path / name / "x")},
        )
        for name in ("o", "n")
    )
    losses = [-1.5, -float("nan"), 0.1]  # a NaN of the other sign
    pq.write_table(pa.table({"id": ["a", "b", "c"], "loss": losses}), new / "scores.parquet")
    lines = list(SCRIPT.compare_folders(old, new))
    names = ("counts.npz", "report.html", "run.json", "scores.csv", "scores.parquet")
    assert lines == [(f"equal: {name}: ", False) for name in names]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"run": {**RUN, "settings": {"seed": 1}}}, "run.json: .settings.seed: ('int', 0) / ('int', 1)"),
        ({"run": {**RUN, "settings": {"seed": 0.0}}}, "run.json: .settings.seed: ('int', 0) / b'\\x00"),
        (
            {"run": {**RUN, "settings": {**RUN["settings"], "sha256": "a"}}},
            "run.json: .settings.sha256 only in NEW",
        ),  # type: ignore[dict-item]
        ({"run": {**RUN, "scores": ["loss", "ppl"]}}, "run.json: .scores.1 only in NEW"),
        ({"run": {**RUN, "scores": []}}, "run.json: .scores.0 only in OLD"),
        (
            {"losses": [-1.5, float("nan"), float(np.nextafter(0.1, 1.0))]},
            "scores.parquet: column loss (double), row 2",
        ),
        ({"line": "a,2"}, "scores.csv: line 2: b'a,1' / b'a,2'"),
    ],
)
def test_the_first_difference_is_named(tmp_path, changed, line):
    (found,) = differences(written(tmp_path / "old"), written(tmp_path / "new", **changed))
    assert found.startswith(f"differs: {line}")


def test_files_that_one_side_lacks_and_arrays_that_differ_count_and_pages_do_not(tmp_path):
    old, new = written(tmp_path / "old"), written(tmp_path / "new", page="<b>")
    (old / "run.json").unlink()
    (new / "scores.parquet").unlink()
    np.savez(new / "counts.npz", counts=np.arange(3, dtype=np.uint64))
    array, *others = differences(old, new)
    assert array.startswith("differs: counts.npz: array counts")
    assert others == ["only in NEW: run.json", "only in OLD: scores.parquet"]
    assert ("differs: report.html: ", False) in SCRIPT.compare_folders(old, new)


@pytest.mark.parametrize(
    ("codes", "printed", "counts"),
    [
        ((0, 0), "same", False),
        ((0, 0), "other words", False),
        ((0, 0), "2 of 3", True),
        ((0, 3), "same", True),
        ((1, 1), "same", True),
    ],
)
def test_a_command_is_equal_where_it_answers_alike_and_does_not_fail(tmp_path, codes, printed, counts):
    states = [tmp_path / "old", tmp_path / "new"]
    for place, code, said in zip(states, codes, ("same", printed), strict=True):
        (place / "steps").mkdir(parents=True)
        (place / "steps" / "gap.json").write_text(json.dumps({"exit_code": code, "printed": said}))
    assert SCRIPT.compare_step("gap", *states)[1] is counts
