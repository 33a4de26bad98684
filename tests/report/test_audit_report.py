"""The report of an audit: safe whatever it is fed, made of the audit's numbers alone, and never more than they say."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report import audits
from report.test_report_html import HIDDEN, Page, check_safe

from pretrace.errors import OutputError
from pretrace.report.audit import facts, plots, wording
from pretrace.report.audit.chance import chance
from pretrace.report.audit.first import first_page
from pretrace.report.audit.page import render, write
from pretrace.report.audit.sections import repeating, sections
from pretrace.report.visible import named
from pretrace.types import Answer, Audit, Check, Estimate, Gap, Pair, Power, Quality

MAKERS = (
    audits.consistent,
    audits.nothing,
    audits.inconclusive,
    audits.heldout,
    audits.without_placebo,
    audits.bare,
)


def text_of(source: object) -> str:
    return re.sub(r"\s+", " ", Page(str(source)).text)


def first_text(audit: Audit) -> str:
    return text_of(f"<div>{first_page(audit)}</div>")


def section_text(audit: Audit, anchor: str) -> str:
    (found,) = (section for section in sections(audit) if section.anchor == anchor)
    return text_of(f"<div>{found.body}</div>")


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_the_page_is_whole_safe_and_leads_nowhere(make: Callable[[], Audit]) -> None:
    source = render(make())
    assert source.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?:|//\w+\.", source)
    check_safe(Page(source))
    assert not re.search(r"\bpro(of|ve)", text_of(source))
    assert "jinja" not in source
    assert "None" not in text_of(source)


def test_hostile_texts_stay_texts() -> None:
    audit = audits.hostile()
    source = render(audit)
    source.encode("utf-8")
    page = Page(source)
    check_safe(page)
    assert not HIDDEN.search(source)
    assert named(audit.corpus) in page.text
    assert page.text.count("{{ 7*7 }}") >= 25
    assert "49" not in first_text(audit)


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(codec=None), max_size=30), st.text(st.characters(codec=None), max_size=300))
def test_any_pair_and_any_setting_stay_text(name: str, text: str) -> None:
    audit = replace(
        audits.bare(),
        pairs=(Pair(name, name, text, text, text),),
        quality=(Quality(text, None, 0.0),),
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
        (audits.consistent, "Consistent with training on “Harbour notes 2009–2021”", "answer consistent"),
        (audits.nothing, "Nothing shown What HuggingFaceTB/SmolLM2-135M makes", "answer nothing"),
        (audits.inconclusive, "Inconclusive This audit cannot say", "answer inconclusive"),
    ],
)
def test_the_first_page_gives_the_answer_once(make: Callable[[], Audit], words: str, kind: str) -> None:
    page = Page(f"<div>{first_page(make())}</div>")
    text = re.sub(r"\s+", " ", page.text)
    assert text.index("Was HuggingFaceTB/SmolLM2-135M trained on “Harbour notes 2009–2021”?") < text.index(
        words
    )
    assert kind in page.attributes("class")
    assert "no sign of training" in text
    assert "not the probability that the model was, or was not, trained" in text


def test_the_first_page_has_no_term_of_the_trade() -> None:
    for make in MAKERS:
        audit = replace(make(), checks=(), advice=(), reasons=())
        assert not re.search(
            r"null|hypothes|logp|log-prob|token|permut|suffix|AUC|LoRA", first_text(audit), re.I
        )


def test_what_failed_stands_first_and_says_why() -> None:
    text = first_text(audits.inconclusive()).partition("The checks")[2]
    assert "failed The two sets of texts are alike as texts A classifier that never saw" in text
    assert text.index("failed") < text.index("passed") < text.index("not run")
    assert (
        "two families differ" not in text.lower()
    )  # the first sentence only: the rest is in the technical part
    assert "Two families differ" in section_text(audits.inconclusive(), "checks")


def test_without_a_failed_check_the_reasons_say_why() -> None:
    audit = replace(audits.inconclusive(), checks=audits.CHECKS, reasons=("It was too dark to see.",))
    assert "It was too dark to see." in first_text(audit)
    assert "It was too dark" not in first_text(replace(audit, outcome="nothing"))
    assert "It was too dark" in section_text(replace(audit, outcome="nothing"), "test")


def test_a_test_that_the_figure_does_not_show_is_named() -> None:
    text = first_text(with_answer(audits.consistent(), procedure="paper"))
    assert "(“paper”) and is made on single passages" in text
    assert "dark end" not in text
    assert "dark end" in first_text(with_answer(audits.consistent(), procedure="calibrated"))


def test_much_advice_is_cut_on_the_first_page_alone() -> None:
    audit = replace(
        audits.inconclusive(), advice=tuple(f"Do {number}. {'word ' * 40}" for number in range(9))
    )
    assert "Do 1." in first_text(audit)
    assert "Do 8." not in first_text(audit)
    assert "More stands under" in first_text(audit)
    assert "Do 8." in section_text(audit, "test")


def with_answer(audit: Audit, **fields: Any) -> Audit:
    return replace(audit, answer=replace(audit.answer, **fields))


def with_power(audit: Audit, **fields: Any) -> Audit:
    assert audit.power is not None
    return replace(audit, power=replace(audit.power, **fields))


def with_placebo(audit: Audit, **fields: Any) -> Audit:
    assert audit.placebo is not None
    return replace(audit, placebo=replace(audit.placebo, **fields))


CHANGES: dict[str, tuple[Callable[[Audit], Audit], str]] = {
    "p": (lambda a: with_answer(a, p=0.0123), "about 1 of 81 such audits, by chance alone (p = 0.012)"),
    "level": (lambda a: replace(a, level=0.01), "the largest 1% of them"),
    "documents": (lambda a: with_answer(a, documents=4321), "taken from 4,321 documents"),
    "pieces": (lambda a: with_answer(a, pieces=9876), "9,876 short passages"),
    "effect": (
        lambda a: with_answer(a, effect=Estimate(0.51234, 0.4, 0.62)),
        "0.51 [0.40, 0.62] nats a token",
    ),
    "standardised": (lambda a: with_answer(a, standardised=1.234), "1.23 standard deviations"),
    "fact": (lambda a: with_answer(a, facts={"effective_pieces": 77.7}), "Effective pieces77.7"),
    "statistic": (lambda a: with_answer(a, statistic="a & b"), "a & b"),
    "power": (
        lambda a: with_power(a, probability=Estimate(0.61, 0.5, 0.7)),
        "seen it in about 61 of 100 cases",
    ),
    "needed": (lambda a: with_power(a, needed=5678), "About 5,678 documents would be needed for 80%"),
    "never": (lambda a: with_power(a, needed=None), "No number of documents"),
    "epochs": (lambda a: with_power(a, epochs=2), "the copy was trained on them twice"),
    "grade": (lambda a: with_placebo(a, grade="sibling"), "other weights: a fair kind"),
    "closeness": (lambda a: with_placebo(a, closeness=0.7654), "0.765 correlation"),
    "gap": (
        lambda a: replace(a, gaps=(Gap("g", Estimate(0.777, 0.7, 0.8), 10, ""),)),
        "0.777[0.700, 0.800]10",
    ),
    "quality": (
        lambda a: replace(a, quality=(Quality("words", 0.123, None, "by eye"),)),
        "words0.123–by eye",
    ),
    "pairs": (lambda a: replace(a, pairs=audits.pairs(300)), "12 of 300"),
    "variant": (lambda a: replace(a, variants=(Answer("mine", 0.0456, "s", 1, 1),)), "mines0.046–"),
    "check": (
        lambda a: replace(a, checks=(Check("n", "T", "passed", "W.", "", {"k": 0.1}),)),
        "TpassedW.k 0.1",
    ),
    "settings": (lambda a: replace(a, settings={"a_b": {"c": [1, 2.5, None]}}), "A b c1, 2.5, none"),
    "earlier": (lambda a: replace(a, settings={"earlier": [{"p": 0.2}, {"p": 0.4}]}), "p-value by 3"),
    "timings": (
        lambda a: replace(a, settings={"timings": {"x": 60, "y": 3}}),
        "x1 min 00 s y3.0 s all1 min 03 s",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_number_comes_from_the_audit(change: str) -> None:
    alter, expected = CHANGES[change]
    assert expected not in unchanged_text()
    assert expected in whole_text(alter(audits.consistent()))


@functools.cache
def unchanged_text() -> str:
    return whole_text(audits.consistent())


def whole_text(audit: Audit) -> str:
    made = "".join(f"<p>{section.title}</p>{section.body}" for section in sections(audit))
    return text_of(f"<div>{first_page(audit)}</div>{made}")


def test_held_out_texts_are_told_as_such() -> None:
    text = whole_text(audits.heldout())
    assert "120 documents of “Harbour notes 2009–2021” were set beside 74 documents" in text
    assert "the difference of the two averages" in text
    assert "The held-out texts are believed." in text
    assert "imitation" not in text
    assert "generated" not in section_text(audits.heldout(), "placebo")


def test_without_placebo_and_power_the_page_says_what_that_means() -> None:
    audit = audits.without_placebo()
    assert "No other model was at hand" in first_text(audit)
    assert "No placebo was named." in section_text(audit, "placebo")
    assert "--power" in section_text(audit, "power")
    nothing = replace(audits.nothing(), power=None)
    assert "finding nothing would say little" in first_text(nothing)


def test_the_least_audit_has_the_sections_that_always_speak() -> None:
    assert [section.anchor for section in sections(audits.bare())] == [
        "test",
        "placebo",
        "power",
        "variants",
        "limits",
    ]
    assert [section.anchor for section in sections(audits.consistent())] == [
        "test",
        "placebo",
        "checks",
        "power",
        "gap",
        "texts",
        "variants",
        "limits",
        "repeat",
    ]


def test_every_model_has_a_table_and_every_setting_a_row() -> None:
    audit = audits.consistent()
    body = repeating.section(audit)
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
    assert repeating.section(replace(audit, settings={"earlier": []})) is None


_APART = ("earlier", "timings")


def test_each_document_is_one_dot_filled_where_it_lies_above_zero() -> None:
    audit = replace(
        audits.consistent(), values=np.array([-1.0, -0.5, 0.0, 0.3, 0.3, 2.0]), documents=tuple("abcdef")
    )
    axes = plots.story(audit).axes[0]
    dots = {
        str(line.get_markerfacecolor()): line.get_xdata() for line in axes.lines if line.get_marker() == "o"
    }
    assert len(dots[plots.SIGN]) == 3
    assert len(dots["white"]) == 3
    assert "(3), hollow" in first_text(audit)


def test_many_documents_share_dots() -> None:
    audit = audits.consistent(documents=4000)
    assert plots.per_dot(audit) == 3
    assert "Each dot stands for 3 documents" in first_text(audit)
    axes = plots.story(audit).axes[0]
    drawn = sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "o")
    assert 4000 / 3 <= drawn < 4000 / 3 + 200


def test_chance_is_that_of_the_test() -> None:
    paired = chance(audits.consistent())
    values = audits.consistent().values
    assert paired.found == audits.consistent().answer.effect
    assert paired.drawn.mean() == pytest.approx(0, abs=0.001)
    assert paired.drawn.std() == pytest.approx(np.sqrt((values**2).sum()) / len(values), rel=0.05)
    assert (paired.drawn > paired.bound).mean() == pytest.approx(0.05, abs=0.002)
    audit = audits.heldout()
    unpaired = chance(audit)
    assert unpaired.found.value == pytest.approx(audit.values.mean() - audit.heldout_values.mean())
    both = np.concatenate([audit.values, audit.heldout_values])
    spread = both.std() * np.sqrt(1 / len(audit.values) + 1 / len(audit.heldout_values))
    assert unpaired.drawn.std() == pytest.approx(spread, rel=0.05)
    own = chance(audits.without_placebo())
    assert own.found.low < own.found.value < own.found.high


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e12])
@pytest.mark.parametrize("number", [1, 2, 30])
def test_any_size_of_values_can_be_drawn(scale: float, number: int) -> None:
    values = scale * np.random.default_rng(0).normal(size=number)
    audit = replace(audits.bare(), documents=tuple(map(str, range(number))), values=values)
    check_safe(Page(render(audit)))
    check_safe(
        Page(render(replace(audit, design="heldout", heldout_documents=("h",), heldout_values=np.ones(1))))
    )


def test_an_audit_without_documents_has_no_figure() -> None:
    audit = replace(audits.bare(), documents=(), values=np.zeros(0))
    assert "<svg" not in first_page(audit)


def test_a_curve_with_one_point_or_none_can_be_drawn() -> None:
    for curve in ((), ((0, 0.0),), ((10, 0.2), (10, 0.2), (100_000, 1.0))):
        power = Power(Estimate(0.1, 0.1, 0.1), None, 5, 1, Estimate(0.0, 0.0, 0.0), curve)
        check_safe(Page(render(replace(audits.bare(), power=power))))


def test_p_values_from_dealing_anew_have_a_floor() -> None:
    answer = Answer("pretrace", 1 / 10_001, "s", 9, 9, facts={"permutations": 10_000})
    assert wording.strength(answer) == "at most 1 of 10,000"
    assert wording.strength(replace(answer, p=5 / 10_001)) == "about 1 of 2,000"
    assert wording.strength(replace(answer, facts={})) == "about 1 of 10,000"
    assert wording.strength(replace(answer, p=0.0, facts={})) == "fewer than 1 of 1,000,000"


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


def test_the_same_audit_has_the_same_bytes_in_another_process() -> None:
    page = render(audits.heldout())
    script = (
        "import hashlib, runpy, sys\n"
        "from pretrace.report.audit.page import render\n"
        "make = runpy.run_path(sys.argv[1])['heldout']\n"
        "print(hashlib.sha256(render(make()).encode()).hexdigest(), 'matplotlib.pyplot' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    made = subprocess.run(
        [sys.executable, "-c", script, str(Path(audits.__file__))],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert made.stdout.split() == [hashlib.sha256(page.encode()).hexdigest(), "False"]


def test_the_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write(audits.bare(), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(audits.bare())
    with pytest.raises(OutputError):
        write(audits.bare(), tmp_path)


def test_the_allowance_is_told_on_the_first_page() -> None:
    audit = audits.nothing()
    told = replace(audit, answer=replace(audit.answer, facts={**audit.answer.facts, "tolerance": 0.04}))
    assert "A small allowance of 0.04 was taken off" in " ".join(render(told).split())
    none = replace(audit, answer=replace(audit.answer, facts={**audit.answer.facts, "tolerance": 0.0}))
    assert "allowance" not in render(none)
