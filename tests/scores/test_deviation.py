"""FSD composes with any score that is not itself fitted on labelled texts."""

from dataclasses import replace

import numpy as np
import pytest

from pretrace.frequencies import Frequencies
from pretrace.scores import parse, scores
from pretrace.testing import make_trace
from pretrace.types import Evidence, Needs, Peak, Quantity, Recipe, Reference, Text, View


def simple(name):
    """Whether the made-up evidence below is all that a score wants."""
    if name in ("fsd", "neighbor", "coverage"):
        return False
    score = scores.make(name)
    return not (isinstance(score, Recipe) and score.reference)


SIMPLE = list(filter(simple, scores))


def ready(expression):
    score = parse(expression)[expression]
    return (
        score.fit(Reference(Frequencies(np.arange(50), "made up"), 50))
        if isinstance(score, Recipe)
        else score
    )


REWRITES = ("plain", "lower", "typos(share=0.1, seed=0)")


def evidence(seed):
    generator = np.random.default_rng(seed)
    n = 20
    tokens = generator.integers(0, 50, n).tolist()

    def one():
        logp, mean = -generator.gamma(1.5, 1.5, n), -generator.gamma(2.0, 1.0, n)
        trace = make_trace(logp, tokens=tokens, mean=mean, std=generator.uniform(0.5, 2, n))
        return (replace(trace, states={Peak(): np.maximum(trace.logp, np.float32(-0.9))}),)

    models = ("target", "tuned", "reference")
    views = {View(model, rewrite): one() for model in models for rewrite in REWRITES}
    return Evidence(Text("t", "Some Text"), views)


@pytest.mark.parametrize("name", SIMPLE)
def test_it_is_the_score_minus_the_score_of_the_tuned_model(name):
    e = evidence(3)
    tuned = {View("target", r): e.views[View("tuned", r)] for r in REWRITES}
    as_if_tuned = Evidence(e.text, {**e.views, **tuned})
    expected = ready(name)(e) - ready(name)(as_if_tuned)
    assert ready(f"fsd({name})")(e) == expected != 0


def test_it_needs_what_the_score_needs_of_both_models():
    both = (View(model, rewrite) for model in ("target", "tuned") for rewrite in ("plain", "lower"))
    assert parse("fsd(lowercase)")["fsd(lowercase)"].needs == Needs(Quantity.LOGP, *both)
    # the reference model of `ref` is the same for both
    needs = parse("fsd(ref)")["fsd(ref)"].needs
    assert {view.model for view in needs.views} == {"target", "tuned", "reference"}
