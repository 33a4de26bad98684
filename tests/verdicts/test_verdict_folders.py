"""Verdicts on disk: back to the last bit, whole or not at all, damage noticed, and one door for every kind."""

import io
import json
from dataclasses import fields

import numpy as np
import pytest
from rich.console import Console

from pretrace import runs
from pretrace.cli.printing import conclusion
from pretrace.report.verdict import first_page
from pretrace.results.serialization import to_plain
from pretrace.types import Check, Table


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


def test_a_notebook_shows_the_first_page(made):
    shown = made(corpus="<b>mine</b>")._repr_html_()
    assert "<b>mine" not in shown
    assert "pretrace · test report" in shown
    assert "Technical part" not in shown


def test_a_terminal_shows_a_verdict_in_two_lines(made):
    verdict = made()
    first, second = repr(verdict).splitlines()
    assert first.startswith(f"Verdict({verdict.test}, {verdict.corpus!r}, model ")
    assert verdict.outcome in first
    assert second == f"    {verdict.statement})"


def test_the_first_page_names_every_check_whatever_became_of_it(made):
    checks = tuple(
        Check(status, f"The title of what {status}", status, f"Words about {status}.")
        for status in ("passed", "failed", "not run")
    )
    page = " ".join(first_page(made(checks=checks)).split())
    for check in checks:
        assert f">{check.status}</span> <span>{check.title}</span>" in page
    assert [one.words in page for one in checks] == [False, True, False]  # only why it failed


def test_a_terminal_shows_all_of_the_conclusion(made, tmp_path):
    verdict, said = made(), io.StringIO()
    conclusion(verdict, tmp_path, "check", Console(file=said, width=200))
    lines = [line.rstrip() for line in said.getvalue().splitlines()]
    assert lines[0] == verdict.statement
    for check in verdict.checks:
        assert any(line.startswith(check.title) and line.endswith(check.status) for line in lines)
    assert f"- {verdict.reasons[0]}" in lines
    assert lines[-2:] == [f"Report: {tmp_path / 'report.html'}", f"What would help: {verdict.advice[0]}"]
