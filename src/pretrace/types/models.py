"""A model that can be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pretrace.types.audit import Sampling
from pretrace.types.traces import Ints, Quantity, States, Trace


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as token ids: `prefix` (start tokens, and a text before it: context only) then `tokens`, cut to the limit.
    The first `shared` of these ids begin other texts of the same call too: a back end may read them once."""

    prefix: Ints
    tokens: Ints
    cut: int = 0
    shared: int = 0

    @property
    def length(self) -> int:
        """Tokens the model reads."""
        return len(self.prefix) + len(self.tokens)

    @property
    def predicted(self) -> int:
        """Tokens the model predicts: all of them after a start token, all but the first without."""
        return len(self.tokens) if len(self.prefix) else max(0, len(self.tokens) - 1)


class Backend(Protocol):
    """A model that can be asked. `pretrace.scoring.evidence.trace` drives it: encode, pack, run, in that order.

    `fingerprint` names everything a trace depends on (weights' hash, dtype, tokenizer hash, start rule,
    length limit): it is the cache's key. `facts` is what a run records about the model, in plain values.
    """

    name: str
    offers: Quantity
    fingerprint: str
    tokenizer_hash: str
    vocabulary: int
    max_tokens: int
    facts: Mapping[str, Any]

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        """Token ids of each text, in order."""
        ...

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Where each token of `tokens` stands in the text: characters [start, end), shape [n, 2]."""
        ...

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """Which texts go through the model together: indices, every text with a prediction exactly once. Where there is
        a method `work`, it gives the work of a batch by the lengths of its rows, in tokens of a short text."""
        ...

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = ..., /) -> list[Trace]:
        """One pass over texts that fit together; traces in the batch's order, each with all the states."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """What a back end has besides that works on several batches at once, such as one behind a server."""

    def stream(
        self, batches: Sequence[Sequence[Encoded]], want: Quantity, states: States = ..., /
    ) -> Iterator[tuple[int, list[Trace]]]:
        """The traces of each batch as soon as they are there, with the batch's number."""
        ...


class Progress(Protocol):
    """Told of work that lies ahead, piece by piece, and of every finished batch. A subclass shows what it overrides."""

    def begin(self, texts: int) -> None:
        """So many more passes over a text lie ahead."""

    def weigh(self, texts: int, work: float) -> None:
        """So many of them are so much work, without those whose answers are in the store. The unit is a token of a
        short text: the longest texts are read first, so that a text is no measure of the time left."""

    def worked(self, work: float) -> None:
        """So much of it is done."""

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many texts are done; `fresh` is False for what came from the store."""


class Silent(Progress):
    """Progress that is not shown."""


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The target after fine-tuning: a back end over the same base weights, and the texts it was tuned on
    (their `text_key`s), which must never be scored with it. `card` tells how it was made."""

    backend: Backend
    seen: frozenset[bytes]
    card: Mapping[str, Any]


class Proposer(Protocol):
    """A model that proposes other words: what makes the neighbours of a text. Neighbours are kept on disk
    under `fingerprint`; `facts` is what a run records."""

    fingerprint: str
    facts: Mapping[str, Any]

    def propose(
        self, texts: Sequence[str], /, *, number: int, share: float, seed: int
    ) -> list[tuple[str, ...]]:
        """For each text its first `number` neighbours, each with about `share` of the tokens replaced.
        They depend on the text, the share, the seed and the neighbour's number alone."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote, and whether it `ended` by itself rather than at a limit of length."""

    text: str
    ended: bool = True


class Instructed(Protocol):
    """A model that follows instructions, with weights here or on a server. What it wrote is kept on disk under
    `fingerprint`; `facts` is what a run records."""

    name: str
    fingerprint: str
    facts: Mapping[str, Any]

    def answers(
        self, instructions: Sequence[str], /, *, tokens: int, sampling: Sampling, seed: int
    ) -> list[Written]:
        """The model's answer to each instruction, of at most so many tokens, in order, without white space at its
        ends; "" where it gave none."""
        ...
