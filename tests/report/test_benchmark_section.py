"""The card of a benchmark in the report: near the top, whole, escaped, and only where there is one."""

import re
from dataclasses import asdict, replace

import pytest

from pretrace.corpora.benchmarks.published import card_of
from pretrace.report.frame import speaking
from pretrace.report.run import SECTIONS, render
from pretrace.report.run import benchmark as section
from pretrace.scoring.provenance import record_corpus
from pretrace.types import Corpus, Text

CARD, NEWS = card_of("wikimia"), card_of("ccnewspdd")


def with_card(run, card):
    return replace(run, settings={**run.settings, "texts": {"name": run.corpus, "card": card}})


def body(run):
    made = section(run)
    return str(made.body)


def words(markup):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup)).replace("&#39;", "'")


def test_what_a_run_records_is_what_is_printed(labelled):
    recorded = record_corpus(Corpus("wikimia", (Text("a", "b", True),), card=CARD))
    run = replace(labelled(), settings={"texts": recorded})
    text = words(body(run))
    for said in (CARD.title, CARD.what, CARD.size, CARD.licence, CARD.citation, CARD.home, *CARD.flaws):
        assert said in text


def test_it_comes_right_after_the_summary(labelled, unlabelled):
    for run in (labelled(), unlabelled()):
        anchors = [made.anchor for made in speaking(SECTIONS, with_card(run, asdict(CARD)))]
        assert anchors[:2] == ["summary", "benchmark"]
        assert '<a href="#benchmark">The benchmark</a>' in render(with_card(run, asdict(CARD)))


@pytest.mark.parametrize("corpus", [None, "wikimia", {}, {"name": "x"}, {"card": None}, {"card": "words"}])
def test_texts_that_are_no_benchmark_have_no_card(labelled, corpus):
    run = labelled()
    assert section(run) is None
    assert section(replace(run, settings={**run.settings, "texts": corpus})) is None


def test_an_address_is_a_link_and_a_hub_name_is_not(labelled):
    assert f'<a href="{NEWS.home}">' in body(with_card(labelled(), asdict(NEWS)))
    assert "<a " not in body(with_card(labelled(), asdict(CARD)))


@pytest.mark.parametrize(
    "home", ["javascript:alert(1)", "https://a.b/\" onclick='x", "http://<script>", "data:text/html,x"]
)
def test_a_hostile_card_stays_text(labelled, home):
    bad = "<script>alert(1)</script>"
    card = {
        "title": bad,
        "what": bad,
        "flaws": [bad],
        "home": home,
        "size": bad,
        "licence": "",
        "citation": 3,
    }
    markup = body(with_card(labelled(), card))
    assert "<script" not in markup
    assert "<a " not in markup
    assert "Licence" not in markup
