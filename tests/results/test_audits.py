"""Audits come back from disk to the last bit, what was changed is noticed, and other folders are told apart."""

import dataclasses
import hashlib
import json
import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report import audits
from report.audits import altered, answer_of

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.results.serialization import to_json
from pretrace.results.verdicts import EXIT_CODES, save_verdict
from pretrace.runs import load_verdict
from pretrace.types import Answer, Check, Estimate, Outcome, Pair
from pretrace.verdicts.audit.built import SUSPECT, pairs_of
from pretrace.verification import verify_folder

MAKERS = (
    audits.placebos, audits.nothing, audits.inconclusive, audits.controls, audits.missed,
    audits.without_placebo, audits.bare,
)  # fmt: skip
ODD = ("plain", 'quo"te, comma', "new\nline\r", "nul\x00", "=1+1", "", " 空 ", "\u2028\x85", "\\ud800")


def changed(**fields):
    return altered(audits.placebos(documents=6), **{"planted": audits.POWER, **fields})


def assert_equal(one, two):
    for a, b in zip(one.tables, two.tables, strict=True):
        assert (a.name, list(a.columns)) == (b.name, list(b.columns))
        for name in a.columns:
            assert [*map(repr, list(a[name]))] == [*map(repr, list(b[name]))], name
    assert repr(dataclasses.replace(one, tables=())) == repr(dataclasses.replace(two, tables=()))


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_an_audit_comes_back_to_the_last_bit(make, tmp_path):
    audit = make()
    runs.save_verdict(audit, tmp_path / "audit")
    assert_equal(runs.load_verdict(tmp_path / "audit"), audit)
    report = (tmp_path / "audit" / "report.html").read_bytes()
    assert runs.render(tmp_path / "audit").read_bytes() == report


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
        save_verdict(audit, Path(folder) / "audit")
        assert_equal(load_verdict(Path(folder) / "audit"), audit)


def test_infinities_and_numpy_values_come_back_as_numbers(tmp_path):
    effect = Estimate(1.0, -math.inf, math.inf)
    audit = changed(
        answer=Answer("pretrace", np.float64(0.5), "mean", 6, 6, effect, facts={"n": (np.int64(3), 4)})
    )
    save_verdict(audit, tmp_path / "audit")
    answer = answer_of(load_verdict(tmp_path / "audit"))
    assert answer.effect == effect
    assert type(answer.p) is float
    assert answer.facts == {"n": [3, 4]}


def test_the_verdict_is_for_people_and_scripts(tmp_path):
    for make, outcome, code in (
        (audits.nothing, "nothing", 0),
        (audits.controls, "consistent", 3),
        (audits.inconclusive, "inconclusive", 4),
    ):
        audit = make()
        save_verdict(audit, tmp_path / "audit")
        verdict = json.loads((tmp_path / "audit" / "result.json").read_bytes())
        assert (verdict["outcome"], verdict["exit_code"]) == (outcome, code)
        assert list(verdict)[:4] == ["pretrace_verdict", "outcome", "exit_code", "test"]
        assert verdict["p"] == audit.p
        assert verdict["units"] == audit.units
        assert verdict["hypothesis"] == audit.hypothesis
        assert [check["status"] for check in verdict["checks"]] == [check.status for check in audit.checks]
        assert verdict["settings"]["models"]["target"]["name"] == audits.MODEL
        assert list(verdict["files"]) == [
            "documents.csv",
            *(["pairs.csv"] if pairs_of(audit, SUSPECT) else []),
        ]
        for name, checksum in verdict["files"].items():
            assert hashlib.sha256((tmp_path / "audit" / name).read_bytes()).hexdigest() == checksum
    assert set(EXIT_CODES) == set(get_args(Outcome))


NAN = math.nan
WRONG = {
    "p": ({"answer": Answer("pretrace", NAN, "mean", 6, 6)}, ValueError, "p is NaN"),
    "effect": (
        {"answer": Answer("pretrace", 0.5, "mean", 6, 6, Estimate(0.0, NAN, 1.0))},
        ValueError,
        r"effect\.low is NaN",
    ),
    "figures": (
        {"checks": (Check("a", "b", "passed", "c", "", {"x": [1, NAN]}),)},
        ValueError,
        r"checks\[0\]\.figures\.x\[1\] is NaN",
    ),
    "settings": ({"settings": {"a": {"b": NAN}}}, ValueError, r"settings\.a\.b is NaN"),
    "a set": ({"settings": {"a": {1}}}, TypeError, r"settings\.a is of type set"),
    "a key": ({"settings": {1: 2}}, TypeError, "the key 1 is not a string"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_written_is_refused_and_nothing_is_left(case, tmp_path):
    fields, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        save_verdict(changed(**fields), tmp_path / "audit")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def folder(tmp_path):
    save_verdict(
        changed(), tmp_path / "audit", extra=lambda made: (made / "report.html").write_text("<p>0</p>")
    )
    return tmp_path / "audit"


TABLES = ("documents.csv", "pairs.csv")


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


def test_any_change_in_verdict_or_tables_is_noticed(folder):
    assert files_of(folder) == [*TABLES, "report.html", "result.json"]
    for name in (*TABLES, "result.json"):
        path = folder / name
        content = path.read_bytes()
        for damaged in (content[:-2], content.replace(b"0", b"1", 1), b"", content + b"x"):
            path.write_bytes(damaged)
            with pytest.raises(OutputError, match=name.replace(".", r"\.")):
                load_verdict(folder)
        path.unlink()
        with pytest.raises(OutputError, match=rf"there is no {name}"):
            load_verdict(folder)
        path.write_bytes(content)
    assert_equal(load_verdict(folder), changed())


def test_a_report_can_be_made_anew_in_its_place(folder):
    verdict = json.loads((folder / "result.json").read_bytes())
    assert verdict["files"]["report.html"] is None
    (folder / "report.html").write_text("another version's")
    assert_equal(load_verdict(folder), changed())
    (folder / "report.html").unlink()
    runs.render(folder)
    assert files_of(folder) == [*TABLES, "report.html", "result.json"]  # it was written without an appendix
    runs.save_verdict(load_verdict(folder), folder)
    again = json.loads((folder / "result.json").read_bytes())
    assert again["files"] == {**verdict["files"], "appendix.html": None}
    assert {**again, "files": 0, "sha256": 0} == {**verdict, "files": 0, "sha256": 0}


def test_the_appendix_is_a_file_for_paper_with_the_hash_of_the_result(tmp_path):
    place = tmp_path / "audit"
    runs.save_verdict(changed(), place)
    seal = json.loads((place / "result.json").read_bytes())["sha256"]
    report, appendix = (
        (place / name).read_text(encoding="utf-8") for name in ("report.html", "appendix.html")
    )
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


def seal(folder, verdict, name="result.json"):
    """Write a verdict whose hash is right: only its content is in question."""
    verdict.pop("sha256", None)
    verdict["sha256"] = hashlib.sha256(to_json(verdict)).hexdigest()
    (folder / name).write_bytes(to_json(verdict))


BENT: dict[str, Callable[[dict[str, Any]], object]] = {
    "outcome": lambda v: v.update(outcome="guilty"), "level": lambda v: v.update(level="high"),
    "no p": lambda v: v.pop("p"), "p true": lambda v: v.update(p=True),
    "checks": lambda v: v.update(checks=[{"name": 3}]),
    "curve": lambda v: v["planted"].update(curve=[[1, 2, 3]]), "files": lambda v: v.update(files=[]),
    "no tables": lambda v: v.update(files={}), "settings": lambda v: v.update(settings=[]),
    "null": lambda v: v["null"].update(counts=["many"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BENT)
def test_a_verdict_of_another_shape_is_no_audit(folder, case):
    verdict = json.loads((folder / "result.json").read_bytes())
    BENT[case](verdict)
    seal(folder, verdict)
    with pytest.raises(
        OutputError, match=r"audit is not a pretrace test result: its result\.json is damaged"
    ):
        load_verdict(folder)
