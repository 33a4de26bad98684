"""An inconclusive report ends with the tests that could answer, filled in for its case; others do not have them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from report import audits
from report.audits import altered
from report.test_report_html import Page, check_safe

from pretrace.report import verdict as verdict_report
from pretrace.report.advice import of_verdict, section
from pretrace.types import Situation, Table, Verdict

HOSTILE = "<script>alert(1)</script>\u202e{model}.jsonl"


def text(found: object) -> str:
    """The words, cells apart."""
    return re.sub(r"\s+", " ", Page(f"<div>{str(found).replace('</t', ' </t')}</div>").text)


def verdict(**changes: object) -> Verdict:
    made = Verdict(
        test="canaries",
        corpus="letters",
        model="its/model",
        outcome="inconclusive",
        statement="Inconclusive: this test cannot say.",
        level=0.05,
        exact=True,
        assumption="The strings were made at random.",
        hypothesis="the strings are like others",
        statistic="rank",
        p=0.4,
        units=8,
        unit="string",
        question="Was its/model trained on the letters?",
        compared=("Strings were compared with others.",),
        situation=Situation(documents=60, unseen=19, canaries=7),
        settings={"command": {"texts": "letters.jsonl"}},
        tables=(Table("strings", {"difference": np.array([0.1, -0.2])}),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [audits.placebos, audits.inconclusive, audits.missed, audits.bare])
def test_an_inconclusive_audit_ends_with_the_table(make: Callable[[], Verdict]) -> None:
    audit = make()
    assert audit.outcome == "inconclusive"
    assert re.findall(r'<section id="(\w+)"', verdict_report.render(audit))[-1] == "advice"


@pytest.mark.parametrize("make", [audits.controls, audits.nothing])
def test_an_answer_needs_no_other_test(make: Callable[[], Verdict]) -> None:
    assert of_verdict(make()) is None
    assert 'id="advice"' not in verdict_report.render(make())


def test_the_audit_is_read_for_what_there_is() -> None:
    audit = audits.placebos()
    found = of_verdict(audit)
    assert found is not None
    said = text(found.body)
    assert (
        "Control documents and an earlier checkpoint conditional could be made; missing: 20 control documents"
        in said
    )
    assert "An earlier checkpoint alone conditional made in this report accuses nobody" in said
    assert f"--placebo '{audits.PLACEBO}'" in said  # its own earlier state, named
    typed = {**audit.settings, "command": {"texts": "notes", "placebo": ["base"], "controls": "drawer"}}
    again = of_verdict(altered(audit, settings=typed))
    assert again is not None
    assert "pretrace audit notes --controls drawer --model" in text(again.body)
    assert "--placebo base --out AUDIT" in text(again.body)


def test_without_weights_what_needs_them_is_ruled_out() -> None:
    settings = {"models": {"target": {"name": "served"}}}
    found = of_verdict(altered(audits.placebos(), settings=settings))
    assert found is not None
    assert "cannot be made with this model: it needs the weights" in text(found.body)


def test_a_verdict_tells_what_is_missing_and_what_to_type() -> None:
    page = verdict_report.render(verdict())
    assert re.findall(r'<section id="(\w+)"', page)[-1] == "advice"
    said = text(page)
    assert "Random strings in the texts exact if its assumption holds made in this report" in said
    assert "Control documents conditional could be made; missing: 1 more control documents" in said
    assert "pretrace audit letters.jsonl --controls CONTROLS.jsonl --model its/model --out AUDIT" in said
    assert "pretrace mark canaries" not in said
    for outcome in ("consistent", "nothing"):
        assert of_verdict(verdict(outcome=outcome)) is None


def test_names_of_strangers_are_shown_and_not_run() -> None:
    found = section(Situation(unseen=20), HOSTILE, HOSTILE)
    check_safe(Page(verdict_report.render(verdict(corpus=HOSTILE, settings={"command": {"texts": HOSTILE}}))))
    assert "<script" not in found.body
    assert "\u202e" not in found.body
