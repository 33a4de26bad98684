"""The blind baseline: how well a classifier that never saw the model tells members from non-members.

Where a classifier of words alone succeeds, the two sets differ as texts, and a membership score may
succeed for the same reason (Das, Zhang and Tramèr 2024, "Blind baselines beat membership inference
attacks for foundation models").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrace.baselines.classifiers import FEWEST_TEXTS, WIDENING, CrossFit, Unit, WordFeatures
from pretrace.statistics.documents import MEMBERS, NONMEMBERS, Grouping, Groups
from pretrace.statistics.resampling import group_bootstrap
from pretrace.types import Bools, Doubles, Estimate

CHUNK = 2_000
_TELLING = 0.6
"""AUC from which on the two classes of a benchmark are said to be told apart by their words."""


@dataclass(frozen=True, slots=True, eq=False)
class BlindScores:
    """The scores of the blind classifier: `scores` [texts], higher = member, or None where it could not be trained;
    `note` says why, or what was left out of the training, in a sentence ("" when nothing)."""

    scores: Doubles | None
    note: str = ""


def bag_of_words(
    texts: Sequence[str], members: Bools, groups: Groups, *, seed: int, unit: Unit = "words"
) -> BlindScores:
    """Out-of-fold log-odds of membership from a logistic regression on lower-cased TF-IDF of words, word pairs and
    punctuation that occur in two texts (characters in scripts without spaces), or with `unit` "form" on their
    form. A text is judged by a classifier that learnt from no text of its group; log-odds are centred a fold
    (`CrossFit.scores`)."""
    reason = _too_few(members, Grouping.of(groups, members))
    if reason:
        return BlindScores(None, reason)
    division = CrossFit.of(texts, members, groups, seed=seed)
    if division is None:
        return BlindScores(None, "there are too few documents to learn from some and judge the others.")
    rows = np.flatnonzero(division.learnt)
    words = WordFeatures([texts[row] for row in rows.tolist()], unit)
    if not words.columns.size:
        return BlindScores(None, "no word occurs in two of the texts.")
    note = ""
    if len(rows) < len(texts):
        note = (
            f"The blind classifier learnt from {len(rows):,} of the {len(texts):,} texts, "
            "by whole documents, and judged all of them."
        )
    return BlindScores(division.scores(_regression(words, texts, members, division.learnt)), note)


@dataclass(frozen=True, slots=True)
class BlindBaseline:
    """The blind bag-of-words AUC with its 95% interval, None where there are too few texts; the AUC of the texts'
    length; and a sentence."""

    auc: tuple[float, float, float] | None
    length_auc: tuple[float, float, float]
    sentence: str

    @property
    def apart(self) -> bool:
        return self.auc is not None and self.auc[1] > 0.5 and self.auc[0] >= _TELLING

    def plain(self) -> dict[str, object]:
        """For a card."""
        return {
            "bag_of_words_auc": None if self.auc is None else [round(value, 4) for value in self.auc],
            "text_length_auc": [round(value, 4) for value in self.length_auc],
            "tells_apart": self.apart,
            "says": self.sentence,
        }


def blind_baseline(rows: Sequence[Mapping[str, object]], *, seed: int, why: str) -> BlindBaseline:
    """How well words alone tell members from non-members of a benchmark (Das et al. 2024). `rows` have text, label
    (1: member), id and group; `why` is what to bear in mind where they do. TextsError where one side is missing."""
    texts, members = [str(row["text"]) for row in rows], np.array([row["label"] == 1 for row in rows])
    groups = [str(row["group"]) or str(row["id"]) for row in rows]
    judged = bag_of_words(texts, members, groups, seed=seed)
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    columns = [lengths] if judged.scores is None else [lengths, judged.scores]
    spread = group_bootstrap(np.column_stack(columns), members, groups=groups, seed=seed, resamples=200).auc
    auc = None if judged.scores is None else spread.widened(1, WIDENING).estimate(1)
    return BlindBaseline(_figures(auc) if auc else None, _figures(spread.estimate(0)), _sentence(auc, why))


def _regression(
    words: WordFeatures, texts: Sequence[str], members: Bools, learnt: Bools
) -> Callable[[Bools], Callable[[Bools], Doubles]]:
    """Logistic regression on the features of the texts that were `learnt` from; others are read in chunks."""
    from sklearn.linear_model import LogisticRegression

    place = np.cumsum(learnt) - 1  # the row of each text among the features

    def fit(part: Bools) -> Callable[[Bools], Doubles]:
        regression: Any = LogisticRegression(max_iter=1000).fit(words.learnt[place[part]], members[part])

        def odds(mine: Bools) -> Doubles:
            if learnt.all():
                return np.asarray(regression.decision_function(words.learnt[mine]))
            rows = np.flatnonzero(mine).tolist()
            chunks = (rows[at : at + CHUNK] for at in range(0, len(rows), CHUNK))
            said = [regression.decision_function(words.of([texts[i] for i in some])) for some in chunks]
            return np.concatenate(said)

        return odds

    return fit


def _too_few(members: Bools, grouping: Grouping) -> str:
    for word, count, bit in (
        ("members", np.count_nonzero(members), MEMBERS),
        ("non-members", np.count_nonzero(~members), NONMEMBERS),
    ):
        if count < FEWEST_TEXTS:
            return f"it needs {FEWEST_TEXTS} texts of either class, and there are {count} {word}."
        if grouping.holding(bit) < 2:
            return f"it needs two documents of either class, and all {word} are from one."
    return ""


def _figures(auc: Estimate) -> tuple[float, float, float]:
    return auc.value, auc.low, auc.high


def _sentence(auc: Estimate | None, why: str) -> str:
    if auc is None:
        return "Too few texts for a blind baseline: nobody can tell whether the two sides differ as texts."
    known = f"AUC {auc.value:.3f} [{auc.low:.2f}, {auc.high:.2f}]"
    if auc.low <= 0.5:
        return f"A bag of words that never saw a model was not shown to tell the two sides apart ({known})."
    if auc.value < _TELLING:
        return f"A bag of words that never saw a model tells the two sides apart, but hardly ({known})."
    return (
        f"A bag of words that never saw a model tells the two sides apart ({known}): {why} "
        "A membership score that does no better than this shows nothing about membership."
    )
