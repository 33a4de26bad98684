"""The blind baseline: how well members are told from non-members by one who never saw the model.

Where a classifier of words alone succeeds, the two sets differ as texts, and a membership score may
succeed for the same reason (Das, Zhang and Tramèr 2024, "Blind baselines beat membership inference
attacks for foundation models").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.statistics.documents import MEMBERS, NONMEMBERS, Grouping, Numbers
from pretrace.statistics.splits import grouped_folds, grouped_split
from pretrace.types import Bools, Doubles

WIDENING = math.sqrt(2)
"""Factor on the interval of a cross-fitted figure.

Every pair of texts from different folds enters it twice: each teaches the classifier that judges the
other. Without signal the variance is therefore twice what resampling fixed predictions shows. With a
strong signal the factor is cautious.
"""

FOLDS = 5
FEWEST_TEXTS = 10
"""Of each class; with fewer there is nothing to learn from."""
LEARNT_TEXTS = 20_000
LEARNT_CHARACTERS = 40_000_000
"""The most the classifiers learn from, by whole documents; every text is judged all the same."""
READ_CHARACTERS = 20_000
"""Characters read of one text: some 4,000 tokens."""
CHUNK = 2_000

# Scripts written without spaces: there a character is the unit, and two neighbours the bigram.
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
_TOKEN = rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]"


@dataclass(frozen=True, slots=True, eq=False)
class Blind:
    """What the classifier said: `scores` [texts], higher = member, or None where it could not be trained;
    `note` says why, or what was left out of the training, in a sentence ("" when nothing)."""

    scores: Doubles | None
    note: str = ""


def bag_of_words(texts: Sequence[str], members: Bools, groups: Sequence[str], *, seed: int) -> Blind:
    """Out-of-fold log-odds of membership from a logistic regression on words, word pairs and punctuation.

    Features are lower-cased TF-IDF of what occurs in at least two texts; characters stand for words in
    Chinese and other scripts without spaces. A text is judged by a classifier that learnt from no text
    of its group. Each fold's log-odds are centred on their mean: otherwise a fold with more members than
    its training part would be judged low as a whole, and pooled AUCs would fall below 0.5 by chance alone.
    """
    grouping = Grouping.of(groups, members)
    reason = _too_few(members, grouping)
    if reason:
        return Blind(None, reason)
    folds = min(FOLDS, grouping.holding(MEMBERS), grouping.holding(NONMEMBERS))
    fold = grouped_folds(grouping, folds, seed)
    learnt = learnt_from(texts, members, groups, seed)
    for k in range(folds):
        if len(np.unique(members[learnt & (fold != k)])) < 2:
            return Blind(None, "there are too few documents to learn from some and judge the others.")
    note = ""
    if not learnt.all():
        note = (
            f"The blind classifier learnt from {np.count_nonzero(learnt):,} of the {len(texts):,} texts, "
            "by whole documents, and judged all of them."
        )
    scores = _cross_fitted(texts, members, fold, learnt)
    if scores is None:
        return Blind(None, "no word occurs in two of the texts.")
    return Blind(scores, note)


def _cross_fitted(texts: Sequence[str], members: Bools, fold: Numbers, learnt: Bools) -> Doubles | None:
    """Centred log-odds [texts], or None when no feature occurs twice."""
    from sklearn.linear_model import LogisticRegression

    rows = np.flatnonzero(learnt)
    words = Words([texts[row] for row in rows.tolist()])
    if not words.columns.size:
        return None
    classifiers = [
        LogisticRegression(max_iter=1000).fit(words.learnt[fold[rows] != k], members[rows][fold[rows] != k])
        for k in range(int(fold.max()) + 1)
    ]
    scores = np.empty(len(texts))
    for chunk, features in _features(words, texts, learnt):
        for k, classifier in enumerate(classifiers):
            mine = fold[chunk] == k
            if mine.any():
                scores[chunk[mine]] = classifier.decision_function(features[mine])
    for k in range(len(classifiers)):
        scores[fold == k] -= scores[fold == k].mean()
    return scores


class Words:
    """TF-IDF of hashed words and word pairs, unit length: memory does not grow with the vocabulary.

    Columns are what occurs in at least two of the texts; `learnt` holds their features, sparse [texts,
    columns], or None without a column. No label is looked at, so it may see the texts of all folds.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

        self._count = HashingVectorizer(
            preprocessor=_read,
            token_pattern=_TOKEN,
            ngram_range=(1, 2),
            norm=None,
            alternate_sign=False,
        )
        counts = self._count.transform(texts)
        self.columns: npt.NDArray[np.int64] = np.flatnonzero(counts.getnnz(axis=0) >= 2)
        self._weigh = TfidfTransformer(sublinear_tf=True)
        self.learnt: Any = self._weigh.fit_transform(counts[:, self.columns]) if self.columns.size else None

    def of(self, texts: Sequence[str]) -> Any:
        """Sparse features [texts, columns]."""
        return self._weigh.transform(self._count.transform(texts)[:, self.columns])


def _features(words: Words, texts: Sequence[str], learnt: Bools) -> Iterator[tuple[Numbers, Any]]:
    """Rows and their features: all at once where all were learnt from, else a chunk at a time."""
    if learnt.all():
        yield np.arange(len(texts)), words.learnt
        return
    for start in range(0, len(texts), CHUNK):
        yield np.arange(start, min(start + CHUNK, len(texts))), words.of(texts[start : start + CHUNK])


def _read(text: str) -> str:
    # A lone surrogate, which JSON can carry, has no UTF-8 form and would stop the hashing.
    return text[:READ_CHARACTERS].encode("utf-8", "replace").decode("utf-8").lower()


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


def learnt_from(texts: Sequence[str], members: Bools, groups: Sequence[str], seed: int) -> Bools:
    """Which texts a classifier learns from, bool [texts]: all, or whole documents up to the bounds above."""
    characters = sum(min(len(text), READ_CHARACTERS) for text in texts)
    share = min(LEARNT_TEXTS / len(texts), LEARNT_CHARACTERS / max(1, characters))
    if share >= 1:
        return np.ones(len(texts), dtype=bool)
    return grouped_split(groups, share, seed, labels=members)
