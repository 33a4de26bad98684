"""NA-PDD against plain loops over whole activations, and what it says where there is little to say."""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from net.api import (
    NAPDD,
    Evidence,
    Firing,
    Grouping,
    Recipe,
    Reference,
    Text,
    View,
    auc,
    grouped_folds,
    make_trace,
    parse,
)
from tiny import MORE_WORDS, opened, read

ACTIVATIONS = {
    "gpt_neox": lambda m: [b.mlp.act for b in m.gpt_neox.layers],
    "opt": lambda m: [b.activation_fn for b in m.model.decoder.layers],
    "llama": lambda m: [b.mlp.act_fn for b in m.model.layers],
    "gemma3_text": lambda m: [b.mlp.act_fn for b in m.model.layers],
}


def made_up(count, seed=1):
    generator = np.random.default_rng(seed)
    return [
        Text(str(i), " ".join(generator.choice(MORE_WORDS, generator.integers(3, 15))), member=i % 2 == 0)
        for i in range(count)
    ]


def ask(backend, texts, needs):
    found = read(backend, [text.text for text in texts], needs.views[View()], *needs.states[View()])
    return tuple(Evidence(text, {View(): (one,)}) for text, one in zip(texts, found, strict=True))


def recipe(expression):
    found = parse([expression])[expression]
    assert isinstance(found, NAPDD)
    assert isinstance(found, Recipe)
    return found


def fitted(given, evidence, seed=0):
    found = given.fit(Reference(evidence=evidence, seed=seed))
    assert found.facts
    return found


def activations(family, backend, text):
    """By layer, position and neuron; one text, one plain pass."""
    found = []
    handles = [
        module.register_forward_hook(lambda m, a, out: found.append(out.reshape(-1, 48).tolist()))
        for module in ACTIVATIONS[family](backend.model)
    ]
    [encoded] = backend.encode([text])
    with torch.inference_mode():
        backend.model(torch.tensor([[*encoded.prefix.tolist(), *encoded.tokens.tolist()]]))
    for handle in handles:
        handle.remove()
    return found


class Naive:
    """Algorithm 1 of the paper, a neuron at a time."""

    def __init__(self, texts, members, pool, settings):
        self.pool, (self.threshold, self.alpha, self.k) = pool, settings
        self.layers = len(texts[0])
        self.sets = []
        for layer in range(self.layers):
            sides = []
            for side in (True, False):
                mine = [t[layer] for t, m in zip(texts, members, strict=True) if m == side]
                sides.append([self.frequency(mine, neuron) for neuron in range(48)])
            member = {n for n in range(48) if sides[0][n] > self.alpha * sides[1][n]}
            nonmember = {n for n in range(48) if sides[1][n] > self.alpha * sides[0][n]}
            self.sets.append((member, nonmember))

    def active(self, positions, neuron):
        values = [position[neuron] for position in positions]
        if self.pool == "mean":
            return sum(values) / len(values) > self.threshold
        return any(value > self.threshold for value in values)

    def frequency(self, texts, neuron):
        if self.pool == "notebook":
            fires = sum(position[neuron] > self.threshold for positions in texts for position in positions)
            return fires / len(texts)
        return sum(self.active(positions, neuron) for positions in texts) / len(texts)

    def score(self, text, *, by_absolute=False):
        differences = [len(member) - len(nonmember) for member, nonmember in self.sets]
        if by_absolute:
            differences = [abs(d) for d in differences]
        best = sorted(range(self.layers), key=lambda layer: (-differences[layer], layer))[: self.k]
        shares = []
        for which in (0, 1):
            total = 0.0
            for layer in best:
                wanted = self.sets[layer][which]
                hits = sum(self.active(text[layer], neuron) for neuron in wanted)
                total += hits / len(wanted) if wanted else 0.0
            shares.append(total / len(best))
        return (shares[0] + 1e-6) / (shares[1] + 1e-6)


@pytest.mark.parametrize("family", ACTIVATIONS)
@pytest.mark.parametrize("pool", ["any", "mean", "notebook"])
def test_na_pdd_equals_the_naive_loops(family, pool):
    backend, texts = opened(family, start=family == "llama"), made_up(18)
    whole = [activations(family, backend, text.text) for text in texts]
    known, judged = texts[:11], texts[11:]  # 6 members and 5 others
    threshold = middling(whole, pool)
    seen = set()
    for k in (1, 2, 99):
        for absolute in (False, True):
            how = f"threshold={threshold}, alpha=1.3, k={k}, pool={pool!r}, by_absolute={absolute}"
            given = recipe(f"na_pdd({how})")
            score = fitted(given, ask(backend, known, given.reference))
            naive = Naive(whole[:11], [bool(t.member) for t in known], pool, (threshold, 1.3, k))
            assert any(member and nonmember for member, nonmember in naive.sets)
            expected = [naive.score(text, by_absolute=absolute) for text in whole[11:]]
            found = [score(e) for e in ask(backend, judged, score.needs)]
            np.testing.assert_allclose(found, expected, rtol=1e-5)
            seen.update(round(value, 4) for value in expected)
    assert len(seen) > 5


def middling(whole, pool):
    """A threshold that about half of the neurons exceed in a text."""
    arrays = [np.array(layer) for text in whole for layer in text]
    pooled = [layer.mean(axis=0) if pool == "mean" else layer.max(axis=0) for layer in arrays]
    return round(float(np.median(pooled)), 4)


def bits(rows):
    return np.packbits(np.array(rows, dtype=bool), axis=1)


def evidence(name, member, rows, *, given, group=""):
    """A text that activates the same neurons at any threshold."""
    states = {state: bits(rows) for state in given.reference.states[View()]}
    one = replace(make_trace([-1.0, -2.0]), states=states)
    return Evidence(Text(name, name, member, group), {View(): (one,)})


A, B = [1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1, 1]  # nine neurons: a byte and a bit
NONE, BOTH = [0] * 9, [1, 1, 1, 0, 0, 1, 1, 1, 1]


def two_sides(given, member, nonmember):
    sides = product({"m": member, "n": nonmember}.items(), range(4))
    return tuple(evidence(f"{side}{i}", side == "m", rows, given=given) for (side, rows), i in sides)


def test_layers_are_chosen_by_difference_or_distance():
    # member minus non-member neurons: 3 - 4, 3 - 0, 0 - 4
    sides = [A, A, NONE], [B, NONE, B]
    for expression, layers in (
        ("na_pdd(k=1)", [1]),
        ("na_pdd(k=2)", [1, 0]),
        ("na_pdd(k=1, by_absolute=True)", [2]),
        ("na_pdd(k=2, by_absolute=True)", [2, 1]),
        ("na_pdd(k=50)", [1, 0, 2]),
    ):
        score = fitted(recipe(expression), two_sides(recipe(expression), *sides))
        assert score.layers.tolist() == layers
        rows = score.facts["layers"]
        assert [row["difference"] for row in rows] == [-1, 3, -4]
        assert [row["layer"] for row in rows if row["chosen"]] == sorted(layer + 1 for layer in layers)
    given = recipe("na_pdd(k=2)")  # ties go to the lower layer
    assert fitted(given, two_sides(given, [A, A, A], [B, B, B])).layers.tolist() == [0, 1]


def test_empty_sets_give_a_finite_ordered_score():
    given = recipe("na_pdd(k=1)")
    same = fitted(given, two_sides(given, [BOTH], [BOTH]))  # no neuron is on either side
    assert same(evidence("x", None, [BOTH], given=given)) == 1.0
    lonely = fitted(given, two_sides(given, [A], [NONE]))  # no non-member neuron
    values = [lonely(evidence("x", None, [row], given=given)) for row in (NONE, [1] + [0] * 8, A)]
    assert values == sorted(values)
    assert len(set(values)) == 3
    assert all(math.isfinite(value) for value in values)
    assert values[2] == pytest.approx((1 + 1e-6) / 1e-6)


def test_the_presets():
    for given, chosen in (
        (NAPDD(), (1.0, 1.5, 10)), (NAPDD(preset="paper"), (1.0, 1.5, 10)), (NAPDD(preset="appendix"), (1.5, 1.8, 5)),
        (NAPDD(threshold=0.5), (0.5, 1.5, 10)), (recipe("na_pdd(1, 2, 3)"), (1.0, 2.0, 3)),
        (recipe("na_pdd(preset='appendix', k=5)"), (1.5, 1.8, 5)),  # no contradiction
    ):  # fmt: skip
        assert given.chosen == chosen


def test_what_is_asked_for():
    given, notebook, mean = map(
        recipe, ("na_pdd(threshold=1.1, gated=True)", "na_pdd(pool='notebook')", "na_pdd(pool='mean')")
    )
    tried = (*(step / 4 for step in range(9)), 1.1)
    for needs, wanted in (
        (given.needs, {Firing("any", 1.1, True)}),
        (given.reference, {Firing("any", threshold, True) for threshold in tried}),
        (notebook.needs, {Firing("any", 1.0)}),
        (notebook.reference, {Firing("any", 1.0), Firing("count", 1.0)}),
        (mean.needs, {Firing("mean", 1.0)}),
    ):
        assert needs.states[View()] == wanted
    assert fitted(given, two_sides(given, [A], [B])).needs == given.needs


def scattered(given, count, *, signal, group=1, seed=0):
    """Members have the first half of the neurons active more often, by `signal`, non-members the other."""
    generator = np.random.default_rng(seed)
    made = []
    for i in range(count):
        member = (i // group) % 2 == 0
        chance = np.full((3, 64), 0.3)
        chance[:, :32] += signal if member else 0.0
        chance[:, 32:] += 0.0 if member else signal
        rows = (generator.random((3, 64)) < chance).astype(int).tolist()
        made.append(evidence(str(i), member, rows, given=given, group=str(i // group)))
    return tuple(made)


def test_the_sensitivity_at_the_chosen_settings_by_hand_among_plain_facts():
    given = recipe("na_pdd(k=2)")
    known = scattered(given, 40, signal=0.1, group=2)
    members = np.array([bool(e.text.member) for e in known])
    half = grouped_folds(Grouping.of([e.text.document for e in known], members), 2, 5)
    for document in {e.text.document for e in known}:
        assert len({half[i] for i, e in enumerate(known) if e.text.document == document}) == 1
    expected = []
    for side in (0, 1):
        score = fitted(given, tuple(e for e, h in zip(known, half, strict=True) if h != side))
        values = [score(e) for e, h in zip(known, half, strict=True) if h == side]
        expected.append(auc(values, members[half == side]))
    rows = fitted(given, known, seed=5).facts["sensitivity"]
    [own] = [r for r in rows if (r["threshold"], r["alpha"], r["k"]) == (1.0, 1.5, 2)]
    assert own["auc"] == pytest.approx(np.mean(expected))
    assert {row["threshold"] for row in rows} == {step / 4 for step in range(9)}
    assert {row["alpha"] for row in rows} == {1.2, 1.4, 1.5, 1.6, 1.8, 2.0}
    assert {row["k"] for row in rows} == {1, 2, 3}
    averaged = recipe("na_pdd(preset='appendix', pool='mean')")
    facts = fitted(averaged, scattered(averaged, 20, signal=0.3)).facts
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert (facts["reference"], facts["settings"]["threshold"]) == ({"members": 10, "nonmembers": 10}, 1.5)
    one_document = tuple(replace(e, text=replace(e.text, group=str(e.text.member))) for e in known)
    assert fitted(given, one_document).facts["sensitivity"] == []  # a side cannot be halved
