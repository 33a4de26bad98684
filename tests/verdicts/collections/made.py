"""Made-up collections and a model without weights, for the tests."""

from __future__ import annotations

import numpy as np
from tiny import MORE_WORDS

from pretrace.types import Corpus, Text


def texts(rng, number, words=24):
    return [" ".join(rng.choice(MORE_WORDS, words)) for _ in range(number)]


def made(number=20, documents=6, seed=0, words=24):
    """So many collections of random words, all drawn alike."""
    rng = np.random.default_rng(seed)
    return [
        Corpus(
            f"author {place}",
            tuple(Text(f"d{i}", text) for i, text in enumerate(texts(rng, documents, words))),
            source=f"folder/{place}.jsonl",
        )
        for place in range(number)
    ]


def contents(corpus):
    return [text.text for text in corpus.texts]
