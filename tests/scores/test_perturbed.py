"""`perturbed`, `neighbor` and `max_k`: what they need, what they refuse, and the texts that nothing can be done to."""

import math

import pytest

from pretrace.rewrites import disturbances, rewrites
from pretrace.scores import parse, scores
from pretrace.scores.forms import Neighbor, Perturbed
from pretrace.scoring.evidence import EvidenceReader, Options
from pretrace.testing import Memory, make_evidence, make_trace
from pretrace.types import Evidence, Needs, Quantity, Recipe, Text, View
from pretrace.verdicts.audit.data import expressions

TEXT = Text("t", "In 1869 the Railway reached the valley; nothing was the same again.")


def scored(text, *expressions):
    made = [score for score in parse(expressions).values() if not isinstance(score, Recipe)]
    needs = Needs()
    for score in made:
        needs |= score.needs
    with EvidenceReader({"target": Memory()}, needs, Options(cache=False)) as reader:
        (evidence,) = reader.read([text])
    return [score(evidence) for score in made]


@pytest.mark.parametrize(
    ("score", "rewrite"),
    [
        (Perturbed("case", 0.25, 7), "case(share=0.25, seed=7)"),
        (Neighbor(3, 0.2, 4), "neighbors(m=3, share=0.2, seed=4)"),
    ],
)
def test_it_reads_the_text_and_its_changed_self(score, rewrite):
    assert dict(score.needs.views) == dict.fromkeys((View(), View(rewrite=rewrite)), Quantity.LOGP)
    assert rewrites.make(rewrite).count == getattr(score, "m", 1)
    assert type(score)(share=1).needs == type(score)(share=1.0).needs


def test_perplexities_in_place_of_their_logarithms():
    read = make_evidence(logp=[-1.0, -2.0, -6.0], typos=[-2.0, -3.0])
    assert Perturbed(perplexity=True)(read) == pytest.approx(-math.exp(3.0) / math.exp(2.5))
    assert Perturbed(perplexity=True, difference=True)(read) == pytest.approx(math.exp(2.5) - math.exp(3.0))
    assert Perturbed(difference=True)(read) == -0.5


@pytest.mark.parametrize("kind", sorted(disturbances))
def test_a_text_that_stays_as_it_was_gives_minus_one(kind):
    assert scored(Text("t", "。。。、、"), f"perturbed(kind='{kind}', share=1)") == [-1.0]
    score = Perturbed(kind)
    views = dict.fromkeys(score.needs.views, (make_trace([-1e-9, -0.0]),))
    assert score(Evidence(TEXT, views)) == -1.0


def test_the_release_families_are_scores_and_need_no_model_but_the_target():
    parsed = parse(expressions(reference=False))
    assert len(parsed) == 21
    assert {view.model for score in parsed.values() for view in score.needs.views} == {"target"}
    assert not any(isinstance(score, Recipe) for score in parsed.values())
    assert expressions(reference=True) == (*parsed, "ref")
    assert {name.partition("(")[0] for name in expressions(True)} <= set(scores)


def test_empty_neighbours_are_left_out():
    empty, plain = make_trace([]), {View(): (make_trace([-1.0, -3.0]),)}
    [near] = Neighbor(m=3).needs.views.keys() - plain.keys()
    some = Evidence(Text("t", "text"), {**plain, near: (empty, make_trace([-5.0]), empty)})
    none = Evidence(Text("t", "text"), {**plain, near: (empty,) * 3})
    assert Neighbor(m=3)(some) == 3.0
    assert Neighbor(m=3)(none) == 0.0
