"""Classifiers that see texts and nothing else, by call expressions: `words`, `gpt2(preset='paper')`.

They tell how far apart two sets of texts are whatever any model says of them, and they are the text side of
post-hoc dataset inference's calibration (Zhao et al. 2025, sections 3.2 and 5.6, table 6).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pretrace.baselines.crossfit import READ_CHARACTERS
from pretrace.registry import Registry, require
from pretrace.statistics.words import UNSPACED
from pretrace.tuning.classifier_plan import (
    PAPER,
    SMALL,
    SUREST,
    TUNED,
    How,
    NewClassifier,
    TunedClassifier,
    check_kinds,
)
from pretrace.types import Bools, Doubles, TextClassifier

classifiers: Registry[TextClassifier] = Registry("text classifier")

# In scripts without spaces a character is the unit, and two neighbours the bigram.
_TOKEN = rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]"


@runtime_checkable
class Cutting(Protocol):
    """What a fitted classifier is that may read a text only in part."""

    def cut(self, texts: Sequence[str], /) -> int:
        """How many of the texts are longer than what it reads of them."""
        ...


Unit = Literal["words", "form"]
"""What is counted: words, whatever their case, or the form of a text (`shape`)."""


class Words:
    """TF-IDF of hashed words and word pairs, unit length: memory does not grow with the vocabulary. Or of the form.

    Columns are what occurs in at least two of the texts; `learnt` holds their features, sparse [texts,
    columns], or None without a column. No label is looked at, so it may see the texts of all folds.
    """

    def __init__(self, texts: Sequence[str], unit: Unit = "words") -> None:
        from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

        words = unit == "words"
        self._count = HashingVectorizer(
            analyzer="word" if words else "char",
            preprocessor=_read if words else shape,
            token_pattern=_TOKEN if words else None,
            ngram_range=(1, 2) if words else (1, 3),
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


@classifiers.add("words")
@dataclass(frozen=True)
class BagOfWords:
    """Logistic regression on words, word pairs and punctuation (Das et al. 2024).

    Features are lower-cased TF-IDF of what occurs in at least two of the texts learnt from; in scripts without
    spaces a character is a word. It is the blind baseline of an evaluation.
    """

    def fit(self, texts: Sequence[str], labels: Bools, /, *, seed: int) -> Callable[[Sequence[str]], Doubles]:
        """The fitted classifier, which gives all texts the same probability where no word occurs twice."""
        return _regression(texts, labels, "words")


@classifiers.add("form")
@dataclass(frozen=True)
class Form:
    """Logistic regression on the form of a text, which words do not show (our own).

    Features are TF-IDF of one to three neighbours of `shape`: line breaks, tabs, single or double spaces, capitals,
    quotes, dashes, accents in one or two characters. Two editors or converters differ in these, and a model finds one
    form likelier.
    """

    def fit(self, texts: Sequence[str], labels: Bools, /, *, seed: int) -> Callable[[Sequence[str]], Doubles]:
        """The fitted classifier, as of `words`."""
        return _regression(texts, labels, "form")


def _regression(texts: Sequence[str], labels: Bools, unit: Unit) -> _Linear:
    from sklearn.linear_model import LogisticRegression

    check_kinds(texts, labels)
    words = Words(texts, unit)
    if not words.columns.size:
        return _Linear(None, lambda some: some, float(np.log(labels.mean() / (1 - labels.mean()))))
    return _Linear(LogisticRegression(max_iter=1000).fit(words.learnt, labels), words.of, 0.0)


@dataclass(frozen=True)
class _Linear:
    """A logistic regression on features of texts; without one, the same log-odds for all."""

    regression: Any
    features: Callable[[Sequence[str]], Any]
    otherwise: float

    def __call__(self, texts: Sequence[str]) -> Doubles:
        if self.regression is None or not len(texts):
            return _probability(np.full(len(texts), self.otherwise))
        return _probability(self.regression.decision_function(self.features(texts)))

    def cut(self, texts: Sequence[str]) -> int:
        return sum(len(text) > READ_CHARACTERS for text in texts)


@classifiers.add("gpt2")
def gpt2(
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
    start = PAPER if preset == "paper" else SMALL
    return Gpt2(
        replace(
            start,
            layers=start.layers if layers is None else layers,
            width=start.width if width is None else width,
            heads=start.heads if heads is None else heads,
            epochs=start.epochs if epochs is None else epochs,
            learning_rate=start.learning_rate if learning_rate is None else learning_rate,
        )
    )


@dataclass(frozen=True)
class Gpt2:
    """A transformer trained from scratch on the texts; see `gpt2`."""

    settings: NewClassifier = SMALL

    def fit(self, texts: Sequence[str], labels: Bools, /, *, seed: int) -> Callable[[Sequence[str]], Doubles]:
        """The trained classifier; the same texts, labels and seed give the same."""
        from pretrace.tuning.classifying import fit_new

        return fit_new(texts, labels, self.settings, seed=seed)


@classifiers.add("embeddings")
@dataclass(frozen=True)
class Embeddings:
    """Logistic regression on sentence embeddings, of all-MiniLM-L6-v2 unless told otherwise.

    `model` is a folder or hub id for sentence-transformers, "minilm" the one in the extra `embeddings`.
    """

    model: str = "minilm"

    def fit(self, texts: Sequence[str], labels: Bools, /, *, seed: int) -> Callable[[Sequence[str]], Doubles]:
        """The fitted classifier; MissingPackageError without the extra."""
        from sklearn.linear_model import LogisticRegression

        from pretrace.tuning.embedding import open_embedder

        check_kinds(texts, labels)
        embed = open_embedder(self.model)
        return _Embedded(LogisticRegression(max_iter=1000).fit(embed(texts), labels), embed)


@dataclass(frozen=True)
class _Embedded:
    regression: Any
    embed: Any

    def __call__(self, texts: Sequence[str]) -> Doubles:
        if not len(texts):
            return np.zeros(0)
        return _probability(self.regression.decision_function(self.embed(texts)))

    def cut(self, texts: Sequence[str]) -> int:
        return int(self.embed.cut(texts))


@classifiers.add("pretrained")
def pretrained(
    model: str = "smollm2",
    method: How = "lora",
    epochs: int = 3,
    learning_rate: float | None = None,
    max_tokens: int = 256,
) -> TextClassifier:
    """A model that was trained before, tuned with a classification head (Zhao et al. 2025, table 6).

    `model` is a hub id, a folder, a `.gguf` file or "smollm2": a causal model or one like BERT. `method`
    "lora" trains an adapter, "full" all weights. Beware of a model that was trained on the very texts.
    """
    require(bool(model.strip()), "pretrained: model must name a model, found an empty text.")
    settings = TunedClassifier(
        method=method, epochs=epochs, learning_rate=learning_rate, max_tokens=max_tokens
    )
    return Pretrained(model, settings)


@dataclass(frozen=True)
class Pretrained:
    """A model tuned to tell texts apart; see `pretrained`. `model` may be an opened back end too."""

    model: Any
    settings: TunedClassifier = TUNED

    def fit(self, texts: Sequence[str], labels: Bools, /, *, seed: int) -> Callable[[Sequence[str]], Doubles]:
        """The tuned classifier; ModelError where the model cannot be opened."""
        from pretrace.tuning.classifying import fit_pretrained

        return fit_pretrained(self.model, texts, labels, self.settings, seed=seed)


def _probability(logits: Doubles) -> Doubles:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -SUREST, SUREST))), dtype=np.float64)


def _read(text: str) -> str:
    # A lone surrogate, which JSON can carry, has no UTF-8 form and would stop the hashing.
    return text[:READ_CHARACTERS].encode("utf-8", "replace").decode("utf-8").lower()


def shape(text: str) -> str:
    """The form of a text: its letters and digits by their kind alone, runs of them as one.

    All that is neither letter nor digit stays, white space as a character of its own for each kind.

    >>> shape("Two  words, 300 g")
    'Aa\ue020\ue020a,\ue0200\ue020a'
    """
    read = text[:READ_CHARACTERS].encode("utf-8", "replace").decode("utf-8").translate(_KINDS)
    return _RUN.sub(lambda run: run[1] or run[2], read)


class _Kinds(dict[int, str]):
    """What stands for a character in `shape`."""

    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))
        if chr(code).isspace():
            made = chr(0xE000 + code % 0x1000)
        else:
            made = {"Ll": "a", "Lu": "A", "Lt": "A", "Mn": "m"}.get(
                kind, {"L": "c", "N": "0"}.get(kind[0], chr(code))
            )
        self[code] = made
        return made


_KINDS = _Kinds()
_RUN = re.compile(r"([acm0])\1+|(?<=A)(A)A+")
