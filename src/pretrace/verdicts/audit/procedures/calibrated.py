"""The calibrated classifiers, cross-fitted by document: what an audit falls back on without a placebo.

It keeps what the paper adds to dataset inference (two classifiers, the weights in (0, 1)) and mends how the
paper tests: whatever is learnt never sees the document it judges, pieces of a document are averaged to one
value, and there is one test. Cross-fitted values are not quite independent, since every two documents teach
each other's judge. Where weights are free that makes z-values √2 too large, and 11.0% of 300 simulated nulls
were rejected at 5% (400 pairs, 40 documents, 23 scores). Weights kept in (0, 1) hardly follow noise, and 4.3%
of the same nulls were. So there is no choice of free weights here.

What it cannot do is tell training on the texts from anything else that the target knows of them and the text
classifier does not: on synthetic held-out texts that is a false alarm which only the controls can see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.statistics.documents import MEMBERS, NONMEMBERS, Grouping, Numbers, by_document
from pretrace.statistics.intervals import difference_interval, mean_interval, standardised
from pretrace.statistics.permutation import sign_flip, two_sample
from pretrace.statistics.roc import auc
from pretrace.types import Answer, Bools, Doubles, Features, TextClassifier
from pretrace.verdicts.audit.document_values import DocumentValues

# Dual-classifier calibration (post-hoc dataset inference, sections 4.2 and 4.3), in numpy, and random halves.
#
# A linear layer turns what a text classifier says of a text into a probability; a second one is given the
# membership scores of the text as well. How much better the second tells suspect from held-out texts is what the
# scores know and the text does not. Both are learnt on one half of the data and used on the other.
#
# **Orientation.** The classifiers predict the label "held-out" (1) against "suspect" (0), and the paper's
# weights are positive for scores that are higher on held-out texts. Scores of this library are higher for
# members, so the layers are fed minus the scores.


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


PAIRED = (
    "mean over documents of [c_comb(held-out) - c_comb(suspect)] - [c_text(held-out) - c_text(suspect)], c the "
    'cross-fitted probability of "held-out", tested with a one-sided sign-flip permutation test'
)
UNPAIRED = (
    "mean over suspect documents of c_text - c_comb minus the same over held-out documents, c the cross-fitted "
    'probability of "held-out", tested with a one-sided two-sample permutation test'
)
UNIT = "difference of probabilities"
FEWEST_DOCUMENTS = 4
"""On either side: some to learn from twice over, and others to judge."""


@dataclass(frozen=True, slots=True)
class CalibratedSettings:
    """`folds` of documents, each judged by what was learnt from the others; `outliers` is the share of each score
    to replace (`calibration.outlier_share`); `flips` are the test's random flips or permutations."""

    folds: int = 5
    outliers: float = 0.2
    flips: int = 10_000

    def __post_init__(self) -> None:
        require(2 <= self.folds <= 5, f"calibrated: folds must be from 2 to 5, found {self.folds}.")


def calibrated(
    features: Features,
    *,
    classifier: TextClassifier,
    seed: int = 0,
    settings: CalibratedSettings = CalibratedSettings(),
) -> Answer:
    """The answer of one permutation test on calibrated values of documents, one value each.

    TextsError with fewer than 10 pieces or 4 documents on a side.
    """
    found = calibrated_values(features, classifier=classifier, seed=seed, settings=settings)
    if features.paired:
        p = sign_flip(found.values, flips=settings.flips, seed=seed)
        effect, size = mean_interval(found.values), standardised(found.values)
    else:
        sides = found.values, found.heldout_values
        p = two_sample(*sides, permutations=settings.flips, seed=seed)
        effect, size = difference_interval(*sides), standardised(*sides)
    return Answer(
        procedure="calibrated",
        p=p,
        statistic=PAIRED if features.paired else UNPAIRED,
        documents=len({*found.documents, *found.heldout_documents}),
        pieces=len(features.suspect),
        effect=effect,
        unit=UNIT,
        standardised=size,
        facts=found.facts,
    )


def calibrated_values(
    features: Features,
    *,
    classifier: TextClassifier,
    seed: int = 0,
    settings: CalibratedSettings = CalibratedSettings(),
) -> DocumentValues:
    """The values that `calibrated` tests, higher where the target knows the suspect text better than its words explain:
    for pairs the difference of both classifiers' differences, averaged a document; for unpaired texts
    c_text - c_comb, averaged a document, on either side. `facts` are AUCs, mean weights and folds.

    The text classifier is fitted twice a fold. TextsError as in `calibrated`.
    """
    check(features)
    pieces = _Pieces.of(features)
    combined, text, weights = _judged(pieces, classifier, seed, settings)
    facts = {
        "auc combined": float(auc(combined, pieces.heldout)),
        "auc text": float(auc(text, pieces.heldout)),
        "weights": dict(zip(("text", *features.names), map(float, weights), strict=True)),
        "folds": min(settings.folds, len(set(pieces.documents))),
        "outliers": settings.outliers,
    }
    n, gained = len(features.suspect), text - combined
    if features.paired:
        documents, values = by_document(gained[:n] - gained[n:], features.suspect_documents)
        return DocumentValues(documents, values, facts=facts)
    return DocumentValues(
        *by_document(gained[:n], features.suspect_documents),
        *by_document(gained[n:], features.heldout_documents),
        facts=facts,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """All pieces of both sides in one table, suspect ones first."""

    features: Doubles
    texts: tuple[str, ...]
    documents: tuple[str, ...]
    heldout: Bools

    @classmethod
    def of(cls, features: Features) -> _Pieces:
        n = len(features.suspect)
        return cls(
            np.vstack([features.suspect, features.heldout]),
            features.suspect_texts + features.heldout_texts,
            features.suspect_documents + features.heldout_documents,
            np.arange(n + len(features.heldout)) >= n,
        )

    def at(self, rows: Numbers) -> list[str]:
        """The texts of some rows."""
        return [self.texts[i] for i in rows.tolist()]


def _judged(
    pieces: _Pieces, classifier: TextClassifier, seed: int, settings: CalibratedSettings
) -> tuple[Doubles, Doubles, Doubles]:
    """Probability of "held-out" from the combined and from the text side, each [pieces] and out of fold, and
    the mean weights of the combined side."""
    grouping = Grouping.of(pieces.documents, pieces.heldout)
    sides = grouping.holding(NONMEMBERS), grouping.holding(MEMBERS)
    if min(sides) < FEWEST_DOCUMENTS:
        raise TextsError(_too_few(*sides))
    rng = np.random.default_rng(seed)
    fold = _dealt(grouping, settings.folds, rng)
    combined, text, weights = np.empty(len(fold)), np.empty(len(fold)), []
    for k in range(int(fold.max()) + 1):
        learnt, tested = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        said, says = _read(pieces, learnt, tested, classifier, rng)
        dual = DualClassifier.fit(
            pieces.features[learnt], said, pieces.heldout[learnt], outliers=settings.outliers, constraint=True
        )
        combined[tested], text[tested] = dual.judge(pieces.features[tested], says)
        weights.append(dual.combined.weights)
    return combined, text, np.asarray(np.mean(weights, axis=0))


def _read(
    pieces: _Pieces, learnt: Numbers, tested: Numbers, classifier: TextClassifier, rng: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """What text classifiers say of the pieces learnt from and of those to be judged, neither seen before.

    Each of two learns from one half of the documents and reads the other, so that the layers above learn how
    far a text classifier can be trusted on texts that are new to it; both read what is to be judged.
    """
    documents = [pieces.documents[i] for i in learnt.tolist()]
    half = _dealt(Grouping.of(documents, pieces.heldout[learnt]), 2, rng)
    said, says = np.empty(len(learnt)), np.zeros(len(tested))
    for k in (0, 1):
        mine, other = learnt[half == k], learnt[half != k]
        if len(np.unique(pieces.heldout[mine])) < 2:  # where some documents hold one side and some hold both
            raise TextsError(
                "the calibrated test found a part of the documents with suspect or held-out texts alone to learn "
                "from: give more documents, and name a document on one side only."
            )
        probability = classifier.fit(
            pieces.at(mine), pieces.heldout[mine], seed=int(rng.integers(np.iinfo(np.int32).max))
        )
        said[half != k] = probability(pieces.at(other))
        says += probability(pieces.at(tested)) / 2
    return said, says


def _dealt(grouping: Grouping, folds: int, rng: np.random.Generator) -> Numbers:
    """The fold of each piece: documents dealt in turn, kind by kind, for as many in every fold as can be."""
    fold = np.zeros(len(grouping), dtype=np.int64)
    order = np.concatenate([rng.permutation(stratum) for stratum in grouping.strata])
    fold[order] = np.arange(len(order)) % folds
    return np.asarray(fold[grouping.codes])


def _too_few(suspect: int, heldout: int) -> str:
    return (
        f"the calibrated test learns from some documents and judges others: it needs {FEWEST_DOCUMENTS} documents on "
        f"each side, found {suspect} suspect and {heldout} held-out ones; give more documents, or name a placebo "
        "model, which needs no learning."
    )
