"""The releases' way of preparing scores and of testing them, against loops written from their description."""

import math
from dataclasses import replace

import numpy as np
import pytest
from net.api import (
    LOG_PERPLEXITIES,
    PERPLEXITIES,
    LinearLayer,
    Recipe,
    any_of,
    expressions,
    halves,
    make_evidence,
    paper,
    parse,
    release,
    scaled_by_suspect,
)
from scipy.stats import ttest_ind
from verdicts.audit.test_procedures import ByLength, made


def tailed(seed, *, tail=0.8, member=0.0):
    """Pairs whose scores have a long tail below, as minus a perplexity has."""
    found = made(seed, member=member)
    return replace(found, suspect=-np.exp(-tail * found.suspect), heldout=-np.exp(-tail * found.heldout))


def replaced(values, share):
    """One score of one side: its lowest and highest values replaced."""
    cut, ranked = int(len(values) * share / 2), sorted(values)
    low, high, mean = ranked[cut], ranked[len(ranked) - 1 - cut], sum(values) / len(values)
    return [v if low <= v <= high else mean for v in values]


def test_each_side_is_prepared_by_itself_over_all_rows():
    features = tailed(0)
    sides = scaled_by_suspect(features.suspect, features.heldout, outliers=0.2)
    for k in range(len(features.names)):
        left, right = (replaced(side[:, k].tolist(), 0.2) for side in (features.suspect, features.heldout))
        centre = sum(left) / len(left)
        spread = math.sqrt(sum((v - centre) ** 2 for v in left) / len(left))
        for side, wanted in zip(sides, (left, right), strict=True):
            assert side[:, k] == pytest.approx([(v - centre) / spread for v in wanted])


def test_one_seed_of_the_release_equals_its_loop():
    features = tailed(2, member=0.2)
    rng = np.random.default_rng([7, 0])
    learnt, tested = halves(features, rng)
    scaled = scaled_by_suspect(features.suspect, features.heldout, outliers=0.2)
    label = np.array([False] * 40 + [True] * 40)

    def texts(rows):
        return [features.suspect_texts[i] for i in rows[0]] + [features.heldout_texts[i] for i in rows[1]]

    probability = ByLength().fit(texts(learnt), label, seed=7)

    def inputs(rows):
        said = probability(texts(rows))[:, None]
        return said, np.hstack([said, -np.vstack([scaled[0][rows[0]], scaled[1][rows[1]]])])

    apart = []
    for train, test in zip(inputs(learnt), inputs(tested), strict=True):
        start = rng.uniform(-1, 1, train.shape[1] + 1) / math.sqrt(train.shape[1])
        values = LinearLayer.fit(train, label, start=start)(test)
        apart.append(values[40:] - values[:40])
    answer = release(features, classifier=ByLength(), seed=7, seeds=1)
    assert answer.p == pytest.approx(ttest_ind(apart[1], apart[0], alternative="greater").pvalue)
    assert answer.effect.value == pytest.approx(apart[1].mean() - apart[0].mean())
    joined = release(features, classifier=ByLength(), seed=7)
    assert joined.p == pytest.approx(any_of(joined.facts["p of each seed"]))
    assert joined.facts["p of each seed"][0] == pytest.approx(answer.p)
    assert all(0 < weight < 1 for weight in joined.facts["weights"].values())


def test_the_release_reads_the_labels_of_the_test_half_and_the_paper_does_not():
    """Nulls with a long tail: each side's own mean, at a fifth of its values, says which side a value is of."""
    ps = {"release": 0, "paper": 0}
    for seed in range(60):
        features = tailed(seed, tail=1.2)
        ps["release"] += release(features, classifier=ByLength(), seed=seed, seeds=1).p <= 0.05
        ps["paper"] += paper(features, classifier=ByLength(), seed=seed, seeds=1).p <= 0.05
    assert ps["release"] >= 12, ps  # of 60 tests at 5% so many reject in one of 28,000 cases
    assert ps["paper"] <= 9, ps


def test_the_scores_of_the_releases_are_ratios_of_perplexities():
    assert expressions(False, release=True) == PERPLEXITIES
    assert expressions(True, release=True) == (*PERPLEXITIES, "ref(perplexity=True)")
    assert len(PERPLEXITIES) == len(LOG_PERPLEXITIES) == 21
    parsed = parse(("ref(perplexity=True)", "ref(perplexity=True, difference=True)"))
    read = make_evidence(logp=[-1.0, -2.0, -6.0], reference=[-4.0, -4.0])
    ratio, difference = parsed["ref(perplexity=True)"], parsed["ref(perplexity=True, difference=True)"]
    assert not isinstance(ratio, Recipe)
    assert not isinstance(difference, Recipe)
    assert ratio(read) == pytest.approx(-math.exp(3) / math.exp(4))
    assert difference(read) == pytest.approx(math.exp(4) - math.exp(3))
