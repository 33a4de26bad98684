"""Post-hoc dataset inference as its authors' published code does it, where that differs from the paper.

Kept for comparison. Each side's outliers become that side's own mean, over all texts, before anything is split,
and both sides are scaled by the suspect side: the training half knows something of the test half's labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrace.auditing.procedures.calibration import LinearLayer, scaled_by_suspect
from pretrace.auditing.procedures.rows import Rows, check, counted, halves
from pretrace.auditing.procedures.student import any_of, averaged, t_test
from pretrace.registry import require
from pretrace.statistics.roc import auc
from pretrace.types import Answer, Doubles, Estimate, Features, TextClassifier

STATISTIC = (
    "mean of c_comb(held-out) - c_comb(suspect) above the mean of c_text(held-out) - c_text(suspect), c the "
    'probability of "held-out", outliers replaced side by side over all texts, tested with a one-sided {kind} '
    "t-test on the half that was not learnt from"
)


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
class _Trial:
    """One split: its p-value and effect, the AUC of either side and the weights, text first."""

    p: float
    effect: Estimate
    auc: float
    auc_text: float
    weights: Doubles


@dataclass(frozen=True, slots=True, eq=False)
class _Half:
    """One half of the pairs, suspect texts first: scores as the layers are fed them, texts and labels."""

    scores: Doubles
    texts: list[str]
    heldout: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def of(cls, features: Features, scaled: tuple[Doubles, Doubles], rows: tuple[Rows, Rows]) -> _Half:
        suspect = [features.suspect_texts[i] for i in rows[0].tolist()]
        heldout = [features.heldout_texts[i] for i in rows[1].tolist()]
        labels = np.arange(2 * len(rows[0])) >= len(rows[0])
        return cls(-np.vstack([scaled[0][rows[0]], scaled[1][rows[1]]]), suspect + heldout, labels)

    def with_text(self, said: Doubles) -> Doubles:
        """The inputs of the combined layer."""
        return np.column_stack([said, self.scores])


def release(
    features: Features,
    *,
    classifier: TextClassifier,
    seed: int = 0,
    settings: ReleaseSettings = ReleaseSettings(),
) -> Answer:
    """The answer of the paper's test with the data prepared as in the authors' published code.

    Pieces count as independent, and the level is not kept even for those that are (docs/procedures.md).
    TextsError with too few texts.
    """
    check(features)
    scaled = scaled_by_suspect(
        features.suspect, features.heldout, outliers=settings.outliers, tail=settings.tail
    )
    trials = [_trial(features, scaled, classifier, (seed, k), settings) for k in range(settings.seeds)]
    return Answer(
        procedure="release",
        p=any_of([trial.p for trial in trials]),
        statistic=STATISTIC.format(kind="paired" if settings.paired else "unpaired"),
        documents=counted(features),
        pieces=len(features.suspect),
        effect=averaged([trial.effect for trial in trials]),
        unit="difference of probabilities",
        facts=_facts(features, trials, settings),
    )


def _trial(
    features: Features,
    scaled: tuple[Doubles, Doubles],
    classifier: TextClassifier,
    draw: tuple[int, int],
    settings: ReleaseSettings,
) -> _Trial:
    """One split; both layers start from random weights, as torch draws them."""
    rng = np.random.default_rng(list(draw))
    learnt, tested = (_Half.of(features, scaled, rows) for rows in halves(features, rng))
    read = classifier.fit(learnt.texts, learnt.heldout, seed=sum(draw))
    said, says = read(learnt.texts), read(tested.texts)
    values, layers = [], []
    for inputs, asked in (
        (said[:, None], says[:, None]),
        (learnt.with_text(said), tested.with_text(says)),
    ):
        start = rng.uniform(-1, 1, inputs.shape[1] + 1) / np.sqrt(inputs.shape[1])
        layer = LinearLayer.fit(inputs, learnt.heldout, constraint=settings.constraint, start=start)
        values.append(layer(asked))
        layers.append(layer)
    n, (text, combined) = len(tested.texts) // 2, values
    p, effect = t_test(combined[n:] - combined[:n], text[n:] - text[:n], paired=settings.paired)
    return _Trial(p, effect, auc(combined, tested.heldout), auc(text, tested.heldout), layers[1].weights)


def _facts(features: Features, trials: Sequence[_Trial], settings: ReleaseSettings) -> dict[str, Any]:
    mean = np.mean([trial.weights for trial in trials], axis=0)
    return {
        "p of each seed": [trial.p for trial in trials],
        "auc combined of each seed": [float(trial.auc) for trial in trials],
        "auc text of each seed": [float(trial.auc_text) for trial in trials],
        "weights": dict(zip(("text", *features.names), map(float, mean), strict=True)),
        "outliers": settings.outliers,
        "tail": settings.tail,
    }
