"""A report on a run in which some texts lack a score: it says which, why, and what the figures rest on."""

from pretrace import detect, evaluate
from pretrace.report.run import render
from pretrace.scoring.detect import Options
from pretrace.testing import Memory
from pretrace.types import Corpus, Text

ENGLISH = "The Railway reached the Valley in {}, and Nothing was the same again in the Town of number {}."
CHINESE = "铁路在一八六九年到达山谷，从此一切都变了。第{}号镇。"


def run(*, labelled):
    texts = [
        Text(f"t{i}", ENGLISH.format(1800 + i, i * i), i % 2 == 0 if labelled else None) for i in range(40)
    ]
    texts += [Text(f"zh{i}", CHINESE.format(i), i % 2 == 0 if labelled else None) for i in range(3)]
    corpus = Corpus("both", tuple(texts))
    found = detect(corpus, Memory(), "lowercase,loss", Options(cache=False))
    return evaluate(found, corpus, resamples=200) if labelled else found


def test_a_plain_run_shows_no_number_where_there_is_none():
    page = render(run(labelled=False))
    assert ">nan<" not in page
    assert '<td class="number">–</td>' in page
