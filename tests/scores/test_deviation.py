"""FSD composes with any score: what it needs of both models. Its numbers: tests/test_golden.py."""

import numpy as np

from pretrace.frequencies import Frequencies
from pretrace.scores import parse
from pretrace.testing import make_evidence
from pretrace.types import Needs, Quantity, Reference, View


def test_it_needs_what_the_score_needs_of_both_models():
    both = (View(model, rewrite) for model in ("target", "tuned") for rewrite in ("plain", "lower"))
    assert parse("fsd(lowercase)")["fsd(lowercase)"].needs == Needs(Quantity.LOGP, *both)
    # the reference model of `ref` is the same for both
    needs = parse("fsd(ref)")["fsd(ref)"].needs
    assert {view.model for view in needs.views} == {"target", "tuned", "reference"}


def test_a_score_that_wants_counts_is_fitted_for_both_models():
    counts = Reference(Frequencies(np.arange(50), "made up"), 50)
    both, own = (parse(name)[name].fit(counts) for name in ("fsd(dc_pdd(a=10.0))", "dc_pdd(a=10.0)"))
    first, tuned = [-1.0, -2.0, -6.0], [-1.0, -2.0, -3.0]
    found = both(make_evidence(logp=first, tuned=tuned))
    assert found == own(make_evidence(logp=first)) - own(make_evidence(logp=tuned)) != 0
