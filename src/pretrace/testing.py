"""What a user needs to test a score of their own: made-up evidence, and a back end without a model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.rewrites import disturbances, rewrites
from pretrace.types import (
    Continued,
    Drawn,
    Encoded,
    Evidence,
    Firing,
    Hidden,
    Peak,
    Quantity,
    States,
    Text,
    Trace,
    View,
)

Numbers = Sequence[float] | npt.NDArray[Any]


def make_trace(
    logp: Numbers,
    *,
    tokens: Sequence[int] | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
) -> Trace:
    """A trace of the given log-probabilities; tokens are 0, 1, 2, … unless given."""
    ids = range(len(logp)) if tokens is None else tokens
    return Trace(
        tokens=np.array(ids, dtype=np.int32),
        logp=np.array(logp, dtype=np.float32),
        mean=None if mean is None else np.array(mean, dtype=np.float32),
        std=None if std is None else np.array(std, dtype=np.float32),
    )


def make_evidence(text: str = "three little tokens", **views: Any) -> Evidence:
    """Evidence of one text: `logp`, `tokens`, `mean`, `std` of the plain view, and by name the
    log-probabilities of other views, `lower=[…]`, `typos=[…]` (with its defaults), or of other models:
    `reference=[…]`, `tuned=[…]`."""
    plain = {key: views.pop(key) for key in ("logp", "tokens", "mean", "std") if key in views}
    known = {View(): (make_trace(**plain),)}
    for name, logp in views.items():
        if name in disturbances:
            view = View(rewrite=disturbances.make(name).name)
        else:
            view = View(rewrite=name) if name in rewrites else View(model=name)
        known[view] = (make_trace(logp),)
    return Evidence(Text("made-up", text), known)


class FakeBackend:
    """A back end that needs no model: a token is a character, and its log-probability is a fixed
    pseudo-random number that depends on the character and the one before, higher for `familiar` texts.
    It has 4 layers of 32 neurons, which depend on the character and on whether the text is familiar; the
    first 16 are its hidden states, those of the last layer standing for the output as well."""

    offers = ~Quantity.NONE  # everything
    tokenizer_hash = "characters"
    vocabulary = 1 << 16

    def __init__(self, familiar: Sequence[str] = (), *, name: str = "fake", max_tokens: int = 4096) -> None:
        self.name = name
        self.max_tokens = max_tokens
        self.familiar = frozenset(familiar)
        digest = hashlib.sha256("\x00".join(sorted(self.familiar)).encode("utf-8", "replace")).hexdigest()
        self.fingerprint = f"fake {name} {max_tokens} {digest}"
        self.facts: Mapping[str, Any] = {"name": name, "family": "fake", "vocabulary": self.vocabulary}

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        """One token a character."""
        made = []
        for text in texts:
            ids = np.array([ord(character) % self.vocabulary for character in text], dtype=np.int32)
            cut = max(0, len(ids) - self.max_tokens)
            made.append(Encoded(np.zeros(0, dtype=np.int32), ids[: self.max_tokens], cut))
        return made

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Every character is a token."""
        starts = np.arange(len(text), dtype=np.int64)
        return np.stack([starts, starts + 1], axis=1)

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """Four texts a batch."""
        order = [i for i, e in enumerate(encoded) if e.predicted]
        return [tuple(order[i : i + 4]) for i in range(0, len(order), 4)]

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        """Traces whose numbers depend on the text alone."""
        return [self._trace(e, want, states) for e in batch]

    def _trace(self, encoded: Encoded, want: Quantity, states: States) -> Trace:
        behind = (
            len(encoded.prefix) > 0
        )  # another text stands before it, and what is familiar is not recognised
        tokens = np.concatenate([encoded.prefix[-1:], encoded.tokens]).astype(np.int64)
        known = not behind and "".join(map(chr, tokens)) in self.familiar
        noise = (tokens[1:] * 7919 + tokens[:-1] * 104729) % 1009 / 1009
        after = len(encoded.prefix) % 13 / 100 if behind else 0.0
        logp = (-0.5 - 4 * noise + (1.0 if known else 0.0) - after).clip(max=-0.01).astype(np.float32)
        moments = Quantity.MOMENTS in want
        mean = np.full_like(logp, -2.5) if moments else None
        std = np.full_like(logp, 1.5) if moments else None
        inside = _activations(tokens, known=known) if states else np.zeros(0)
        found: dict[Firing | Hidden | Drawn | Peak | Continued, npt.NDArray[Any]] = {}
        for state in states:
            found[state] = _state(state, tokens[1:], logp, inside, known=known)
        return Trace(tokens[1:].astype(np.int32), logp, mean, std, encoded.cut, found)


def _activations(tokens: npt.NDArray[np.int64], *, known: bool) -> npt.NDArray[np.float64]:
    """Made-up activations [positions, layers, neurons]; above 1 a third of them in known texts alone, another
    third in others alone."""
    layers, neurons = np.arange(4)[:, None], np.arange(32)[None, :]
    noise = (tokens[:, None, None] * 7919 + layers * 104729 + neurons * 1299709) % 1009 / 1009
    more = neurons % 3 == (0 if known else 1)
    return np.asarray(0.9 * noise + 0.3 * more, dtype=np.float64)


def _state(
    state: Firing | Hidden | Drawn | Peak | Continued,
    tokens: npt.NDArray[np.int64],
    logp: npt.NDArray[np.float32],
    inside: npt.NDArray[np.float64],
    *,
    known: bool,
) -> npt.NDArray[Any]:
    if isinstance(state, Continued):  # the end of a familiar text as it is, and of another one backwards
        end = tokens[state.read(len(tokens)) :].astype(np.int32)
        return np.repeat((end if known else end[::-1])[None], state.samples, axis=0)
    if isinstance(state, Peak):  # as if the likeliest token were that of probability e^-1 or more
        return np.maximum(logp, np.float32(-1.0))
    if isinstance(state, Drawn):  # as if the likeliest tokens were those of e^-4 or more
        return np.where(logp >= -4, logp, -np.inf).astype(np.float32)
    if isinstance(state, Hidden):
        last = np.concatenate([inside[-1], inside[-1, -1:]])[:, :16].astype(np.float32)
        return last if state.layer is None else last[state.layer]
    if state.pool == "count":
        return np.asarray((inside > state.threshold).sum(axis=0), dtype=np.uint32)
    pooled = inside.max(axis=0) if state.pool == "any" else inside.mean(axis=0)
    return np.asarray(np.packbits(pooled > state.threshold, axis=-1))
