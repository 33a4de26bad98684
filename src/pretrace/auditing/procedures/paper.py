"""Post-hoc dataset inference to the letter (sections 4.2, 4.3 and D.2; algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrace.auditing.procedures.calibration import DualClassifier, LinearLayer, Normaliser
from pretrace.auditing.procedures.rows import Rows, check, counted, halves
from pretrace.auditing.procedures.student import any_of, averaged, t_test
from pretrace.registry import require
from pretrace.statistics.roc import auc
from pretrace.types import Answer, Doubles, Estimate, Features, TextClassifier

STATISTIC = (
    "mean of c_comb(held-out) - c_comb(suspect) above the mean of c_text(held-out) - c_text(suspect), c the "
    'probability of "held-out", tested with a one-sided {kind} t-test on the half that was not learnt from'
)
UNCALIBRATED = (
    'mean probability of "held-out" from the membership scores alone on held-out texts minus on suspect texts, '
    "tested with a one-sided {kind} t-test on the half that was not learnt from"
)


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """How the paper's test is made; the defaults are the paper's own.

    `seeds` random halves, joined by 1 − Π(1 − p). `constraint` keeps the weights in (0, 1). Without
    `calibrate` the membership scores alone are compared (setting 6 of table 5). `paired` tests the pairs'
    differences, where the release tests the two columns as independent. `outliers` is the share of each
    score to replace: see `calibration.outlier_share`; the default is the paper's for its smallest model.
    """

    seeds: int = 10
    constraint: bool = True
    calibrate: bool = True
    paired: bool = False
    outliers: float = 0.2

    def __post_init__(self) -> None:
        require(self.seeds >= 1, f"paper: seeds must be at least 1, found {self.seeds}.")


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """One split: its p-value and effect, the AUC of either side and the weights, text first."""

    p: float
    effect: Estimate
    auc: float
    auc_text: float | None
    weights: Doubles


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
    check(features)
    trials = []
    for k in range(settings.seeds):
        learnt, tested = halves(features, np.random.default_rng([seed, k]))
        if settings.calibrate:
            said = _read(features, classifier, learnt, tested, seed=seed + k)
            trials.append(_dual(features, learnt, tested, said, settings))
        else:
            trials.append(_scores_alone(features, learnt, tested, settings))
    return Answer(
        procedure="paper",
        p=any_of([trial.p for trial in trials]),
        statistic=(STATISTIC if settings.calibrate else UNCALIBRATED).format(
            kind="paired" if settings.paired else "unpaired"
        ),
        documents=counted(features),
        pieces=len(features.suspect),
        effect=averaged([trial.effect for trial in trials]),
        unit="difference of probabilities",
        facts=_facts(features, trials, settings),
    )


def _read(
    features: Features,
    classifier: TextClassifier,
    learnt: tuple[Rows, Rows],
    tested: tuple[Rows, Rows],
    *,
    seed: int,
) -> tuple[Doubles, Doubles]:
    """What the text classifier says of the training half, which it learnt from, and of the test half."""
    texts, labels = _texts(features, learnt), np.arange(2 * len(learnt[0])) >= len(learnt[0])
    probability = classifier.fit(texts, labels, seed=seed)
    return probability(texts), probability(_texts(features, tested))


def _dual(
    features: Features,
    learnt: tuple[Rows, Rows],
    tested: tuple[Rows, Rows],
    said: tuple[Doubles, Doubles],
    settings: PaperSettings,
) -> _Trial:
    """The calibrated test on one split."""
    n, labels = len(tested[0]), np.arange(2 * len(tested[0])) >= len(tested[0])
    dual = DualClassifier.fit(
        _stacked(features, learnt),
        said[0],
        np.arange(2 * len(learnt[0])) >= len(learnt[0]),
        outliers=settings.outliers,
        constraint=settings.constraint,
    )
    combined, text = dual.judge(_stacked(features, tested), said[1])
    p, effect = t_test(combined[n:] - combined[:n], text[n:] - text[:n], paired=settings.paired)
    return _Trial(p, effect, auc(combined, labels), auc(text, labels), dual.combined.weights)


def _scores_alone(
    features: Features, learnt: tuple[Rows, Rows], tested: tuple[Rows, Rows], settings: PaperSettings
) -> _Trial:
    """The test without calibration on one split."""
    n, inputs = len(tested[0]), _stacked(features, learnt)
    normaliser = Normaliser.learn(inputs, outliers=settings.outliers)
    labels = np.arange(len(inputs)) >= len(learnt[0])
    layer = LinearLayer.fit(-normaliser(inputs), labels, constraint=settings.constraint)
    values = layer(-normaliser(_stacked(features, tested)))
    p, effect = t_test(values[n:], values[:n], paired=settings.paired)
    return _Trial(p, effect, auc(values, np.arange(2 * n) >= n), None, layer.weights)


def _stacked(features: Features, rows: tuple[Rows, Rows]) -> Doubles:
    return np.vstack([features.suspect[rows[0]], features.heldout[rows[1]]])


def _texts(features: Features, rows: tuple[Rows, Rows]) -> list[str]:
    suspect = [features.suspect_texts[i] for i in rows[0].tolist()]
    return suspect + [features.heldout_texts[i] for i in rows[1].tolist()]


def _facts(features: Features, trials: Sequence[_Trial], settings: PaperSettings) -> dict[str, Any]:
    names = (("text",) if settings.calibrate else ()) + features.names
    mean = np.mean([trial.weights for trial in trials], axis=0)
    facts: dict[str, Any] = {
        "p of each seed": [trial.p for trial in trials],
        "auc combined of each seed": [float(trial.auc) for trial in trials],
        "weights": dict(zip(names, map(float, mean), strict=True)),
        "outliers": settings.outliers,
    }
    if settings.calibrate:
        facts["auc text of each seed"] = [float(t.auc_text) for t in trials if t.auc_text is not None]
    return facts
