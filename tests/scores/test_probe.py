"""The probe: what it learns, and which texts it learns from."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pretrace.scores.probe import Probe
from pretrace.statistics.documents import grouped_split
from pretrace.statistics.roc import auc
from pretrace.testing import make_trace
from pretrace.types import Evidence, Hidden, Needs, Reference, Text, View

LAYERS, WIDTH = 4, 12


def one(name, member, hidden, group=""):
    states = {Hidden(): hidden, **{Hidden(layer): hidden[layer] for layer in range(len(hidden))}}
    return Evidence(Text(name, name, member, group), {View(): (replace(make_trace([-1.0]), states=states),)})


def made_up(count, *, layer=2, signal=2.5, pieces=1, seed=0):
    """Members are shifted in one layer alone; `pieces` texts a document."""
    generator = np.random.default_rng(seed)
    found = []
    for i in range(count):
        document = i // pieces
        hidden = generator.normal(3.0, 1.0, (LAYERS, WIDTH)) * np.arange(1, WIDTH + 1)
        hidden[0, :] = 7.0  # constant
        member = document % 2 == 0
        hidden[layer] += signal * np.arange(1, WIDTH + 1) * (member - 0.5)
        found.append(one(str(i), member, hidden.astype(np.float32), str(document)))
    return tuple(found)


def fitted(evidence, given=None, seed=0):
    score = (given or Probe()).fit(Reference(evidence=evidence, seed=seed))
    assert score.facts
    return score


def test_the_layer_that_tells_is_chosen_and_alone_is_asked_for():
    for layer in (1, 3):
        score = fitted(made_up(90, layer=layer))
        assert score.value.args[0] == score.facts["layer"] == layer
        assert score.needs == Needs(states=[Hidden(layer)])
        chosen = [row["layer"] for row in score.facts["layers"] if row["chosen"]]
        assert chosen == [layer]
        held_out = made_up(60, layer=layer, seed=9)
        assert auc([score(e) for e in held_out], np.array([bool(e.text.member) for e in held_out])) > 0.9
    assert Probe().needs == Probe().reference == Needs(states=[Hidden()])


@pytest.mark.parametrize("c", [0.01, 1.0, 10.0])
def test_the_score_is_the_probability_of_the_classifier_that_was_validated(c):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    known = made_up(60, pieces=2, signal=0.8)
    members = np.array([bool(e.text.member) for e in known])
    held = grouped_split([e.text.document for e in known], 0.4, 3, members)
    score = fitted(known, Probe(c=c, share=0.4), seed=3)
    others = made_up(20, seed=4)
    for layer in range(LAYERS):
        states = np.array([e.plain.states[Hidden(layer)] for e in known], dtype=np.float64)
        scaler = StandardScaler().fit(states[~held])
        classifier = LogisticRegression(C=c, max_iter=1000)
        classifier.fit(scaler.transform(states[~held]), members[~held])
        expected = auc(classifier.decision_function(scaler.transform(states[held])), members[held])
        assert score.facts["layers"][layer]["auc"] == pytest.approx(expected)
        if layer == score.facts["layer"]:
            unseen = scaler.transform([e.plain.states[Hidden(layer)] for e in others])
            probability = classifier.predict_proba(unseen)[:, 1]
            np.testing.assert_allclose([score(e) for e in others], probability, atol=1e-5)
    sides = {"members": members, "nonmembers": ~members, "fitted_on": ~held, "chosen_by": held}
    assert score.facts["reference"] == {name: int(rows.sum()) for name, rows in sides.items()}


def test_no_document_is_fitted_on_and_chosen_by():
    """Documents that are known by heart: a validation text whose document was fitted on would be told."""
    generator = np.random.default_rng(0)
    documents = generator.normal(0, 1, (20, LAYERS, WIDTH))
    noise = generator.normal(0, 0.01, (200, LAYERS, WIDTH))
    known = tuple(
        one(str(i), i % 20 < 10, (documents[i % 20] + noise[i]).astype(np.float32), str(i % 20))
        for i in range(200)
    )
    aucs = [row["auc"] for seed in range(8) for row in fitted(known, seed=seed).facts["layers"]]
    assert np.mean(aucs) < 0.8
    leaking = tuple(replace(e, text=replace(e.text, group="")) for e in known)
    assert np.mean([row["auc"] for row in fitted(leaking).facts["layers"]]) > 0.95


def test_the_same_seed_gives_the_same_probe_and_ties_go_to_the_lower_layer():
    known = made_up(60, signal=0.5)
    a, b, other = fitted(known, seed=1), fitted(known, seed=1), fitted(known, seed=2)
    (_, weights, bias), again = a.value.args, b.value.args
    np.testing.assert_array_equal([*weights, bias], [*again[1], again[2]])
    assert a.facts == b.facts != other.facts
    flat = tuple(one(str(i), i % 2 == 0, np.full((3, 4), 2.0, dtype=np.float32)) for i in range(20))
    score = fitted(flat)
    assert score.value.args[0] == 0
    assert 0 < score(flat[0]) < 1
    assert json.loads(json.dumps(a.facts, allow_nan=False)) == a.facts
    for factor in (-1e6, 1e6):  # a probability, however far out
        far = np.full((LAYERS, WIDTH), factor, dtype=np.float32) * np.sign(weights).astype(np.float32)
        assert a(one("far", None, far)) == pytest.approx(float(factor > 0))
