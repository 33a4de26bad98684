"""A back end that knows some texts in their order, for the tests of the order test."""

import hashlib

import numpy as np

from pretrace.testing import FakeBackend
from pretrace.types import Corpus, Text


class Reading(FakeBackend):
    """Its log-probability of a character depends on one further up as well, so that no two orders are alike to it; a
    part of that, `blur`, is its own (`salt`), and the rest the same for every model of this kind."""

    def __init__(self, *, blur=0.1, salt=1, **more):
        super().__init__(**more)
        self.fingerprint += f" {blur} {salt}"
        self.blur, self.salt = blur, salt

    def run(self, batch, want, states=frozenset(), /):
        made = super().run(batch, want, states)
        for one, encoded in zip(made, batch, strict=True):
            tokens = encoded.tokens.astype(np.int64)
            before = np.concatenate([np.zeros(9, dtype=np.int64), tokens])[: len(tokens)]
            shared = (tokens * 15485863 + before * 32452843) % 1013 / 1013
            own = (tokens * 49979687 + before * 67867967 + self.salt * 86028121) % 1019 / 1019
            one.logp[:] -= ((1 - self.blur) * shared + self.blur * own)[1:].astype(np.float32)
        return made


class Memorising(Reading):
    """Finds a character likelier where the model has seen it after the same eight characters: the more of a known
    text stands in its known order, the likelier it is."""

    def __init__(self, known, *, gain=0.3, **more):
        super().__init__(**more)
        digest = hashlib.sha256("\x00".join(known).encode()).hexdigest()
        self.fingerprint += f" {digest} {gain}"
        self.gain = gain
        self.seen = {text[i : i + 9] for text in known for i in range(len(text) - 8)}

    def run(self, batch, want, states=frozenset(), /):
        made = super().run(batch, want, states)
        for one, encoded in zip(made, batch, strict=True):
            text = "".join(map(chr, encoded.tokens))
            hits = [text[max(0, i - 8) : i + 1] in self.seen for i in range(1, len(text))]
            one.logp[:] += self.gain * np.array(hits, dtype=np.float32)
        return made


WORDS = (
    *("river", "stone", "lamp", "paper", "window", "garden", "silver"),
    *("winter", "carpet", "letter", "engine", "button", "harbour", "copper"),
)


def row(rng, words=5):
    """A made-up sentence."""
    return " ".join(rng.choice(WORDS, words)) + "."


def made_corpus(rows, *, seed=0, words=5):
    """Rows in an order drawn by lot: by their hash."""
    rng = np.random.default_rng(seed)
    texts = by_hash(row(rng, words) for _ in range(rows))
    return Corpus("set", tuple(Text(f"r{i}", text) for i, text in enumerate(texts)))


def by_hash(texts, before=""):
    """The texts in the order of their SHA-256, behind what stands `before` them."""
    return sorted(texts, key=lambda text: hashlib.sha256((before + text).encode()).hexdigest())
