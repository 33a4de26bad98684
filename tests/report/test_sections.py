"""Single sections and pages: the card of a benchmark, comparisons, what a stranger registers."""

import json
import re
from dataclasses import replace

import made
import numpy as np
import pytest
from markupsafe import Markup
from report import audits
from report.test_report_html import render

from pretrace import detect
from pretrace.registry import test_pages as pages
from pretrace.report import figures, verdict
from pretrace.report import run as report
from pretrace.report.figures import canvas
from pretrace.report.frame import Section
from pretrace.results.run import load_run, save_run
from pretrace.scoring.detect import Options
from pretrace.testing import Memory
from pretrace.types import Corpus, Situation, Text


@pytest.mark.parametrize("corpus", [None, "wikimia", {}, {"name": "x"}, {"card": None}, {"card": "words"}])
def test_texts_that_are_no_benchmark_have_no_card(labelled, corpus):
    assert report._benchmark(replace(labelled(), settings={"texts": corpus})) is None


@pytest.mark.parametrize(
    "home", ["javascript:alert(1)", "https://a.b/\" onclick='x", "http://<script>", "data:text/html,x"]
)
def test_a_hostile_card_stays_text(labelled, home):
    bad = "<script>alert(1)</script>"
    card = dict.fromkeys(("title", "what", "size"), bad) | {"flaws": [bad], "home": home}
    card |= {"licence": "", "citation": 3}
    body = str(report._benchmark(replace(labelled(), settings={"texts": {"card": card}})).body)
    assert not [one for one in ("<script", "<a ", "Licence") if one in body]


@pytest.mark.parametrize(
    "make", [audits.placebos, audits.missed, audits.bare, audits.controls, audits.nothing]
)
def test_an_inconclusive_audit_alone_ends_with_the_tests_that_could_answer(make):
    audit = make()
    last = re.findall(r'<section id="(\w+)"', render(audit))[-1]
    assert (last == "advice") == (audit.outcome == "inconclusive")
    bad = "<script>alert(1)</script>\u202e{model}.jsonl"
    hostile = {"test": "recite", "settings": {"models": {"target": {"name": bad}}, "corpus": {"source": bad}}}
    case = {"outcome": "inconclusive", "situation": Situation(unseen=20)} | hostile
    body = verdict.other_tests(replace(audit, **case)).body
    assert [one in body for one in ("&lt;script&gt;", "<script", "\u202e")] == [True, False, False]


def run_of(scores=("zlib", "loss", "good")):
    rng = np.random.default_rng(0)
    members = np.arange(120) < 60
    base = rng.normal(size=120) + 0.4 * members
    columns = {"loss": base, "zlib": base + 0.3 * rng.normal(size=120), "good": base + 2 * members}
    matrix = np.column_stack([columns[name] for name in scores])
    run = made.run_of(matrix, members, scores=scores, settings={"seed": 3})
    texts = [f"a{i % 5} b{i % 3}" for i in range(120)]
    return replace(run, evaluation=made.evaluate(run, texts, seed=3, resamples=300, blind=False))


def test_there_is_nothing_to_compare_without_an_evaluation_or_a_second_score():
    assert report._comparisons(run_of(("loss",))) is None
    assert report._comparisons(replace(run_of(), evaluation=None)) is None


def test_a_stored_run_prints_what_was_compared_to_the_last_bit(tmp_path):
    save_run(run_of(), tmp_path / "run")
    loaded, expected = load_run(tmp_path / "run"), run_of().evaluation.comparisons
    assert loaded.evaluation.comparisons == expected
    written = json.loads((tmp_path / "run" / "metrics.json").read_bytes())["comparisons"]
    assert [one["difference"]["high"] for one in written] == [one.difference.high for one in expected]
    page = render(loaded)
    assert page == render(run_of())
    for one in expected:
        assert f"[{one.difference.low:.3f}, {one.difference.high:.3f}]".replace("-", "−") in page


def test_a_run_in_which_texts_lack_a_score_shows_no_number_where_there_is_none():
    english = "The Railway reached the Valley in {}, and Nothing was the same again in the Town of number {}."
    texts = [Text(f"t{i}", english.format(1800 + i, i * i)) for i in range(40)]
    texts += [Text(f"zh{i}", f"铁路在一八六九年到达山谷，从此一切都变了。第{i}号镇。") for i in range(3)]
    page = render(detect(Corpus("both", tuple(texts)), Memory(), "lowercase,loss", Options(cache=False)))
    assert ">nan<" not in page
    assert '<td class="number">–</td>' in page


@pytest.fixture
def found():
    @pages.add("mine")
    class MyPage(verdict.TestPage):
        sections = (lambda found: Section("Mine", "mine", Markup("<p>of {}</p>").format(found.corpus)),)

        @staticmethod
        def draw(verdict):
            with canvas(3, 1) as (figure, axes):
                axes.plot([0, 1], [0, 1])
            return figures.TestFigure(figure, "a line", "My <caption>")

    yield replace(audits.bare(), test="mine", corpus="<script>", figures={})
    pages.remove("mine")


def test_the_figure_and_section_that_a_stranger_registers_are_shown_with_names_as_text(found):
    page = render(found)
    assert "<p>of &lt;script&gt;</p>" in page
    assert page.index("My &lt;caption&gt;") < page.index('id="mine"') < page.index('id="test"')
    assert 'aria-label="a line"' in page
    assert "My &lt;caption&gt;" not in render(replace(found, test="another"))
