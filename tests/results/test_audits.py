"""Verdicts come back from disk to the last bit, what was changed is noticed, and other folders are told apart."""

import dataclasses
import json
import math
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report import audits
from report.audits import altered, answer_of
from report.test_flagging_report import made as flagged

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.results.folder import truth
from pretrace.runs import _write_verdict, load_verdict
from pretrace.types import Check, Estimate, Null, Pair, Power, Skipped, Table, Verdict
from pretrace.verdicts.audit.procedures import Answer
from pretrace.verification import verify_folder


def marks(**changes):
    """A verdict with every field filled; keyword arguments replace some."""
    planted = Power(Estimate(0.9, 0.8, 1.0), 12, 10, 1, Estimate(0.4, 0.3, 0.5), ((10, 0.5), (20, 0.9)))
    checks = (
        Check("seal", "The sealed file is the one that was committed to", "passed", "It is."),
        Check("placebo", "A placebo finds nothing", "failed", "p = 0.01.", "Name another."),
    )
    names = ("=a" + "x" * 200_000, 'b "quoted",\r', "ü\n漢")
    texts = Table("texts", {"id": names, "difference": np.array([1e-300, np.nan, -7.0])})
    verdict = Verdict(
        test="marks", corpus='letters <b>"\r', model="model", outcome="consistent", level=0.05, exact=True,
        statement="The predictions of model are consistent with training on the letters, or on copies of them.",
        assumption="The variant that was published was drawn by lot.", statistic="sum of differences",
        hypothesis="the published variant is no likelier than the others", p=0.1 + 0.2, units=3, unit="document",
        question="Was model trained on the letters?", compared=("Of each text one variant was published.",),
        trust=("<script>alert(1)</script>",), null=Null("sum", 2.5, 1.7, (-1.0, 0.0, 1.0), (50, 50)),
        effect=Estimate(0.3, 0.1, 0.5), effect_unit="nats a token", standardised=0.8, planted=planted,
        checks=checks, reasons=("The test gave p = 0.3.",), advice=("More documents.",),
        notes=("One text was left out.",), figures={"documents": 3, "nested": {"share": 1 / 3}}, tables=(texts,),
        skipped=(Skipped("x", "the text is empty", 0),), statements={"requested_by": "An author"},
        settings={"corpus": {"sha256": "ab" * 32}, "time": "2026-11-22T21:00:00+00:00"},
    )  # fmt: skip
    return dataclasses.replace(verdict, **changes)


EXITS = {
    "consistent": 3, "flagged": 3, "set": 3, "nothing": 0, "none": 0, "inconclusive": 4, "missed": 4, "refused": 4,
}  # fmt: skip
MAKERS = {
    **{name: getattr(audits, name) for name in ("placebos", "controls", "bare")},
    **{f"marks, {one}": lambda one=one: marks(outcome=one) for one in EXITS},
    "no test": lambda: marks(p=None, null=None, effect=None, planted=None, checks=(), standardised=None),
    **{f"flag, {one}": lambda one=one: flagged(one) for one in ("flagged", "refused")},
}
ODD = ("plain", 'quo"te, comma', "new\nline\r", "nul\x00", "=1+1", "", " 空 ", "\u2028\x85", "\\ud800")


def changed(**fields):
    return altered(audits.placebos(documents=6), **{"planted": audits.POWER, **fields})


def cells(column):
    """Every cell of a column, bits and masks included; NaN as text, so that it equals itself."""
    return list(map(repr, getattr(column, "tolist", column.__iter__)()))


def assert_equal(one, two):
    for a, b in zip(one.tables, two.tables, strict=True):
        assert (a.name, list(a.columns)) == (b.name, list(b.columns))
        for name in a.columns:
            assert cells(a[name]) == cells(b[name]), name
    assert repr(dataclasses.replace(one, tables=())) == repr(dataclasses.replace(two, tables=()))


@pytest.mark.parametrize("make", MAKERS)
def test_a_verdict_comes_back_to_the_last_bit(make, tmp_path):
    verdict = MAKERS[make]()
    runs.save_verdict(verdict, tmp_path / "V")
    assert_equal(runs.load_verdict(tmp_path / "V"), verdict)
    content = json.loads((tmp_path / "V" / "result.json").read_bytes())
    assert (content["exit_code"], content["files"]["report.html"]) == (EXITS[verdict.outcome], None)
    report = (tmp_path / "V" / "report.html").read_bytes()
    assert runs.render(tmp_path / "V").read_bytes() == report


def test_tables_that_do_not_belong_together_are_not_written(tmp_path):
    one = flagged()
    texts, known = one.tables
    short = dataclasses.replace(known, columns={**known.columns, "drawn": np.array([True])})
    for tables, message in (((texts, short), "known differ in length"), ((texts, texts), "same name")):
        with pytest.raises(ValueError, match=message):
            _write_verdict(dataclasses.replace(one, tables=tables), tmp_path / "out")


def test_a_yes_or_no_that_is_not_known_is_masked():
    assert truth([True, None, False]).tolist() == [True, None, False]
    assert truth([True, False]).dtype == bool


TEXT = st.text(st.characters(codec=None, exclude_categories=("Cs",)), max_size=8) | st.sampled_from(ODD)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(TEXT, NUMBER), max_size=5), st.lists(st.tuples(TEXT, NUMBER), max_size=3), TEXT)
def test_any_names_values_and_texts_come_back(suspect, heldout, text):
    audit = changed(
        corpus=text,
        statement=text,
        documents=tuple(name for name, _ in suspect),
        values=np.array([value for _, value in suspect]),
        heldout_documents=tuple(name for name, _ in heldout),
        heldout_values=np.array([value for _, value in heldout]),
        pairs=(Pair(text, text, text, text, text), Pair("", "", "", "", "")),
        settings={text: [text, {text: None}]},
    )
    with tempfile.TemporaryDirectory() as folder:
        _write_verdict(audit, Path(folder) / "audit")
        assert_equal(load_verdict(Path(folder) / "audit"), audit)


def test_infinities_and_numpy_values_come_back_as_numbers(tmp_path):
    effect = Estimate(1.0, -math.inf, math.inf)
    audit = changed(
        answer=Answer("pretrace", np.float64(0.5), "mean", 6, 6, effect, facts={"n": (np.int64(3), 4)})
    )
    _write_verdict(audit, tmp_path / "audit")
    answer = answer_of(load_verdict(tmp_path / "audit"))
    assert (answer.effect, type(answer.p), answer.facts) == (effect, float, {"n": [3, 4]})


NAN = math.nan
ONE = Estimate(0.0, NAN, 1.0)
WRONG = [
    ({"answer": Answer("pretrace", NAN, "mean", 6, 6)}, "p is NaN"),
    ({"answer": Answer("pretrace", 0.5, "mean", 6, 6, ONE)}, r"effect\.low is NaN"),
    ({"checks": (Check("a", "b", "passed", "c", "", {"x": [1, NAN]}),)}, r"x\[1\] is NaN"),
    ({"settings": {"a": {"b": NAN}}}, r"settings\.a\.b is NaN"),
    ({"settings": {"a": {1}}}, r"settings\.a is of type set"),
    ({"settings": {1: 2}}, "the key 1 is not a string"),
]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "audit"
    _write_verdict(changed(), place, pages={"report.html": lambda seal: "<p>0</p>"})
    return place


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_what_cannot_be_written_is_refused_and_changes_nothing(folder, fields, message):
    with pytest.raises((TypeError, ValueError), match=message):
        _write_verdict(changed(**fields), folder)
    assert_equal(load_verdict(folder), changed())


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


FILES = ["documents.csv", "pairs.csv", "report.html", "result.json"]


def test_any_change_in_verdict_or_tables_is_noticed(folder):
    assert files_of(folder) == FILES
    for name in set(FILES) - {"report.html"}:
        path = folder / name
        content = path.read_bytes()
        for damaged in (content[:-2], content.replace(b"0", b"1", 1), b"", content + b"x"):
            path.write_bytes(damaged)
            with pytest.raises(OutputError, match=re.escape(name)):
                load_verdict(folder)
        path.unlink()
        with pytest.raises(OutputError, match=rf"there is no {name}"):
            load_verdict(folder)
        path.write_bytes(content)


def test_a_report_can_be_made_anew_in_its_place(folder):
    verdict = json.loads((folder / "result.json").read_bytes())
    (folder / "report.html").write_text("another version's")
    runs.render(folder)
    assert files_of(folder) == FILES  # it was written without an appendix
    runs.save_verdict(load_verdict(folder), folder)
    again = json.loads((folder / "result.json").read_bytes())
    assert again["files"] == {**verdict["files"], "appendix.html": None}
    assert {**again, "files": 0, "sha256": 0} == {**verdict, "files": 0, "sha256": 0}


def test_the_appendix_is_a_file_for_paper_with_the_hash_of_the_result(tmp_path):
    place = tmp_path / "audit"
    runs.save_verdict(changed(), place)
    seal = json.loads((place / "result.json").read_bytes())["sha256"]
    report, appendix = ((place / f"{name}.html").read_text("utf-8") for name in ("report", "appendix"))
    assert seal in report
    assert seal in appendix
    for section in re.findall(r'<section id="(\w+)" class="appendix">', report):
        assert f'<section id="{section}">' in appendix  # without the class that paper hides
    # the numbers of a made-up audit are not those of its tables: that is another check
    states = {one.name: one.state for one in verify_folder(place).checks if one.name != "numbers"}
    assert states == dict.fromkeys(("files", "seal", "report"), "yes")
    (place / "appendix.html").write_text(appendix.replace("target", "another"), encoding="utf-8")
    (wrong,) = (one for one in verify_folder(place).checks if one.name == "report")
    assert wrong.state == "no"
    assert wrong.words.startswith("appendix.html is not what the tables give")
    runs.render(place)
    assert (place / "appendix.html").read_text(encoding="utf-8") == appendix
