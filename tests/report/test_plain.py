"""What page one leaves out: options, units of scores, a second way to round, and advice that was given already."""

from __future__ import annotations

import re

import pytest
from report import audits

from pretrace.report import audit_first
from pretrace.report.audit_plots import titles
from pretrace.report.frame import fill
from pretrace.report.plain import once, plain
from pretrace.verdicts.audit.built import CONTROL, SUSPECT, documents_of

MAKERS = [audits.controls, audits.missed, audits.nothing, audits.without_placebo]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "The test gave p = 0.706, above the level of 0.05 that was set beforehand. The effect is -0.0347 in "
            "units of the score min_k_plus_plus(k=0.2) [-0.1003, 0.0310].",
            "The test gave p = 0.71, above the level of 0.05 that was set beforehand.",
        ),
        ("p = 0.625 lies above both.", "p = 0.62 lies above both."),
        ("It gave p = 3.21e-19.", "It gave p = 3.2e−19."),
        (
            "Add reference models with other cut-offs (--reference-model): they take off what is common.",
            "Add reference models with other cut-offs: they take off what is common.",
        ),
        ("Give control documents with --heldout: drafts.", "Give control documents: drafts."),
        (
            "Name a --generator, which writes for both sides.",
            "Name a generator, which writes for both sides.",
        ),
        (
            "Run the test with --power, which measures what it would have seen.",
            "Measure what the test would have seen: a copy of the model is trained on the texts.",
        ),
        (
            "Such training is found in 40% [30%, 50%] of such tests. It moved the copy by 0.0120 [0.0001, 0.0240] of "
            "the score x(k=0.2). The effect that was found is at most 0.0310, which is not less: such training could "
            "have been missed.",
            "Such training is found in 40% [30%, 50%] of such tests. The effect that was found is not smaller than "
            "what it left: such training could have been missed.",
        ),
    ],
)
def test_a_sentence_of_the_terminal_becomes_one_of_page_one(said, shown) -> None:
    assert plain(said) == shown
    assert plain(shown) == shown


def test_advice_is_given_once_and_not_beside_itself() -> None:
    assert once(["Do it with --power.", "Do it.", "Wait."], beside=["Wait."]) == ("Do it.",)


@pytest.mark.parametrize("make", MAKERS)
def test_no_audit_names_an_option_or_the_unit_of_a_score_on_page_one(make) -> None:
    page = re.sub(r"<[^>]+>", " ", str(audit_first.first_page(make())))
    assert not re.search(r"--[a-z]", page)
    assert "units of the score" not in page
    assert "The effect is" not in page


def test_each_dot_has_its_document_as_title() -> None:
    audit = audits.controls()
    page = str(audit_first.first_page(audit))
    for side in (SUSPECT, CONTROL):
        names, values = documents_of(audit, side)
        assert sum(len(words) for line, words in titles(audit).items() if line.startswith(side)) == len(names)
        assert all(page.count(f"<title>{name}: ") == 1 for name in names)
        top = names[int(values.argmax())]
        assert any(words[-1].startswith(f"{top}: ") for words in titles(audit).values())


def test_an_effect_is_said_in_cases() -> None:
    audit = audits.controls()
    found, others = (documents_of(audit, side)[1] for side in (SUSPECT, CONTROL))
    ahead = sum((a > b) + 0.5 * (a == b) for a in found for b in others) / (len(found) * len(others))
    assert f"the suspect one lies ahead in about {100 * ahead:.0f} of 100 cases" in str(
        audit_first.first_page(audit)
    )


def test_paper_says_which_sections_are_read_on_the_screen_alone() -> None:
    from pretrace.report.frame import Section

    body = fill("sections.html", {"sections": []})
    made = fill(
        "sections.html",
        {"sections": [Section("A", "a", body), Section("Settings", "b", body, appendix=True)]},
    )
    assert '<section id="b" class="appendix">' in made
    assert "on a screen: Settings." in made
    assert "Not printed" not in body
