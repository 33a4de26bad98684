"""Post-hoc dataset inference (Zhao et al. 2025): as its paper says (sections 4.2, 4.3 and D.2; algorithm 2), and as its
authors' published code does it, where that differs; and dataset inference as it was before calibration (Maini et al.
2024; post-hoc DI, section 2.2, eq. 1).

The code is followed for comparison. There each side's outliers become that side's own mean, over all texts, before
anything is split, and both sides are scaled by the suspect side: the training half knows something of the test half's
labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pretrace.registry import require
from pretrace.statistics.documents import Numbers
from pretrace.statistics.intervals import any_of, averaged, t_test
from pretrace.statistics.roc import auc
from pretrace.types import Answer, Bools, Doubles, Estimate, Features, TextClassifier
from pretrace.verdicts.audit.procedures.dual_classifier import (
    DualClassifier,
    LinearLayer,
    Normaliser,
    check,
    halves,
    scaled_by_suspect,
)

STATISTIC = (
    "mean of c_comb(held-out) - c_comb(suspect) above the mean of c_text(held-out) - c_text(suspect), c the "
    'probability of "held-out", {how}tested with a one-sided {kind} t-test on the half that was not learnt from'
)
_BY_SIDE = "outliers replaced side by side over all texts, "
_UNCALIBRATED = (
    'mean probability of "held-out" from the membership scores alone on held-out texts minus on suspect texts, '
    "tested with a one-sided {kind} t-test on the half that was not learnt from"
)


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """How the paper's test is made; the defaults are the paper's own.

    `seeds` random halves, joined by 1 − Π(1 − p). `constraint` keeps the weights in (0, 1). Without
    `calibrate` the membership scores alone are compared (setting 6 of table 5). `paired` tests the pairs'
    differences, where the release tests the two columns as independent. `outliers` is the share of each
    score to replace: see `dual_classifier.outlier_share`; the default is the paper's for its smallest model.
    """

    seeds: int = 10
    constraint: bool = True
    calibrate: bool = True
    paired: bool = False
    outliers: float = 0.2

    def __post_init__(self) -> None:
        require(self.seeds >= 1, f"paper: seeds must be at least 1, found {self.seeds}.")


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """How the published code makes the test; the defaults are those of the command it ships.

    `seeds` random halves, joined by 1 − Π(1 − p). `outliers` is the share of each score to replace on either
    side by itself, `tail` a further share at the end of the least likely texts (the command has 0, the script's
    own defaults are 0.05 and 0.05). `constraint` and `paired` are as in `PaperSettings`.
    """

    seeds: int = 10
    outliers: float = 0.2
    tail: float = 0.0
    constraint: bool = True
    paired: bool = False

    def __post_init__(self) -> None:
        require(self.seeds >= 1, f"release: seeds must be at least 1, found {self.seeds}.")
        shares = f"release: outliers and tail are shares that leave some texts, found {self.outliers} and {self.tail}."
        require(self.outliers >= 0 and self.tail >= 0 and self.outliers + self.tail < 1, shares)


@dataclass(frozen=True, slots=True, eq=False)
class _DualTrial:
    """One split: its p-value and effect, the AUC of either side (None without a text side) and the weights."""

    p: float
    effect: Estimate
    auc: float
    auc_text: float | None
    weights: Doubles


@dataclass(frozen=True, slots=True, eq=False)
class _Half:
    """One half of the pairs, suspect texts first: their scores [texts, scores], texts and which are held-out."""

    scores: Doubles
    texts: list[str]
    heldout: Bools

    @classmethod
    def of(
        cls, features: Features, rows: tuple[Numbers, Numbers], scores: tuple[Doubles, Doubles] | None = None
    ) -> _Half:
        """The half with the features as they are, or with `scores` of suspect and held-out texts in their place."""
        suspect, heldout = scores or (features.suspect, features.heldout)
        texts = [features.suspect_texts[i] for i in rows[0].tolist()]
        texts += [features.heldout_texts[i] for i in rows[1].tolist()]
        return cls(
            np.vstack([suspect[rows[0]], heldout[rows[1]]]), texts, np.arange(len(texts)) >= len(rows[0])
        )

    def trial(self, combined: Doubles, text: Doubles, weights: Doubles, *, paired: bool) -> _DualTrial:
        """The test on this half, from what the combined and the text side say of it."""
        n = len(self.texts) // 2
        p, effect = t_test(combined[n:] - combined[:n], text[n:] - text[:n], paired=paired)
        return _DualTrial(p, effect, auc(combined, self.heldout), auc(text, self.heldout), weights)


def paper(
    features: Features,
    *,
    classifier: TextClassifier,
    seed: int = 0,
    settings: PaperSettings = PaperSettings(),
) -> Answer:
    """The paper's answer: does the combined classifier tell held-out from suspect better than the text alone?

    For each of the seeds the pairs are halved; the text classifier and both linear layers learn from one
    half and are tested on the other. Snippets count as independent, which they are not where a document
    gives several. TextsError with too few texts.
    """

    def trial(k: int) -> _DualTrial:
        learnt, tested = (
            _Half.of(features, rows) for rows in halves(features, np.random.default_rng([seed, k]))
        )
        if not settings.calibrate:
            return _scores_alone(learnt, tested, settings)
        probability = classifier.fit(learnt.texts, learnt.heldout, seed=seed + k)
        said, says = probability(learnt.texts), probability(tested.texts)
        dual = DualClassifier.fit(
            learnt.scores,
            said,
            learnt.heldout,
            outliers=settings.outliers,
            constraint=settings.constraint,
        )
        return tested.trial(*dual.judge(tested.scores, says), dual.combined.weights, paired=settings.paired)

    statistic = (STATISTIC if settings.calibrate else _UNCALIBRATED).format(
        how="", kind=_kind(settings.paired)
    )
    facts = {"outliers": settings.outliers}
    return _answer("paper", features, trial, settings.seeds, statistic=statistic, facts=facts)


def release(
    features: Features,
    *,
    classifier: TextClassifier,
    seed: int = 0,
    settings: ReleaseSettings = ReleaseSettings(),
) -> Answer:
    """The answer of the paper's test with the data prepared as in the authors' published code.

    Pieces count as independent, and the level is not kept even for those that are (docs/procedures.md). Both layers
    start from random weights, as torch draws them. TextsError with too few texts.
    """
    check(features)
    both = features.suspect, features.heldout
    scaled = scaled_by_suspect(*both, outliers=settings.outliers, tail=settings.tail)
    scores = -scaled[0], -scaled[1]

    def trial(k: int) -> _DualTrial:
        rng = np.random.default_rng([seed, k])
        learnt, tested = (_Half.of(features, rows, scores) for rows in halves(features, rng))
        read = classifier.fit(learnt.texts, learnt.heldout, seed=seed + k)
        said, says = read(learnt.texts), read(tested.texts)
        text, combined = (
            _layer(inputs, learnt.heldout, rng, settings.constraint)
            for inputs in (said[:, None], np.column_stack([said, learnt.scores]))
        )
        values = combined(np.column_stack([says, tested.scores]))
        return tested.trial(values, text(says[:, None]), combined.weights, paired=settings.paired)

    statistic = STATISTIC.format(how=_BY_SIDE, kind=_kind(settings.paired))
    facts = {"outliers": settings.outliers, "tail": settings.tail}
    return _answer("release", features, trial, settings.seeds, statistic=statistic, facts=facts)


def _scores_alone(learnt: _Half, tested: _Half, settings: PaperSettings) -> _DualTrial:
    normaliser = Normaliser.learn(learnt.scores, outliers=settings.outliers)
    layer = LinearLayer.fit(-normaliser(learnt.scores), learnt.heldout, constraint=settings.constraint)
    values = layer(-normaliser(tested.scores))
    n = len(tested.texts) // 2
    p, effect = t_test(values[n:], values[:n], paired=settings.paired)
    return _DualTrial(p, effect, auc(values, tested.heldout), None, layer.weights)


def _layer(inputs: Doubles, heldout: Bools, rng: np.random.Generator, constraint: bool) -> LinearLayer:
    start = rng.uniform(-1, 1, inputs.shape[1] + 1) / np.sqrt(inputs.shape[1])
    return LinearLayer.fit(inputs, heldout, constraint=constraint, start=start)


def _answer(
    procedure: str,
    features: Features,
    trial: Callable[[int], _DualTrial],
    seeds: int,
    *,
    statistic: str,
    facts: dict[str, Any],
) -> Answer:
    """The answer of so many trials, joined."""
    check(features)
    trials = [trial(k) for k in range(seeds)]
    texts = [one.auc_text for one in trials if one.auc_text is not None]
    names = (("text",) if texts else ()) + features.names
    mean = np.mean([one.weights for one in trials], axis=0)
    found: dict[str, Any] = {
        "auc combined of each seed": [float(one.auc) for one in trials],
        "weights": dict(zip(names, map(float, mean), strict=True)),
        **facts,
    }
    if texts:
        found["auc text of each seed"] = [float(one) for one in texts]
    return _joined(procedure, features, trials, statistic, "difference of probabilities", found)


def _joined(
    procedure: str,
    features: Features,
    trials: Sequence[_DualTrial | _RegressionTrial],
    statistic: str,
    unit: str,
    facts: Mapping[str, Any],
) -> Answer:
    """The answer of several splits, their p-values joined by 1 − Π(1 − p)."""
    ps = [one.p for one in trials]
    return Answer(
        procedure=procedure,
        p=any_of(ps),
        statistic=statistic,
        documents=len({*features.suspect_documents, *features.heldout_documents}),
        pieces=len(features.suspect),
        effect=averaged([one.effect for one in trials]),
        unit=unit,
        facts={"p of each seed": ps, **facts},
    )


def _kind(paired: bool) -> str:
    return "paired" if paired else "unpaired"


REGRESSION = (
    "mean of a {model} regression of the membership scores (suspect 0, held-out 1) on held-out texts minus on "
    "suspect texts, tested with a one-sided t-test on the half that was not learnt from"
)


MODELS = ("linear", "logistic")
_LOGISTIC_STEPS = 1000
"""Steps of Adam, as many as the published code takes."""


@dataclass(frozen=True, slots=True)
class OriginalSettings:
    """How dataset inference without calibration is made; the defaults follow the paper's text.

    `seeds` random halves, joined by 1 − Π(1 − p); `outliers` is the share of each score to replace. `model` is
    the "linear" regression of the text, or the "logistic" one of the published code. With `by_side` outliers are
    not replaced as the training half says: each side is clipped at its own quantiles and scaled by the suspect
    side, over all texts, as the published code does.
    """

    seeds: int = 10
    outliers: float = 0.05
    model: str = "linear"
    by_side: bool = False

    @classmethod
    def of_release(cls, *, seeds: int = 1) -> OriginalSettings:
        """The defaults of the code of Maini et al. 2024: one split, logistic, each side clipped by itself."""
        return cls(seeds=seeds, model="logistic", by_side=True)

    def __post_init__(self) -> None:
        require(self.seeds >= 1, f"original: seeds must be at least 1, found {self.seeds}.")
        known = " or ".join(map(repr, MODELS))
        require(self.model in MODELS, f"original: model must be {known}, found {self.model!r}.")


def original(
    features: Features,
    *,
    classifier: TextClassifier | None = None,
    seed: int = 0,
    settings: OriginalSettings = OriginalSettings(),
) -> Answer:
    """Held-out dataset inference: do held-out texts get higher values than suspect ones?

    It cannot tell a model that saw the texts from a held-out set that differs as text, and rejects for either.
    `classifier` is not asked. TextsError with too few texts.
    """
    check(features)
    trials = [_regression_trial(features, seed, k, settings) for k in range(settings.seeds)]
    mean = np.mean([trial.weights for trial in trials], axis=0)
    facts = {
        "auc of each seed": [trial.auc for trial in trials],
        "weights": dict(zip(features.names, map(float, mean), strict=True)),
        "outliers": settings.outliers,
    }
    statistic = REGRESSION.format(model=settings.model)
    return _joined("original", features, trials, statistic, "difference of regression values", facts)


class _RegressionTrial(NamedTuple):
    """One split: its p-value and effect, the AUC of the regression and its coefficients."""

    p: float
    effect: Estimate
    auc: float
    weights: Doubles


def _regression_trial(features: Features, seed: int, k: int, settings: OriginalSettings) -> _RegressionTrial:
    """Learnt on one random half and tested on the other."""
    rng = np.random.default_rng([seed, k])
    learnt, tested = halves(features, rng)
    scaled = _scaled_sides(features, learnt, settings)
    inputs = np.vstack([scaled[0][learnt[0]], scaled[1][learnt[1]]])
    if settings.model == "linear":
        coefficients = _regression(inputs, len(learnt[0]))
    else:
        coefficients = _logistic(inputs, len(learnt[0]), rng)
    suspect, heldout = scaled[0][tested[0]] @ coefficients, scaled[1][tested[1]] @ coefficients
    p, effect = t_test(heldout, suspect)
    called = auc(np.append(heldout, suspect), np.arange(len(heldout) + len(suspect)) < len(heldout))
    return _RegressionTrial(p, effect, float(called), coefficients)


def _scaled_sides(
    features: Features, learnt: tuple[Numbers, Numbers], settings: OriginalSettings
) -> tuple[Doubles, Doubles]:
    """Minus the scores of all suspect and of all held-out texts, without outliers and scaled."""
    if settings.by_side:
        sides = scaled_by_suspect(features.suspect, features.heldout, outliers=settings.outliers, clip=True)
        return -sides[0], -sides[1]
    training = np.vstack([features.suspect[learnt[0]], features.heldout[learnt[1]]])
    normaliser = Normaliser.learn(training, outliers=settings.outliers)
    return -normaliser(features.suspect), -normaliser(features.heldout)


def _logistic(inputs: Doubles, suspects: int, rng: np.random.Generator) -> Doubles:
    """Coefficients of a logistic regression for the label "held-out" after `_LOGISTIC_STEPS` of Adam."""
    start = rng.uniform(-1, 1, inputs.shape[1] + 1) / np.sqrt(inputs.shape[1])
    labels = np.arange(len(inputs)) >= suspects
    return LinearLayer.fit(inputs, labels, constraint=False, epochs=_LOGISTIC_STEPS, start=start).weights


def _regression(inputs: Doubles, suspects: int) -> Doubles:
    labels = (np.arange(len(inputs)) >= suspects).astype(np.float64)
    design = np.column_stack([inputs, np.ones(len(inputs))])
    return np.asarray(np.linalg.lstsq(design, labels, rcond=None)[0][:-1])
