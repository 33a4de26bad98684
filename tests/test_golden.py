"""Each formula against a naive loop written from its paper, on evidence made at random."""

import functools
import math
import zlib as zlib_module
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from net.api import (
    GRID,
    SCORES,
    Continued,
    Evidence,
    Firing,
    Frequencies,
    Hidden,
    Peak,
    Recipe,
    Reference,
    Text,
    View,
    grouped_split,
    make_trace,
    parse,
    scores,
)

VOCABULARY = 40
LAYERS, NEURONS, WIDTH = 6, 20, 8
NEIGHBORS = "neighbors(m=3, share=0.15, seed=0)"
TYPOS, DROPPED = "typos(share=0.1, seed=0)", "deletion(share=0.25, seed=3)"


COUNTS = [v * v for v in range(30)]


def evidence(seed, member=None):
    generator = np.random.default_rng(seed)

    def short():
        return make_trace(-generator.gamma(1.5, 1.5, int(generator.integers(1, 60))))

    n = int(generator.integers(1, 60))
    plain = make_trace(
        -generator.gamma(1.5, 1.5, n),
        tokens=generator.integers(0, VOCABULARY, n).tolist(),
        mean=-generator.gamma(2.0, 1.0, n),
        std=generator.choice([0.0, 1e-9, 0.7, 1.9], n),
    )
    views = {
        View(): (
            replace(
                plain,
                states=copied(states(generator, n, member), plain) | {Peak(): peaks(generator, plain.logp)},
            ),
        ),
        View(rewrite="lower"): (short(),),
        View(model="reference"): (make_trace(-generator.gamma(1.5, 1.5, n), tokens=plain.tokens.tolist()),),
        View(model="tuned"): (short(),),
        View("tuned", "lower"): (short(),),
        View(rewrite=NEIGHBORS): (short(), short(), short()),
        View(rewrite=TYPOS): (short(),),
        View(rewrite=DROPPED): (short(),),
    }
    return Evidence(Text(f"t{seed}", "Some Text of " + "🙂é" * (seed % 20), member), views)


def copied(found, plain):
    """The same, with a stretch of the text's own end in the ends that a model wrote, in each one token further on."""
    for state, ends in found.items():
        if isinstance(state, Continued):
            own = plain.tokens[len(plain) - ends.shape[1] :]
            for i, end in enumerate(ends):
                stretch = own[i : 3 * i + 4]
                end[: len(stretch)] = stretch
    return found


def peaks(generator, logp):
    """Log-probabilities of the likeliest tokens: of about a third of the positions the text's own."""
    above = logp + (1e-3 - logp) * generator.random(len(logp))
    return np.where(generator.random(len(logp)) < 0.3, logp, np.maximum(logp, above)).astype(np.float32)


def states(generator, length, member):
    """Made-up neurons and hidden states, of members a little apart."""
    activations = generator.normal(0.6 + (0.5 if member else 0.0), 0.8, (LAYERS, NEURONS))
    found = {Firing("any", t): np.packbits(activations > t, axis=1) for t in (*GRID, 1.0)}
    hidden = generator.normal(0.4 if member else 0.0, 1.0, (LAYERS + 1, WIDTH)).astype(np.float32)
    found[Hidden()] = hidden
    generator.gamma(1.0, 0.5, length)  # numbers that were used once: what is drawn hereafter stays
    for state in (Continued(), Continued(2, 0.3)):
        size = state.samples, length - state.read(length)
        found[state] = generator.integers(0, VOCABULARY, size).astype(np.int32)
    return found | {Hidden(layer): hidden[layer] for layer in range(LAYERS + 1)}


LABELLED = tuple(evidence(1000 + i, member=i % 2 == 0) for i in range(40))


def values(trace, name):
    return [float(v) for v in getattr(trace, name)]


def average(numbers):
    total = 0.0
    for number in numbers:
        total += number
    return total / len(numbers)


def mean_logp(e, view=View()):  # noqa: B008 - View is frozen
    return average(values(e.views[view][0], "logp"))


def bottom(numbers, k):
    return average(sorted(numbers)[: max(1, int(k * len(numbers)))])


def top(numbers, k):
    return average(sorted(numbers, reverse=True)[: max(1, int(k * len(numbers)))])


def naive_min_k_plus_plus(e, k):
    logp, mean, std = (values(e.plain, name) for name in ("logp", "mean", "std"))
    return bottom([(a - b) / max(c, 1e-6) for a, b, c in zip(logp, mean, std, strict=True)], k)


def naive_gap_k(e, k, window):
    logp, std, peak = values(e.plain, "logp"), values(e.plain, "std"), e.plain.states[Peak()].tolist()
    gaps = [(a - b) / max(c, 1e-6) for a, b, c in zip(logp, peak, std, strict=True)]
    window = min(window, len(gaps))
    return bottom([average(gaps[i : i + window]) for i in range(len(gaps) - window + 1)], k)


def naive_surp(e, k, bound):
    pairs = sorted(zip(values(e.plain, "logp"), values(e.plain, "mean"), strict=True))
    pairs = pairs[: max(1, int(k * len(pairs)))]
    sure = [logp for logp, mean in pairs if -mean < bound]
    return average(sure) if sure else max(pairs, key=lambda pair: pair[1])[0]


def rises(e):
    other = e.views[View(model="reference")][0]
    return [a - b for a, b in zip(values(e.plain, "logp"), values(other, "logp"), strict=True)]


def naive_wbc(e):
    delta, shares = rises(e), []
    for w in (2, 3, 4, 6, 9, 13, 18, 25, 32, 40):
        w = min(w, len(delta))
        votes = [float(sum(delta[i : i + w]) > 0) for i in range(len(delta) - w + 1)]
        shares.append(average(votes))
    return average(shares)


def naive_ez(e):
    errs = [logp < peak for logp, peak in zip(values(e.plain, "logp"), e.plain.states[Peak()], strict=True)]
    delta = [d for d, err in zip(rises(e), errs, strict=True) if err or not any(errs)]
    up, down = sum(d for d in delta if d > 0), sum(-d for d in delta if d < 0)
    return (up + 1e-6) / (down + 1e-6)


def naive_dc_pdd(e, a, *, clip, first):
    total = sum(COUNTS)
    seen = set()
    alphas = []
    for token, logp in zip(e.plain.tokens.tolist(), values(e.plain, "logp"), strict=True):
        if first and token in seen:
            continue
        seen.add(token)
        frequency = (COUNTS[token] + 1 if token < 30 else 1) / (total + VOCABULARY)
        alpha = -math.exp(logp) * math.log(frequency)
        alphas.append(min(alpha, a) if clip else alpha)
    return average(alphas)


def fires(e, threshold):
    packed = e.plain.states[Firing("any", threshold)]
    return [[bool(row[n // 8] >> (7 - n % 8) & 1) for n in range(NEURONS)] for row in packed.tolist()]


def naive_na_pdd(e, threshold, alpha, k):
    sides = {side: [fires(r, threshold) for r in LABELLED if r.text.member is side] for side in (True, False)}
    overlaps = []
    for layer in range(LAYERS):
        share = {s: [average([float(t[layer][n]) for t in sides[s]]) for n in range(NEURONS)] for s in sides}
        both = ((share[side], share[not side]) for side in (True, False))
        sets = [[n for n in range(NEURONS) if one[n] > alpha * other[n]] for one, other in both]
        text = fires(e, threshold)[layer]
        shares = [average([float(text[n]) for n in some]) if some else 0.0 for some in sets]
        overlaps.append((len(sets[0]) - len(sets[1]), -layer, *shares))
    best = sorted(overlaps, reverse=True)[:k]
    return (average([o[2] for o in best]) + 1e-6) / (average([o[3] for o in best]) + 1e-6)


def naive_probe(e):
    """The regression by plain descent, on the documents that the split does not hold back."""
    held = grouped_split([r.text.id for r in LABELLED], 0.33, 0, [r.text.member for r in LABELLED])
    layer, rows = ready("probe").facts["layer"], [r for r, h in zip(LABELLED, held, strict=True) if not h]
    x = np.array([r.plain.states[Hidden(layer)] for r in rows], dtype=np.float64)
    y = np.array([1.0 if r.text.member else -1.0 for r in rows])
    centre, spread = x.mean(axis=0), x.std(axis=0)
    z, w, b = (x - centre) / spread, np.zeros(WIDTH), 0.0
    for _ in range(20000):
        pull = -y / (1 + np.exp(y * (z @ w + b)))
        w, b = w - 0.01 * (w + z.T @ pull), b - 0.01 * pull.sum()
    at = (e.plain.states[Hidden(layer)] - centre) / spread
    return float(1 / (1 + np.exp(-(at @ w + b))))


def naive_recall(e, gamma=0.0):
    behind = [
        mean_logp(e, View(rewrite=name)) for name in prefixes("con_recall(shots=3)" if gamma else "recall")
    ]
    return (behind[0] - gamma * behind[-1]) / mean_logp(e)


def prefixes(expression):
    """The rewrites of a fitted score that reads texts behind others, the non-members first."""
    return ready(expression).value.args[1]


def naive_coverage(e, n, state):
    """Every run of n or more tokens, of every length, looked for by itself."""
    tokens = e.plain.tokens.tolist()
    end = tokens[max(1, int(state.share * len(tokens))) :]
    best = 0.0
    for written in e.plain.states[state].tolist():
        known = {tuple(written[i:j]) for i in range(len(written)) for j in range(i + n, len(written) + 1)}
        marked = set()
        for i in range(len(end)):
            for j in range(i + n, len(end) + 1):
                if tuple(end[i:j]) in known:
                    marked |= set(range(i, j))
        best = max(best, len(marked) / len(end) if end else 0.0)
    return best


def naive_features(e):
    logp, mean, std = (values(e.plain, name) for name in ("logp", "mean", "std"))
    rows = [
        rises(e),
        logp,
        [min(10.0, max(-10.0, (a - b) / max(c, 1e-6))) for a, b, c in zip(logp, mean, std, strict=True)],
        [a - b for a, b in zip(logp, e.plain.states[Peak()].tolist(), strict=True)],
        mean,
        std,
    ]
    found = []
    for row in rows:
        for window in (1, 4, 16):
            window = min(window, len(row))
            means = sorted(average(row[i : i + window]) for i in range(len(row) - window + 1))
            fifth = max(1, int(len(means) / 5))
            found += [average(means), average(means[:fifth]), average(means[-fifth:])]
    return found


@functools.cache
def learned_by_newton():
    """The regression by Newton's steps: centre and spread of the features, weights and bias."""
    x = np.array([naive_features(r) for r in LABELLED])
    y = np.array([float(bool(r.text.member)) for r in LABELLED])
    centre, spread = x.mean(axis=0), x.std(axis=0)
    z = np.column_stack([(x - centre) / spread, np.ones(len(x))])
    penalty, w = np.array([10.0] * x.shape[1] + [0.0]), np.zeros(z.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-(z @ w)))
        slope = z.T @ (p - y) + penalty * w
        w = w - np.linalg.solve(z.T @ (z * (p * (1 - p))[:, None]) + np.diag(penalty), slope)
    return centre, spread, w[:-1], float(w[-1])


def naive_learned(e):
    centre, spread, weights, bias = learned_by_newton()
    z = (np.array(naive_features(e)) - centre) / spread
    return sum((float(a * b) for a, b in zip(z, weights, strict=True)), bias)


NAIVE = {
    "loss": mean_logp,
    "ppl": lambda e: -math.exp(-mean_logp(e)),
    "zlib": lambda e: mean_logp(e) / len(zlib_module.compress(e.text.text.encode(), 6)),
    "zlib(level=9)": lambda e: mean_logp(e) / len(zlib_module.compress(e.text.text.encode(), 9)),
    "lowercase": lambda e: -(mean_logp(e) / mean_logp(e, View(rewrite="lower"))),
    "ref": lambda e: -(mean_logp(e) / mean_logp(e, View(model="reference"))),
    "ref(difference=True)": lambda e: mean_logp(e) - mean_logp(e, View(model="reference")),
    "min_k": lambda e: bottom(values(e.plain, "logp"), 0.2),
    "min_k(k=0.05)": lambda e: bottom(values(e.plain, "logp"), 0.05),
    "min_k(k=1)": lambda e: bottom(values(e.plain, "logp"), 1.0),
    "max_k": lambda e: top(values(e.plain, "logp"), 0.2),
    "max_k(k=0.05)": lambda e: top(values(e.plain, "logp"), 0.05),
    "max_k(k=1)": lambda e: top(values(e.plain, "logp"), 1.0),
    "perturbed": lambda e: -(mean_logp(e) / mean_logp(e, View(rewrite=TYPOS))),
    "perturbed(kind='deletion', share=0.25, seed=3)": lambda e: (
        -(mean_logp(e) / mean_logp(e, View(rewrite=DROPPED)))
    ),
    "min_k_plus_plus": lambda e: naive_min_k_plus_plus(e, 0.2),
    "min_k_plus_plus(k=0.5)": lambda e: naive_min_k_plus_plus(e, 0.5),
    "gap_k": lambda e: naive_gap_k(e, 0.2, 3),
    "gap_k(k=0.5, window=1)": lambda e: naive_gap_k(e, 0.5, 1),
    "surp": lambda e: naive_surp(e, 0.2, 2.0),
    "surp(k=0.6, entropy=0.5)": lambda e: naive_surp(e, 0.6, 0.5),
    "wbc": naive_wbc,
    "ez": naive_ez,
    "dc_pdd": lambda e: naive_dc_pdd(e, 0.01, clip=True, first=True),
    "dc_pdd(a=0.5)": lambda e: naive_dc_pdd(e, 0.5, clip=True, first=True),
    "dc_pdd(a=0.5, variant='lup')": lambda e: naive_dc_pdd(e, 0.5, clip=True, first=False),
    "dc_pdd(variant='cld')": lambda e: naive_dc_pdd(e, 0.01, clip=False, first=False),
    "fsd(ppl)": lambda e: -math.exp(-mean_logp(e)) + math.exp(-mean_logp(e, View("tuned"))),
    "fsd(lowercase)": lambda e: (
        -(mean_logp(e) / mean_logp(e, View(rewrite="lower")))
        + mean_logp(e, View("tuned")) / mean_logp(e, View("tuned", "lower"))
    ),
    "neighbor(m=3)": lambda e: (
        mean_logp(e) - average([average(values(t, "logp")) for t in e.views[View(rewrite=NEIGHBORS)]])
    ),
    "coverage": lambda e: naive_coverage(e, 3, Continued()),
    "coverage(n=1, samples=2, share=0.3)": lambda e: naive_coverage(e, 1, Continued(2, 0.3)),
    "learned": naive_learned,
    "na_pdd": lambda e: naive_na_pdd(e, 1.0, 1.5, 10),
    "na_pdd(preset='appendix')": lambda e: naive_na_pdd(e, 1.5, 1.8, 5),
    "na_pdd(threshold=0.5, alpha=1.2, k=2)": lambda e: naive_na_pdd(e, 0.5, 1.2, 2),
    "probe": naive_probe,
    "recall": naive_recall,
    "con_recall(shots=3)": lambda e: naive_recall(e, 0.5),
    "codec": lambda e: mean_logp(e) - mean_logp(e, View(rewrite=prefixes("codec")[0])),
}
if not find_spec("pretrace.plugins.scores"):  # deleted from a copy: test_without_plugins
    NAIVE = {name: one for name, one in NAIVE.items() if name.partition("(")[0] not in SCORES}


def beyond(e, score, seed):
    """The evidence with whatever other forms of the text a fitted score wants."""
    generator = np.random.default_rng(seed)
    more = {v: (make_trace(-generator.gamma(1.5, 1.5, 9)),) for v in score.needs.views if v not in e.views}
    return replace(e, views={**e.views, **more})


@functools.cache
def ready(expression):
    counts = Frequencies(np.array(COUNTS), "made up")
    score = parse(expression)[expression]
    return score.fit(Reference(counts, VOCABULARY, LABELLED)) if isinstance(score, Recipe) else score


@pytest.mark.parametrize("expression", NAIVE)
@pytest.mark.parametrize("seed", range(12))
def test_a_score_equals_its_loop(expression, seed):
    e = beyond(evidence(seed), ready(expression), seed)
    rel = 1e-3 if expression == "probe" else 1e-5  # scikit-learn stops when it is near enough
    assert ready(expression)(e) == pytest.approx(NAIVE[expression](e), rel=rel)


def test_every_score_has_a_loop():
    assert set(scores) == {expression.partition("(")[0] for expression in NAIVE}


def test_a_near_certain_token_gives_a_finite_score():
    certain = make_trace([0.0, -1e-7], mean=[0.0, -1e-7], std=[0.0, 0.0])
    assert math.isfinite(ready("min_k_plus_plus")(Evidence(Text("t", "ab"), {View(): (certain,)})))
