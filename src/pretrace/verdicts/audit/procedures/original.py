"""Dataset inference as it was before calibration (Maini et al. 2024; post-hoc DI, section 2.2, eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pretrace.registry import require
from pretrace.statistics.documents import Numbers
from pretrace.statistics.intervals import any_of, averaged, t_test
from pretrace.statistics.roc import auc
from pretrace.types import Answer, Doubles, Estimate, Features, TextClassifier
from pretrace.verdicts.audit.procedures.dual_classifier import (
    LinearLayer,
    Normaliser,
    check,
    halves,
    scaled_by_suspect,
)

STATISTIC = (
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
    trials = [_trial(features, seed, k, settings) for k in range(settings.seeds)]
    mean = np.mean([trial.weights for trial in trials], axis=0)
    ps = [trial.p for trial in trials]
    return Answer(
        procedure="original",
        p=any_of(ps),
        statistic=STATISTIC.format(model=settings.model),
        documents=len({*features.suspect_documents, *features.heldout_documents}),
        pieces=len(features.suspect),
        effect=averaged([trial.effect for trial in trials]),
        unit="difference of regression values",
        facts={
            "p of each seed": ps,
            "auc of each seed": [trial.auc for trial in trials],
            "weights": dict(zip(features.names, map(float, mean), strict=True)),
            "outliers": settings.outliers,
        },
    )


class _RegressionTrial(NamedTuple):
    """One split: its p-value and effect, the AUC of the regression and its coefficients."""

    p: float
    effect: Estimate
    auc: float
    weights: Doubles


def _trial(features: Features, seed: int, k: int, settings: OriginalSettings) -> _RegressionTrial:
    """Learnt on one random half and tested on the other."""
    rng = np.random.default_rng([seed, k])
    learnt, tested = halves(features, rng)
    scaled = _scaled(features, learnt, settings)
    inputs = np.vstack([scaled[0][learnt[0]], scaled[1][learnt[1]]])
    if settings.model == "linear":
        coefficients = _regression(inputs, len(learnt[0]))
    else:
        coefficients = _logistic(inputs, len(learnt[0]), rng)
    suspect, heldout = scaled[0][tested[0]] @ coefficients, scaled[1][tested[1]] @ coefficients
    p, effect = t_test(heldout, suspect)
    called = auc(np.append(heldout, suspect), np.arange(len(heldout) + len(suspect)) < len(heldout))
    return _RegressionTrial(p, effect, float(called), coefficients)


def _scaled(
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
