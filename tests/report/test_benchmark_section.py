"""The card of a benchmark in the report: near the top, whole, escaped, and only where there is one."""

import re
from dataclasses import replace

import pytest

from pretrace.report.run import benchmark as section


def with_card(run, card):
    return replace(run, settings={**run.settings, "texts": {"name": run.corpus, "card": card}})


def body(run):
    made = section(run)
    return str(made.body)


def words(markup):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup)).replace("&#39;", "'")


@pytest.mark.parametrize("corpus", [None, "wikimia", {}, {"name": "x"}, {"card": None}, {"card": "words"}])
def test_texts_that_are_no_benchmark_have_no_card(labelled, corpus):
    run = labelled()
    assert section(run) is None
    assert section(replace(run, settings={**run.settings, "texts": corpus})) is None


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
