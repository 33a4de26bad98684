"""`neighbor` through other models, and where neighbours are empty."""

import numpy as np

from pretrace.rewrites import rewrites
from pretrace.scores import parse
from pretrace.scores.perturbed import Neighbor
from pretrace.testing import make_trace
from pretrace.types import Evidence, Quantity, Text, View


def made(seed, m=5, models=("target",)):
    random = np.random.default_rng(seed)

    def one():
        return make_trace(-random.gamma(1.5, 1.5, int(random.integers(1, 40))))

    views = {View(model): (one(),) for model in models}
    name = Neighbor(m=m).rewrite.name
    views |= {View(model, name): tuple(one() for _ in range(m)) for model in models}
    return Evidence(Text("t", "text"), views)


def test_what_it_needs_can_be_made():
    score = parse("neighbor(m=3, share=0.2, seed=4)")["neighbor(m=3, share=0.2, seed=4)"]
    wanted = {View(): Quantity.LOGP, View(rewrite="neighbors(m=3, share=0.2, seed=4)"): Quantity.LOGP}
    assert score.needs.views == wanted
    assert rewrites.make("neighbors(m=3, share=0.2, seed=4)").count == 3
    assert Neighbor(share=1).needs == Neighbor(share=1.0).needs


def test_empty_neighbours_are_left_out():
    empty, name = make_trace([]), Neighbor(m=3).rewrite.name
    plain = {View(): (make_trace([-1.0, -3.0]),)}
    some = Evidence(Text("t", "text"), {**plain, View(rewrite=name): (empty, make_trace([-5.0]), empty)})
    none = Evidence(Text("t", "text"), {**plain, View(rewrite=name): (empty,) * 3})
    assert Neighbor(m=3)(some) == 3.0
    assert Neighbor(m=3)(none) == 0.0
