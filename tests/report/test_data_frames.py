"""Results as tables of other libraries: the numbers of the run."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from report import audits
from report.test_flagging_report import made as flagging

from pretrace.errors import MissingPackageError
from pretrace.types import Missing, Table


def test_a_run_as_arrow_and_pandas(controlled):
    run = controlled()
    table, frame = run.to_arrow(), run.to_pandas()
    names = ["id", "label", "group", "n_tokens", *run.scores, "placebo: loss"]
    assert table.column_names[: len(names)] == names == list(frame.columns[: len(names)])
    np.testing.assert_array_equal(frame["loss"], run.column("loss"))
    np.testing.assert_array_equal(frame["placebo: loss"], run.controls[0].values[:, 0])
    assert frame["label"].tolist() == [int(bool(member)) for member in run.members]
    assert list(frame.columns[-20:]) == [f"shuffled {number}: probe" for number in range(1, 21)]


def test_a_missing_value_is_null(labelled):
    run = labelled(("loss", "zlib"), 20)
    matrix = np.where(np.arange(40).reshape(20, 2) == 7, np.nan, run.matrix)
    missing, members = (Missing(run.ids[3], "zlib", "too short"),), (None, *run.members[1:])
    run = replace(run, matrix=matrix, members=members, missing=missing)
    assert run.to_arrow().column("zlib").null_count == 1
    assert run.to_pandas()["label"].isna().tolist() == [True, *[False] * 19]


def test_flags_documents_and_tables_as_pandas():
    found = flagging().to_pandas()
    assert (len(found), int(found["flagged"].sum())) == (60, 7)
    refused = flagging("refused").to_arrow()
    assert refused.column("p").null_count == refused.column("flagged").null_count == 60
    audit = audits.controls()
    assert audit.to_pandas()["side"].value_counts().to_dict() == {"suspect": 120, "control": 74}
    table = Table("t", {"name": ("a", "\ud800"), "value": np.array([1.0, np.nan])}).to_arrow()
    assert table.column("value").to_pylist() == [1.0, None]


def test_without_pandas_one_line_says_what_to_install(labelled, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        MissingPackageError, match=r"to_pandas\(\) needs the package pandas.*pip install pandas$"
    ):
        labelled(("loss",), 4).to_pandas()
