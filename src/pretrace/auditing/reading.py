"""What a model says of the pieces in question: log-probabilities of a text given what stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.auditing.sides import Piece, Sides
from pretrace.cache.traces import open_store
from pretrace.errors import ModelError
from pretrace.scoring.evidence import Progress, trace
from pretrace.types import Backend, Doubles, Quantity, Trace


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What one model said of n pieces: of each the log-probabilities of the tokens that count, in nats, and its
    size in UTF-8 `bytes` [n], for models whose tokens differ."""

    logp: tuple[Doubles, ...]
    bytes: npt.NDArray[np.int64]

    @property
    def total(self) -> Doubles:
        """Log-probability of each piece, in nats, [n]."""
        return np.array([one.sum() for one in self.logp])

    @property
    def tokens(self) -> npt.NDArray[np.int64]:
        """How many tokens of each piece count, [n]."""
        return np.array([len(one) for one in self.logp])

    @property
    def per_token(self) -> Doubles:
        """Mean log-probability a token, in nats."""
        return np.asarray(self.total / np.maximum(self.tokens, 1))

    @property
    def per_byte(self) -> Doubles:
        """Log-probability a byte, in nats."""
        return np.asarray(self.total / np.maximum(self.bytes, 1))

    def part(self, start: int, stop: int) -> Reading:
        """The same of some of the pieces."""
        return Reading(self.logp[start:stop], self.bytes[start:stop])


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """What one model said of both sides."""

    suspect: Reading
    heldout: Reading


def read(
    backend: Backend, pieces: Sequence[Piece], *, cache: bool = True, progress: Progress | None = None
) -> Reading:
    """What the model says of each piece given its prefix; ModelError where its length limit cuts one."""
    texts = [piece.prefix + piece.text for piece in pieces]
    if progress:
        progress.begin(len(texts))
    with open_store(backend.fingerprint if cache else None) as store:
        return reading_of(
            backend, pieces, trace(backend, texts, Quantity.LOGP, store=store, progress=progress)
        )


def reading_of(backend: Backend, pieces: Sequence[Piece], traces: Sequence[Trace]) -> Reading:
    """The same from traces of prefix + text. Both are read as one text: a token that reaches over the seam
    belongs to the text, whoever wrote it."""
    logp = []
    for piece, one in zip(pieces, traces, strict=True):
        if one.cut:
            raise ModelError(
                f"{backend.name} reads at most {backend.max_tokens} tokens, and a snippet has more: take shorter "
                "snippets with --tokens, or raise --max-tokens."
            )
        ends = backend.spans(piece.prefix + piece.text)[:, 1]
        counts = ends[len(ends) - len(one) :] > len(piece.prefix)
        logp.append(one.logp[counts].astype(np.float64))
    return Reading(tuple(logp), np.array([len(piece.text.encode("utf-8", "replace")) for piece in pieces]))


def read_sides(
    backend: Backend, sides: Sides, *, cache: bool = True, progress: Progress | None = None
) -> Readings:
    """What the model says of both sides, read in one go."""
    both = read(backend, (*sides.suspect, *sides.heldout), cache=cache, progress=progress)
    n = len(sides.suspect)
    return Readings(both.part(0, n), both.part(n, len(both.logp)))


def lead(target: Reading, placebo: Reading | None = None, *, bytewise: bool = False) -> Doubles:
    """How much likelier the target finds each piece than the placebo does, [n].

    In nats a token, or a byte where the two models' tokens differ. Without a placebo: how likely it finds it.
    """
    values = target.per_byte if bytewise else target.per_token
    if placebo is not None:
        values = values - (placebo.per_byte if bytewise else placebo.per_token)
    return np.asarray(values)


def bytewise(target: Backend, placebo: Backend | None) -> bool:
    """Whether two models must be compared by the byte, since their tokens differ."""
    return placebo is not None and placebo.tokenizer_hash != target.tokenizer_hash


def token_scale(pairs: Sequence[tuple[Reading, Reading]], *, by_byte: bool = False) -> float:
    """The median of all tokens' leads without their sign, in nats; `pairs` are what target and placebo said."""
    leads = [lead for target, placebo in pairs for lead in _token_leads(target, placebo, by_byte=by_byte)]
    return float(np.median(np.abs(np.concatenate(leads)))) if leads else 0.0


def bounded_lead(target: Reading, placebo: Reading, scale: float, *, by_byte: bool = False) -> Doubles:
    """How much likelier the target finds each piece than the placebo does, no token counting for more than the
    median one: the mean over the tokens of lead / scale, cut to [-1, 1], float64 [n].

    A model that learns the habits of a domain gains much on a few tokens, and not on the same ones in true and in
    generated text; one that learns a text gains a little on many. Where tokens differ (`by_byte`) a whole piece
    stands for a token. Two models that agree on every token (`scale` 0) have no lead.
    """
    leads = _token_leads(target, placebo, by_byte=by_byte)
    if scale == 0.0:
        return np.zeros(len(leads))
    return np.array([np.clip(one / scale, -1, 1).mean() if len(one) else 0.0 for one in leads])


def _token_leads(target: Reading, placebo: Reading, *, by_byte: bool) -> list[Doubles]:
    if by_byte:
        return [np.array([value]) for value in target.per_byte - placebo.per_byte]
    return [mine - theirs for mine, theirs in zip(target.logp, placebo.logp, strict=True)]
