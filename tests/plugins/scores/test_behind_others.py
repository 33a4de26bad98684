"""Scores of a text behind members or others of its collection: the numbers are a whole pass's."""

import pytest
from scores import test_prefixed
from scores.test_prefixed import Noting, labelled

from pretrace.plugins import SCORES
from pretrace.scores import scores
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.plan import Models
from pretrace.types import Corpus, Text


def test_the_scores_of_the_table_are_there():
    assert all(scores.factory(name).__module__ == module for name, module in SCORES.items())


@pytest.mark.parametrize("start", ["never", "always"])
@pytest.mark.parametrize("score", ["con_recall(shots=2)", "codec"])
def test_it_is_the_likelihood_of_a_whole_pass(start, score):
    test_prefixed.test_it_is_the_likelihood_of_a_whole_pass(start, score)


def test_texts_that_are_put_before_others_are_not_read_by_themselves():
    corpus, known = Corpus("two", (Text("a", "abcdef"), Text("b", "ghijkl"))), labelled(40)
    for score in ("con_recall", "codec"):
        backend = Noting()
        detect(corpus, Models(backend, labelled=known), score, Options(cache=False, shuffles=0))
        assert backend.read == {"abcdef", "ghijkl"}
