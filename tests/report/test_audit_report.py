"""The report of an audit: safe whatever it is fed, made of the audit's numbers alone, and never more than they say."""

import functools
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import StepPatch
from report import audits
from report.audits import altered, answer_of, plan_of
from report.test_report_html import HIDDEN, Page, check_safe, render

from pretrace import types
from pretrace.report import figures
from pretrace.report.audit import _AuditPage
from pretrace.report.frame import speaking
from pretrace.report.verdict import _first_page
from pretrace.results import wording
from pretrace.statistics.permutation import sign_flip_test
from pretrace.types import Check, Estimate, Null, Pair, Power
from pretrace.verdicts.audit import data
from pretrace.verdicts.outcome import null_of

sections = functools.partial(speaking, _AuditPage.every)


def text_of(source):
    return re.sub(r"\s+", " ", Page(str(source)).text)


def first_text(audit):
    return text_of(f"<div>{_first_page(audit)}</div>")


def section_text(audit, anchor):
    (found,) = (section for section in sections(audit) if section.anchor == anchor)
    return text_of(f"<div>{found.body}</div>")


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(codec=None), max_size=30), st.text(st.characters(codec=None), max_size=300))
def test_any_pair_and_any_setting_stay_text(name, text):
    audit = altered(
        audits.bare(),
        pairs=(Pair(name, name, text, text, text),),
        checks=(Check(name, text, "failed", text, text, {name: text}),),
        settings={name: {text: [text, {name: text}]}, "earlier": [text, {name: 1}]},
    )
    for section in sections(audit):
        page = Page(f"<div>{section.body}</div>")
        assert not HIDDEN.search(section.body)
        assert "script" not in {tag for tag, _ in page.elements}


@pytest.mark.parametrize(
    ("make", "words", "kind"),
    [
        (audits.controls, "Consistent with training What HuggingFaceTB", "answer consistent"),
        (audits.nothing, "Nothing was found HuggingFaceTB/SmolLM2-135M does not know", "answer nothing"),
        (audits.inconclusive, "Inconclusive This audit cannot say", "answer inconclusive"),
    ],
)
def test_the_first_page_gives_the_answer_once(make, words, kind):
    page = Page(f"<div>{_first_page(make())}</div>")
    text = re.sub(r"\s+", " ", page.text)
    assert re.search(f"Was HuggingFaceTB/SmolLM2-135M trained on “Harbour notes 2009–2021”.*{words}", text)
    assert kind in page.attributes("class")
    said = "not the probability that the model was, or was not, trained" in text
    assert said == (kind != "answer inconclusive")


def test_what_failed_stands_first_and_says_why():
    whole = first_text(audits.inconclusive())
    box, _, text = whole.partition("The checks")
    assert "failed The two sets of texts are alike as texts, as far as this design needs it" in text
    for check in audits.inconclusive().checks:
        if check.status == "failed":  # in full: the first sentence alone may say the opposite
            assert (
                re.sub(r"\s+", " ", f"{check.title}: this check failed. {wording.plain(check.words)}") in box
            )
    assert text.index("failed") < text.index("passed") < text.index("not run") < text.index("Signature")
    assert "Two families differ" in section_text(audits.inconclusive(), "checks")


def test_without_a_failed_check_the_reasons_say_why():
    audit = altered(audits.inconclusive(), checks=audits.CHECKS, reasons=("It was too dark to see.",))
    assert "It was too dark to see." in first_text(audit)
    assert "It was too dark" not in first_text(altered(audit, outcome="nothing"))
    assert "It was too dark" in section_text(altered(audit, outcome="nothing"), "test")


def with_answer(audit, **fields):
    return altered(audit, answer=replace(answer_of(audit), **fields))


def with_power(audit, **fields):
    assert audit.planted is not None
    return altered(audit, planted=replace(audit.planted, **fields))


def with_placebo(audit, **fields):
    placebos = data.figures_of(audit).placebos
    return altered(audit, placebos=(replace(placebos[0], **fields), *placebos[1:]))


def with_plan(audit, **fields):
    return altered(audit, plan=replace(plan_of(audit), **fields))


def test_a_model_that_was_asked_and_not_compared_with_is_named():
    audit = audits.controls()
    own, *_ = data.figures_of(audit).placebos
    both = own, replace(own, name="smollm2", grade="other")
    assert "Second model smollm2; a model of another family" in first_text(altered(audit, placebos=both))


CHANGES = tomllib.loads(Path(__file__).with_name("audit_numbers.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("change", CHANGES)
def test_every_number_comes_from_the_audit(change):
    code, expected = CHANGES[change]
    assert expected not in unchanged_text()
    assert expected in whole_text(eval(code, {**vars(types), **vars(data), **globals(), "a": base()}))


def base():
    """An audit with something in every field."""
    return altered(audits.placebos(), planted=audits.POWER)


def standing(audit):
    """The audit with a conclusion: page one says how strong a result is only where it counts as one."""
    return altered(audit, outcome="consistent")


@functools.cache
def unchanged_text():
    return whole_text(base())


def whole_text(audit):
    made = "".join(f"<p>{section.title}</p>{section.body}" for section in sections(audit))
    return text_of(f"<div>{_first_page(audit)}</div>{made}")


def test_a_result_that_is_withheld_does_not_read_like_one():
    text = first_text(audits.placebos())
    assert "So p = 0.0001 is no sign of training" in text
    for words in ("would still occur", "Rosenbaum", "The test gave p", "refute"):
        assert words not in text
    assert "What would refute this result" in first_text(audits.controls())
    assert "beyond what their words explain" in audits.without_placebo().hypothesis  # no model, no margin


def test_power_beside_a_result_is_neither_advised_nor_a_failed_check():
    audit = audits.controls()
    failed = replace(audits.POWERFUL, status="failed", cure="Run it with --power.")
    text = whole_text(altered(audit, checks=(*audit.checks, failed), settings={}, plan=None))
    assert "--power" not in text
    assert "would have been seen" not in text
    assert "power" not in [section.anchor for section in sections(audit)]
    shown = section_text(altered(audit, planted=audits.POWER), "power")
    assert "0.94 [0.90, 0.97], in brackets the 95% interval" in shown


def test_the_least_audit_has_the_sections_that_always_speak():
    least, whole = ([section.anchor for section in sections(one)] for one in (audits.bare(), base()))
    assert least == ["test", "placebo", "variants", "limits", "advice"]  # bare() is inconclusive
    every = "test placebo leans checks power variants limits plan gap texts repeat advice"
    assert whole == every.split()


def test_each_document_is_one_dot_filled_where_it_lies_above_zero():
    audit = altered(
        audits.placebos(), values=np.array([-1.0, -0.5, 0.0, 0.3, 0.3, 2.0]), documents=tuple("abcdef")
    )
    lines = [one for one in _AuditPage.draw(audit).figure.axes[0].lines if one.get_marker() == "o"]
    dots = {str(line.get_markerfacecolor()): len(line.get_xdata()) for line in lines}
    assert (dots[figures.MEMBER], dots["white"]) == (3, 3)
    assert "(3), hollow elsewhere (3)" in first_text(audit)


def drawn(null):
    return figures.against_chance(null).axes[0]


def bars(axes):
    """The area of the light and of the dark part of the hill."""
    found = {}
    for patch in axes.patches:
        assert isinstance(patch, StepPatch)
        values, edges, _ = patch.get_data()
        found["dark" if patch.get_facecolor()[0] < 0.6 else "light"] = float((values * np.diff(edges)).sum())
    return found


def test_the_figure_draws_the_null_that_was_recorded():
    null = Null("s", 2.6, 1.5, (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0), (1, 3, 4, 2, 1))
    axes = drawn(null)
    # Heights are shares of the highest bar; the critical value divides the bar that it lies in.
    assert bars(axes) == pytest.approx({"light": (1 + 3 + 4 + 0.5 * 2) / 4, "dark": (0.5 * 2 + 1) / 4})
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert marks == [2.6]
    assert "this audit: 2.60" in [text.get_text() for text in axes.texts]
    words = first_text(altered(audits.placebos(), null=null))
    assert "the 11 results" in words


def test_a_result_of_documents_that_are_all_alike_has_no_scale():
    found = sign_flip_test(np.full(8, 2.0))  # the two flips of all signs do not vary either
    axes = drawn(null_of(found, 0.05, "s"))
    low, high = axes.get_xlim()
    assert high - low < 40
    assert "this audit: off the scale, as nothing varies" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("observed", [-1e9, -4.0, 0.0, 1.9, 3.0, 40.0, np.inf])
@pytest.mark.parametrize("critical", [-3.0, 0.3, 1.7, 5.0, np.inf])
def test_any_result_has_its_place_in_the_figure(observed, critical):
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
def test_any_size_of_values_can_be_drawn(scale, number):
    values = scale * np.random.default_rng(0).normal(size=number)
    audit = altered(audits.bare(), documents=tuple(map(str, range(number))), values=values)
    beside = altered(audit, design="controls", heldout_documents=("h",), heldout_values=np.ones(1))
    for one in (audit, beside):
        check_safe(Page(render(one)))
    assert "<svg" not in _first_page(altered(audit, documents=(), values=np.zeros(0)))


@pytest.mark.parametrize("curve", [(), ((0, 0.0),), ((10, 0.2), (10, 0.2), (100_000, 1.0))])
def test_a_curve_with_one_point_or_none_can_be_drawn(curve):
    power = Power(Estimate(0.1, 0.1, 0.1), None, 5, 1, Estimate(0.0, 0.0, 0.0), curve)
    check_safe(Page(render(altered(audits.bare(), planted=power))))


@given(st.floats(0, 1))
def test_chances_in_words_are_near_the_chance(p):
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
