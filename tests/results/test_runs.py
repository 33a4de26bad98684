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
from made import run_of
from net.api import (
    Comparison,
    Control,
    Corpus,
    Curve,
    Estimate,
    Evaluation,
    Heat,
    Measured,
    Memory,
    Models,
    Options,
    OutputError,
    Run,
    Skipped,
    Text,
    detect,
)
from net.api import run_load_run as load_run
from net.api import run_save_run as save_run

ODD = (
    "plain", 'quo"te, comma', "new\nline\r", "nul\x00", "\ud800 lone", "=1+1", "", " 空 ",
    "carriage\rreturn", "\\ud800",
)  # fmt: skip


def measured(name="loss"):
    estimate = Estimate(0.1 + 0.2, -0.0, 1 / 3)
    curve = Curve((0.0, 1 / 3, 1.0), (0.0, 0.1, 1.0))
    return Measured(name, "score", estimate, estimate, estimate, -math.inf, curve, estimate)


COMPARED = Comparison("fsd(zlib)", "loss", "auc", Estimate(0.1 + 0.2, -0.0, 1 / 3), 1 / 3, 2 / 3, 1e-300)


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
        evaluation=Evaluation((measured(), measured("bow")), 4, 3, 7, 2000, 2, ("Fine.",), (COMPARED,)),
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
    "bare": example(**BARE), "controls": controlled(), "controls without rows": example(**ROWLESS, controls=EMPTY),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_run_comes_back(tmp_path, run):
    save_run(run, tmp_path / "run")
    assert_equal(load_run(tmp_path / "run"), run)


def facts_of(folder, name="run.json"):
    return json.loads((folder / name).read_bytes())


def types_in(path):
    table = pq.read_table(path)
    return table, {field.name: str(field.type) for field in table.schema}


def test_the_files_of_a_bare_run(tmp_path):
    save_run(RUNS["bare"], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "cut.csv", "run.json", "scores.csv", "scores.parquet", "skipped.csv",
    }  # fmt: skip
    assert (tmp_path / "skipped.csv").read_text() == "id,reason,n_tokens\n"
    assert (tmp_path / "scores.csv").read_text().startswith("id,group,n_tokens,loss,")
    assert "controls" not in facts_of(tmp_path)


def test_parquet_tables_are_plain(tmp_path):
    run = controlled(ids=tuple("abcdefghij"), groups=("",) * 10)
    save_run(run, tmp_path)
    table, kinds = types_in(tmp_path / "scores.parquet")
    plain = {"id": "string", "label": "int8", "group": "string", "n_tokens": "int32"}
    assert kinds == {**plain, **dict.fromkeys(run.scores, "double")}
    assert table["label"].to_pylist()[:3] == [1, 0, None]
    table, kinds = types_in(tmp_path / "controls.parquet")
    shuffles = [f"shuffled {i}: fsd(zlib)" for i in (1, 2, 3)]
    columns = ["placebo: loss", "placebo: neighbor(m=3, by='a.b')", *shuffles]
    assert kinds == {"id": "string", **dict.fromkeys(columns, "double")}
    assert table[shuffles[1]].to_pylist() == run.controls[2].values[:, 1].tolist()
    assert facts_of(tmp_path)["controls"][2] == {"kind": "shuffled", "score": "fsd(zlib)", "repeats": 3}


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
    save_run(run, tmp_path)
    with (tmp_path / "scores.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert '" 空 "' in (tmp_path / "scores.csv").read_text(encoding="utf-8")
    assert head == ["id", "label", "group", "n_tokens", *run.scores]
    assert [row[0] for row in rows] == [id.replace("\ud800", "\\ud800") for id in run.ids]
    assert [row[1] for row in rows][:3] == ["1", "0", ""]
    assert [int(row[3]) for row in rows] == run.tokens.tolist()
    assert np.array_equal(np.array([row[4:] for row in rows], float), run.matrix)
    with (tmp_path / "skipped.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["id", "reason", "n_tokens"], ["\\ud800,", 'no "text"\n', "0"], ["", "too short", "1"],
        ]  # fmt: skip


def test_what_the_json_files_say(tmp_path):
    save_run(example(), tmp_path, beside=lambda folder: (folder / "report.html").write_text("<p>"))
    facts, metrics = facts_of(tmp_path), facts_of(tmp_path, "metrics.json")
    assert (facts["pretrace_run"], facts["corpus"], facts["scores"]) == (1, "news", list(example().scores))
    assert facts["counts"] == {
        "texts": 10, "members": 4, "nonmembers": 3, "unlabelled": 3, "groups": 9, "skipped": 2,
        "tokens": 45, "cut_texts": 6, "cut_tokens": 8,
    }  # fmt: skip
    assert ("report.html" in facts["files"], "run.json" in facts["files"]) == (True, False)
    assert "é".encode() in (tmp_path / "run.json").read_bytes()
    estimate = {"value": 0.1 + 0.2, "low": -0.0, "high": 1 / 3}
    assert (metrics["rows"][0]["auc"], metrics["rows"][0]["threshold"]) == (estimate, "-inf")
    assert (metrics["findings"], metrics["comparisons"][0]["difference"]) == (["Fine."], estimate)


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


@pytest.fixture
def lacking():
    """A run in which a text lacks a score: it has no lower-cased form."""
    texts = ("The Railway reached the Valley.", "铁路到达山谷，一切都变了。", "In 1869 Nothing was the Same.")
    corpus = Corpus("both", tuple(Text(f"t{i}", text) for i, text in enumerate(texts)))
    models = Models(Memory(), placebo=Models(Memory(name="other")))
    return detect(corpus, models, "loss,lowercase", Options(cache=False))


def test_a_missing_cell_is_empty_and_its_reason_stands_beside_it(lacking, tmp_path):
    save_run(lacking, tmp_path)
    rows = list(csv.DictReader((tmp_path / "scores.csv").open(encoding="utf-8")))
    assert [(row["lowercase"] == "", row["loss"] == "") for row in rows] == [
        (i == 1, False) for i in range(3)
    ]
    assert types_in(tmp_path / "scores.parquet")[0].column("lowercase").null_count == 1
    (lost,) = csv.DictReader((tmp_path / "missing.csv").open(encoding="utf-8"))
    assert (lost["id"], lost["score"]) == ("t1", "lowercase")
    assert facts_of(tmp_path)["missing"] == [lost]
    again = load_run(tmp_path)
    np.testing.assert_array_equal(again.matrix, lacking.matrix)
    np.testing.assert_array_equal(again.controls[1].values, lacking.controls[1].values)
    assert again.missing == lacking.missing
    whole = lacking.rows(np.isfinite(lacking.matrix).all(axis=1))
    save_run(dataclasses.replace(whole, missing=()), tmp_path)
    assert not (tmp_path / "missing.csv").exists()
    assert "missing" not in facts_of(tmp_path)


def test_the_middle_of_a_score():
    five = run_of([[5.0, 1], [1.0, 1], [3.0, 1], [4.0, 1], [2.0, 1]], (True, True, False, None, True))
    assert five.quartiles("score0") == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert [five.median("score0", label) for label in (True, False, None)] == [2.0, 3.0, 4.0]
    assert dataclasses.replace(five, members=(True,) * 5).median("score0", False) is None


def test_the_mean_log_probability_leaves_out_what_was_not_predicted():
    heat = Heat("a", ("x", "y", "z"), (None, -1.0, -2.5))
    assert (heat.predicted, heat.mean_logp) == ((("y", -1.0), ("z", -2.5)), -1.75)
    assert Heat("a", ("x",), (None,)).mean_logp is None
