"""What a notebook shows and what other libraries get: small, escaped, in a frame of its own, and the numbers of the
run."""

import html
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from report import audits
from report.test_flagging_report import made as flagging

from pretrace.errors import MissingPackageError
from pretrace.types import Missing, Table, Whole


def framed(shown):
    """The page in the frame, as a browser reads it."""
    (page,) = re.findall(r'<iframe sandbox [^>]*srcdoc="([^"]*)"', shown)
    return html.unescape(page)


def test_a_run_is_a_small_table_with_its_figures(labelled):
    run = labelled()
    shown = run._repr_html_()
    assert f"<td>loss</td><td>{run.evaluation.rows[0].auc.value:.3f}</td>" in shown
    assert "bag of words (control)" in shown
    assert shown.count("<td>wiki/") == 5
    assert "without 2 more scores" in shown
    assert len(shown) < 6000
    assert "<style" not in shown


def test_a_run_without_labels_or_texts_is_shown(unlabelled):
    run = unlabelled()
    assert "AUC" not in run._repr_html_()
    assert "<th>label</th>" not in run._repr_html_()
    assert "0 texts" in run.rows(np.zeros(40, dtype=bool))._repr_html_()


def test_of_a_large_run_it_says_how_many_there_are(unlabelled):
    counts = dict.fromkeys(
        ("members", "nonmembers", "tokens", "skipped", "missing", "lacking", "cut_texts", "cut_tokens"), 0
    )
    shown = replace(
        unlabelled(), whole=Whole(texts=1_234_567, documents=1, unreadable=0, sampled=40, **counts)
    )._repr_html_()
    assert "1,234,567 texts" in shown
    assert "all 40 of the sample" in shown


def test_an_audit_and_a_flagging_are_their_first_pages():
    shown = audits.placebos()._repr_html_()
    page = framed(shown)
    assert "pretrace · audit report" in page
    assert "Technical part" not in page
    assert "default-src 'none'" in page
    assert shown.startswith("<div>\n<p>Audit of <b>")
    assert (
        html.escape(audits.placebos().statement, quote=False) in shown.partition("<iframe")[0]
    )  # where frames are not shown
    assert "7 of 60 texts flagged" in framed(flagging()._repr_html_())


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
    matrix = run.matrix.copy()
    matrix[3, 1] = np.nan
    run = replace(
        run,
        matrix=matrix,
        members=(None, *run.members[1:]),
        missing=(Missing(run.ids[3], "zlib", "too short"),),
    )
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


def test_the_ground_alone_offers_it():
    code = "from pretrace.types import Run, Verdict; print(Run.to_arrow, Verdict._repr_html_); import sys; print(" \
        "[name for name in ('matplotlib', 'jinja2', 'pyarrow', 'pandas') if name in sys.modules])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
