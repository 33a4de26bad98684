"""Neurons of rows that are padded: masked all at once, as on a GPU, or cut to their length, as on a processor."""

from itertools import product

import numpy as np
from tiny import SENTENCES, opened

from pretrace.backends import huggingface
from pretrace.backends._inside import firings
from pretrace.types import Firing, Quantity

ALL = product(("any", "mean", "count"), (-0.1, 0.05, 0.3), (False, True))
STATES = frozenset(Firing(*one) for one in ALL)


def read(model):
    encoded = model.encode([*SENTENCES, SENTENCES[0] * 3])
    assert len({e.length for e in encoded}) > 3  # rows of several lengths are padded
    return model.run(encoded, Quantity.LOGP, STATES)


def stacked(traces, state):
    return np.stack([one.states[state] for one in traces])


def test_masked_rows_give_what_cut_rows_give(monkeypatch):
    model = opened("llama")
    cut = read(model)
    as_on_a_gpu = lambda *given, masked, **how: firings(*given, masked=True, **how)  # noqa: E731
    monkeypatch.setattr(huggingface, "firings", as_on_a_gpu)
    masked = read(model)
    for state in STATES:
        expected = stacked(cut, state)
        assert expected.mean() > 0, state
        if (
            isinstance(state, Firing) and state.pool == "mean"
        ):  # a mean at a threshold may round to its other side
            assert np.mean(stacked(masked, state) != expected) < 0.01, state
        else:
            np.testing.assert_array_equal(stacked(masked, state), expected)
