"""The blind baseline: how well a classifier that never saw the model tells members from non-members.

Where a classifier of words alone succeeds, the two sets differ as texts, and a membership score may
succeed for the same reason (Das, Zhang and Tramèr 2024, "Blind baselines beat membership inference
attacks for foundation models"). So too between any two sets: classifier two-sample tests (Lopez-Paz and Oquab
2017), for which a classifier learns from some documents and judges others (Zhao et al. 2025, section 3.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pretrace.baselines.classifiers import (
    FEWEST_TEXTS,
    WIDENING,
    CrossFit,
    Unit,
    WordFeatures,
    share_texts,
)
from pretrace.baselines.classifiers import classifiers as known_classifiers
from pretrace.errors import TextsError
from pretrace.statistics.documents import FEW_DOCUMENTS, MEMBERS, NONMEMBERS, Grouping, Groups, link_documents
from pretrace.statistics.resampling import group_bootstrap
from pretrace.types import Bools, Corpus, Doubles, Gap, Pair, Text, TextClassifier

CHUNK = 2_000


def bag_of_words(
    texts: Sequence[str], members: Bools, groups: Groups, *, seed: int, unit: Unit = "words"
) -> tuple[Doubles | None, str]:
    """Out-of-fold log-odds of membership, centred a fold, from a logistic regression on lower-cased TF-IDF of words,
    word pairs and punctuation in two texts (characters in scripts without spaces), or with `unit` "form" on their form;
    a text is judged by what learnt from no text of its group. Scores [texts], None where nothing was learnt, and a note
    that says why, or on how many texts."""
    every, names = np.ones(len(members), dtype=bool), ("the members", "the non-members")
    if reason := _too_few(every, members, Grouping.of(groups, members), names):
        return None, reason
    division = CrossFit.of(texts, members, groups, seed=seed)
    if division is None:
        return None, "there are too few documents to learn from some and judge the others."
    rows = np.flatnonzero(division.learnt)
    words = WordFeatures([texts[row] for row in rows.tolist()], unit)
    if not words.columns.size:
        return None, "no word occurs in two of the texts."
    note = f"The blind classifier {_learnt(division)} It judged all of them."
    note = note if len(rows) < len(texts) else ""
    return division.scores(_regression(words, texts, members, division.learnt)), note


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


def _too_few(texts: Bools, members: Bools, grouping: Grouping, names: Sequence[str]) -> str:
    """Why these `texts` are too few to learn from some documents and judge others; "" where they are enough."""
    for name, mine, bit in zip(names, (members, ~members), (MEMBERS, NONMEMBERS), strict=True):
        count = np.count_nonzero(texts & mine)
        if count < FEWEST_TEXTS:
            return f"it takes {FEWEST_TEXTS} texts on either side, and there are {count} of {name}."
        if grouping.holding(bit) < 2:
            return (
                f"it takes two documents on either side, and all of {name} are from one, or share texts: give more "
                "documents or a group column, and leave out repeated texts."
            )
    return ""


LENGTH = "length"
"""The row that looks at the number of characters and nothing else."""
_BELOW = (
    "It is below chance. This happens if there are few documents or if each differs from the others; it is no evidence "
    "for or against a difference."
)


def gap(
    a: Corpus,
    b: Corpus,
    classifiers: str | Sequence[str] | Mapping[str, TextClassifier] = "words",
    *,
    seed: int = 0,
    resamples: int = 1000,
) -> tuple[Gap, ...]:
    """The AUC between the texts of `a` and of `b` of each classifier, and of the text's length, in this order.

    `classifiers` are expressions such as "words,gpt2(epochs=4)", or what they name, by name. Each of five folds is
    judged by what was learnt from the others. Documents, and those that share a text, are never divided. Above 0.5 the
    texts of `a` are called rightly; for the length, they are the longer ones. Intervals are 95%, from resampling
    documents. TextsError where texts or documents are too few or a side has no text of its own, ExpressionError for an
    unknown classifier.
    """
    first, second = ({text.text.strip() for text in side.texts} for side in (a, b))
    common = first & second
    if first and second and not (first - common - {""} and second - common - {""}):
        raise TextsError(
            f"a gap lies between two different sets of texts, and every text of one of {a.name} and {b.name} is also "
            "in the other; compare sets that have texts of their own."
        )
    number = [sum(text.text.strip() in common - {""} for text in side.texts) for side in (a, b)]
    same = f"{number[0]:,} texts of A and {number[1]:,} of B" if sum(number) else ""
    sides = {f"set A ({a.name})": _placed(a.texts, "a"), f"set B ({b.name})": _placed(b.texts, "b")}
    return _measured(sides, classifiers, same, seed=seed, resamples=resamples)


def pair_gap(
    pairs: Sequence[Pair],
    classifiers: str | Sequence[str] | Mapping[str, TextClassifier] = "words",
    *,
    seed: int = 0,
    resamples: int = 1000,
) -> tuple[Gap, ...]:
    """As `gap`, between the true and the generated suffixes: both of a pair, and all of a document, stay together."""
    copies = sum(pair.true.strip() == pair.generated.strip() for pair in pairs)
    if copies == len(pairs):
        raise TextsError(
            f"all {len(pairs):,} generated suffixes are the same as the true ones: there is nothing to tell apart; "
            "train the generator on other texts, or sample at a higher temperature."
        )
    same = f"{copies:,} of the {len(pairs):,} generated suffixes" if copies else ""
    true = [Text(f"true {i}", pair.true, group=pair.document) for i, pair in enumerate(pairs)]
    made = [Text(f"made {i}", pair.generated, group=pair.document) for i, pair in enumerate(pairs)]
    sides = {"the true suffixes": true, "the generated ones": made}
    return _measured(sides, classifiers, same, seed=seed, resamples=resamples)


def _placed(texts: Sequence[Text], side: str) -> list[Text]:
    """The texts with document names of their own: two files may number their rows alike, so that without a group the
    same id is no sign of the same document."""
    names = (f"group {one.group}" if one.group else f"{side} {one.id}" for one in texts)
    return [Text(one.id, one.text, group=name) for one, name in zip(texts, names, strict=True)]


def _measured(
    sides: Mapping[str, Sequence[Text]],
    asked: str | Sequence[str] | Mapping[str, TextClassifier],
    same: str,
    *,
    seed: int,
    resamples: int,
) -> tuple[Gap, ...]:
    """A row a classifier of two sides, by name, and one for the length; `same` says what is on either. Documents that
    share a text are one. TextsError where there is not enough to learn from and to judge."""
    every, first = [text for side in sides.values() for text in side], next(iter(sides.values()))
    texts, linked = [text.text for text in every], link_documents(every)
    labels, groups = np.arange(len(texts)) < len(first), [linked[text.document] for text in every]
    written = np.array([bool(text.strip()) for text in texts], dtype=bool)
    if reason := _too_few(written, labels, Grouping.of(groups, labels), [*sides]):
        raise TextsError(f"a gap between two sets of texts cannot be measured: {reason}")
    made = asked if isinstance(asked, Mapping) else known_classifiers.several(asked)
    division = CrossFit.of(texts, labels, groups, seed=seed)
    if division is None:
        raise TextsError(
            "there are too few documents to learn from some and judge the others; give more documents, and "
            "leave out texts that many of them share."
        )
    judged = [_judged(texts, labels, division, classifier, seed) for classifier in made.values()]
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    columns = [*(scores for scores, _ in judged), lengths]
    spread = group_bootstrap(columns, labels, groups=groups, seed=seed, resamples=resamples).auc
    fewest = Grouping.of(groups, labels).fewest
    few = f"Documents on the side with fewer: {fewest} only, so the interval is rough."
    notes = [few] if fewest < FEW_DOCUMENTS else []
    if same:
        notes = [f"{same} are the same on both sides, which brings every AUC nearer to 0.5.", *notes]
    found, number = [], len(texts)
    for k, (name, (_, said)) in enumerate(zip(made, judged, strict=True)):
        auc = spread.widened(k, WIDENING).estimate(k)
        below = [_BELOW] if auc.high < 0.5 else []
        found.append(Gap(name, auc, number, " ".join([*said, *below, *notes])))
    auc = spread.estimate(len(judged))
    longer = [f"The first set's texts are the {'longer' if auc.value > 0.5 else 'shorter'} ones."]
    longer = [] if auc.low <= 0.5 <= auc.high else longer
    return (*found, Gap(LENGTH, auc, number, " ".join([*longer, *notes])))


def _judged(
    texts: Sequence[str], labels: Bools, division: CrossFit, classifier: TextClassifier, seed: int
) -> tuple[Doubles, list[str]]:
    """The centred log-odds of each text, and what there is to say of the classifier."""
    at = share_texts(texts)

    def fit(part: Bools) -> Callable[[Bools], Doubles]:
        judge = classifier.fit(at(part), labels[part], seed=seed)

        def odds(mine: Bools) -> Doubles:
            probability = judge(at(mine))
            return np.asarray(np.log(probability) - np.log1p(-probability))

        return odds

    scores, notes = division.scores(fit), []
    if not scores.any():
        notes.append("It found nothing to learn from, and says the same of every text.")
    if not division.learnt.all():
        notes.append(f"It {_learnt(division)}")
    return scores, notes


def _learnt(division: CrossFit) -> str:
    learnt = np.count_nonzero(division.learnt)
    return f"learnt from {learnt:,} of the {len(division.learnt):,} texts, by whole documents."
