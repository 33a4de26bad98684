"""The literature's tests against loops: on planted members, as the releases prepare and test scores, and the layers
of the calibration."""

import math
from dataclasses import replace

import numpy as np
import pytest
from net.api import (
    Features,
    LinearLayer,
    Normaliser,
    any_of,
    expressions,
    gradient,
    halves,
    judge_halves,
    make_evidence,
    original,
    outlier_share,
    paper,
    parse,
    release,
    scaled_by_suspect,
    t_test,
)
from scipy.stats import ttest_ind

SCORES = 6
MEAN_LENGTH, SPREAD = 30, 5.5


def by_length(texts, labels, seed):
    """A text classifier that looks at lengths alone: a logistic regression of one number."""

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
    assert t_test(np.ones(5), np.zeros(5))[0] == 1.0  # without spread nothing is shown


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
    c_words = by_length(train, label, 9)
    scores = np.vstack([features.suspect[learnt[0]], features.heldout[learnt[1]]])
    d_comb, d_text = [], []
    for i in tested[0].tolist():
        said = c_words(train), c_words([features.heldout_texts[i], features.suspect_texts[i]])
        both = scores, np.vstack([features.heldout[i], features.suspect[i]])
        comb, text, weights = judge_halves(both, said, label, outliers=0.2)
        d_comb.append(float(comb[0] - comb[1]))
        d_text.append(float(text[0] - text[1]))
    answer = paper(features, classifier=by_length, seed=9, seeds=1)
    assert answer.p == pytest.approx(ttest_ind(d_comb, d_text, alternative="greater").pvalue)
    assert answer.effect.value == pytest.approx(np.mean(d_comb) - np.mean(d_text))
    assert answer.facts["weights"]["text"] == pytest.approx(float(weights[0]))


def rejections(procedure, audits):
    return sum(procedure(seed).p <= 0.05 for seed in range(audits)) / audits


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_planted_members_are_found(gap):
    def features(seed):
        return made(seed, pairs=200, documents=40, member=0.6, gap=gap)

    assert rejections(lambda s: paper(features(s), classifier=by_length, seed=s), 5) == 1
    assert rejections(lambda s: original(features(s), seed=s), 5) == 1
    answer = original(features(0))
    assert 0 < answer.effect.low < answer.effect.value < answer.effect.high
    some = unpaired(made(0, pairs=200, documents=40, member=0.8), 120)
    for answer in (paper(some, classifier=by_length), original(some)):
        assert (answer.p < 0.01, answer.documents, answer.pieces) == (True, 80, 200)


def test_the_original_takes_a_gap_between_texts_for_membership():
    """Section 4.3: held-out texts that the target likes better, as generated ones often are. No text was seen."""

    def features(seed):
        return made(seed, pairs=300, gap=1.0, read=0.6)

    assert rejections(lambda s: original(features(s), seed=s), 10) == 1
    assert rejections(lambda s: paper(features(s), classifier=by_length, seed=s, seeds=1), 10) == 0


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

    probability = by_length(texts(learnt), label, 7)

    def inputs(rows):
        said = probability(texts(rows))[:, None]
        return said, np.hstack([said, -np.vstack([scaled[0][rows[0]], scaled[1][rows[1]]])])

    apart = []
    for train, test in zip(inputs(learnt), inputs(tested), strict=True):
        start = rng.uniform(-1, 1, train.shape[1] + 1) / math.sqrt(train.shape[1])
        values = LinearLayer.fit(train, label, start=start)(test)
        apart.append(values[40:] - values[:40])
    answer = release(features, classifier=by_length, seed=7, seeds=1)
    assert answer.p == pytest.approx(ttest_ind(apart[1], apart[0], alternative="greater").pvalue)
    assert answer.effect.value == pytest.approx(apart[1].mean() - apart[0].mean())
    joined = release(features, classifier=by_length, seed=7)
    assert joined.p == pytest.approx(any_of(joined.facts["p of each seed"]))
    assert joined.facts["p of each seed"][0] == pytest.approx(answer.p)
    assert all(0 < weight < 1 for weight in joined.facts["weights"].values())


def test_the_release_reads_the_labels_of_the_test_half_and_the_paper_does_not():
    """Nulls with a long tail: each side's own mean, at a fifth of its values, says which side a value is of."""
    ps = {"release": 0, "paper": 0}
    for seed in range(60):
        features = tailed(seed, tail=1.2)
        ps["release"] += release(features, classifier=by_length, seed=seed, seeds=1).p <= 0.05
        ps["paper"] += paper(features, classifier=by_length, seed=seed, seeds=1).p <= 0.05
    assert ps["release"] >= 12, ps  # of 60 tests at 5% so many reject in one of 28,000 cases
    assert ps["paper"] <= 9, ps


def test_the_scores_of_the_releases_are_ratios_of_perplexities():
    plain, released = expressions(True), expressions(True, release=True)
    assert len(plain) == len(released) == len(expressions(False)) + 1 == 22
    changed = [one for one in released if one not in plain]
    assert [one.replace(", perplexity=True", "") for one in changed[:-1]] == list(plain[-6:-1])
    ratio = parse(changed[-1])["ref(perplexity=True)"]
    assert ratio(make_evidence(logp=[-1.0, -2.0, -6.0], reference=[-4.0, -4.0])) == pytest.approx(
        -math.exp(3 - 4)
    )


def problem(seed, n=80, k=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)), (rng.random(n) < 0.4).astype(np.float64)


def test_the_papers_outlier_shares_between_and_beyond_its_sizes():
    for parameters, share in ((410e6, 0.2), (1e9, 0.15), (1.4e9, 0.1), (2.8e9, 0.05), (6.9e9, 0.01)):
        assert outlier_share(int(parameters)) == pytest.approx(share)
    assert outlier_share(int(math.sqrt(1e9 * 1.4e9))) == pytest.approx(0.125)
    assert outlier_share(135_000_000) == outlier_share(1) == 0.2
    assert outlier_share(70_000_000_000) == pytest.approx(0.01)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.9])
def test_the_normaliser_equals_its_loop(share):
    rng = np.random.default_rng(1)
    train, test = rng.gamma(1.0, 3.0, (61, 3)), rng.gamma(1.0, 4.0, (50, 3))
    normaliser = Normaliser.learn(train, outliers=share)
    for column in range(3):
        values = sorted(train[:, column].tolist())
        cut = int(61 * share / 2)
        kept = values[cut : 61 - cut]
        mean = sum(kept) / len(kept)
        tamed = [v if kept[0] <= v <= kept[-1] else mean for v in train[:, column].tolist()]
        centre = sum(tamed) / 61
        spread = math.sqrt(sum((v - centre) ** 2 for v in tamed) / 61)
        assert sum(a != b for a, b in zip(tamed, train[:, column].tolist(), strict=True)) == 2 * cut
        for rows in (train, test):
            values = (v if kept[0] <= v <= kept[-1] else mean for v in rows[:, column].tolist())
            wanted = [(v - centre) / spread for v in values]
            assert normaliser(rows)[:, column] == pytest.approx(wanted)


def test_features_that_do_not_vary_or_run_away_stay_finite():
    train = np.column_stack([np.full(20, 0.1), np.append(np.zeros(19), -1e304), np.arange(20.0)])
    for share in (0.0, 0.2):
        normaliser = Normaliser.learn(train, outliers=share)
        assert np.isfinite(normaliser(train)).all()
        assert np.isfinite(normaliser(np.full((2, 3), -1e306))).all()
        assert normaliser(train)[:, 0] == pytest.approx(np.zeros(20), abs=1e-12)


def loss(values, inputs, targets):
    """The cross-entropy, row by row."""
    weights = [1 / (1 + math.exp(-v)) for v in values[:-1]]
    total = 0.0
    for row, target in zip(inputs.tolist(), targets.tolist(), strict=True):
        p = 1 / (1 + math.exp(-(sum(w * x for w, x in zip(weights, row, strict=True)) + values[-1])))
        total -= math.log(p if target else 1 - p) / len(targets)
    return total


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_the_slope_of_the_loss(seed):
    inputs, targets = problem(seed)
    values = np.random.default_rng(seed).normal(0, 2, 5)
    for step, slope in zip(1e-5 * np.eye(5), gradient(values, inputs, targets), strict=True):
        sides = (loss(values + sign * step, inputs, targets) for sign in (1, -1))
        assert slope == pytest.approx(next(sides) / 2e-5 - next(sides) / 2e-5, abs=1e-8)


def test_it_learns_by_adam():
    inputs, targets = problem(4)
    values, first, second = [0.0] * 5, [0.0] * 5, [0.0] * 5
    for step in range(1, 31):
        slope = gradient(np.array(values), inputs, targets)
        for i in range(5):
            first[i] = 0.9 * first[i] + 0.1 * slope[i]
            second[i] = 0.999 * second[i] + 0.001 * slope[i] ** 2
            fair = first[i] / (1 - 0.9**step), second[i] / (1 - 0.999**step)
            values[i] -= 0.01 * fair[0] / (math.sqrt(fair[1]) + 1e-8)
    layer = LinearLayer.fit(inputs, targets > 0, epochs=30)
    wanted = [1 / (1 + math.exp(-v)) for v in values[:4]]
    assert layer.weights == pytest.approx(wanted)
    assert layer.bias == pytest.approx(values[4])


def test_the_layers_take_scores_that_are_higher_for_members():
    rng = np.random.default_rng(2)
    heldout = np.arange(600) >= 300
    features = rng.normal(size=(600, 3)) + np.where(heldout, 0.0, 1.0)[:, None]
    said = np.full(600, 0.5)
    combined, text, weights = judge_halves((features,) * 2, (said,) * 2, heldout, outliers=0.1)
    assert combined[heldout].mean() > combined[~heldout].mean() + 0.2
    assert text == pytest.approx(np.full(600, 0.5), abs=0.05)
    assert weights.shape == (4,)
