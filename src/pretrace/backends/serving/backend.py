"""A `Backend` whose model stands behind a server: the tokenizer is here, log-probabilities come from there.

Between the requests of a run the sentences of the check are asked again, a fixed number of requests apart and once at
the end. An answer counts when the question after it was answered as it must be: only then is it given away, and so
kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from pretrace.backends.serving.address import ServerAddress
from pretrace.backends.serving.client import Client, OpenRequests
from pretrace.backends.serving.engine import Engine, Waiting
from pretrace.backends.serving.routes import PATH, Prompt, PromptAnswer, RequestAnswers, Route
from pretrace.backends.serving.self_check import Probed, ServerCheck
from pretrace.backends.tokens import Tokens, pack
from pretrace.errors import ModelError
from pretrace.types import Encoded, Quantity, States, Trace

FORMAT = 3  # part of the fingerprint: raised whenever a server would be asked in another way
BUDGET = 2048
"""Tokens a request unless told otherwise: some servers hold a whole distribution for each."""
EVERY = 20
"""Requests after which is asked again: one short request in twenty."""
_SHAPES = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)  # what reading an answer of another form raises
_MORE = (
    8  # tokens behind a cut: with as many more characters, a server cuts the beginning into the same tokens
)


@dataclass(frozen=True, slots=True)
class EncodedPassage(Encoded):
    """A text as token ids that knows its characters, for servers that take no ids."""

    text: str = ""


class Connection:
    """Asks a server for prompts' log-probabilities; `route` is how, `model` the name it knows the model by. `spare` is
    how many tokens more than ours it may read, where a user said that its start token is none of theirs."""

    def __init__(
        self, address: ServerAddress, client: Client | Engine, route: Route, model: str, *, spare: int = 0
    ) -> None:
        self.address, self.client, self.route, self.model = address, client, route, model
        self.spare = 0 if route.asks_ids else spare
        self.name = f"{address.kind}:{address.url}" + (f"#{model}" if model else "")

    def ask(self, prompts: Sequence[Prompt]) -> list[PromptAnswer]:
        """An answer to each prompt; ModelError where the server refuses or answers in another form."""
        groups = [prompts] if self.route.asks_ids else [[one] for one in prompts]
        found: dict[int, list[PromptAnswer]] = {}
        with self.client.asking() as asked:
            for i, group in enumerate(groups):
                self.send(asked, i, group)
            for i, body in asked.answers():
                found[i] = self.read(body, groups[i])
        return [answer for i in range(len(groups)) for answer in found[i]]

    def send(self, asked: OpenRequests | Waiting, name: Any, prompts: Sequence[Prompt]) -> None:
        """Send one request; its answer comes under this name."""
        asked.send(name, PATH, self.route.request(prompts, self.model))

    def ask_text(self, prompt: Prompt, read_as: Prompt) -> PromptAnswer:
        """The answer to the text of a prompt, read as that to another; errors as for `ask`."""
        body = self.client.ask(PATH, self.route.request([prompt], self.model, text=True))
        return self.read(body, [read_as], whole=False)[0]

    def read(self, body: Any, prompts: Sequence[Prompt], *, whole: bool = True) -> list[PromptAnswer]:
        """The answers in what a server sent. `whole`: it was sent exactly these tokens, and may count no more."""
        try:
            found = self.route.answers(body, prompts)
        except _SHAPES as error:
            raise ModelError(
                f"{self.client.url} does not answer as {self.route.title} does "
                f"({self.client.plain(str(error))[:80] or type(error).__name__}): check the address and the kind of "
                f"server. It said: {self.client.quoted(body)}"
            ) from None
        if whole:
            self._read_no_more(found, prompts)
        return found.answers

    def _read_no_more(self, found: RequestAnswers, prompts: Sequence[Prompt]) -> None:
        """ModelError where the server says that it read more tokens than it was sent."""
        sent = sum(len(one.ids) for one in prompts)
        if found.read is not None and found.read > sent + self.spare:
            raise ModelError(
                f"{self.name} says that it read {found.read} tokens where {sent} were sent: it puts a start token or a "
                "chat template around texts. Start it so that it does not, or name --start always where it is the "
                "model's own start token."
            )


class ServedModel:
    """A `Backend` behind a server, which was checked; `open_served` makes one. It offers log-probabilities only.

    `probed` holds its answers to the check, and those it gave when it was first met, which name the model.
    """

    offers = Quantity.LOGP

    def __init__(
        self,
        connection: Connection,
        tokens: Tokens,
        check: ServerCheck,
        probed: Probed,
        *,
        facts: Mapping[str, Any],
        budget: int | None = None,
    ) -> None:
        self.name = connection.name
        self.connection = connection
        self.tokens, self.spans = tokens, tokens.spans
        self.check = check
        self.probed = probed
        self._turn = 0  # of the sentences, the one that is asked next where a request takes one prompt
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
            "answers": hashlib.sha256(np.asarray(probed.met or probed.numbers, "<f8").tobytes()).hexdigest(),
        }
        self.fingerprint = json.dumps({**named, "max_tokens": self.max_tokens})
        weights = hashlib.sha256(json.dumps(named).encode()).hexdigest()
        self.facts: Mapping[str, Any] = {
            "name": self.name,
            **facts,
            "weights": f"{'opened by vLLM' if connection.address.here else 'behind a server'}, by its answers: "
            f"{weights[:32]}",
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
            EncodedPassage(one.prefix, one.tokens, one.cut, text=self._characters(text, one))
            for text, one in zip(texts, made, strict=True)
        ]

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """The requests: texts of similar length within the token budget, one alone where a server takes no more."""
        lengths = [e.length if e.predicted else 0 for e in encoded]
        return pack(lengths, self.budget if self.connection.route.asks_ids else 1)

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
        windows: dict[int, dict[int, list[Trace]]] = {}  # whose answers are given away together
        ahead = iter(range(len(groups)))
        with self.connection.client.asking() as asked:
            self._send_more(asked, ahead, groups)
            for name, body in asked.answers():
                if isinstance(name, int):
                    # A text that is cut is sent to a server of texts with a little more behind it.
                    whole = self.connection.route.asks_ids
                    answers = self.connection.read(body, groups[name], whole=whole)
                    window = windows.setdefault(name // EVERY, {})
                    window[name] = [
                        self._trace(*one) for one in zip(batches[name], groups[name], answers, strict=True)
                    ]
                    if len(window) == len(groups[name // EVERY * EVERY :][:EVERY]):
                        self._ask_again(asked, name // EVERY)
                else:
                    self._check_again(name, body)
                    yield from windows.pop(name.window).items()
                self._send_more(asked, ahead, groups)

    def _send_more(
        self, asked: OpenRequests | Waiting, ahead: Iterator[int], groups: Sequence[Sequence[Prompt]]
    ) -> None:
        """Send as many requests that the server is never idle, and no more: a question between them shall not wait."""
        for i in islice(ahead, max(0, 2 * self.connection.client.requests - len(asked.waiting))):
            self.connection.send(asked, i, groups[i])

    def _ask_again(self, asked: OpenRequests | Waiting, window: int) -> None:
        """Ask for the check's sentences, all of them where a request takes several, else the next one."""
        known = self.check.prompts
        which = tuple(range(len(known))) if self.connection.route.asks_ids else (self._turn,)
        self._turn = (self._turn + 1) % len(known)
        self.connection.send(asked, _Again(window, which), [known[i] for i in which])

    def _check_again(self, again: _Again, body: Any) -> None:
        """ModelError where the sentences are not answered as by the model that was met."""
        prompts = [self.check.prompts[i] for i in again.which]
        said = self.connection.read(body, prompts)
        for prompt, answer in zip(prompts, said, strict=True):
            self._check_answer(prompt, answer)
        self.check.known_again([self.probed.answers[i] for i in again.which], said, self.probed)

    def _check_answer(self, prompt: Prompt, answer: PromptAnswer) -> None:
        self.check.offered(answer)
        self.check.same_tokens(prompt, answer)

    def close(self) -> None:
        """Let go of the connections."""
        self.connection.client.close()

    def _prompt(self, encoded: Encoded) -> Prompt:
        ids = tuple(int(one) for one in (*encoded.prefix, *encoded.tokens))
        if self.connection.route.asks_ids:
            return Prompt(ids)
        if isinstance(encoded, EncodedPassage):
            return Prompt(ids, encoded.text)
        text = self.tokens.rust.decode(list(ids[len(self.tokens.prefix) :]), skip_special_tokens=False)
        return Prompt(ids, text)

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

    def _trace(self, encoded: Encoded, prompt: Prompt, answer: PromptAnswer) -> Trace:
        if encoded.cut and not self.connection.route.asks_ids:
            answer = _shortened(answer, len(prompt.ids))
        self._check_answer(prompt, answer)
        start = max(1, len(encoded.prefix))
        return Trace(
            tokens=np.array(prompt.ids[start:], dtype=np.int32),
            logp=np.array(answer.logp[start:], dtype=np.float32),
            cut=encoded.cut,
        )


@dataclass(frozen=True, slots=True)
class _Again:
    """The name of a request for sentences of the check, by their places, after the requests of a window."""

    window: int
    which: tuple[int, ...]


def _shortened(answer: PromptAnswer, number: int) -> PromptAnswer:
    return replace(
        answer,
        logp=answer.logp[:number],
        ids=answer.ids and answer.ids[:number],
        words=answer.words and answer.words[:number],
    )
