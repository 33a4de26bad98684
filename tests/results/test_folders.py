"""What a run says of itself: one or two lines, and the middle of a score."""

from dataclasses import replace

import numpy as np
import pytest
from made import row, run_of

from pretrace.types import Evaluation, Heat

RUN = run_of(
    [[5.0, 1], [1.0, 1], [3.0, 1], [4.0, 1], [2.0, 1]],
    (True, True, False, None, True),
    corpus="news",
    scores=("loss", "zlib"),
    settings={"models": {"target": {"name": "some/model"}}},
)


def test_a_run_is_printed_on_two_lines():
    head = "Run('news', model 'some/model', 5 texts, 2 scores:"
    assert repr(RUN) == f"{head}\n    loss, zlib)"
    rows = (row("loss", 0.6137), row("zlib", 0.5), row("loss", 0.9, "placebo"))
    measured = replace(RUN, evaluation=Evaluation(rows, 3, 1, 5, 200, 0))
    assert repr(measured) == f"{head}\n    AUC loss 0.614, zlib 0.500)"


def test_many_scores_are_counted_and_a_model_without_a_name_is_left_out():
    names = tuple(f"s{k}" for k in range(40))
    many = replace(RUN, scores=names, matrix=np.zeros((5, 40)), settings={"models": None})
    assert repr(many) == "Run('news', 5 texts, 40 scores:\n    s0, s1, s2, s3, s4, s5, 34 more)"
    bare = replace(RUN, scores=(), matrix=np.zeros((5, 0)))
    assert repr(bare).endswith("0 scores:\n    none)")


def test_the_middle_of_a_score():
    assert RUN.quartiles("loss") == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert RUN.median("loss", True) == 2.0
    assert RUN.median("loss", False) == 3.0
    assert RUN.median("loss", None) == 4.0
    assert replace(RUN, members=(True,) * 5).median("loss", False) is None
    empty = replace(RUN, ids=(), members=(), matrix=np.zeros((0, 2)))
    with pytest.raises(ValueError, match="no quartiles"):
        empty.quartiles("loss")


def test_the_mean_log_probability_leaves_out_what_was_not_predicted():
    heat = Heat("a", ("x", "y", "z"), (None, -1.0, -2.5))
    assert (heat.predicted, heat.mean_logp) == ((("y", -1.0), ("z", -2.5)), -1.75)
    assert Heat("a", ("x",), (None,)).mean_logp is None
