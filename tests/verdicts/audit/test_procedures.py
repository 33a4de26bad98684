"""The literature's tests against loops, on nulls that hold and nulls that do not, and on planted members."""

from dataclasses import replace

import numpy as np
import pytest
from net.api import DualClassifier, Features, any_of, halves, original, paper, t_test
from scipy.stats import ttest_ind

SCORES = 6
MEAN_LENGTH, SPREAD = 30, 5.5


class ByLength:
    """A text classifier that looks at lengths alone: a logistic regression of one number."""

    def fit(self, texts, labels, /, *, seed):
        def seen(some):
            return (np.array([len(text) for text in some]) - MEAN_LENGTH) / SPREAD

        z, weight, bias = seen(texts), 0.0, 0.0
        for _ in range(30):
            wrong = 1 / (1 + np.exp(-(weight * z + bias))) - labels
            weight, bias = weight - (wrong * z).mean(), bias - wrong.mean()
        return lambda some: 1 / (1 + np.exp(-(weight * seen(some) + bias)))


def made(seed, pairs=80, documents=16, *, member=0.0, gap=0.0, read=0.0):
    """Pairs of texts and scores. A suspect text's scores are `member` higher; a held-out text is `gap` standard
    deviations longer, and the target likes each of them by `read`."""
    rng = np.random.default_rng(seed)
    lengths = rng.poisson(MEAN_LENGTH, (2, pairs))
    lengths[1] += round(gap * SPREAD)
    scores = 0.6 * rng.normal(size=(2, pairs, 1)) + 0.8 * rng.normal(size=(2, pairs, SCORES))
    scores[0] += member
    scores += read * ((lengths - MEAN_LENGTH) / SPREAD)[:, :, None]
    names = tuple(f"d{i % documents}" for i in range(pairs))
    texts = [
        tuple(f"{name}:".ljust(int(length), "x") for name, length in zip(names, row, strict=True))
        for row in lengths
    ]
    scored = tuple(f"s{k}" for k in range(SCORES))
    return Features(scored, scores[0], scores[1], texts[0], texts[1], names, names)


def unpaired(features, heldout):
    """The same with held-out texts from other documents, fewer of them."""
    others = tuple(f"h{name}" for name in features.heldout_documents[:heldout])
    texts = tuple("h" + text for text in features.heldout_texts[:heldout])
    some = replace(features, heldout=features.heldout[:heldout], paired=False)
    return replace(some, heldout_texts=texts, heldout_documents=others)


@pytest.mark.parametrize("seed", range(6))
def test_the_t_test_is_students(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.2, 1, 30), rng.normal(0, 2, 30)
    for one in (b, b[:20]):
        p, effect = t_test(a, one)
        assert p == pytest.approx(ttest_ind(a, one, alternative="greater").pvalue)
        two_sided = ttest_ind(a, one).confidence_interval(0.95)
        assert (effect.low, effect.high) == pytest.approx((two_sided.low, two_sided.high))


def test_values_without_spread_show_nothing():
    ones = np.ones(5)
    assert t_test(ones, 0 * ones)[0] == t_test(ones, ones)[0] == 1.0


def test_seeds_are_joined_as_in_the_release():
    ps = [0.03, 0.2, 0.001]
    product = 1.0
    for p in ps:
        product *= 1 - p
    assert any_of(ps) == pytest.approx(1 - product)
    assert any_of([1e-40, 2e-40]) == pytest.approx(3e-40)
    assert any_of([0.1, 1.0]) == 1.0
    assert any_of(ps) >= max(ps)


def test_halves_keep_pairs_and_share_no_row():
    features = made(0, pairs=81)
    learnt, tested = halves(features, np.random.default_rng(3))
    assert (learnt[0] == learnt[1]).all()
    assert (tested[0] == tested[1]).all()
    assert sorted([*learnt[0].tolist(), *tested[0].tolist()]) == list(range(81))
    learnt, tested = halves(unpaired(features, 31), np.random.default_rng(3))
    assert [len(rows) for rows in (*learnt, *tested)] == [15, 15, 16, 16]
    assert sorted([*learnt[1].tolist(), *tested[1].tolist()]) == list(range(31))
    assert len({*learnt[0].tolist(), *tested[0].tolist()}) == 31


def test_one_seed_of_the_paper_equals_its_loop():
    """Algorithm 2, line by line; the classifiers have tests of their own."""
    features = made(4, member=0.3, gap=0.4)
    learnt, tested = halves(features, np.random.default_rng([9, 0]))
    train = [features.suspect_texts[i] for i in learnt[0]] + [features.heldout_texts[i] for i in learnt[1]]
    label = np.array([False] * 40 + [True] * 40)
    c_words = ByLength().fit(train, label, seed=9)
    scores = np.vstack([features.suspect[learnt[0]], features.heldout[learnt[1]]])
    dual = DualClassifier.fit(scores, c_words(train), label, outliers=0.2)
    d_comb, d_text = [], []
    for i in tested[0].tolist():
        texts = [features.heldout_texts[i], features.suspect_texts[i]]
        comb, text = dual.judge(np.vstack([features.heldout[i], features.suspect[i]]), c_words(texts))
        d_comb.append(float(comb[0] - comb[1]))
        d_text.append(float(text[0] - text[1]))
    answer = paper(features, classifier=ByLength(), seed=9, seeds=1)
    assert answer.p == pytest.approx(ttest_ind(d_comb, d_text, alternative="greater").pvalue)
    assert answer.effect is not None
    assert answer.effect.value == pytest.approx(np.mean(d_comb) - np.mean(d_text))
    assert answer.facts["weights"]["text"] == pytest.approx(float(dual.combined.weights[0]))


def test_the_papers_answer_joins_its_seeds():
    answer = paper(made(1, member=0.3), classifier=ByLength(), seed=2)
    assert len(answer.facts["p of each seed"]) == 10
    assert answer.p == pytest.approx(any_of(answer.facts["p of each seed"]))
    assert answer.documents == 16
    assert answer.pieces == 80
    assert set(answer.facts["weights"]) == {"text", *(f"s{k}" for k in range(SCORES))}
    assert all(0 < weight < 1 for weight in answer.facts["weights"].values())
    assert answer == paper(made(1, member=0.3), classifier=ByLength(), seed=2)
    assert answer.p != paper(made(1, member=0.3), classifier=ByLength(), seed=3).p


def rejections(procedure, audits):
    return sum(procedure(seed).p <= 0.05 for seed in range(audits)) / audits


NULLS = {"no gap": {}, "a gap that the target does not read": {"gap": 0.5}}


@pytest.mark.parametrize("null", NULLS.values(), ids=NULLS)
def test_one_seed_of_the_paper_holds_its_level_on_independent_pieces(null):
    found = rejections(lambda s: paper(made(s, **null), classifier=ByLength(), seed=s, seeds=1), 100)
    assert found <= 0.11  # 99.5% of binomial(100, 0.05)


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_planted_members_are_found(gap):
    def features(seed):
        return made(seed, pairs=200, documents=40, member=0.6, gap=gap)

    assert rejections(lambda s: paper(features(s), classifier=ByLength(), seed=s), 5) == 1
    assert rejections(lambda s: original(features(s), seed=s), 5) == 1
    answer = original(features(0))
    assert 0 < answer.effect.low < answer.effect.value < answer.effect.high
    some = unpaired(made(0, pairs=200, documents=40, member=0.8), 120)
    for answer in (paper(some, classifier=ByLength()), original(some)):
        assert (answer.p < 0.01, answer.documents, answer.pieces) == (True, 80, 200)


def test_the_original_takes_a_gap_between_texts_for_membership():
    """Section 4.3: held-out texts that the target likes better, as generated ones often are. No text was seen."""

    def features(seed):
        return made(seed, pairs=300, gap=1.0, read=0.6)

    assert rejections(lambda s: original(features(s), seed=s), 10) == 1
    assert rejections(lambda s: paper(features(s), classifier=ByLength(), seed=s, seeds=1), 10) == 0
