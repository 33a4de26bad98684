"""Runs in which some texts lack a score: empty cells on disk, the same run when it is read."""

import csv
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from pretrace import detect, load_run, save_run
from pretrace.scoring.detect import Options
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.types import Corpus, Text


@pytest.fixture
def run():
    texts = ("The Railway reached the Valley.", "铁路到达山谷，一切都变了。", "In 1869 Nothing was the Same.")
    corpus = Corpus("both", tuple(Text(f"t{i}", text) for i, text in enumerate(texts)))
    models = Models(Memory(), placebo=Models(Memory(name="other")))
    return detect(corpus, models, "loss,lowercase", Options(cache=False))


def test_the_cell_is_empty_and_its_reason_stands_beside_it(run, tmp_path):
    save_run(run, tmp_path / "run")
    rows = list(csv.DictReader((tmp_path / "run" / "scores.csv").open(encoding="utf-8")))
    assert [row["lowercase"] == "" for row in rows] == [False, True, False]
    assert all(row["loss"] for row in rows)
    column = pq.read_table(tmp_path / "run" / "scores.parquet").column("lowercase")
    assert column.null_count == 1
    (lost,) = csv.DictReader((tmp_path / "run" / "missing.csv").open(encoding="utf-8"))
    assert (lost["id"], lost["score"]) == ("t1", "lowercase")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["missing"] == [lost]
    again = load_run(tmp_path / "run")
    np.testing.assert_array_equal(again.matrix, run.matrix)
    np.testing.assert_array_equal(again.controls[1].values, run.controls[1].values)
    assert again.missing == run.missing


def test_a_run_with_all_its_scores_has_no_file_of_missing_ones(run, tmp_path):
    whole = np.isfinite(run.matrix).all(axis=1) & np.isfinite(run.controls[0].values[:, 0])
    save_run(replace(run.rows(whole), missing=()), tmp_path / "run")
    assert not (tmp_path / "run" / "missing.csv").exists()
    assert "missing" not in json.loads((tmp_path / "run" / "run.json").read_text())


def test_a_value_that_is_missing_without_a_reason_is_not_written(run, tmp_path):
    with pytest.raises(ValueError, match="NaN"):
        save_run(replace(run, missing=()), tmp_path / "run")
    wrong = run.matrix.copy()
    wrong[1, 1] = np.inf
    with pytest.raises(ValueError, match="NaN or infinite"):
        save_run(replace(run, matrix=wrong), tmp_path / "run")
    assert not (tmp_path / "run").exists()
