"""Verdicts on disk: back to the last bit, whole or not at all, damage noticed, and one door for every kind."""

import json
from dataclasses import fields

import numpy as np
import pytest

from pretrace import runs
from pretrace.results.serialization import to_plain
from pretrace.types import Table


def test_a_verdict_comes_back_to_the_last_bit(made, tmp_path):
    verdict = made()
    runs.save(verdict, tmp_path / "V")
    back = runs.load(tmp_path / "V")
    for field in fields(verdict):
        if field.name != "tables":
            found, wanted = getattr(back, field.name), getattr(verdict, field.name)
            assert to_plain(found, field.name) == to_plain(wanted, field.name), field.name
    wrote, read = verdict.table("texts").columns, back.table("texts").columns
    assert read["id"] == wrote["id"]
    np.testing.assert_array_equal(read["difference"], wrote["difference"])


def test_the_exit_code_stands_in_the_file(made, tmp_path):
    for outcome, code in (("consistent", 3), ("nothing", 0), ("inconclusive", 4)):
        runs.save_verdict(made(outcome=outcome), tmp_path / outcome)
        assert json.loads((tmp_path / outcome / "result.json").read_bytes())["exit_code"] == code


def test_what_cannot_be_written_leaves_the_earlier_verdict(made, tmp_path):
    runs.save(made(), tmp_path / "V")
    before = (tmp_path / "V" / "result.json").read_bytes()
    table = Table("texts", {"id": ("a",)})
    with pytest.raises(ValueError, match="same name"):
        runs.save(made(tables=(table, table)), tmp_path / "V")
    assert (tmp_path / "V" / "result.json").read_bytes() == before


def test_the_report_escapes_and_says_what_there_is(made, tmp_path):
    runs.save(made(), tmp_path / "V")
    page = (tmp_path / "V" / "report.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    for said in ("An author", "22 November 2026", "A placebo finds nothing", "More documents.", "=a"):
        assert said in page


def test_a_verdict_without_figures_or_test_is_drawn(made, tmp_path):
    bare = made(p=None, null=None, effect=None, planted=None, checks=(), standardised=None)
    runs.save(bare, tmp_path / "V")
    assert "no test could be made" in (tmp_path / "V" / "report.html").read_text(encoding="utf-8")
