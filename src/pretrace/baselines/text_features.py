"""Numbers that describe a text without any model: its length, how well it compresses, its words and its characters.

Tests that compare texts of two times or collections take off what these numbers predict, or check that they do not
differ.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np

from pretrace.baselines.classifiers import Words
from pretrace.baselines.crossfit import READ_CHARACTERS
from pretrace.statistics.words import words_of
from pretrace.types import Doubles

SURFACE = ("log length", "zlib ratio", "mean word length", "type-token ratio", "punctuation and capitals")
"""The columns of `surface_features`."""


def surface_features(texts: Sequence[str]) -> Doubles:
    """For each text the columns of `SURFACE`, float64 [texts, 5].

    The logarithm of its characters; its bytes compressed by zlib over its bytes; characters a word; different words
    over words; and the share of characters that are capitals or neither letter, digit nor space. Of a text without
    words both figures of words are 0. Only the first 20,000 characters are read, apart from the length.
    """
    return np.array([_described(text) for text in texts], dtype=np.float64).reshape(len(texts), len(SURFACE))


def topic_components(texts: Sequence[str], number: int, *, seed: int = 0) -> Doubles:
    """The texts along their main directions in TF-IDF space, float64 [texts, at most `number`].

    The directions are found from all texts, without labels (truncated singular values, not centred). There are fewer
    than `number` where the texts or their shared words are few, none where no word occurs in two texts.
    """
    from sklearn.decomposition import TruncatedSVD

    rows = Words(texts).learnt
    if rows is None:
        return np.zeros((0, 0))
    height, width = rows.shape
    most = min(number, width - 1, height - 1)
    if most < 1 or not abs(rows).sum():
        return np.zeros((height, 0))
    return np.asarray(TruncatedSVD(most, random_state=seed).fit_transform(rows), dtype=np.float64)


def _described(text: str) -> tuple[float, ...]:
    read = text[:READ_CHARACTERS]
    encoded = read.encode("utf-8", "replace")
    words = words_of(read)
    marks = sum(one.isupper() or not (one.isalnum() or one.isspace()) for one in read)
    return (
        math.log(max(1, len(text))),
        len(zlib.compress(encoded)) / max(1, len(encoded)),
        sum(map(len, words)) / len(words) if words else 0.0,
        len(set(words)) / len(words) if words else 0.0,
        marks / max(1, len(read)),
    )
