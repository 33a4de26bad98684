"""Flaggings on disk: back to the last bit, whole or not at all, and damage noticed."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report.flaggings import flagging, known_of, texts_of

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.report import flags as report
from pretrace.results.folder import seal_of
from pretrace.results.output_checks import FLAGS, FLAGS_KEY, RESULT
from pretrace.results.serialization import to_json, to_plain
from pretrace.results.verdicts import FLAGGING, save_verdict
from pretrace.runs import load_verdict
from pretrace.types import Check, SetTest, Skipped
from pretrace.verification import verify_folder


def made(outcome="flagged", **changes):
    rng = np.random.default_rng(0)
    told = outcome != "refused"
    flags = (True, False, False) if outcome == "flagged" else (False,) * 3
    texts = texts_of(
        ("=a" + "x" * 200_000, 'b "quoted",\r', "ü\n漢"),
        rng.normal(size=3),
        np.array([1 / 3, 0.1, 1.0]) if told else np.zeros(0),
        flags,
        q=np.array([0.1 + 0.2, 0.3, 1.0]) if told else np.zeros(0),
        groups=("g", "g", "h"),
        documents=("a", "b", "h"),
        drawn=(True, False, True),
    )
    p = (0.1 + 0.2 if outcome != "set" else 0.01) if told else None
    return flagging(
        outcome,
        texts,
        known_of(("k1", "k2"), np.array([1e-300, -7.0]), (True, False)),
        set_test=SetTest(p, 0.05, 1, 1 / 3, None, 99, "" if told else "why", math.inf, 0.2, 1.0),
        statement="Said.",
        checks=(Check("words", "Alike", "passed", "AUC 0.5.", figures={"auc": [0.5, 0.4, 0.6]}),),
        reasons=("Because.",),
        notes=("Note.",),
        skipped=(Skipped("s", "the text is empty", 0),),
        settings={"seed": 0, "models": {"target": {"name": "model"}}},
        **changes,
    )


def cells(table):
    """Every cell of a table, bits and masks included; NaN as text, so that it equals itself."""
    return {
        name: list(map(repr, getattr(found, "tolist", found.__iter__)()))
        for name, found in table.columns.items()
    }


def same(one, other):
    assert [cells(table) for table in one.tables] == [cells(table) for table in other.tables]
    assert repr(replace(one, tables=())) == repr(replace(other, tables=()))


@pytest.mark.parametrize("outcome", ["flagged", "set", "none", "coarse", "refused"])
def test_there_and_back(tmp_path, outcome):
    save_verdict(
        made(outcome), tmp_path / "out", extra=lambda partial: (partial / "report.html").write_text("r")
    )
    same(load_verdict(tmp_path / "out"), made(outcome))
    seal = seal_of(FLAGGING, tmp_path / "out")
    page = runs.render(tmp_path / "out").read_text(encoding="utf-8")
    assert report.render(made(outcome), seal=seal) == page
    content = json.loads((tmp_path / "out" / RESULT).read_text(encoding="utf-8"))
    assert content["exit_code"] == {"flagged": 3, "set": 3, "none": 0, "coarse": 4, "refused": 4}[outcome]
    assert content["figures"]["set_test"]["permutations"] == 99
    assert content["figures"]["counts"]["flagged"] == (outcome == "flagged")
    assert content["files"]["report.html"] is None


def test_people_and_programs_can_read_the_table(tmp_path):
    save_verdict(made(), tmp_path / "out")
    csv.field_size_limit(300_000)  # one id is longer than what Python reads unless it is told
    with (tmp_path / "out" / "flags.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "group", "score", "p", "q", "flagged", "document", "drawn"]
    assert [row["flagged"] for row in rows] == ["1", "0", "0"]
    save_verdict(made("refused"), tmp_path / "refused")
    with (tmp_path / "refused" / "flags.csv").open(encoding="utf-8", newline="") as file:
        assert {(row["p"], row["q"], row["flagged"]) for row in csv.DictReader(file)} == {("", "", "")}


@pytest.mark.parametrize("name", ["flags.csv", "known.csv", RESULT])
def test_a_change_is_noticed(tmp_path, name):
    save_verdict(made(), tmp_path / "out")
    path = tmp_path / "out" / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"g", b"j", 1) if name != RESULT else content.replace(b"mine", b"ours"))
    with pytest.raises(OutputError, match=r"changed|damaged"):
        load_verdict(tmp_path / "out")
    path.unlink()
    with pytest.raises(OutputError, match="there is no"):
        load_verdict(tmp_path / "out")


def former(outcome, tmp_path):
    """A copy of a folder of an earlier pretrace, which a run of that version wrote."""
    return shutil.copytree(Path(__file__).parent / "former" / f"flags-{outcome}", tmp_path / outcome)


@pytest.mark.parametrize("outcome", ["flagged", "missed", "refused"])
def test_a_folder_of_version_0_2_is_a_verdict_and_gives_its_report(tmp_path, outcome):
    folder = former(outcome, tmp_path)
    old = json.loads((folder / FLAGS).read_bytes())
    found = load_verdict(folder, "flag")
    assert isinstance(runs.load(folder), type(found))
    for name in ("outcome", "statement", "corpus", "model", "reasons", "advice", "notes", "settings"):
        assert to_plain(getattr(found, name), name) == old[name]
    assert found.figures["counts"] == old["counts"]
    assert (found.p, found.level) == (old["set_test"]["p"], old["set_test"]["level"])
    with (folder / "flags.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = found.table("flags")
    assert [row["id"] for row in rows] == list(texts["id"])
    assert [float(row["p"] or "nan") for row in rows] == pytest.approx(
        texts["p"].tolist(), abs=0, nan_ok=True
    )
    assert [row["flagged"] == "1" for row in rows] == [bool(one) for one in texts["flagged"].tolist()]
    assert found.reasons[-1] in runs.render(folder).read_text(encoding="utf-8")
    runs.export(folder, tmp_path / "found.sqlite")
    assert verify_folder(folder).holds


def as_version_0_1(folder):
    """The folder as the first version wrote it: format 1, fewer columns, no test of the set."""
    content = json.loads((folder / FLAGS).read_text(encoding="utf-8"))
    for gone in ("set_test", "sha256", "power", "tests"):
        content.pop(gone)
    for gone in ("documents", "flagged_documents"):
        del content["counts"][gone]
    content[FLAGS_KEY] = 1
    for name, columns in (("flags.csv", 6), ("known.csv", 4)):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            rows = [row[:columns] for row in csv.reader(file)]
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        content["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    content["sha256"] = hashlib.sha256(to_json(content)).hexdigest()
    (folder / FLAGS).write_bytes(to_json(content))


@pytest.mark.parametrize("outcome", ["flagged", "missed", "refused"])
def test_what_version_0_1_wrote_is_still_read(tmp_path, outcome):
    folder = former(outcome, tmp_path)
    flags = load_verdict(folder).figures["counts"]["flagged"]
    as_version_0_1(folder)
    old = load_verdict(folder)
    assert (old.outcome, old.figures["set_test"], old.figures["counts"]["flagged"]) == (outcome, None, flags)
    texts, known = old.tables
    assert texts["document"] == texts["id"]  # each text was judged by itself
    assert texts["drawn"].all()
    assert known["document"] == known["group"]
    assert "The set as a whole" not in report.render(replace(old, reasons=(), statement="", checks=()))


def test_a_new_flagging_takes_the_place_of_a_former_one_and_of_no_other_test(tmp_path):
    folder = former("missed", tmp_path)
    save_verdict(made(), folder)
    assert not (folder / FLAGS).exists()
    assert load_verdict(folder).corpus == "mine"
    folder = former("flagged", tmp_path)
    with pytest.raises(OutputError, match="holds a flagging, which is not replaced"):
        save_verdict(replace(made(), test="recite"), folder)


def test_what_is_none_of_ours_is_told(tmp_path):
    with pytest.raises(OutputError, match="there is no such folder"):
        load_verdict(tmp_path / "nowhere")
    (tmp_path / FLAGS).write_text("[]")
    with pytest.raises(OutputError, match="damaged"):
        load_verdict(tmp_path)
    (tmp_path / FLAGS).write_text('{"pretrace_flags": 99}')
    with pytest.raises(OutputError, match="newer pretrace"):
        load_verdict(tmp_path)


def test_nothing_is_left_when_writing_fails(tmp_path):
    def fail(partial):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        save_verdict(made(), tmp_path / "out", extra=fail)
    assert not list(tmp_path.iterdir())


def test_what_does_not_belong_together_is_not_written(tmp_path):
    one = made()
    texts, known = one.tables
    chosen, none = (
        texts_of(texts["id"], texts["score"], texts["p"], flags) for flags in ((1, 0, 0), (0, 0, 0))
    )
    odd = texts_of(texts["id"], texts["score"], np.array([np.nan, 0.1, 1.0]), (1, 0, 0))
    low = SetTest(0.5, 0.05, 1, 1 / 3, None, 99)
    for outcome, some in (
        ("refused", chosen),
        ("none", chosen),
        ("set", none),
        ("flagged", none),
        ("flagged", odd),
    ):
        with pytest.raises(ValueError, match="flag"):
            flagging(outcome, some, known, set_test=low)
    short = replace(known, columns={**known.columns, "drawn": np.array([True])})
    with pytest.raises(ValueError, match="known differ in length"):
        save_verdict(replace(one, tables=(texts, short)), tmp_path / "out")


def test_an_earlier_flagging_is_replaced_and_nothing_else(tmp_path):
    save_verdict(made(), tmp_path / "out")
    save_verdict(made("none"), tmp_path / "out")
    assert load_verdict(tmp_path / "out").outcome == "none"
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match=r"thesis\.tex"):
        save_verdict(made(), tmp_path / "out")
