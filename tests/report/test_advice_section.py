"""An inconclusive report ends with the tests that could answer, filled in for its case; others do not have them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from report import audits
from report.test_report_html import Page, check_safe

from pretrace.report import audit as audit_report
from pretrace.report import verdict as verdict_report
from pretrace.report.advice import of_verdict, section
from pretrace.types import Situation, Table, Verdict

HOSTILE = "<script>alert(1)</script>\u202e{model}.jsonl"


def verdict(**changes):
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
def test_an_inconclusive_audit_ends_with_the_table(make):
    audit = make()
    assert audit.outcome == "inconclusive"
    assert re.findall(r'<section id="(\w+)"', audit_report.render(audit))[-1] == "advice"


@pytest.mark.parametrize("make", [audits.controls, audits.nothing])
def test_an_answer_needs_no_other_test(make):
    assert of_verdict(make()) is None
    assert 'id="advice"' not in audit_report.render(make())


def test_names_of_strangers_are_shown_and_not_run():
    found = section(Situation(unseen=20), HOSTILE, HOSTILE)
    check_safe(Page(verdict_report.render(verdict(corpus=HOSTILE, settings={"command": {"texts": HOSTILE}}))))
    assert "<script" not in found.body
    assert "\u202e" not in found.body
