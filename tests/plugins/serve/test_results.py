"""The list of results, two side by side, their files, and whether they are as written."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made import run_of

from pretrace.plugins.serve import reading_texts, results
from pretrace.runs import _write_verdict, save_run
from pretrace.types import Heat, Table, Verdict

NASTY = "<script>alert(1)</script>"


def make_run(name, shift=0.0):
    run = run_of(np.arange(8.0).reshape(4, 2) + shift, (None,) * 4, corpus=name, scores=("loss", "zlib"))
    heat = (Heat("a", ("One", NASTY), (None, -2.0)),)
    models = {"target": {"name": f"model-{name}"}}
    return replace(run, ids=("a", "b", "c", NASTY), heat=heat, settings={"models": models})


def make_verdict():
    return Verdict(
        test="recite", corpus="rows", model="m", outcome="inconclusive", statement="It cannot be said.", level=0.05,
        exact=True, assumption="The order was random.", hypothesis="h", statistic="s", p=0.2, units=9, unit="shard",
        question="Was it used?", compared=("Orders.",), tables=(Table("shards", {"x": np.array([1.0])}),),
    )  # fmt: skip


@pytest.fixture
def filled(visitor):
    room = visitor.workspace.folder / "results"
    save_run(make_run("first"), room / "one run")
    save_run(make_run(NASTY, 1.5), room / "two")
    _write_verdict(make_verdict(), room / "three")
    (room / "not a result").mkdir()
    return visitor


def test_a_result_with_its_report_and_files(filled):
    seen = {one.name: (one.kind, one.outcome) for one in results.entries(filled.workspace)}
    scored = ("run", "scored")
    assert seen == {"one run": scored, "two": scored, "three": ("recite", "inconclusive")}
    listed = filled.client.get("/results").text
    assert all(f'"/results/{name}"' in listed for name in ("one%20run", "two", "three"))
    page = filled.client.get("/results/one run").text
    assert 'href="/results/one%20run/report">Read the report</a>' in page
    assert "It cannot be said." in filled.client.get("/results/three").text
    report = filled.client.get("/results/one run/report")
    assert report.headers["content-security-policy"].startswith("sandbox; default-src 'none'; style-src")
    assert "frame-ancestors 'self'" in report.headers["content-security-policy"]
    got = filled.client.get("/results/one run/files/scores.csv")
    assert got.headers["content-disposition"].startswith("attachment")
    assert got.content == (filled.workspace.folder / "results" / "one run" / "scores.csv").read_bytes()
    for path in ("one run/files/../../../secret", "not a result", "one run/files/nothing", "missing/report"):
        assert filled.client.get(f"/results/{path}").status_code == 404


def test_hostile_names_are_shown_as_text(filled):
    for path in ("/results", "/results/two", "/results/two/verified"):
        assert "<script>alert" not in filled.client.get(path).text


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "run.json", "report.html"])
def test_a_changed_file_gets_a_mark_in_words(filled, name):
    place = filled.workspace.folder / "results" / "one run" / name
    assert "unchanged</span>" in filled.client.get("/results/one run/verified").text
    place.write_bytes(place.read_bytes().replace(b"a", b"b", 3) + b" ")
    mark = filled.client.get("/results/one run/verified").text
    assert "changed or damaged</span>" in mark
    assert name in mark or name == "run.json"


def test_a_record_that_names_files_elsewhere_is_no_way_to_them(filled):
    place = filled.workspace.folder / "results" / "one run" / "run.json"
    facts = json.loads(place.read_bytes())
    facts["files"]["../../secret"] = "0" * 64
    place.write_text(json.dumps(facts))
    said = filled.client.get("/results/one run/verified").text
    assert "changed or damaged</span>" in said
    assert "run.json was changed" in said


def test_where_a_text_stands_among_known_ones():
    one = make_run("text").rows(np.array([False, False, True, False]))  # loss 4, zlib 5
    (loss, zlib) = reading_texts._places(one, make_run("known"))
    assert (loss["known"], loss["above"], loss["share"]) == (4, 2, 0.5)
    assert "Where the text stands in loss: at 4, among 0 to 6" in loss["drawn"]
    assert zlib["score"] == "zlib"
    lower = reading_texts._places(one, make_run("known", 10.0))[0]
    assert (lower["above"], lower["share"]) == (4, 0.0)
