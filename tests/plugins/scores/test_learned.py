"""The learned score: it finds members by a difference planted in one statistic, and carries over from a run."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scores.test_prefixed import FEW, PLAIN, labelled, mean_behind
from tiny import SENTENCES, make_tokenizer, opened

from pretrace.errors import LeakError
from pretrace.plugins import SCORES
from pretrace.plugins.scores.learned import Learned
from pretrace.scores import scores
from pretrace.scoring.detect import detect
from pretrace.scoring.plan import Models
from pretrace.statistics.roc import auc
from pretrace.testing import make_trace
from pretrace.types import Evidence, Needs, Peak, Reference, Text, View


def one(number, *, member, gain):
    """A text whose members gain over the reference model, and are told by nothing else."""
    generator = np.random.default_rng(number)
    logp = -generator.gamma(2.0, 1.0, 40)
    plain = make_trace(logp, mean=-generator.gamma(2.0, 1.0, 40), std=np.full(40, 1.5))
    states = {Peak(): np.maximum(logp, -0.5).astype(np.float32)}
    before = logp - generator.normal(gain if member else 0.0, 0.5, 40)
    views = {View(): (replace(plain, states=states),), View(model="reference"): (make_trace(before),)}
    return Evidence(Text(f"t{number}", f"text {number}", member), views)


def some(first, gain=0.3):
    return tuple(one(first + i, member=i % 2 == 0, gain=gain) for i in range(80))


@pytest.fixture(scope="module")
def fitted():
    return Learned().fit(Reference(evidence=some(0)))


def found(score, texts):
    return auc(np.array([score(e) for e in texts]), np.array([bool(e.text.member) for e in texts]))


def test_it_learns_the_one_statistic_that_tells(fitted):
    assert found(fitted, some(1000)) > 0.9
    assert 0.35 < found(fitted, some(2000, gain=0.0)) < 0.65


def recorded(folder, fitted):
    (folder / "run.json").write_text(json.dumps({"settings": {"fitted": {"learned(c=1)": fitted.facts}}}))
    return folder


def test_a_classifier_carries_over_without_reference_texts(tmp_path, fitted):
    recipe = Learned(run=str(recorded(tmp_path, fitted)))
    assert recipe.reference == Needs()
    score = recipe.fit(Reference())
    e = one(1000, member=True, gain=0.3)
    assert score(e) == fitted(e)
    with pytest.raises(LeakError, match=r"t6.*fitted on"):
        score(one(6, member=True, gain=0.3))


# Scores of a text behind members or others of its collection: the numbers are a whole pass's.


def test_the_scores_of_the_table_are_there():
    assert all(scores.factory(name).__module__ == module for name, module in SCORES.items())


@pytest.mark.parametrize("start", ["never", "always"])
@pytest.mark.parametrize("score", ["con_recall(shots=2)", "codec"])
def test_it_is_the_likelihood_of_a_whole_pass(start, score):
    """`codec` is what a text loses behind another of its collection."""
    backend, known = opened("llama", make_tokenizer(), start=start), labelled(12)
    run = detect(FEW, Models(backend, labelled=known), score, PLAIN)
    text_of = {text.id: text for text in known.texts}
    prefix = run.settings["fitted"][score]["prefix"]
    told = {
        side: [text_of[one] for one in prefix[side]] for side in prefix.keys() & {"members", "nonmembers"}
    }
    assert all(text.member == (side == "members") for side, some in told.items() for text in some)
    for i, text in enumerate(SENTENCES):
        behind = {s: mean_behind(backend, text, " ".join(t.text for t in some)) for s, some in told.items()}
        alone = mean_behind(backend, text, "")
        expected = alone - behind["members"]
        if score != "codec":
            expected = (behind["nonmembers"] - 0.5 * behind["members"]) / alone
        assert run.matrix[i, 0] == pytest.approx(expected, abs=1e-5)
