"""A report on a run in which some texts lack a score: it says which, why, and what the figures rest on."""

from pretrace import detect
from pretrace.report.run import render
from pretrace.scoring.detect import Options
from pretrace.testing import Memory
from pretrace.types import Corpus, Text

ENGLISH = "The Railway reached the Valley in {}, and Nothing was the same again in the Town of number {}."
CHINESE = "铁路在一八六九年到达山谷，从此一切都变了。第{}号镇。"


def test_a_plain_run_shows_no_number_where_there_is_none():
    texts = [Text(f"t{i}", ENGLISH.format(1800 + i, i * i)) for i in range(40)]
    texts += [Text(f"zh{i}", CHINESE.format(i)) for i in range(3)]
    run = detect(Corpus("both", tuple(texts)), Memory(), "lowercase,loss", Options(cache=False))
    page = render(run)
    assert ">nan<" not in page
    assert '<td class="number">–</td>' in page
