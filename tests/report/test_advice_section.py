"""An inconclusive report ends with the tests that could answer, filled in for its case; others do not have them."""

import re

import pytest
from report import audits

from pretrace.report import verdict as verdict_report
from pretrace.report.advice import of_verdict, section
from pretrace.types import Situation

HOSTILE = "<script>alert(1)</script>\u202e{model}.jsonl"


@pytest.mark.parametrize("make", [audits.placebos, audits.inconclusive, audits.missed, audits.bare])
def test_an_inconclusive_audit_ends_with_the_table(make):
    audit = make()
    assert audit.outcome == "inconclusive"
    assert re.findall(r'<section id="(\w+)"', verdict_report.render(audit))[-1] == "advice"


@pytest.mark.parametrize("make", [audits.controls, audits.nothing])
def test_an_answer_needs_no_other_test(make):
    assert of_verdict(make()) is None
    assert 'id="advice"' not in verdict_report.render(make())


def test_names_of_strangers_are_shown_and_not_run():
    found = section(Situation(unseen=20), HOSTILE, HOSTILE)
    assert "<script" not in found.body
    assert "\u202e" not in found.body
