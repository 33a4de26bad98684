"""Audits come back from disk to the last bit, and what was changed since is noticed."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report import audits

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.store.audits import EXIT_CODES, hypothesis, load_audit, save_audit
from pretrace.store.encoding import to_json
from pretrace.store.runs import save_run
from pretrace.types import Answer, Audit, Check, Estimate, Pair, Run

MAKERS = (
    audits.consistent,
    audits.nothing,
    audits.inconclusive,
    audits.heldout,
    audits.without_placebo,
    audits.bare,
    audits.hostile,
)
ODD = (
    "plain",
    'quo"te, comma',
    "new\nline\r",
    "nul\x00",
    "\ud800 lone",
    "=1+1",
    "",
    " 空 ",
    "\u2028\x85",
    "\\ud800",
)


def changed(**fields: Any) -> Audit:
    return dataclasses.replace(audits.consistent(documents=6), **fields)


def assert_equal(one: Audit, two: Audit) -> None:
    for field in dataclasses.fields(Audit):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), field.name
        else:
            assert (type(a), a) == (type(b), b), field.name


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_an_audit_comes_back_to_the_last_bit(make: Callable[[], Audit], tmp_path: Path) -> None:
    audit = make()
    runs.save_audit(audit, tmp_path / "audit")
    assert_equal(runs.load_audit(tmp_path / "audit"), audit)


TEXT = st.text(st.characters(codec=None, exclude_categories=("Cs",)), max_size=8) | st.sampled_from(ODD)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(TEXT, NUMBER), max_size=5), st.lists(st.tuples(TEXT, NUMBER), max_size=3), TEXT)
def test_any_names_values_and_texts_come_back(
    suspect: list[tuple[str, float]], heldout: list[tuple[str, float]], text: str
) -> None:
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
        save_audit(audit, Path(folder) / "audit")
        assert_equal(load_audit(Path(folder) / "audit"), audit)


def test_infinities_and_numpy_values_come_back_as_numbers(tmp_path: Path) -> None:
    effect = Estimate(1.0, -math.inf, math.inf)
    audit = changed(
        answer=Answer("pretrace", np.float64(0.5), "mean", 6, 6, effect, facts={"n": (np.int64(3), 4)})
    )
    save_audit(audit, tmp_path / "audit")
    answer = load_audit(tmp_path / "audit").answer
    assert answer.effect == effect
    assert type(answer.p) is float
    assert answer.facts == {"n": [3, 4]}


def test_the_verdict_is_for_people_and_scripts(tmp_path: Path) -> None:
    for make, outcome, code in (
        (audits.nothing, "nothing", 0),
        (audits.consistent, "consistent", 3),
        (audits.inconclusive, "inconclusive", 4),
    ):
        audit = make()
        save_audit(audit, tmp_path / "audit")
        verdict = json.loads((tmp_path / "audit" / "verdict.json").read_bytes())
        assert (verdict["outcome"], verdict["exit_code"]) == (outcome, code)
        assert list(verdict)[:4] == ["pretrace_audit", "outcome", "exit_code", "statement"]
        assert verdict["p"] == audit.answer.p
        assert verdict["documents"] == audit.answer.documents
        assert verdict["hypothesis"] == hypothesis(audit)
        assert [check["status"] for check in verdict["checks"]] == [check.status for check in audit.checks]
        assert verdict["settings"]["models"]["target"]["name"] == audits.MODEL
        assert list(verdict["files"]) == ["documents.csv", "documents.parquet", "pairs.jsonl"]
        for name, checksum in verdict["files"].items():
            assert hashlib.sha256((tmp_path / "audit" / name).read_bytes()).hexdigest() == checksum
    assert set(EXIT_CODES) == {"nothing", "consistent", "inconclusive"}


def test_the_hypothesis_says_what_is_held_against_what() -> None:
    assert "“Harbour notes 2009–2021”" in hypothesis(audits.consistent())
    assert audits.PLACEBO in hypothesis(audits.consistent())
    assert "held-out" in hypothesis(audits.heldout())
    assert "beyond what their words explain" in hypothesis(audits.without_placebo())


def test_people_can_read_the_tables(tmp_path: Path) -> None:
    audit = dataclasses.replace(audits.heldout(), pairs=audits.pairs(3))
    save_audit(audit, tmp_path / "audit")
    with (tmp_path / "audit" / "documents.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["document", "side", "value"]
    sides = [
        ("suspect", audit.documents, audit.values),
        ("heldout", audit.heldout_documents, audit.heldout_values),
    ]
    due = [
        [d, side, repr(v)]
        for side, names, values in sides
        for d, v in zip(names, values.tolist(), strict=True)
    ]
    assert rows[1:] == due
    lines = (tmp_path / "audit" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {
        "id": audit.pairs[0].id,
        "document": audit.pairs[0].document,
        "prefix": audit.pairs[0].prefix,
        "true": audit.pairs[0].true,
        "generated": audit.pairs[0].generated,
    }


NAN = math.nan
WRONG = {
    "values": ({"values": np.full(6, NAN)}, ValueError, "NaN"),
    "infinite value": ({"values": np.full(6, math.inf)}, ValueError, "infinite"),
    "too few values": ({"values": np.zeros(5)}, ValueError, "6 suspect documents"),
    "held-out": ({"heldout_documents": ("a",)}, ValueError, "1 heldout documents"),
    "p": ({"answer": Answer("pretrace", NAN, "mean", 6, 6)}, ValueError, "p-value of an audit is nan"),
    "p above 1": ({"answer": Answer("pretrace", 1.5, "mean", 6, 6)}, ValueError, "1.5"),
    "effect": (
        {"answer": Answer("pretrace", 0.5, "mean", 6, 6, Estimate(0.0, NAN, 1.0))},
        ValueError,
        r"answer\.effect\.low is NaN",
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
def test_what_cannot_be_written_is_refused_and_nothing_is_left(case: str, tmp_path: Path) -> None:
    fields, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        save_audit(changed(**fields), tmp_path / "audit")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_audit(
        changed(), tmp_path / "audit", extra=lambda made: (made / "report.html").write_text("<p>0</p>")
    )
    return tmp_path / "audit"


TABLES = ("documents.csv", "documents.parquet", "pairs.jsonl")


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_any_change_in_verdict_or_tables_is_noticed(folder: Path) -> None:
    assert files_of(folder) == [*TABLES, "report.html", "verdict.json"]
    for name in (*TABLES, "verdict.json"):
        path = folder / name
        content = path.read_bytes()
        for damaged in (content[:-2], content.replace(b"0", b"1", 1), b"", content + b"x"):
            path.write_bytes(damaged)
            with pytest.raises(OutputError, match=name.replace(".", r"\.")):
                load_audit(folder)
        path.unlink()
        with pytest.raises(OutputError, match=rf"there is no {name}"):
            load_audit(folder)
        path.write_bytes(content)
    assert_equal(load_audit(folder), changed())


def test_a_report_can_be_made_anew_in_its_place(folder: Path) -> None:
    verdict = json.loads((folder / "verdict.json").read_bytes())
    assert verdict["files"]["report.html"] is None
    (folder / "report.html").write_text("another version's")
    assert_equal(load_audit(folder), changed())
    (folder / "report.html").unlink()
    runs.save_audit(load_audit(folder), folder)
    assert json.loads((folder / "verdict.json").read_bytes()) == verdict


@pytest.mark.parametrize("word", ["outcome", "p", "statement", "level", "checks", "settings"])
def test_a_verdict_that_was_edited_is_noticed(folder: Path, word: str) -> None:
    verdict = json.loads((folder / "verdict.json").read_bytes())
    verdict[word] = {"outcome": "nothing", "p": 0.9, "level": 0.5}.get(word, [])
    (folder / "verdict.json").write_bytes(to_json(verdict))
    with pytest.raises(
        OutputError, match=r"verdict\.json is damaged, was changed or belongs to another audit"
    ):
        load_audit(folder)


def seal(folder: Path, verdict: dict[str, Any]) -> None:
    """Write a verdict whose hash is right: only its content is in question."""
    verdict.pop("sha256", None)
    verdict["sha256"] = hashlib.sha256(to_json(verdict)).hexdigest()
    (folder / "verdict.json").write_bytes(to_json(verdict))


BENT: dict[str, Callable[[dict[str, Any]], object]] = {
    "outcome": lambda v: v.update(outcome="guilty"),
    "level": lambda v: v.update(level="high"),
    "no p": lambda v: v.pop("p"),
    "p true": lambda v: v.update(p=True),
    "checks": lambda v: v.update(checks=[{"name": 3}]),
    "curve": lambda v: v["power"].update(curve=[[1, 2, 3]]),
    "files": lambda v: v.update(files=[]),
    "no tables": lambda v: v.update(files={}),
    "settings": lambda v: v.update(settings=[]),
}


@pytest.mark.parametrize("case", BENT)
def test_a_verdict_of_another_shape_is_no_audit(folder: Path, case: str) -> None:
    verdict = json.loads((folder / "verdict.json").read_bytes())
    BENT[case](verdict)
    seal(folder, verdict)
    with pytest.raises(OutputError, match=r"audit is not a pretrace audit: its verdict\.json is damaged"):
        load_audit(folder)


def test_an_audit_from_before_a_field_was_there_gets_its_default(folder: Path) -> None:
    verdict = json.loads((folder / "verdict.json").read_bytes())
    for field in ("gaps", "variants", "advice", "unit"):
        del verdict[field]
    verdict["from the future"] = 1
    seal(folder, verdict)
    found = load_audit(folder)
    assert (found.gaps, found.variants, found.advice, found.answer.unit) == ((), (), (), "")


def test_other_folders_are_told_apart(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="missing is not a whole pretrace audit: there is no such folder"):
        load_audit(tmp_path / "missing")
    empty = Run("c", (), (), (), np.zeros(0, np.int32), np.zeros(0, np.int32), (), np.zeros((0, 0)))
    save_run(empty, tmp_path / "run")
    with pytest.raises(OutputError, match=r"there is no verdict\.json in it"):
        load_audit(tmp_path / "run")
    (folder / "verdict.json").write_text('{"outcome": "guilty"}')
    with pytest.raises(OutputError, match=r"its verdict\.json was written by something else"):
        load_audit(folder)
    (folder / "verdict.json").write_text('{"pretrace_audit": 99}')
    with pytest.raises(OutputError, match="newer pretrace"):
        load_audit(folder)


def test_an_audit_takes_the_place_of_an_audit_and_of_nothing_else(folder: Path) -> None:
    save_audit(changed(corpus="second"), folder)
    assert load_audit(folder).corpus == "second"
    assert "report.html" not in files_of(folder)
    (folder / "thesis.tex").write_text("years")
    with pytest.raises(OutputError, match=r"holds files that pretrace did not write \(thesis\.tex\)"):
        save_audit(changed(corpus="third"), folder)
    assert load_audit(folder).corpus == "second"
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "verdict.json").write_text('{"verdict": "of a real court"}')
    with pytest.raises(OutputError, match=r"did not write \(verdict\.json\)"):
        save_audit(changed(), folder)


def test_a_report_that_fails_leaves_the_earlier_audit(folder: Path) -> None:
    def fail(partial: Path) -> None:
        raise OutputError("the printer is on fire")

    with pytest.raises(OutputError, match="on fire"):
        save_audit(changed(corpus="second"), folder, extra=fail)
    assert_equal(load_audit(folder), changed())
