"""A `Backend` whose model stands behind a server: the tokenizer is here, log-probabilities come from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.backends.serving.address import Address
from pretrace.backends.serving.client import Client
from pretrace.backends.serving.routes import Answer, Prompt, Route
from pretrace.backends.serving.self_check import Check
from pretrace.backends.tokens import Tokens, pack
from pretrace.errors import ModelError
from pretrace.types import Encoded, Quantity, States, Trace

FORMAT = 1  # part of the fingerprint: raised whenever a server would be asked in another way
BUDGET = 2048
"""Tokens a request unless told otherwise: some servers hold a whole distribution for each."""
_SHAPES = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
)  # what reading an answer of another form raises
_MORE = (
    8  # tokens behind a cut: with as many more characters, a server cuts the beginning into the same tokens
)


@dataclass(frozen=True, slots=True)
class Passage(Encoded):
    """A text as token ids that knows its characters, for servers that take no ids."""

    text: str = ""


class Connection:
    """Asks a server for prompts' log-probabilities; `route` is how, `model` the name it knows the model by."""

    def __init__(self, address: Address, client: Client, route: Route, model: str) -> None:
        self.address, self.client, self.route, self.model = address, client, route, model
        self.name = f"{address.kind}:{address.url}" + (f"#{model}" if model else "")

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """An answer to each prompt; ModelError where the server refuses or answers in another form."""
        groups = [prompts] if self.route.several else [[one] for one in prompts]
        found = dict(self.answers(groups))
        return [answer for i in range(len(groups)) for answer in found[i]]

    def answers(self, groups: Sequence[Sequence[Prompt]]) -> Iterator[tuple[int, list[Answer]]]:
        """The answers to each group of prompts, one request a group, as soon as they are there."""
        bodies = [(self.route.path, self.route.request(group, self.model)) for group in groups]
        for i, body in self.client.ask_all(bodies):
            yield i, self.read(body, groups[i])

    def read(self, body: Any, prompts: Sequence[Prompt]) -> list[Answer]:
        """The answers in what a server sent."""
        try:
            return self.route.answers(body, prompts)
        except _SHAPES as error:
            said = self.client.plain(json.dumps(body))
            raise ModelError(
                f"{self.client.url} does not answer as {self.route.title} does ({type(error).__name__}): check the "
                f"address and the kind of server. It said: {said}"
            ) from None


class Served:
    """A `Backend` behind a server, which was checked; `open_served` makes one. It offers log-probabilities only.

    `known` are the numbers that name the model: its answers to the check, when it was first met.
    """

    offers = Quantity.LOGP

    def __init__(
        self,
        connection: Connection,
        tokens: Tokens,
        check: Check,
        *,
        known: Sequence[float],
        facts: Mapping[str, Any],
        budget: int | None = None,
    ) -> None:
        self.name = connection.name
        self.connection = connection
        self.tokens = tokens
        self.check = check
        self.budget = budget or BUDGET
        self.tokenizer_hash = tokens.hash
        self.max_tokens = tokens.max_tokens or 1 << 30
        self.vocabulary = int(facts["vocabulary"])
        named = {
            "format": FORMAT,
            "kind": connection.address.kind,
            "model": connection.model,
            "tokenizer": tokens.hash,
            "prefix": [int(one) for one in tokens.prefix],
            "answers": hashlib.sha256(np.asarray(known, "<f8").tobytes()).hexdigest(),
        }
        self.fingerprint = json.dumps({**named, "max_tokens": self.max_tokens})
        weights = hashlib.sha256(json.dumps(named).encode()).hexdigest()
        self.facts: Mapping[str, Any] = {
            "name": self.name,
            **facts,
            "weights": f"behind a server, by its answers: {weights[:32]}",
            "tokenizer": tokens.hash,
            "start": tokens.start,
            "prefix": named["prefix"],
            "max_tokens": self.max_tokens,
        }

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        """Token ids of each text, in order."""
        made = self.tokens.encode(texts)
        if self.connection.route.asks_ids:
            return made
        return [
            Passage(one.prefix, one.tokens, one.cut, self._characters(text, one))
            for text, one in zip(texts, made, strict=True)
        ]

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Characters [start, end) of each token, shape [n, 2]."""
        return self.tokens.spans(text)

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """The requests: texts of similar length within the token budget, one alone where a server takes no more."""
        lengths = [e.length if e.predicted else 0 for e in encoded]
        return pack(lengths, self.budget if self.connection.route.several else 1)

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        """The traces of one request."""
        return next(self.stream([batch], want, states))[1]

    def stream(
        self, batches: Sequence[Sequence[Encoded]], want: Quantity, states: States = frozenset(), /
    ) -> Iterator[tuple[int, list[Trace]]]:
        """The traces of each request as soon as they are there, with its number; several are under way at once.

        ModelError where more than log-probabilities is wanted, before anything is sent, and where the server fails
        or answers with something that cannot be used.
        """
        if states or want & ~self.offers:
            raise ModelError(f"{self.name} gives log-probabilities only: use --model with local weights.")
        groups = [[self._prompt(one) for one in batch] for batch in batches]
        for i, answers in self.connection.answers(groups):
            yield i, [self._trace(*one) for one in zip(batches[i], groups[i], answers, strict=True)]

    def close(self) -> None:
        """Let go of the connections."""
        self.connection.client.close()

    def _prompt(self, encoded: Encoded) -> Prompt:
        ids = tuple(int(one) for one in (*encoded.prefix, *encoded.tokens))
        if self.connection.route.asks_ids:
            return Prompt(ids)
        if isinstance(encoded, Passage):
            return Prompt(ids, encoded.text)
        return Prompt(ids, self.tokens.rust.decode(encoded.tokens.tolist(), skip_special_tokens=False))

    def _characters(self, text: str, encoded: Encoded) -> str:
        """The text as far as its tokens are kept, and a little further where the last ones would be others without
        what follows."""
        if not encoded.cut:
            return text
        ends, kept = self.tokens.spans(text)[:, 1], len(encoded.tokens)
        for more in range(min(_MORE, encoded.cut + 1)):
            part = text[: ends[kept - 1 + more]]
            ids = self.tokens.rust.encode(part, add_special_tokens=False).ids
            if ids[:kept] == encoded.tokens.tolist():
                return part
        return text

    def _trace(self, encoded: Encoded, prompt: Prompt, answer: Answer) -> Trace:
        if encoded.cut and answer.ids and not self.connection.route.asks_ids:
            answer = _shortened(answer, len(prompt.ids))
        self.check.offered(answer)
        self.check.same_tokens(prompt, answer)
        start = max(1, len(encoded.prefix))
        return Trace(
            tokens=np.array(prompt.ids[start:], dtype=np.int32),
            logp=np.array(answer.logp[start:], dtype=np.float32),
            cut=encoded.cut,
        )


def _shortened(answer: Answer, number: int) -> Answer:
    """What was said of the first tokens."""
    return Answer(answer.logp[:number], (answer.ids or ())[:number], cached=answer.cached)
