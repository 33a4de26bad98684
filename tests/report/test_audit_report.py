"""The report of an audit: safe whatever it is fed, made of the audit's numbers alone, and never more than they say."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.patches import StepPatch
from report import audits
from report.audits import altered, answer_of, plan_of
from report.test_report_html import HIDDEN, Page, check_safe

from pretrace import types
from pretrace.report import facts, wording
from pretrace.report import verdict_plots as plots
from pretrace.report.frame import speaking
from pretrace.report.verdict import SECTIONS, first_page, render, repeating
from pretrace.statistics.permutation import sign_flip_test
from pretrace.types import (
    Check,
    Estimate,
    Null,
    Pair,
    Power,
    Quality,
    Sensitivity,
    Situation,
    Verdict,
)
from pretrace.verdicts.audit.built import figures_of
from pretrace.verdicts.outcome import null_of

MAKERS = (
    audits.placebos, audits.nothing, audits.inconclusive, audits.controls, audits.missed,
    audits.without_placebo, audits.bare,
)  # fmt: skip


def text_of(source: object) -> str:
    return re.sub(r"\s+", " ", Page(str(source)).text)


def first_text(audit: Verdict) -> str:
    return text_of(f"<div>{first_page(audit)}</div>")


def section_text(audit: Verdict, anchor: str) -> str:
    (found,) = (section for section in speaking(SECTIONS["audit"], audit) if section.anchor == anchor)
    return text_of(f"<div>{found.body}</div>")


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_the_page_is_whole_safe_and_leads_nowhere(make: Callable[[], Verdict]) -> None:
    source = render(make())
    assert source.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?:|//\w+\.", source)
    check_safe(Page(source))
    assert not re.search(r"\bpro(of|ve)", text_of(source))
    assert "jinja" not in source
    assert "None" not in text_of(source)


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(codec=None), max_size=30), st.text(st.characters(codec=None), max_size=300))
def test_any_pair_and_any_setting_stay_text(name: str, text: str) -> None:
    audit = altered(
        audits.bare(),
        pairs=(Pair(name, name, text, text, text),),
        quality=(Quality(text, None, 0.0),),
        checks=(Check(name, text, "failed", text, text, {name: text}),),
        settings={name: {text: [text, {name: text}]}, "earlier": [text, {name: 1}]},
    )
    for section in speaking(SECTIONS["audit"], audit):
        page = Page(f"<div>{section.body}</div>")
        assert not HIDDEN.search(section.body)
        assert "script" not in {tag for tag, _ in page.elements}


@pytest.mark.parametrize(
    ("make", "words", "kind"),
    [
        (audits.controls, "Consistent with training on “Harbour notes 2009–2021”", "answer consistent"),
        (audits.nothing, "Nothing was found HuggingFaceTB/SmolLM2-135M does not know", "answer nothing"),
        (audits.inconclusive, "Inconclusive This audit cannot say", "answer inconclusive"),
    ],
)
def test_the_first_page_gives_the_answer_once(make: Callable[[], Verdict], words: str, kind: str) -> None:
    page = Page(f"<div>{first_page(make())}</div>")
    text = re.sub(r"\s+", " ", page.text)
    assert text.index("Was HuggingFaceTB/SmolLM2-135M trained on “Harbour notes 2009–2021”?") < text.index(
        words
    )
    assert kind in page.attributes("class")
    assert ("not the probability that the model was, or was not, trained" in text) == (
        kind != "answer inconclusive"
    )


def test_the_first_page_has_no_term_of_the_trade() -> None:
    for make in MAKERS:
        audit = altered(make(), checks=(), advice=(), reasons=())
        assert not re.search(
            r"null|hypothes|logp|log-prob|token|permut|suffix|AUC|LoRA", first_text(audit), re.I
        )


def test_what_failed_stands_first_and_says_why() -> None:
    whole = first_text(audits.inconclusive())
    box, _, text = whole.partition("The checks")
    assert "failed The two sets of texts are alike as texts, as far as this design needs it" in text
    for check in audits.inconclusive().checks:
        if check.status == "failed":  # in full: the first sentence alone may say the opposite
            assert re.sub(r"\s+", " ", f"{check.title}: no. {wording.plain(check.words)}") in box
    assert text.index("failed") < text.index("passed") < text.index("not run") < text.index("Signature")
    assert "Two families differ" in section_text(audits.inconclusive(), "checks")


def test_without_a_failed_check_the_reasons_say_why() -> None:
    audit = altered(audits.inconclusive(), checks=audits.CHECKS, reasons=("It was too dark to see.",))
    assert "It was too dark to see." in first_text(audit)
    assert "It was too dark" not in first_text(altered(audit, outcome="nothing"))
    assert "It was too dark" in section_text(altered(audit, outcome="nothing"), "test")


def test_a_test_that_the_figure_does_not_show_is_named() -> None:
    text = first_text(with_answer(standing(audits.placebos()), procedure="paper"))
    assert "(“paper”) and is made on single passages" in text
    assert "dark end" not in text
    assert "Rosenbaum" not in text
    text = first_text(audits.placebos())
    assert "dark end" in text


def with_answer(audit: Verdict, **fields: Any) -> Verdict:
    return altered(audit, answer=replace(answer_of(audit), **fields))


def with_power(audit: Verdict, **fields: Any) -> Verdict:
    assert audit.planted is not None
    return altered(audit, planted=replace(audit.planted, **fields))


def with_placebo(audit: Verdict, **fields: Any) -> Verdict:
    placebos = figures_of(audit).placebos
    return altered(audit, placebos=(replace(placebos[0], **fields), *placebos[1:]))


def with_plan(audit: Verdict, **fields: Any) -> Verdict:
    return altered(audit, plan=replace(plan_of(audit), **fields))


CHANGES = tomllib.loads(Path(__file__).with_name("audit_numbers.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("change", CHANGES)
def test_every_number_comes_from_the_audit(change: str) -> None:
    code, expected = CHANGES[change]
    assert expected not in unchanged_text()
    assert expected in whole_text(eval(code, {**vars(types), **globals(), "a": base()}))


def base() -> Verdict:
    """An audit with something in every field."""
    return altered(audits.placebos(), planted=audits.POWER)


def standing(audit: Verdict) -> Verdict:
    """The audit with a conclusion: page one says how strong a result is only where it counts as one."""
    return altered(audit, outcome="consistent")


@functools.cache
def unchanged_text() -> str:
    return whole_text(base())


def whole_text(audit: Verdict) -> str:
    made = "".join(f"<p>{section.title}</p>{section.body}" for section in speaking(SECTIONS["audit"], audit))
    return text_of(f"<div>{first_page(audit)}</div>{made}")


def test_each_design_is_explained_on_the_first_page() -> None:
    text = first_text(audits.controls())
    assert "120 suspect documents were compared with 74 control documents" in text
    assert "picks the suspect one in 53 of 100 cases (95% interval 47 to 59)" in text
    assert "The result would stand even if every suspect document lay up to" in text
    assert "imitation" not in text
    text = first_text(audits.nothing())
    assert "were not compared directly because they differ as texts" in text
    assert "prefer true endings more in them than in the control documents" in text
    text = first_text(audits.placebos())
    assert "A margin of 0.03 was taken off: the most by which models" in text
    assert "The weakest of the 2 results is the one that counts" in text
    assert "without control documents this audit draws no conclusion from it" in text
    text = first_text(standing(audits.placebos()))
    assert "larger than any of the 4 leans that were measured on innocent models" in text
    for audit in (audits.controls(), audits.nothing()):
        assert not re.search(r"\blean|held-out", whole_text(altered(audit, settings={})))


def test_a_result_that_is_withheld_does_not_read_like_one() -> None:
    text = first_text(audits.placebos())
    assert "Why this is no finding" in text
    assert "That is no sign of training" in text
    for words in ("How strong the result is", "would still occur", "Rosenbaum", "The test gave p", "refute"):
        assert words not in text
    assert "What would refute this result" in first_text(audits.controls())


def test_the_first_page_names_who_what_and_which() -> None:
    text = first_text(audits.controls())
    for words in (
        "Date of the audit 22 November 2026, 14:03 UTC",
        "Requested by Ines Albrecht, for the Harbour Writers’ Guild",
        f"Model in question {audits.MODEL}; revision 3b1e, fingerprint of its weights: 3b1e{'0' * 56}f00d",
        "not to have seen the texts Its repository dates the checkpoint",
        "Suspect texts 120 documents, each listed in documents.csv; SHA-256 of the texts: 9f2d3c",
        f"74 control documents, each listed in documents.csv; SHA-256 of the texts: {'41' * 32}",
        "Where they come from Notes from the same years",
        "Signature",
    ):
        assert words in text
    text = first_text(altered(audits.controls(), statements={}, settings={}))
    assert text.count("not stated") == 3
    assert "not recorded" in text


def test_without_placebo_and_power_the_page_says_what_that_means() -> None:
    audit = audits.without_placebo()
    assert "no other model was at hand" in first_text(audit)
    assert "No placebo was named." in section_text(audit, "placebo")
    audit = audits.missed()
    assert "--power" in section_text(audit, "power")
    assert first_text(audit).count("does not show that the texts were not used") == 1
    assert first_text(audit).index("What would help") < first_text(audit).index(
        "Measure what the audit would have"
    )
    alone = with_answer(altered(audits.controls(), placebos=()), facts={"placebo": None})
    assert "the target was looked at alone" in section_text(alone, "placebo")
    assert "no other model" in first_text(alone)


def test_power_beside_a_result_is_neither_advised_nor_a_failed_check() -> None:
    audit = audits.controls()
    failed = replace(audits.POWERFUL, status="failed", cure="Run it with --power.")
    text = whole_text(altered(audit, checks=(*audit.checks, failed), settings={}, plan=None))
    assert "--power" not in text
    assert "would have been seen" not in text
    assert "power" not in [section.anchor for section in speaking(SECTIONS["audit"], audit)]
    shown = section_text(altered(audit, planted=audits.POWER), "power")
    assert "0.94 [0.90, 0.97], in brackets the 95% interval" in shown


def test_the_least_audit_has_the_sections_that_always_speak() -> None:
    assert [section.anchor for section in speaking(SECTIONS["audit"], audits.bare())] == [
        "test",
        "placebo",
        "power",
        "variants",
        "limits",
        "advice",  # bare() is inconclusive
    ]
    assert [section.anchor for section in speaking(SECTIONS["audit"], base())] == [
        "test",
        "placebo",
        "leans",
        "checks",
        "power",
        "variants",
        "limits",
        "plan",
        "gap",
        "texts",
        "repeat",
        "advice",
    ]


def test_every_model_has_a_table_and_every_setting_a_row() -> None:
    audit = audits.placebos()
    body = repeating(audit)
    assert body is not None
    text = text_of(f"<div>{body.body}</div>")
    for title in (
        "The target",
        "The placebo",
        "The generator",
        "Software",
        "How the texts were cut",
        "This audit",
    ):
        assert title in text
    for name, value in facts.rows({key: part for key, part in audit.settings.items() if key not in _APART}):
        assert value in text, name
    assert repeating(altered(audit, settings={"earlier": []})) is None


_APART = ("earlier", "timings")


def test_each_document_is_one_dot_filled_where_it_lies_above_zero() -> None:
    audit = altered(
        audits.placebos(), values=np.array([-1.0, -0.5, 0.0, 0.3, 0.3, 2.0]), documents=tuple("abcdef")
    )
    axes = plots.documents(audit).figure.axes[0]
    dots = {
        str(line.get_markerfacecolor()): line.get_xdata() for line in axes.lines if line.get_marker() == "o"
    }
    assert len(dots[plots.SIGN]) == 3
    assert len(dots["white"]) == 3
    assert "(3), hollow elsewhere (3)" in first_text(audit)


def test_many_documents_share_dots() -> None:
    audit = audits.placebos(documents=4000)
    assert plots.per_dot(audit) == 3
    assert "Each dot stands for 3 documents" in first_text(audit)
    axes = plots.documents(audit).figure.axes[0]
    drawn = sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "o")
    assert 4000 / 3 <= drawn < 4000 / 3 + 200


def test_control_documents_are_dots_of_their_own() -> None:
    axes = plots.documents(audits.controls()).figure.axes[0]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    for colour, number in ((plots.SIGN, 120), ("white", 74)):
        assert sum(len(line.get_xdata()) for line in dots if line.get_markerfacecolor() == colour) == number
    assert "control documents" in [text.get_text() for text in axes.texts]


def drawn(null: Null) -> Axes:
    return plots.against_chance(null).axes[0]


def bars(axes: Axes) -> dict[str, float]:
    """The area of the light and of the dark part of the hill."""
    found = {}
    for patch in axes.patches:
        assert isinstance(patch, StepPatch)
        values, edges, _ = patch.get_data()
        found["dark" if patch.get_facecolor()[0] < 0.6 else "light"] = float((values * np.diff(edges)).sum())
    return found


def test_the_figure_draws_the_null_that_was_recorded() -> None:
    null = Null("s", 2.6, 1.5, (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0), (1, 3, 4, 2, 1))
    axes = drawn(null)
    # Heights are shares of the highest bar; the critical value divides the bar that it lies in.
    assert bars(axes) == pytest.approx({"light": (1 + 3 + 4 + 0.5 * 2) / 4, "dark": (0.5 * 2 + 1) / 4})
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert marks == [2.6]
    assert "this audit: 2.60" in [text.get_text() for text in axes.texts]
    words = first_text(altered(audits.placebos(), null=null))
    assert "11 times over" in words


def test_a_result_of_documents_that_are_all_alike_has_no_scale() -> None:
    found = sign_flip_test(np.full(8, 2.0))  # the two flips of all signs do not vary either
    axes = drawn(null_of(found, 0.05, "s"))
    low, high = axes.get_xlim()
    assert high - low < 40
    assert "this audit: off the scale, as nothing varies" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("observed", [-1e9, -4.0, 0.0, 1.9, 3.0, 40.0, np.inf])
@pytest.mark.parametrize("critical", [-3.0, 0.3, 1.7, 5.0, np.inf])
def test_any_result_has_its_place_in_the_figure(observed: float, critical: float) -> None:
    null = Null("s", observed, critical, (-2.0, -1.0, 0.0, 1.0, 2.0), (1, 3, 4, 2))
    axes = drawn(null)
    low, high = axes.get_xlim()
    assert np.isfinite([low, high]).all()
    assert low < -2 < 2 < high
    assert high - low < 40
    if critical < np.inf:
        assert low < critical < high
    label = next(text for text in axes.texts if text.get_text().startswith("this audit"))
    assert low < label.get_position()[0] < high
    assert ("→" in label.get_text()) == (observed >= 40)
    if abs(observed) > 40:  # the page, where the figure is at its ends
        check_safe(Page(render(altered(audits.bare(), null=null))))


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e12])
@pytest.mark.parametrize("number", [1, 2, 30])
def test_any_size_of_values_can_be_drawn(scale: float, number: int) -> None:
    values = scale * np.random.default_rng(0).normal(size=number)
    audit = altered(audits.bare(), documents=tuple(map(str, range(number))), values=values)
    check_safe(Page(render(audit)))
    check_safe(
        Page(render(altered(audit, design="controls", heldout_documents=("h",), heldout_values=np.ones(1))))
    )


def test_page_one_says_what_strange_controls_could_not_explain_and_which_test_this_is() -> None:
    known = "This is the 3rd test of these texts on this machine; for 3 tests the level is 0.0167 each."
    audit = altered(
        standing(audits.placebos()),
        design="controls",
        heldout_documents=tuple(map(str, range(40))),
        heldout_values=np.linspace(-1, 1, 40),
        sensitivity=Sensitivity(shift=0.02, left_out=9),
        register=(known, "2026-11-01: order of m, p = 0.2, inconclusive"),
    )
    said = text_of(f"<div>{first_page(audit)}</div>")
    assert "would stand without 9 of the 40 control documents (22%)" in said
    assert known in said
    assert "order of m, p = 0.2" in text_of(render(audit))


def test_every_exposure_that_was_tried_is_shown() -> None:
    light, heavy = (
        replace(audits.POWER, probability=Estimate(p, p, p), facts={"how": f"all weights, at {rate}"})
        for p, rate in ((0.3, "5e-05"), (0.9, "5e-04"))
    )
    audit = altered(audits.nothing(), planted=heavy, powers=(light, heavy))
    first, whole = text_of(f"<div>{first_page(audit)}</div>"), text_of(render(audit))
    for rate in ("5e-05", "5e-04"):
        assert f"once (all weights, at {rate})" in first
    assert "The lightest exposure: read once (all weights, at 5e-05)" in whole
    assert "The heaviest exposure: read once (all weights, at 5e-04)" in whole


def test_an_audit_without_documents_has_no_figure() -> None:
    audit = altered(audits.bare(), documents=(), values=np.zeros(0))
    assert "<svg" not in first_page(audit)


def test_a_curve_with_one_point_or_none_can_be_drawn() -> None:
    for curve in ((), ((0, 0.0),), ((10, 0.2), (10, 0.2), (100_000, 1.0))):
        power = Power(Estimate(0.1, 0.1, 0.1), None, 5, 1, Estimate(0.0, 0.0, 0.0), curve)
        check_safe(Page(render(altered(audits.bare(), planted=power))))


def test_p_values_from_dealing_anew_have_a_floor() -> None:
    facts = {"permutations": 10_000}
    assert wording.strength(1 / 10_001, facts) == "at most 1 of 10,000"
    assert wording.strength(5 / 10_001, facts) == "about 1 of 2,000"
    assert wording.strength(1 / 10_001, {}) == "about 1 of 10,000"
    assert wording.strength(0.0, {}) == "fewer than 1 of 1,000,000"


@given(st.floats(0, 1))
def test_chances_in_words_are_near_the_chance(p: float) -> None:
    words = wording.often(p)
    found = re.search(r"([\d,]+) of ([\d,]+)", words)
    if found is None:
        assert words in ("about half of all", "nearly all")
        return
    a, b = (int(part.replace(",", "")) for part in found.groups())
    if words.startswith("about"):
        assert a / b == pytest.approx(p, rel=0.075, abs=0.051 if p > 0.149 else 0)
    else:
        assert p < a / b


def test_the_margin_is_told_on_the_first_page() -> None:
    told = with_answer(altered(audits.placebos(), leans=()), facts={"margin": 0.04, "placebo": "p"})
    assert "A margin of 0.04 was taken off as well, since no imitation is perfect." in first_text(told)
    assert "A margin" not in first_text(with_answer(told, facts={"margin": 0.0, "placebo": "p"}))


def test_an_inconclusive_page_one_says_how_likely_a_single_reading_is_found() -> None:
    audit = audits.missed()
    audit = replace(audit, outcome="inconclusive", situation=Situation(documents=50, unseen=50))
    text = first_text(audit)
    assert (
        "With 50 documents a single reading by a model of 1 billion parameters would be found in about 9 of"
        in text
    )
    assert "No model of 135 million parameters was measured" in text
    assert (
        "Documents needed on each side, for 8 of 10 cases; behind them, in how many of 100 cases yours find it: read 1"
        in text
    )
    assert "would be found in about" not in first_text(replace(audit, outcome="consistent"))
    models = {"models": {"target": {"name": "m", "parameters": 8_000_000_000}}}
    assert "in about 29 of 100 cases" in first_text(replace(audit, settings=models))
