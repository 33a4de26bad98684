"""Runs come back from disk to the last bit, or not at all."""

import csv
import dataclasses
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from net.api import (
    Comparison,
    Control,
    Curve,
    Estimate,
    Evaluation,
    Heat,
    Measured,
    OutputError,
    Run,
    Skipped,
)
from net.api import run_load_run as load_run
from net.api import run_save_run as save_run

ODD = (
    "plain", 'quo"te, comma', "new\nline\r", "nul\x00", "\ud800 lone", "=1+1", "", " 空 ",
    "carriage\rreturn", "\\ud800",
)  # fmt: skip


def measured(name="loss", tpr_low=None):
    estimate = Estimate(0.1 + 0.2, -0.0, 1 / 3)
    curve = Curve((0.0, 1 / 3, 1.0), (0.0, 0.1, 1.0))
    return Measured(name, "score", estimate, estimate, estimate, -math.inf, curve, tpr_low)


def example(**changes):
    count = len(ODD)
    run = Run(
        corpus="news",
        ids=ODD,
        groups=tuple(reversed(ODD)),
        members=tuple((True, False, None)[index % 3] for index in range(count)),
        tokens=np.arange(count, dtype=np.int32),
        cut=np.arange(count, dtype=np.int32) // 4,
        scores=("loss", "min_k(k=0.1)", "fsd(zlib)", "neighbor(m=3, by='a.b')"),
        matrix=np.random.default_rng(0).normal(size=(count, 4)) * 10.0 ** np.arange(-200, 200, 100),
        skipped=(Skipped("\ud800,", 'no "text"\n', 0), Skipped("", "too short", 1)),
        heat=(Heat("a", ("Hé", "\ud800", "\x00"), (None, -0.1, -math.inf), "cut"),),
        evaluation=Evaluation(
            (measured(), measured("bow", Estimate(0.5, 0.4, 0.6))),
            4,
            3,
            7,
            2000,
            2,
            ("Fine.",),
            (Comparison("fsd(zlib)", "loss", "auc", Estimate(0.1 + 0.2, -0.0, 1 / 3), 1 / 3, 2 / 3, 1e-300),),
        ),
        settings={"model": {"name": "é\ud800", "dtype": None}, "seed": 2**70, "list": [1, 0.1, True, [], {}]},
    )
    return dataclasses.replace(run, **changes)


def assert_equal(one, two):
    for field in dataclasses.fields(Run):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if field.name == "controls":
            assert list(map(bits, a)) == list(map(bits, b))
        elif isinstance(a, np.ndarray):
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), field.name
        else:
            assert (type(a), a) == (type(b), b), field.name


def bits(control):
    values = control.values
    return control.score, control.kind, values.dtype, values.shape, values.tobytes()


def controlled(**changes):
    """The example with a placebo of two scores and three shuffles of one."""
    random = np.random.default_rng(1)
    values = random.normal(size=(len(ODD), 5)) * 10.0 ** np.arange(-300, 200, 100) / 3
    values[0, 0] = -0.0
    controls = (
        Control("loss", "placebo", values[:, :1]),
        Control("neighbor(m=3, by='a.b')", "placebo", values[:, 1:2]),
        Control("fsd(zlib)", "shuffled", np.asfortranarray(values[:, 2:])),
    )
    lead = Estimate(0.1, -0.2, 1 / 3)
    row = dataclasses.replace(measured(), kind="placebo", lead=lead, survives="not shown")
    evaluation = example().evaluation
    rows = (*evaluation.rows, row, dataclasses.replace(measured("fsd(zlib)"), kind="placebo"))
    return example(controls=controls, evaluation=dataclasses.replace(evaluation, rows=rows), **changes)


BARE = {"skipped": (), "heat": (), "evaluation": None, "settings": {}, "members": (None,) * len(ODD)}
NONE = np.zeros(0, np.int32)
ROWLESS = {"ids": (), "groups": (), "members": (), "tokens": NONE, "cut": NONE, "matrix": np.zeros((0, 4))}
EMPTY = (Control("loss", "placebo", np.zeros((0, 1))), Control("loss", "shuffled", np.zeros((0, 0))))
RUNS = {
    "bare": example(**BARE), "no rows": example(**ROWLESS), "controls": controlled(),
    "no scores": example(scores=(), matrix=np.zeros((len(ODD), 0))),
    "controls without rows": example(**ROWLESS, controls=EMPTY),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_run_comes_back(tmp_path, run):
    save_run(run, tmp_path / "run")
    assert_equal(load_run(tmp_path / "run"), run)


def test_the_files_of_a_bare_run(tmp_path):
    save_run(RUNS["bare"], tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"cut.csv", "run.json", "scores.csv", "scores.parquet", "skipped.csv"}
    assert (tmp_path / "run" / "skipped.csv").read_text() == "id,reason,n_tokens\n"
    assert (tmp_path / "run" / "scores.csv").read_text().startswith("id,group,n_tokens,loss,")


def test_controls_are_a_plain_table_and_leave_no_trace_without(tmp_path):
    save_run(controlled(ids=tuple("abcdefghij")), tmp_path / "run")
    table = pq.read_table(tmp_path / "run" / "controls.parquet")
    shuffles = [f"shuffled {i}: fsd(zlib)" for i in (1, 2, 3)]
    columns = ["placebo: loss", "placebo: neighbor(m=3, by='a.b')", *shuffles]
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {"id": "string", **dict.fromkeys(columns, "double")}
    assert table[shuffles[1]].to_pylist() == controlled().controls[2].values[:, 1].tolist()
    facts = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert facts["controls"][2] == {"kind": "shuffled", "score": "fsd(zlib)", "repeats": 3}
    save_run(example(), tmp_path / "run")
    assert not (tmp_path / "run" / "controls.parquet").exists()
    assert "controls" not in json.loads((tmp_path / "run" / "run.json").read_bytes())


# A surrogate pair as two characters has no JSON of its own: JSON reads it as the one character it spells.
words = st.text(st.characters(exclude_categories=("Cs",)) | st.just("\udc00"), max_size=6)
finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 6), st.dictionaries(words, values, max_size=4))
def test_any_run_comes_back(data, count, facts):
    several = st.tuples(*[words] * count)
    scores = tuple(data.draw(st.lists(st.text("abc(=.,'é \"\n)", min_size=1), unique=True, max_size=3)))
    number = arrays.arrays(np.int32, count)
    run = example(
        ids=data.draw(several),
        groups=data.draw(several),
        members=data.draw(st.tuples(*[st.sampled_from((True, False, None))] * count)),
        tokens=data.draw(number),
        cut=data.draw(number),
        scores=scores,
        matrix=data.draw(arrays.arrays(np.float64, (count, len(scores)), elements=finite)),
        settings=facts,
    )
    with tempfile.TemporaryDirectory() as folder:
        save_run(run, Path(folder) / "run")
        assert_equal(load_run(Path(folder) / "run"), run)


def test_the_tables_for_people(tmp_path):
    run = example()
    save_run(run, tmp_path / "run")
    with (tmp_path / "run" / "scores.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["id", "label", "group", "n_tokens", *run.scores]
    assert [row[0] for row in rows] == [id.replace("\ud800", "\\ud800") for id in run.ids]
    assert [row[1] for row in rows][:3] == ["1", "0", ""]
    assert [int(row[3]) for row in rows] == run.tokens.tolist()
    assert np.array_equal(np.array([row[4:] for row in rows], float), run.matrix)
    with (tmp_path / "run" / "skipped.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["id", "reason", "n_tokens"], ["\\ud800,", 'no "text"\n', "0"], ["", "too short", "1"],
        ]  # fmt: skip


def test_the_parquet_table_is_plain(tmp_path):
    run = example(ids=tuple("abcdefghij"), groups=("",) * 10)
    save_run(run, tmp_path / "run")
    table = pq.read_table(tmp_path / "run" / "scores.parquet")
    kinds = {"id": "string", "label": "int8", "group": "string", "n_tokens": "int32"}
    assert {f.name: str(f.type) for f in table.schema} == {**kinds, **dict.fromkeys(run.scores, "double")}
    assert table["label"].to_pylist()[:3] == [1, 0, None]


def test_what_run_json_says(tmp_path):
    save_run(example(), tmp_path / "run", extra=lambda folder: (folder / "report.html").write_text("<p>"))
    facts = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert facts["pretrace_run"] == 1
    assert facts["corpus"] == "news"
    assert facts["scores"] == list(example().scores)
    assert facts["counts"] == {
        "texts": 10, "members": 4, "nonmembers": 3, "unlabelled": 3, "groups": 9, "skipped": 2,
        "tokens": 45, "cut_texts": 6, "cut_tokens": 8,
    }  # fmt: skip
    assert "report.html" in facts["files"]
    assert "run.json" not in facts["files"]
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_bytes())
    assert metrics["rows"][0]["auc"] == {"value": 0.1 + 0.2, "low": -0.0, "high": 1 / 3}
    assert metrics["rows"][0]["threshold"] == "-inf"
    assert metrics["findings"] == ["Fine."]
    assert metrics["comparisons"][0]["difference"] == {"value": 0.1 + 0.2, "low": -0.0, "high": 1 / 3}
    assert "é".encode() in (tmp_path / "run" / "run.json").read_bytes()


def test_a_second_run_takes_the_place_of_the_first(tmp_path):
    def report(folder):
        (folder / "plots").mkdir()
        (folder / "plots" / "roc.svg").write_text("<svg/>")

    save_run(example(), tmp_path / "run", extra=report)
    save_run(example(evaluation=None, corpus="other"), tmp_path / "run")
    assert load_run(tmp_path / "run").corpus == "other"
    assert not (tmp_path / "run" / "metrics.json").exists()
    assert not (tmp_path / "run" / "plots").exists()


def test_a_failing_report_leaves_the_first_run(tmp_path):
    def fail(folder):
        (folder / "report.html").write_text("half")
        raise RuntimeError

    save_run(example(), tmp_path / "run")
    with pytest.raises(RuntimeError):
        save_run(example(corpus="other"), tmp_path / "run", extra=fail)
    assert_equal(load_run(tmp_path / "run"), example())
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("value", "error", "where"),
    [
        ({"a": {1, 2}}, TypeError, r"settings\.a is of type set"),
        ({"a": [{"b": (1, 2)}]}, TypeError, r"settings\.a\[0\]\.b is of type tuple"),
        ({"a": np.float32(1)}, TypeError, "float32"),
        ({"a": Path("x")}, TypeError, "Path"),
        ({"a": {1: 2}}, TypeError, r"settings\.a: the key 1 is not a string"),
        ({"a": [math.nan]}, ValueError, r"settings\.a\[0\] is NaN"),
        ({"a": math.inf}, ValueError, r"settings\.a is inf"),
    ],
)
def test_settings_that_cannot_be_written(tmp_path, value, error, where):
    with pytest.raises(error, match=where):
        save_run(example(settings=value), tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": ODD[1:]}, "differ in number"),
        ({"matrix": np.zeros((len(ODD), 3))}, "differ in number"),
        ({"scores": ("loss", "loss", "a", "b")}, "share a name"),
        ({"scores": ("loss", "id", "a", "b")}, "share a name, or are called"),
        ({"matrix": np.full((len(ODD), 4), np.nan)}, "NaN"),
        ({"controls": (Control("loss", "placebo", np.zeros((3, 1))),)}, "another number of rows"),
        ({"controls": (Control("loss", "placebo", np.zeros(len(ODD))),)}, "another number of rows"),
        (
            {"controls": (Control("loss", "placebo", np.full((len(ODD), 1), np.inf)),)},
            "control of a run is NaN",
        ),
        ({"controls": (Control("loss", "placebo", np.zeros((len(ODD), 1))),) * 2}, "controls of a run share"),
        (
            {"evaluation": Evaluation((dataclasses.replace(measured(), threshold=math.nan),), 1, 1, 1, 1, 1)},
            "NaN",
        ),
    ],
)
def test_a_run_that_makes_no_sense(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        save_run(example(**change), tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["run.json", "scores.parquet", "metrics.json", "heat.json"])
@pytest.mark.parametrize("how", ["deleted", "cut", "emptied", "flipped", "other run's"])
def test_a_damaged_file_is_named(tmp_path, name, how):
    save_run(example(), tmp_path / "run")
    save_run(example(matrix=np.zeros((len(ODD), 4)), heat=(), evaluation=None), tmp_path / "other")
    path, other = tmp_path / "run" / name, tmp_path / "other" / name
    content = path.read_bytes()
    path.unlink()
    if how != "deleted":
        new = {"cut": content[: len(content) // 2], "emptied": b"", "flipped": content.replace(b"0", b"1")}
        another = (other if other.exists() else other.with_name("run.json")).read_bytes()
        path.write_bytes(new.get(how, another))
    # A run.json that is sound in itself gives itself away by the files it does not belong to.
    sound = name == "run.json" and how == "other run's"
    with pytest.raises(OutputError, match="scores.parquet" if sound else name):
        load_run(tmp_path / "run")
