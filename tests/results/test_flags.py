"""Flaggings on disk: back to the last bit, whole or not at all, and damage noticed."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from report.flaggings import flagging, known_of, texts_of

from pretrace import runs
from pretrace.report import flags as report
from pretrace.results.folder import seal_of
from pretrace.results.output_checks import RESULT
from pretrace.results.verdicts import FLAGGING, save_verdict
from pretrace.runs import load_verdict
from pretrace.types import Check, SetTest, Skipped


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


@pytest.mark.parametrize("outcome", ["flagged", "set", "none", "missed", "refused"])
def test_there_and_back(tmp_path, outcome):
    save_verdict(
        made(outcome), tmp_path / "out", extra=lambda partial: (partial / "report.html").write_text("r")
    )
    same(load_verdict(tmp_path / "out"), made(outcome))
    seal = seal_of(FLAGGING, tmp_path / "out")
    page = runs.render(tmp_path / "out").read_text(encoding="utf-8")
    assert report.render(made(outcome), seal=seal) == page
    content = json.loads((tmp_path / "out" / RESULT).read_text(encoding="utf-8"))
    assert content["exit_code"] == {"flagged": 3, "set": 3, "none": 0, "missed": 4, "refused": 4}[outcome]
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


def test_what_does_not_belong_together_is_not_written(tmp_path):
    one = made()
    texts, known = one.tables
    chosen, none = (
        texts_of(texts["id"], texts["score"], texts["p"], flags) for flags in ((1, 0, 0), (0, 0, 0))
    )
    odd = texts_of(texts["id"], texts["score"], np.array([np.nan, 0.1, 1.0]), (1, 0, 0))
    low = SetTest(0.5, 0.05, 1, 1 / 3, None, 99)
    for outcome, some in (
        *(("refused", chosen), ("none", chosen), ("set", none), ("flagged", none), ("flagged", odd)),
    ):
        with pytest.raises(ValueError, match="flag"):
            flagging(outcome, some, known, set_test=low, statement="said")
    short = replace(known, columns={**known.columns, "drawn": np.array([True])})
    with pytest.raises(ValueError, match="known differ in length"):
        save_verdict(replace(one, tables=(texts, short)), tmp_path / "out")
