"""The page: safe whatever it is fed, the same each time, and made of the run's numbers alone."""

import functools
import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import EMPTY

from pretrace.report import run as report
from pretrace.report import verdict
from pretrace.report.frame import speaking
from pretrace.types import Estimate, Heat, Run, Skipped

TAGS = """html head meta title style body header nav ol ul li a main section h1 h2 h3 p b code span div dl dt dd br
details summary
table caption thead tbody tr th td figure figcaption svg g defs clippath rect path use text tspan line"""
VOID = {"meta", "br"}
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)


class Page(HTMLParser):
    """Elements, attributes and text of a page, with the nesting checked."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.data = []
        self.open = []
        self.feed(source)
        self.close()
        assert not self.open, f"left open: {self.open}"
        self.text = "".join(self.data)

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), "an attribute is given twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.data.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    def attributes(self, name):
        return [attributes[name] or "" for _, attributes in self.elements if name in attributes]


def check_safe(page):
    """No foreign element, no handler, no address that leads out of the page, every reference resolved."""
    identifiers = page.attributes("id")
    assert len(identifiers) == len(set(identifiers))
    for tag, attributes in page.elements:
        assert tag in TAGS.split()
        for name, value in attributes.items():
            value = value or ""
            assert not name.startswith("on")
            assert name not in {"src", "srcset", "action", "formaction", "data", "xlink:href", "ping"}
            if name == "href":
                assert value.startswith("#")
                assert value[1:] in identifiers
            if name in {"style", "clip-path", "fill", "stroke"}:
                assert re.sub(r"url\(#([\w-]+)\)", "", value).count("url(") == 0
                assert set(re.findall(r"url\(#([\w-]+)\)", value)) <= set(identifiers)
                assert "expression" not in value
    (policy,) = (a["content"] or "" for t, a in page.elements if t == "meta" and "http-equiv" in a)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(result):
    return (report if isinstance(result, Run) else verdict).pages(result)[0]("")


def words(source):
    """What a reader reads, on one line."""
    body = str(source).rpartition("</style>")[2]
    return " ".join(re.sub(r"<[^>]*>", " ", body).replace("&#39;", "'").split())


def small(labelled):
    return labelled(("min_k(k=0.1)",), 20)


def tokens_page(heat, run):
    made = report.tokens(replace(run, heat=(heat,)))
    assert not HIDDEN.search(made.body)
    return Page(str(made.body))


@given(
    st.lists(st.text(st.characters(codec=None), max_size=20), max_size=20), st.text(st.characters(codec=None))
)
def test_any_pieces_stay_text(pieces, note):
    logp = tuple(-float(i) for i in range(len(pieces)))
    page = tokens_page(Heat("id", tuple(pieces), logp, note), EMPTY)
    assert {tag for tag, _ in page.elements} <= {"p", "span", "code", "ul", "li", "div", "h3"}
    assert len(page.attributes("title")) == len(pieces)


def changed_row(run, place=0, **fields):
    rows = list(run.evaluation.rows)
    rows[place] = replace(rows[place], **fields)
    return replace(run, evaluation=replace(run.evaluation, rows=tuple(rows)))


def evaluated(run, **fields):
    assert run.evaluation is not None
    return replace(run, evaluation=replace(run.evaluation, **fields))


CHANGES = tomllib.loads(Path(__file__).with_name("run_numbers.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_number_comes_from_the_run(change, labelled):
    run = small(labelled)
    code, expected = CHANGES[change]
    assert expected not in unchanged_text(labelled)
    assert expected in text_of(eval(code, globals(), {"r": run}))


@functools.cache
def unchanged_text(labelled):
    return text_of(small(labelled))


def text_of(run):
    source = "".join(f"<p>{section.title}</p>{section.body}" for section in speaking(report.SECTIONS, run))
    return re.sub(r"\s+", " ", Page(source).text)


def test_curves_change_with_the_run(labelled):
    run = small(labelled)
    curve = run.evaluation.rows[0].curve
    bent = changed_row(run, curve=replace(curve, tpr=tuple(t**0.9 for t in curve.tpr)))
    one, two = (speaking(report.SECTIONS, some) for some in (run, bent))
    assert [a.anchor for a, b in zip(one, two, strict=True) if a != b] == ["roc"]


def test_the_control_stands_apart_and_the_low_rate_only_where_measured(labelled):
    run = small(labelled)
    body = next(
        str(section.body) for section in speaking(report.SECTIONS, run) if section.anchor == "results"
    )
    assert re.search(r'<tbody class="controls">.*bag of words', body, re.S)
    assert "0.1% FPR" not in body
    assert "No control was run" in text_of(evaluated(run, rows=run.evaluation.rows[:-1]))
    weak = changed_row(run, -1, auc=Estimate(0.45, 0.4, 0.5))
    assert "no better than chance" in text_of(weak)


def test_an_unlabelled_run_promises_no_error_rate(unlabelled):
    run = unlabelled()
    text = text_of(run)
    anchors = [section.anchor for section in speaking(report.SECTIONS, run)]
    assert anchors == ["summary", "distributions", "texts", "tokens", "limits", "skipped", "settings"]
    assert "no error rate can be given" in text
    assert render(run).count('role="img"') == len(run.scores)
    best = run.ids[int(np.argmax(run.column(run.scores[0])))]
    assert re.search(rf"1 ?{re.escape(best)}", text)
    assert "20 texts between" in text


@pytest.mark.parametrize("texts", [0, 1, 2])
def test_few_texts(texts, unlabelled):
    run = replace(unlabelled(texts), skipped=(Skipped("a", "no token", 0),) * 60, settings={})
    page = Page(render(run))
    check_safe(page)
    said = re.sub(r"\s+", " ", page.text)
    assert f"60 of {60 + texts} texts" in said
    assert "The first 50 of 60; all" in said
    assert "a model whose name was not recorded" in said


def test_heat_maps_show_line_ends_and_stop_somewhere(labelled):
    run = small(labelled)
    page = tokens_page(Heat(run.ids[0], ("a\n", "\t", "b") * 1000, (None, -0.1, -9.5) * 1000), run)
    assert page.text.count("a↵\n") == 200
    assert "The first 600 of 3,000 tokens are shown" in page.text
    titles = page.attributes("title")
    assert len(titles) == 600
    assert titles[1] == "log-probability −0.100 nats; probability 0.905"
    assert titles[2] == "log-probability −9.500 nats; probability 7.49e−5 (1 in 13,000)"
    classes = [a["class"] for t, a in page.elements if t == "span" and "title" in a]
    assert classes[:3] == ["hn", "h0", "h5"]
    assert report.tokens(replace(run, heat=())) is None
