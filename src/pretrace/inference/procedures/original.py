"""Dataset inference as it was before calibration (Maini et al. 2024; post-hoc DI, section 2.2, eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pretrace.inference.calibration import Normaliser
from pretrace.inference.procedures.rows import check, counted, halves
from pretrace.inference.procedures.student import any_of, averaged, t_test
from pretrace.registry import require
from pretrace.statistics.roc import auc
from pretrace.types import Answer, Doubles, Estimate, Features, TextClassifier

STATISTIC = (
    "mean of a linear regression of the membership scores (suspect 0, held-out 1) on held-out texts minus on "
    "suspect texts, tested with a one-sided t-test on the half that was not learnt from"
)


@dataclass(frozen=True, slots=True)
class OriginalSettings:
    """`seeds` random halves, joined by 1 − Π(1 − p); `outliers` is the share of each score to replace."""

    seeds: int = 10
    outliers: float = 0.05

    def __post_init__(self) -> None:
        require(self.seeds >= 1, f"original: seeds must be at least 1, found {self.seeds}.")


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
    trials = [_trial(features, seed, k, settings.outliers) for k in range(settings.seeds)]
    mean = np.mean([trial.weights for trial in trials], axis=0)
    ps = [trial.p for trial in trials]
    return Answer(
        procedure="original",
        p=any_of(ps),
        statistic=STATISTIC,
        documents=counted(features),
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


class _Trial(NamedTuple):
    """One split: its p-value and effect, the AUC of the regression and its coefficients."""

    p: float
    effect: Estimate
    auc: float
    weights: Doubles


def _trial(features: Features, seed: int, k: int, outliers: float) -> _Trial:
    """Learnt on one random half and tested on the other."""
    learnt, tested = halves(features, np.random.default_rng([seed, k]))
    inputs = np.vstack([features.suspect[learnt[0]], features.heldout[learnt[1]]])
    normaliser = Normaliser.learn(inputs, outliers=outliers)
    coefficients = _regression(-normaliser(inputs), len(learnt[0]))
    suspect = -normaliser(features.suspect[tested[0]]) @ coefficients
    heldout = -normaliser(features.heldout[tested[1]]) @ coefficients
    p, effect = t_test(heldout, suspect)
    called = auc(np.append(heldout, suspect), np.arange(len(heldout) + len(suspect)) < len(heldout))
    return _Trial(p, effect, float(called), coefficients)


def _regression(inputs: Doubles, suspects: int) -> Doubles:
    """Least-squares coefficients for the label "held-out", without the intercept, which no test sees."""
    labels = (np.arange(len(inputs)) >= suspects).astype(np.float64)
    design = np.column_stack([inputs, np.ones(len(inputs))])
    return np.asarray(np.linalg.lstsq(design, labels, rcond=None)[0][:-1])
