"""The literature's tests on membership scores: post-hoc dataset inference (Zhao et al. 2025) as its paper says
(sections 4.2, 4.3 and D.2; algorithm 2), and as its authors' published code does it, where that differs; and dataset
inference as it was before calibration (Maini et al. 2024; post-hoc DI, section 2.2, eq. 1).

Each is a function of (features, *, classifier, seed, settings). A linear layer turns what a text classifier says of a
text into a probability; a second one is given the membership scores of the text as well. How much better the second
tells suspect from held-out texts is what the scores know and the text does not. Both are learnt on one half of the data
and used on the other. In the published code each side's outliers become that side's own mean, over all texts, before
anything is split, and both sides are scaled by the suspect side: the training half knows something of the test half's
labels.

**Orientation.** The classifiers predict the label "held-out" (1) against "suspect" (0), and the paper's weights are
positive for scores that are higher on held-out texts. Scores of this library are higher for members, so the layers are
fed minus the scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pretrace.baselines import TextClassifier
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.statistics.documents import Numbers
from pretrace.statistics.roc import auc
from pretrace.types import Bools, Doubles, Estimate

FEWEST = 10
"""Pieces on either side that a procedure takes; fewer leave nothing to learn from or to test."""
_EPOCHS = 200
_RATE = 0.01
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8
_ROUNDING = 1e-12
_FARTHEST = 1e6  # standard deviations: what lies farther out adds nothing and could overflow

SHARES = ((410e6, 0.2), (1e9, 0.15), (1.4e9, 0.1), (2.8e9, 0.05), (6.9e9, 0.01))
"""Parameters of the target, and the share of outliers that appendix F takes for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Membership scores of pieces of text on two sides, `suspect` [n, k] and `heldout` [m, k], finite, higher = more
    member-like, with the texts and documents of the rows; with `paired` row i of both belongs to the same place in the
    same document, and n = m.
    """

    names: tuple[str, ...]
    suspect: Doubles
    heldout: Doubles
    suspect_texts: tuple[str, ...]
    heldout_texts: tuple[str, ...]
    suspect_documents: tuple[str, ...]
    heldout_documents: tuple[str, ...]
    paired: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What one procedure answers: a hypothesis test.

    `p` is one-sided: small means the target knows the suspect texts better than it should. `effect` is in `unit`, with
    its 95% interval; `standardised` is the effect over its standard deviation between documents. `facts` holds what
    else was found (AUCs, weights, the p-value of each seed), in plain values.
    """

    procedure: str
    p: float
    statistic: str
    documents: int
    pieces: int
    effect: Estimate | None = None
    unit: str = ""
    standardised: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def check(features: Features, seeds: int) -> None:
    """TextsError unless both sides have enough pieces, and as many of each where they are paired."""
    require(seeds >= 1, f"a procedure takes one of its seeds or more, found {seeds} seeds.")
    n, m = len(features.suspect), len(features.heldout)
    if min(n, m) < FEWEST:
        raise TextsError(say("asked.pieces", least=FEWEST, suspect=n, heldout=m))
    if features.paired and n != m:
        raise TextsError(f"paired texts need as many on each side, found {n} suspect and {m} held-out ones.")


def halves(features: Features, rng: np.random.Generator) -> Iterator[tuple[Numbers, Numbers]]:
    """(suspect rows, held-out rows) of the training half, then of the test half; row i of one goes with row i of the
    other. Pairs stay together; texts without a partner get one at random, and what is over on a side is left out."""
    n, m = len(features.suspect), len(features.heldout)
    suspect = rng.permutation(n)
    heldout = suspect if features.paired else rng.permutation(m)
    pairs = min(n, m)
    for part in (slice(0, pairs // 2), slice(pairs // 2, pairs)):
        yield suspect[:pairs][part], heldout[:pairs][part]


def outlier_share(parameters: int) -> float:
    """The share of outliers to replace for a target of so many parameters: straight lines over their logarithm join the
    five values of post-hoc DI, appendix F (`SHARES`); outside of them the nearest one counts."""
    require(parameters > 0, f"a model has at least one parameter, found {parameters}.")
    sizes, shares = zip(*SHARES, strict=True)
    return float(np.interp(np.log(parameters), np.log(sizes), shares))


@dataclass(frozen=True, slots=True, eq=False)
class Normaliser:
    """Outliers replaced and every feature brought to mean 0 and standard deviation 1, as learnt on one half. All arrays
    are [features]: a value below `low` or above `high` becomes `fill`, then `centre` is taken off, over `spread`."""

    low: Doubles
    high: Doubles
    fill: Doubles
    centre: Doubles
    spread: Doubles

    @classmethod
    def learn(cls, features: Doubles, *, outliers: float = 0.0) -> Normaliser:
        """From the features [texts, features] of the training half alone: of each the share `outliers`, half lowest and
        half highest, becomes the mean of those that stay. ExpressionError unless 0 <= outliers < 1."""
        require(0 <= outliers < 1, f"the share of outliers is 0 or more and below 1, found {outliers}.")
        ranked = np.sort(features, axis=0)
        cut = int(len(ranked) * outliers / 2)
        low, high = ranked[cut], ranked[len(ranked) - 1 - cut]
        fill, _ = _moments(ranked[cut : len(ranked) - cut])
        tamed = np.where((features < low) | (features > high), fill, features)
        return cls(low, high, fill, *_moments(tamed))

    def __call__(self, features: Doubles) -> Doubles:
        """The features of either half [texts, features], with the thresholds of the training half."""
        tamed = np.where((features < self.low) | (features > self.high), self.fill, features)
        return _scaled(tamed, self.centre, self.spread)


def scaled_by_suspect(suspect: Doubles, heldout: Doubles, *, outliers: float) -> tuple[Doubles, Doubles]:
    """Both sides [texts, features] as the releases prepare them: each side by itself, and over all of its rows.

    Of each side's values of a feature the share `outliers` / 2 that is lowest and the share that is highest become that
    side's mean, outliers included; then both sides lose the mean and are divided by the standard deviation of the
    suspect side. So the labels of the test half leak. ExpressionError for a share that leaves nothing.
    """
    require(0 <= outliers < 1, "the share of outliers leaves no text.")
    sides = []
    for side in (suspect, heldout):
        cut, order, tamed = int(len(side) * outliers / 2), np.argsort(side, axis=0), side.copy()
        np.put_along_axis(
            tamed, np.vstack([order[:cut], order[len(side) - cut :]]), _moments(side)[0], axis=0
        )
        sides.append(tamed)
    how = _moments(sides[0])
    return _scaled(sides[0], *how), _scaled(sides[1], *how)


def _scaled(values: Doubles, centre: Doubles, spread: Doubles) -> Doubles:
    with np.errstate(over="ignore"):
        return np.asarray(np.clip((values - centre) / spread, -_FARTHEST, _FARTHEST))


@dataclass(frozen=True, slots=True, eq=False)
class LinearLayer:
    """Probability of the label from weighted inputs: σ(inputs · weights + bias)."""

    weights: Doubles
    bias: float

    @classmethod
    def fit(
        cls, inputs: Doubles, labels: Bools, *, epochs: int = _EPOCHS, start: Doubles | None = None
    ) -> LinearLayer:
        """The layer after `epochs` steps of Adam on the cross-entropy of all inputs [texts, inputs]; weights are σ(v)
        (section 4.3, figure 4), from v = 0 and bias 0 or from `start` [inputs + 1], the bias last."""
        targets = labels.astype(np.float64)
        values = np.zeros(inputs.shape[1] + 1) if start is None else start
        first, second = np.zeros_like(values), np.zeros_like(values)
        for step in range(1, epochs + 1):
            slope = gradient(values, inputs, targets)
            first = _BETAS[0] * first + (1 - _BETAS[0]) * slope
            second = _BETAS[1] * second + (1 - _BETAS[1]) * slope**2
            size = np.sqrt(second / (1 - _BETAS[1] ** step)) + _EPSILON
            values = values - _RATE * first / (1 - _BETAS[0] ** step) / size
        return cls(sigmoid(values[:-1]), float(values[-1]))

    def __call__(self, inputs: Doubles) -> Doubles:
        """Probability of the label for each row of the inputs [texts, inputs]; float64 [texts]."""
        return sigmoid(inputs @ self.weights + self.bias)


def judge_halves(
    scores: Sequence[Doubles],
    said: Sequence[Doubles],
    heldout: Bools,
    *,
    outliers: float | None,
    rng: np.random.Generator | None = None,
) -> tuple[Doubles, Doubles, Doubles]:
    """P("held-out") of the second half's texts by two layers that learnt from the first (section 4.2): by that over the
    text classifier's probability and the scores, and by that over the probability alone; then the first one's weights.
    Of both halves the `scores` [texts, scores], higher = member, and what the classifier `said` [texts]. With
    `outliers` None the scores stand as they are, with `rng` layers start from random weights."""
    how = None if outliers is None else Normaliser.learn(scores[0], outliers=outliers)
    both = zip(scores, said, strict=True)
    inputs = [np.column_stack([one, -(how(some) if how else some)]) for some, one in both]
    found = []
    for learnt, tested in ([one[:, None] for one in said], inputs):
        width = learnt.shape[1]
        start = None if rng is None else rng.uniform(-1, 1, width + 1) / np.sqrt(width)
        layer = LinearLayer.fit(learnt, heldout, start=start)
        found.append((layer(tested), layer.weights))
    (text, _), (combined, weights) = found
    return combined, text, weights


def gradient(values: Doubles, inputs: Doubles, targets: Doubles) -> Doubles:
    """The slope of the mean cross-entropy in nats, for `values` = what the weights are made of, then the bias."""
    weights = sigmoid(values[:-1])
    wrong = (sigmoid(inputs @ weights + values[-1]) - targets) / len(targets)
    slope = np.append(wrong @ inputs, wrong.sum())
    slope[:-1] *= weights * (1 - weights)
    return slope


def sigmoid(values: Doubles) -> Doubles:
    """1 / (1 + exp(-values)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


def _moments(values: Doubles) -> tuple[Doubles, Doubles]:
    """Means and standard deviations by column, 1 where all that varies is rounding. Perplexities reach 1e304, so
    nothing is summed before it is made small."""
    largest = np.abs(values).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    spread = (values / unit).std(axis=0)
    return unit * (values / unit).mean(axis=0), np.where(spread > _ROUNDING, unit * spread, 1.0)


STATISTIC = (
    "mean of c_comb(held-out) - c_comb(suspect) above the mean of c_text(held-out) - c_text(suspect), c the "
    'probability of "held-out", {how}tested with a one-sided unpaired t-test on the half that was not learnt from'
)
_BY_SIDE = "outliers replaced side by side over all texts, "
SEEDS = 10
"""Random halves that are learnt from and tested in turn, joined by 1 − Π(1 − p)."""
OUTLIERS = 0.2
"""The share of each score to replace where the model's size is unknown: the paper's for its smallest."""


def t_test(higher: Doubles, lower: Doubles) -> tuple[float, Estimate]:
    """One-sided p-value for mean(higher) > mean(lower), and the difference of means with its 95% interval. The test of
    the literature of dataset inference: Student's, with one variance for both sides. Without any spread nothing can be
    told and p is 1. Each side needs two values."""
    from scipy.special import stdtr, stdtrit

    apart = float(higher.mean() - lower.mean())
    n, m = len(higher), len(lower)
    freedom = n + m - 2
    pooled = (n * float(np.var(higher)) + m * float(np.var(lower))) / freedom
    error = math.sqrt(pooled * (1 / n + 1 / m))
    if error == 0:
        return 1.0, Estimate(apart, apart, apart)
    reach = float(stdtrit(freedom, 0.975)) * error
    return float(stdtr(freedom, -apart / error)), Estimate(apart, apart - reach, apart + reach)


def any_of(ps: Sequence[float]) -> float:
    """1 − Π(1 − p), the p-values of repeated splits joined as the paper's release joins them.

    It is never below the largest of them, and keeps its digits where all are tiny.

    >>> round(any_of([0.01, 0.02]), 12)
    0.0298
    """
    return 1.0 if max(ps) >= 1 else -math.expm1(sum(math.log1p(-p) for p in ps))


def _averaged(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of the values and of the ends of the intervals."""
    ends = [(one.value, one.low, one.high) for one in estimates]
    return Estimate(*(float(np.mean(some)) for some in zip(*ends, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """One split: what was tested, and what was learnt; `auc_text` is None without a text side."""

    p: float
    effect: Estimate
    auc: float
    weights: Doubles
    auc_text: float | None = None


def paper(
    features: Features,
    *,
    classifier: TextClassifier,
    seed: int = 0,
    seeds: int = SEEDS,
    outliers: float = OUTLIERS,
    released: bool = False,
) -> Answer:
    """The paper's answer: does the combined classifier tell held-out from suspect better than the text alone?

    For each of the seeds the pairs are halved; the text classifier and both linear layers learn from one half and are
    tested on the other. Snippets count as independent, which those of one document are not. `released` as in `release`.
    TextsError with too few texts.
    """
    check(features, seeds)
    sides, facts = (features.suspect, features.heldout), {"outliers": outliers}
    if released:
        sides = scaled_by_suspect(*sides, outliers=outliers)
        facts["tail"] = 0.0

    def trial(k: int) -> _Trial:
        rng = np.random.default_rng([seed, k])
        scores, texts, labels = list[Doubles](), list[list[str]](), list[Bools]()
        for suspect, heldout in halves(features, rng):
            scores.append(np.vstack([sides[0][suspect], sides[1][heldout]]))
            some = [features.suspect_texts[i] for i in suspect.tolist()]
            texts.append(some + [features.heldout_texts[i] for i in heldout.tolist()])
            labels.append(np.arange(len(texts[-1])) >= len(suspect))
        probability = classifier(texts[0], labels[0], seed + k)
        told, tells = map(probability, texts)
        layers: dict[str, Any] = {"outliers": None, "rng": rng} if released else {"outliers": outliers}
        combined, text, weights = judge_halves(scores, (told, tells), labels[0], **layers)
        n = len(tells) // 2
        p, effect = t_test(combined[n:] - combined[:n], text[n:] - text[:n])
        aucs = auc(combined, labels[1]), auc(text, labels[1])
        return _Trial(p, effect, aucs[0], weights, aucs[1])

    name, how = ("release", _BY_SIDE) if released else ("paper", "")
    said = {"procedure": name, "statistic": STATISTIC.format(how=how), "unit": "difference of probabilities"}
    return _answer(features, [trial(k) for k in range(seeds)], facts, **said)


release = partial(paper, released=True)
"""The paper's test with data as the authors' code prepares them. Pieces count as independent, and even so the level is
not kept (docs/procedures.md). Layers start from random weights. TextsError with too few texts."""


def _answer(features: Features, trials: Sequence[_Trial], facts: Mapping[str, Any], **said: Any) -> Answer:
    """The answer of these trials, their p-values joined by 1 − Π(1 − p); `said` are procedure, statistic and unit."""
    texts = [float(one.auc_text) for one in trials if one.auc_text is not None]
    names = (("text",) if texts else ()) + features.names
    mean = np.mean([one.weights for one in trials], axis=0)
    ps = [one.p for one in trials]
    return Answer(
        p=any_of(ps),
        documents=len({*features.suspect_documents, *features.heldout_documents}),
        pieces=len(features.suspect),
        effect=_averaged([one.effect for one in trials]),
        facts={
            "p of each seed": ps,
            f"auc{' combined' * bool(texts)} of each seed": [float(one.auc) for one in trials],
            "weights": dict(zip(names, map(float, mean), strict=True)),
            **facts,
            **({"auc text of each seed": texts} if texts else {}),
        },
        **said,
    )


REGRESSION = (
    "mean of a linear regression of the membership scores (suspect 0, held-out 1) on held-out texts minus on "
    "suspect texts, tested with a one-sided t-test on the half that was not learnt from"
)


def original(features: Features, *, seed: int = 0, seeds: int = SEEDS, outliers: float = 0.05) -> Answer:
    """Held-out dataset inference, as its paper says: do held-out texts get higher values than suspect ones? It rejects
    as well for a held-out set that differs as text. TextsError with too few texts."""
    check(features, seeds)

    def trial(k: int) -> _Trial:
        learnt, tested = halves(features, np.random.default_rng([seed, k]))
        training = np.vstack([features.suspect[learnt[0]], features.heldout[learnt[1]]])
        normaliser = Normaliser.learn(training, outliers=outliers)
        labels = (np.arange(len(training)) >= len(learnt[0])).astype(np.float64)
        design = np.column_stack([-normaliser(training), np.ones(len(training))])
        coefficients: Doubles = np.asarray(np.linalg.lstsq(design, labels, rcond=None)[0][:-1])
        suspect, heldout = (
            -normaliser(side[rows]) @ coefficients
            for side, rows in zip((features.suspect, features.heldout), tested, strict=True)
        )
        called = auc(np.append(heldout, suspect), np.arange(len(heldout) + len(suspect)) < len(heldout))
        return _Trial(*t_test(heldout, suspect), float(called), coefficients)

    said = {"procedure": "original", "statistic": REGRESSION, "unit": "difference of regression values"}
    return _answer(features, [trial(k) for k in range(seeds)], {"outliers": outliers}, **said)
