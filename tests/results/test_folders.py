"""What a run says of itself: one or two lines, and the middle of a score."""

from dataclasses import replace

import numpy as np
import pytest
from made import run_of

from pretrace.types import Heat

MATRIX = [[5.0, 1], [1.0, 1], [3.0, 1], [4.0, 1], [2.0, 1]]
HOW = {"scores": ("loss", "zlib"), "settings": {"models": {"target": {"name": "some/model"}}}}
RUN = run_of(MATRIX, (True, True, False, None, True), corpus="news", **HOW)


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
