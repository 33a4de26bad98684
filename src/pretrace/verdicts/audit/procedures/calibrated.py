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
from pretrace.verdicts.audit.procedures.calibration import DualClassifier, check

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
