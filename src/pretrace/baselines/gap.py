"""How far apart two sets of texts are, told by classifiers that never see a model (Zhao et al. 2025, section 3.2).

A classifier learns from the texts of some documents and judges those of others; its AUC is 0.5 where it cannot
tell the sets apart. Where it can, a membership score may tell them apart for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pretrace.baselines.blind import FOLDS, WIDENING, learnt_from
from pretrace.baselines.classifiers import Cutting, classifiers
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.statistics.documents import MEMBERS, NONMEMBERS, Grouping, Numbers, linked
from pretrace.statistics.resampling import group_bootstrap
from pretrace.statistics.splits import grouped_folds, grouped_split
from pretrace.types import Bools, Corpus, Doubles, Estimate, Gap, Pair, Text, TextClassifier

Split = int | Literal["halves"]

LENGTH = "length"
"""The row that looks at the number of characters and nothing else."""
FEWEST_TEXTS = 10
"""On each side; with fewer there is nothing to learn from."""
FEW_DOCUMENTS = 20
"""On each side; with fewer an interval is rough."""


def gap(
    a: Corpus,
    b: Corpus,
    classifiers: str | Sequence[str] = "words",
    *,
    seed: int = 0,
    resamples: int = 1000,
    split: Split = FOLDS,
) -> tuple[Gap, ...]:
    """The AUC between the texts of `a` and of `b` of each classifier, and of the text's length, in this order.

    `classifiers` are expressions such as "words,gpt2(epochs=4)". `split` is the number of folds, each judged by
    what was learnt from the others, or "halves": learn from one half, judge the other (section 3.2). Documents,
    and those that share a text, are never divided. Above 0.5 the texts of `a` are called rightly; for the length,
    they are the longer ones. Intervals are 95%, from resampling documents. TextsError where texts or documents
    are too few or a side has no text of its own, ExpressionError for an unknown classifier.
    """
    # Two files may number their rows alike: without a group, the same id is no sign of the same document.
    texts = [_placed(text, "a") for text in a.texts] + [_placed(text, "b") for text in b.texts]
    labels = np.arange(len(texts)) < len(a.texts)
    sides = _sides(texts, labels, (f"set A ({a.name})", f"set B ({b.name})"))
    shared = _shared(sides)
    if shared[labels].all() or shared[~labels].all():
        raise TextsError(
            f"a gap lies between two different sets of texts, and every text of one of {a.name} and {b.name} is also "
            "in the other; compare sets that have texts of their own."
        )
    shared &= np.array([bool(text.strip()) for text in sides.texts], dtype=bool)
    notes = []
    if shared.any():
        notes.append(
            f"{np.count_nonzero(shared & labels):,} texts of A and {np.count_nonzero(shared & ~labels):,} of B are "
            "the same on both sides: nobody can tell those apart, which brings every AUC nearer to 0.5."
        )
    return _measured(sides, classifiers, notes, seed=seed, resamples=resamples, split=split)


def pair_gap(
    pairs: Sequence[Pair],
    classifiers: str | Sequence[str] = "words",
    *,
    seed: int = 0,
    resamples: int = 1000,
    split: Split = FOLDS,
) -> tuple[Gap, ...]:
    """The AUC between the true and the generated suffixes of each classifier, and of their length.

    As `gap`, with the true suffixes as `a`: both texts of a pair, and all of a document, are always together.
    """
    texts = [Text(f"true {i}", pair.true, group=pair.document) for i, pair in enumerate(pairs)]
    texts += [Text(f"made {i}", pair.generated, group=pair.document) for i, pair in enumerate(pairs)]
    sides = _sides(texts, np.arange(len(texts)) < len(pairs), ("the true suffixes", "the generated ones"))
    copies = sum(pair.true.strip() == pair.generated.strip() for pair in pairs)
    if copies == len(pairs):
        raise TextsError(
            f"all {len(pairs):,} generated suffixes are the same as the true ones: there is nothing to tell apart; "
            "train the generator on other texts, or sample at a higher temperature."
        )
    notes = []
    if copies:
        notes.append(
            f"{copies:,} of the {len(pairs):,} generated suffixes are the same as the true ones: nobody can tell "
            "those apart, which brings every AUC nearer to 0.5."
        )
    return _measured(sides, classifiers, notes, seed=seed, resamples=resamples, split=split)


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """Texts of two kinds: `labels` True for the first; documents that share a text have one name in `groups`."""

    texts: tuple[str, ...]
    labels: Bools
    groups: tuple[str, ...]
    grouping: Grouping


def _placed(text: Text, side: str) -> Text:
    """The text with a document's name of its own: its group's, on either side, or its side and id."""
    return Text(text.id, text.text, group=f"group {text.group}" if text.group else f"{side} {text.id}")


def _sides(texts: Sequence[Text], labels: Bools, names: tuple[str, str]) -> _Sides:
    """The two sides, once there is enough to learn from and to judge; TextsError where there is not."""
    written = np.array([bool(text.text.strip()) for text in texts], dtype=bool)
    for name, mine in zip(names, (labels, ~labels), strict=True):
        found = int(np.count_nonzero(written & mine))
        if found < FEWEST_TEXTS:
            raise TextsError(
                f"a gap is measured between at least {FEWEST_TEXTS} texts a side that are not empty, and "
                f"{name} has {found}; give more texts."
            )
    first = linked(texts)
    groups = tuple(first[text.document] for text in texts)
    grouping = Grouping.of(groups, labels)
    for name, mine, bit in zip(names, (labels, ~labels), (MEMBERS, NONMEMBERS), strict=True):
        if grouping.holding(bit) >= 2:
            continue
        named = len({text.document for text, wanted in zip(texts, mine, strict=True) if wanted})
        if named < 2:
            raise TextsError(
                f"a gap is learnt from some documents and measured on others, and all texts of {name} are from one "
                "document; give more documents, or name those there are in a group column."
            )
        raise TextsError(
            f"a gap is learnt from some documents and measured on others, and the {named:,} documents of {name} "
            "all share texts with one another; leave out the texts that are repeated."
        )
    return _Sides(tuple(text.text for text in texts), labels, groups, grouping)


def _shared(sides: _Sides) -> Bools:
    """Which texts are on the other side too, white space at the ends aside; empty ones count as both."""
    contents = [text.strip() for text in sides.texts]
    mine = {content for content, label in zip(contents, sides.labels, strict=True) if label}
    theirs = {content for content, label in zip(contents, sides.labels, strict=True) if not label}
    both = (mine & theirs) | {""}
    return np.array([content in both for content in contents], dtype=bool)


def _measured(
    sides: _Sides,
    expressions: str | Sequence[str],
    notes: Sequence[str],
    *,
    seed: int,
    resamples: int,
    split: Split,
) -> tuple[Gap, ...]:
    """A row a classifier, and one for the length."""
    written = expressions if isinstance(expressions, str) else ",".join(expressions)
    made = {name: classifiers.make(name) for name in classifiers.split(written)}
    trial = _Trial.of(sides, split, seed)
    judged = [trial.judged(classifier) for classifier in made.values()]
    lengths = np.array([len(text) for text in sides.texts], dtype=np.float64)
    matrix = np.column_stack([*(one.scores for one in judged), lengths])[trial.tested]
    labels = sides.labels[trial.tested]
    groups = [sides.groups[row] for row in trial.tested.tolist()]
    spread = group_bootstrap(matrix, labels, groups=groups, seed=seed, resamples=resamples).auc
    few = _few(Grouping.of(groups, labels))
    rows = []
    for k, (name, one) in enumerate(zip(made, judged, strict=True)):
        auc = (spread.widened(k, WIDENING) if trial.crossed else spread).estimate(k)
        rows.append(Gap(name, auc, len(labels), " ".join([*one.notes, *_below(auc), *notes, *few])))
    auc = spread.estimate(len(judged))
    return (*rows, Gap(LENGTH, auc, len(labels), " ".join([*_longer(auc), *notes, *few])))


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """What a classifier said: log-odds [texts], 0 where it was not asked, and what there is to say of it."""

    scores: Doubles
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Who learns from what: the texts of each fold of `order` are judged by what was learnt from the others."""

    sides: _Sides
    fold: Numbers
    order: tuple[int, ...]
    learnt: Bools
    seed: int

    @classmethod
    def of(cls, sides: _Sides, split: Split, seed: int) -> _Trial:
        """The division of the documents; TextsError where a part of them would lack one of the sides."""
        require(
            split == "halves" or (isinstance(split, int) and split >= 2),
            f"gap: split must be 2 folds or more, or 'halves', found {split!r}.",
        )
        if isinstance(split, int):
            folds = min(split, sides.grouping.holding(MEMBERS), sides.grouping.holding(NONMEMBERS))
            fold, order = grouped_folds(sides.grouping, folds, seed), tuple(range(folds))
        else:
            fold = (~grouped_split(sides.groups, 0.5, seed, labels=sides.labels)).astype(np.int64)
            order = (1,)
        trial = cls(sides, fold, order, learnt_from(sides.texts, sides.labels, sides.groups, seed), seed)
        parts = [trial.learnt & (fold != k) for k in order]
        if any(len(np.unique(sides.labels[part])) < 2 for part in [*parts, np.isin(fold, order)]):
            raise TextsError(
                "there are too few documents to learn from some and judge the others; give more documents, and "
                "leave out texts that many of them share."
            )
        return trial

    @property
    def crossed(self) -> bool:
        """Whether every text is judged, by several classifiers that learnt from each other's texts."""
        return len(self.order) > 1

    @property
    def tested(self) -> Numbers:
        """The rows that are judged."""
        return np.flatnonzero(np.isin(self.fold, self.order))

    def judged(self, classifier: TextClassifier) -> _Judged:
        """The log-odds of each text, centred a fold: a fold with more texts of a kind than its training part had
        would be judged low as a whole, and pooled AUCs would fall below 0.5 by chance alone."""
        scores, cut = np.zeros(len(self.fold)), 0
        for k in self.order:
            learnt, mine = self.learnt & (self.fold != k), self.fold == k
            judge = classifier.fit(self._at(learnt), self.sides.labels[learnt], seed=self.seed)
            probability = judge(self._at(mine))
            odds = np.log(probability) - np.log1p(-probability)
            scores[mine] = odds - odds.mean()
            if isinstance(judge, Cutting):
                cut += judge.cut(self._at(mine))
        return _Judged(scores, tuple(self._notes(scores, cut)))

    def _at(self, rows: Bools) -> list[str]:
        return [self.sides.texts[row] for row in np.flatnonzero(rows).tolist()]

    def _notes(self, scores: Doubles, cut: int) -> list[str]:
        notes, texts = [], len(self.tested)
        if not scores.any():
            notes.append("It found nothing to learn from, and says the same of every text.")
        if cut:
            notes.append(f"It reads only the beginning of {cut:,} of the {texts:,} texts.")
        if not self.learnt.all():
            notes.append(
                f"It learnt from {np.count_nonzero(self.learnt):,} of the {len(self.learnt):,} texts, by whole "
                "documents."
            )
        return notes


def _below(auc: Estimate) -> list[str]:
    if auc.high >= 0.5:
        return []
    return [
        "It falls below chance, which happens when documents are few or each unlike the rest: that speaks neither for "
        "nor against a difference."
    ]


def _longer(auc: Estimate) -> list[str]:
    if auc.low <= 0.5 <= auc.high:
        return []
    return [f"The first set's texts are the {'longer' if auc.value > 0.5 else 'shorter'} ones."]


def _few(grouping: Grouping) -> list[str]:
    fewest = min(grouping.holding(MEMBERS), grouping.holding(NONMEMBERS))
    if fewest >= FEW_DOCUMENTS:
        return []
    counted = "document" if fewest == 1 else "documents"
    return [f"One side comes from {fewest} {counted} only: the interval is rough."]
