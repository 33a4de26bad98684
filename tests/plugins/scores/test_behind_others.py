"""Scores of a text behind members or others of its collection: the numbers are a whole pass's."""

import pytest
from scores import test_prefixed

from pretrace.plugins import SCORES
from pretrace.scores import scores


def test_the_scores_of_the_table_are_there():
    assert all(scores.factory(name).__module__ == module for name, module in SCORES.items())


@pytest.mark.parametrize("start", ["never", "always"])
@pytest.mark.parametrize("score", ["con_recall(shots=2)", "codec"])
def test_it_is_the_likelihood_of_a_whole_pass(start, score):
    test_prefixed.test_it_is_the_likelihood_of_a_whole_pass(start, score)
