"""What page one leaves out: options, units of scores, a second way to round, and advice that was given already."""

import re
from collections.abc import Mapping

import pytest
from report import audits

from pretrace.report.audit import _AuditPage
from pretrace.report.verdict import _first_page
from pretrace.results.wording import sentences_of
from pretrace.verdicts.audit.data import CONTROL, SUSPECT, documents_of

KINDS = ("audit", "canaries", "flag", "marks", "outcome", "recite")
MAKERS = [audits.controls, audits.missed, audits.nothing, audits.without_placebo]


def test_checks_and_advice_name_options_only_in_brackets_at_the_end():
    """Page one cuts the brackets off; whatever stands elsewhere in a sentence would be shown."""
    words = sentences_of("cures")

    def of_checks(part):
        for one in part.values():
            if isinstance(one, Mapping):
                yield from of_checks(one)
            elif "title" in part:
                yield one

    said = [*words.values(), *(one for kind in KINDS for one in of_checks(sentences_of(kind)))]
    assert len(said) > 80
    assert not [one for one in said if re.search(r"--[a-z]", one.partition("[--")[0])]


@pytest.mark.parametrize("make", MAKERS)
def test_no_audit_names_an_option_the_unit_of_a_score_or_a_term_of_the_trade_on_page_one(make):
    audit = make()
    page = re.sub(r"<[^>]+>", " ", str(_first_page(audit)))
    assert not re.search(r"--[a-z]|units of the score|The effect is", page)
    plain = audits.altered(audit, checks=(), advice=(), reasons=())
    text = re.sub(r"<[^>]+>", " ", str(_first_page(plain)))
    assert not re.search(r"null|hypothes|logp|log-prob|token|permut|suffix|AUC|LoRA", text, re.I)


def test_each_dot_has_its_document_as_title():
    audit = audits.controls()
    page = str(_first_page(audit))
    for side in (SUSPECT, CONTROL):
        names, values = documents_of(audit, side)
        assert sum(
            len(words) for line, words in _AuditPage.draw(audit).titles.items() if line.startswith(side)
        ) == len(names)
        assert all(page.count(f"<title>{name}: ") == 1 for name in names)
        top = names[int(values.argmax())]
        assert any(words[-1].startswith(f"{top}: ") for words in _AuditPage.draw(audit).titles.values())


def test_an_effect_is_said_in_cases():
    audit = audits.controls()
    found, others = (documents_of(audit, side)[1] for side in (SUSPECT, CONTROL))
    ahead = sum((a > b) + 0.5 * (a == b) for a in found for b in others) / (len(found) * len(others))
    assert f"the suspect one lies ahead in about {100 * ahead:.0f} of 100 cases" in str(_first_page(audit))
