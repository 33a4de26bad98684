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
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report import audits

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.report.audit import render
from pretrace.results.audit import hypothesis, load_audit, save_audit
from pretrace.results.run import save_run
from pretrace.results.serialization import to_json
from pretrace.results.verdicts import EXIT_CODES
from pretrace.types import Answer, Audit, Check, Estimate, Null, Outcome, Pair, Placebo, Run

MAKERS = (
    audits.placebos,
    audits.nothing,
    audits.inconclusive,
    audits.controls,
    audits.missed,
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
    return dataclasses.replace(audits.placebos(documents=6), **{"power": audits.POWER, **fields})


def assert_equal(one: Audit, two: Audit) -> None:
    for field in dataclasses.fields(Audit):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if isinstance(a, np.ndarray):
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), field.name
        elif isinstance(a, Null):  # two of them are never equal
            assert dataclasses.asdict(a) == dataclasses.asdict(b), field.name
        else:
            assert (type(a), a) == (type(b), b), field.name


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_an_audit_comes_back_to_the_last_bit(make: Callable[[], Audit], tmp_path: Path) -> None:
    audit = make()
    runs.save_audit(audit, tmp_path / "audit")
    assert_equal(runs.load_audit(tmp_path / "audit"), audit)
    report = (tmp_path / "audit" / "report.html").read_bytes()
    assert runs.render(tmp_path / "audit").read_bytes() == report


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
        (audits.controls, "consistent", 3),
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
    assert set(EXIT_CODES) == set(get_args(Outcome))


def test_the_hypothesis_says_what_is_compared_with_what() -> None:
    first = f"{audits.MODEL} was not trained on “Harbour notes 2009–2021”, so that"
    assert hypothesis(audits.placebos()) == (
        f"{first}, compared with {audits.TUNED}, what stands in the suspect documents is no easier for it to predict "
        "than what a generator wrote in its place, or only by the margin of 0.031."
    )
    assert hypothesis(audits.nothing()) == (
        f"{first}, compared with {audits.PLACEBO}, what stands in the suspect documents is no easier for it to predict "
        "than what a generator wrote in its place, or only by as much as in the control documents."
    )
    alone = dataclasses.replace(audits.controls().answer, facts={"placebo": None})
    assert hypothesis(dataclasses.replace(audits.controls(), answer=alone)) == (
        f"{first} the suspect documents are no easier for it to predict than the control documents."
    )
    assert "beyond what their words explain" in hypothesis(audits.without_placebo())


def test_people_can_read_the_tables(tmp_path: Path) -> None:
    audit = audits.nothing()
    save_audit(audit, tmp_path / "audit")
    with (tmp_path / "audit" / "documents.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["document", "side", "value"]
    sides = [
        ("suspect", audit.documents, audit.values),
        ("control", audit.heldout_documents, audit.heldout_values),
    ]
    due = [
        [d, side, repr(v)]
        for side, names, values in sides
        for d, v in zip(names, values.tolist(), strict=True)
    ]
    assert rows[1:] == due
    lines = (tmp_path / "audit" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    assert found[0] == {"side": "suspect", **dataclasses.asdict(audit.pairs[0])}
    assert found[-1] == {"side": "control", **dataclasses.asdict(audit.control_pairs[-1])}
    assert len(found) == len(audit.pairs) + len(audit.control_pairs)


def test_the_verdict_holds_what_the_report_shows(tmp_path: Path) -> None:
    audit = audits.placebos()
    save_audit(audit, tmp_path / "audit")
    verdict = json.loads((tmp_path / "audit" / "verdict.json").read_bytes())
    assert verdict["pretrace_audit"] == 2
    assert audit.null is not None
    assert verdict["null"]["counts"] == list(audit.null.counts)
    assert verdict["null"]["critical"] == audit.null.critical
    assert verdict["sensitivity"]["gamma_sign"] > 1
    assert verdict["plan"]["outcomes"] == ["inconclusive"]
    assert [placebo["name"] for placebo in verdict["placebos"]] == [audits.PLACEBO]
    assert [answer["facts"]["placebo"] for answer in verdict["answers"]] == [audits.PLACEBO, audits.TUNED]
    assert len(verdict["leans"]) == 4
    assert verdict["statements"]["requested_by"].startswith("Ines")


NAN = math.nan
WRONG = {
    "values": ({"values": np.full(6, NAN)}, ValueError, "NaN"),
    "infinite value": ({"values": np.full(6, math.inf)}, ValueError, "infinite"),
    "too few values": ({"values": np.zeros(5)}, ValueError, "6 suspect documents"),
    "held-out": ({"heldout_documents": ("a",)}, ValueError, "1 control documents"),
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


@pytest.mark.parametrize(
    "word", ["outcome", "p", "statement", "level", "checks", "settings", "null", "plan", "statements"]
)
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
    "design": lambda v: v.update(design="heldout"),
    "null": lambda v: v["null"].update(counts=["many"]),
}


@pytest.mark.parametrize("case", BENT)
def test_a_verdict_of_another_shape_is_no_audit(folder: Path, case: str) -> None:
    verdict = json.loads((folder / "verdict.json").read_bytes())
    BENT[case](verdict)
    seal(folder, verdict)
    with pytest.raises(OutputError, match=r"audit is not a pretrace audit: its verdict\.json is damaged"):
        load_audit(folder)


def old_audit(folder: Path, **fields: Any) -> None:
    """An audit as format 1 was written: made by hand, so that what is written today cannot change it."""
    folder.mkdir()
    rows = [("a.md", "suspect", 0.25), ("b.md", "suspect", -0.5), ("draft.md", "heldout", 0.125)]
    rows = rows if fields.get("design") == "heldout" else rows[:2]
    lines = ['"document","side","value"', *(f'"{name}","{side}",{value}' for name, side, value in rows)]
    (folder / "documents.csv").write_text("\n".join(lines) + "\n")
    columns = dict(zip(("document", "side", "value"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "documents.parquet")
    pair = {"id": "a.md#0", "document": "a.md", "prefix": "one", "true": " two", "generated": " three"}
    (folder / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    placebo = {
        "name": "base",
        "grade": "own",
        "closeness": 0.99,
        "words": "the target in an earlier state",
        "facts": {},
    }
    verdict = {
        "pretrace_audit": 1,
        "outcome": "nothing",
        "exit_code": 0,
        "statement": "Nothing shown: there is no sign of training on “c” in m.",
        "corpus": "c",
        "model": "m",
        "design": "synthetic",
        "level": 0.05,
        "hypothesis": "m was not trained on “c”.",
        "procedure": "pretrace",
        "p": 0.5,
        "statistic": "sign-flip permutation test of document means, less a tolerance of 0.04",
        "documents": 2,
        "pieces": 2,
        "effect": {"value": -0.125, "low": -0.9, "high": 0.6},
        "unit": "of a typical token's lead",
        "standardised": -0.2,
        "facts": {"permutations": 10000, "tolerance": 0.04, "scale_nats": 0.0371},
        "checks": [
            {"name": "power", "title": "Seen", "status": "not run", "words": "No.", "cure": "", "figures": {}}
        ],
        "reasons": ["The test gave p = 0.5."],
        "advice": [],
        "variants": [],
        "placebo": placebo,
        "power": None,
        "gaps": [],
        "quality": [],
        "settings": {
            "seed": 0,
            "models": {"target": {"name": "m", "weights": "ab" * 32}},
            "time": "2026-01-02",
        },
        **fields,
    }
    tables = ("documents.csv", "documents.parquet", "pairs.jsonl")
    verdict["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in tables}
    seal(folder, verdict)


def test_an_audit_of_format_1_is_read_and_rendered(tmp_path: Path) -> None:
    old_audit(tmp_path / "old")
    found = load_audit(tmp_path / "old")
    assert (found.design, found.outcome) == ("placebos", "nothing")
    assert found.placebos == (Placebo("base", "own", 0.99, "the target in an earlier state"),)
    assert found.placebo == found.placebos[0]
    assert found.answer.facts == {
        "permutations": 10000,
        "margin": 0.04,
        "scale_nats": 0.0371,
        "placebo": "base",
    }
    assert (found.documents, found.values.tolist()) == (("a.md", "b.md"), [0.25, -0.5])
    assert (found.pairs, found.control_pairs) == ((Pair("a.md#0", "a.md", "one", " two", " three"),), ())
    assert (found.null, found.sensitivity, found.plan, found.leans) == (None, None, None, ())
    text = " ".join(render(found).split())
    assert "The version of pretrace that made this audit did not record" in text
    assert "A margin of 0.04 was taken off as well" in text
    runs.save_audit(found, tmp_path / "new")
    assert_equal(load_audit(tmp_path / "new"), found)


def test_heldout_texts_of_format_1_are_control_documents(tmp_path: Path) -> None:
    old_audit(tmp_path / "old", design="heldout", placebo=None)
    found = load_audit(tmp_path / "old")
    assert (found.design, found.placebos, found.placebo) == ("controls", (), None)
    assert (found.heldout_documents, found.heldout_values.tolist()) == (("draft.md",), [0.125])
    assert "1 control document" in render(found)


@pytest.mark.parametrize(
    "fields", [{"design": "placebos"}, {"placebo": "base"}, {"placebo": {"grade": "own"}}]
)
def test_what_format_1_never_wrote_is_damage(fields: dict[str, Any], tmp_path: Path) -> None:
    old_audit(tmp_path / "old", **fields)
    with pytest.raises(OutputError, match=r"its verdict\.json is damaged"):
        load_audit(tmp_path / "old")


def test_an_audit_from_before_a_field_was_there_gets_its_default(folder: Path) -> None:
    verdict = json.loads((folder / "verdict.json").read_bytes())
    for field in ("gaps", "variants", "advice", "unit"):
        del verdict[field]
    verdict["from the future"] = 1
    seal(folder, verdict)
    found = load_audit(folder)
    assert (found.gaps, found.variants, found.advice, found.answer.unit) == ((), (), (), "")


def test_other_folders_are_told_apart(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="missing is not a pretrace audit: there is no such folder"):
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
