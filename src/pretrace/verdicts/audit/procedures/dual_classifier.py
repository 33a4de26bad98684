"""Dual-classifier calibration (post-hoc dataset inference, sections 4.2 and 4.3), in numpy, and random halves.

A linear layer turns what a text classifier says of a text into a probability; a second one is given the membership
scores of the text as well. How much better the second tells suspect from held-out texts is what the scores know and
the text does not. Both are learnt on one half of the data and used on the other.

**Orientation.** The classifiers predict the label "held-out" (1) against "suspect" (0), and the paper's weights are
positive for scores that are higher on held-out texts. Scores of this library are higher for members, so the layers are
fed minus the scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.statistics.documents import Numbers
from pretrace.types import Bools, Doubles, Features

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


def check(features: Features) -> None:
    """TextsError unless both sides have enough pieces, and as many of each where they are paired."""
    n, m = len(features.suspect), len(features.heldout)
    if min(n, m) < FEWEST:
        raise TextsError(
            f"dataset inference needs at least {FEWEST} pieces of text on each side, and hundreds to see anything: "
            f"found {n} suspect and {m} held-out ones; give more texts, or cut them into more snippets."
        )
    if features.paired and n != m:
        raise TextsError(f"paired texts need as many on each side, found {n} suspect and {m} held-out ones.")


def halves(features: Features, rng: np.random.Generator) -> Iterator[tuple[Numbers, Numbers]]:
    """(suspect rows, held-out rows) of the training half, then of the test half; row i of one goes with row i
    of the other.

    Pairs stay together. Texts without a partner get one at random, and what is over on the larger side is
    left out this time.
    """
    n, m = len(features.suspect), len(features.heldout)
    suspect = rng.permutation(n)
    heldout = suspect if features.paired else rng.permutation(m)
    pairs = min(n, m)
    for part in (slice(0, pairs // 2), slice(pairs // 2, pairs)):
        yield suspect[:pairs][part], heldout[:pairs][part]


def outlier_share(parameters: int) -> float:
    """The share of outliers to replace for a target of so many parameters (post-hoc DI, appendix F).

    Straight lines over the logarithm of the parameters join the paper's five values: 0.2 at 410M, 0.15 at
    1B, 0.1 at 1.4B, 0.05 at 2.8B, 0.01 at 6.9B. Outside of them nothing is known: smaller models get 0.2
    and larger ones 0.01, as the nearest does.
    """
    require(parameters > 0, f"a model has at least one parameter, found {parameters}.")
    sizes, shares = zip(*SHARES, strict=True)
    return float(np.interp(np.log(parameters), np.log(sizes), shares))


@dataclass(frozen=True, slots=True, eq=False)
class Normaliser:
    """Outliers replaced and every feature brought to mean 0 and standard deviation 1, as learnt on one half.

    All arrays are [features]: a value below `low` or above `high` becomes `fill`, then `centre` is taken
    off and `spread` divided by.
    """

    low: Doubles
    high: Doubles
    fill: Doubles
    centre: Doubles
    spread: Doubles

    @classmethod
    def learn(cls, features: Doubles, *, outliers: float = 0.0) -> Normaliser:
        """From the features [texts, features] of the training half alone.

        `outliers` is the share of a feature's values to replace, half of them the lowest and half the
        highest; they become the mean of those that stay, for a mean that counts them would be one of them
        where a perplexity runs away. ExpressionError unless 0 <= outliers < 1.
        """
        require(0 <= outliers < 1, f"the share of outliers is 0 or more and below 1, found {outliers}.")
        ranked = np.sort(features, axis=0)
        cut = int(len(ranked) * outliers / 2)
        low, high = ranked[cut], ranked[len(ranked) - 1 - cut]
        fill = _mean(ranked[cut : len(ranked) - cut])
        tamed = np.where((features < low) | (features > high), fill, features)
        centre, spread = _mean(tamed), _spread(tamed)
        return cls(low, high, fill, centre, np.where(spread > 0, spread, 1.0))

    def __call__(self, features: Doubles) -> Doubles:
        """The features of either half [texts, features], with the thresholds of the training half."""
        tamed = np.where((features < self.low) | (features > self.high), self.fill, features)
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((tamed - self.centre) / self.spread, -_FARTHEST, _FARTHEST))


def scaled_by_suspect(
    suspect: Doubles, heldout: Doubles, *, outliers: float, tail: float = 0.0, clip: bool = False
) -> tuple[Doubles, Doubles]:
    """Both sides [texts, features] as the releases prepare them: each side by itself, and over all of its rows.

    Of each side's values of a feature the share `outliers` / 2 that is lowest and the share that is highest
    become that side's mean, outliers included, or with `clip` the nearest of them; `tail` is a further share on
    the side of the least likely texts. Then both sides lose the mean and are divided by the standard deviation
    of the suspect side. Half of the rows are later tested on, and each side's own mean tells which side a value
    is of: this lets the labels of the test half leak. ExpressionError for a share that leaves nothing.
    """
    require(outliers >= 0 and tail >= 0 and outliers + tail < 1, "the shares of outliers leave no text.")
    sides = [_tamed(side, outliers, tail, clip=clip) for side in (suspect, heldout)]
    centre, spread = _mean(sides[0]), _spread(sides[0])
    spread = np.where(spread > 0, spread, 1.0)
    with np.errstate(over="ignore"):
        ready = [np.clip((side - centre) / spread, -_FARTHEST, _FARTHEST) for side in sides]
    return ready[0], ready[1]


@dataclass(frozen=True, slots=True, eq=False)
class LinearLayer:
    """Probability of the label from weighted inputs: σ(inputs · weights + bias)."""

    weights: Doubles
    bias: float

    @classmethod
    def fit(
        cls,
        inputs: Doubles,
        labels: Bools,
        *,
        constraint: bool = True,
        epochs: int = _EPOCHS,
        rate: float = _RATE,
        start: Doubles | None = None,
    ) -> LinearLayer:
        """The layer after `epochs` steps of Adam on the binary cross-entropy of all inputs [texts, inputs].

        With `constraint` the weights are σ(v) of what is learnt, each in (0, 1) (section 4.3, figure 4).
        Learning starts from v = 0 and bias 0, so the same data always give the same layer, or from `start`
        [inputs + 1], the bias last.
        """
        targets = labels.astype(np.float64)
        values = np.zeros(inputs.shape[1] + 1) if start is None else start
        first, second = np.zeros_like(values), np.zeros_like(values)
        for step in range(1, epochs + 1):
            slope = gradient(values, inputs, targets, constraint=constraint)
            first = _BETAS[0] * first + (1 - _BETAS[0]) * slope
            second = _BETAS[1] * second + (1 - _BETAS[1]) * slope**2
            size = np.sqrt(second / (1 - _BETAS[1] ** step)) + _EPSILON
            values = values - rate * first / (1 - _BETAS[0] ** step) / size
        return cls(_weights(values, constraint), float(values[-1]))

    def __call__(self, inputs: Doubles) -> Doubles:
        """Probability of the label for each row of the inputs [texts, inputs]; float64 [texts]."""
        return sigmoid(inputs @ self.weights + self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class DualClassifier:
    """The two layers of section 4.2: over the text classifier's probability alone, and over it and the features."""

    normaliser: Normaliser
    text: LinearLayer
    combined: LinearLayer

    @classmethod
    def fit(
        cls, features: Doubles, said: Doubles, heldout: Bools, *, outliers: float, constraint: bool
    ) -> DualClassifier:
        """From the training half: features [texts, features], higher = member, what the text classifier `said`
        [texts], its probability of "held-out", and which texts are held-out."""
        normaliser = Normaliser.learn(features, outliers=outliers)
        return cls(
            normaliser,
            LinearLayer.fit(said[:, None], heldout, constraint=constraint),
            LinearLayer.fit(_inputs(normaliser, features, said), heldout, constraint=constraint),
        )

    def judge(self, features: Doubles, said: Doubles) -> tuple[Doubles, Doubles]:
        """Probabilities of "held-out" from the combined and from the text side, each [texts]."""
        return self.combined(_inputs(self.normaliser, features, said)), self.text(said[:, None])


def loss(values: Doubles, inputs: Doubles, targets: Doubles, *, constraint: bool) -> float:
    """Mean binary cross-entropy in nats, for `values` = what the weights are made of, then the bias."""
    logits = inputs @ _weights(values, constraint) + values[-1]
    return float((np.logaddexp(0.0, logits) - targets * logits).mean())


def gradient(values: Doubles, inputs: Doubles, targets: Doubles, *, constraint: bool) -> Doubles:
    """The slope of `loss` in each of `values`."""
    weights = _weights(values, constraint)
    wrong = (sigmoid(inputs @ weights + values[-1]) - targets) / len(targets)
    slope = np.append(wrong @ inputs, wrong.sum())
    if constraint:
        slope[:-1] *= weights * (1 - weights)
    return slope


def sigmoid(values: Doubles) -> Doubles:
    """1 / (1 + exp(-values)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


def _weights(values: Doubles, constraint: bool) -> Doubles:
    return sigmoid(values[:-1]) if constraint else values[:-1]


def _tamed(side: Doubles, outliers: float, tail: float, *, clip: bool) -> Doubles:
    """One side with its outliers replaced; features are higher for members, so that the tail is at the low end."""
    cut = int(len(side) * outliers / 2)
    low, order = cut + int(len(side) * tail), np.argsort(side, axis=0)
    tamed, mean = side.copy(), _mean(side)
    for rows, nearest in ((order[:low], low - 1), (order[len(side) - cut :], len(side) - cut)):
        if len(rows):
            fill = np.take_along_axis(side, order[nearest : nearest + 1], axis=0) if clip else mean[None]
            np.put_along_axis(tamed, rows, np.broadcast_to(fill, rows.shape), axis=0)
    return tamed


def _inputs(normaliser: Normaliser, features: Doubles, said: Doubles) -> Doubles:
    return np.column_stack([said, -normaliser(features)])


def _mean(values: Doubles) -> Doubles:
    """Means by column; perplexities reach 1e304, so nothing is summed before it is made small."""
    unit = _unit(values)
    return np.asarray(unit * (values / unit).mean(axis=0))


def _spread(values: Doubles) -> Doubles:
    """Standard deviations by column, 0 where all that varies is rounding."""
    unit = _unit(values)
    spread = (values / unit).std(axis=0)
    return np.asarray(np.where(spread > _ROUNDING, unit * spread, 0.0))


def _unit(values: Doubles) -> Doubles:
    largest = np.abs(values).max(axis=0)
    return np.where(largest > 0, largest, 1.0)
