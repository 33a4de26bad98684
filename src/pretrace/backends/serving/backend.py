"""A `Backend` whose model stands behind a server: the tokenizer is here, log-probabilities come from there.

Between the requests of a run the sentences of the check are asked again, a fixed number of requests apart and once at
the end. An answer counts when the question after it was answered as it must be: only then is it given away, and so
kept.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.loading import tokenizer_of
from pretrace.backends.serving.address import ServerAddress, parse_address
from pretrace.backends.serving.client import Client, NotTakenError, OpenRequests
from pretrace.backends.serving.engine import Engine
from pretrace.backends.serving.routes import ROUTES, Prompt, PromptAnswer
from pretrace.backends.serving.self_check import WOBBLE, CheckedServer, Probed
from pretrace.backends.settings import ModelSettings
from pretrace.backends.tokens import Tokens, pack
from pretrace.cache.location import cache_folder
from pretrace.errors import ModelError, OutputError, shown
from pretrace.results.atomic import atomic_text
from pretrace.settings import given_for
from pretrace.types import Encoded, Quantity, States, Trace

FORMAT = 3  # part of the fingerprint: raised whenever a server would be asked in another way
BUDGET = 2048
"""Tokens a request unless told otherwise: some servers hold a whole distribution for each."""
EVERY = 20
"""Requests after which is asked again: one short request in twenty."""
_MORE = (
    8  # tokens behind a cut: with as many more characters, a server cuts the beginning into the same tokens
)


@dataclass(frozen=True, slots=True)
class EncodedPassage(Encoded):
    """A text as token ids that knows its characters, for servers that take no ids."""

    text: str = ""


class ServedModel:
    """A `Backend` behind a server, log-probabilities only; `open_served` makes one. `probed` holds its answers to
    the check, and those it gave when it was first met, which name the model."""

    offers = Quantity.LOGP

    def __init__(
        self,
        connection: CheckedServer,
        tokens: Tokens,
        probed: Probed,
        *,
        facts: Mapping[str, Any],
        budget: int | None = None,
    ) -> None:
        self.connection, self.name = connection, connection.name
        self.tokens, self.spans = tokens, tokens.spans
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
        return next(self.stream([batch], want, states))[1]

    def stream(
        self, batches: Sequence[Sequence[Encoded]], want: Quantity, states: States = frozenset(), /
    ) -> Iterator[tuple[int, list[Trace]]]:
        """The traces of each request as soon as they are there, with its number. ModelError where more than
        log-probabilities is wanted, before anything is sent, and where the server fails or answers with something
        that cannot be used."""
        if states or want & ~self.offers:
            raise ModelError(f"{self.name} gives log-probabilities only: use --model with local weights.")
        groups = [[self._prompt(one) for one in batch] for batch in batches]
        windows: dict[int, dict[int, list[Trace]]] = {}  # whose answers are given away together
        ahead = iter(range(len(groups)))
        with OpenRequests(self.connection.client) as asked:
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
                    again, which = name
                    self._check_again(which, body)
                    yield from windows.pop(again).items()
                self._send_more(asked, ahead, groups)

    def _send_more(
        self, asked: OpenRequests, ahead: Iterator[int], groups: Sequence[Sequence[Prompt]]
    ) -> None:
        """Send as many requests that the server is never idle, and no more: a question between them shall not wait."""
        for i in islice(ahead, max(0, 2 * self.connection.client.requests - len(asked.waiting))):
            self.connection.send(asked, i, groups[i])

    def _ask_again(self, asked: OpenRequests, window: int) -> None:
        """Ask sentences of the check after the requests of a window; window and their places name the request."""
        known = self.connection.prompts
        which = tuple(range(len(known))) if self.connection.route.asks_ids else (self._turn,)
        self._turn = (self._turn + 1) % len(known)
        self.connection.send(asked, (window, which), [known[i] for i in which])

    def _check_again(self, which: tuple[int, ...], body: Any) -> None:
        """ModelError where the sentences are not answered as by the model that was met."""
        prompts = [self.connection.prompts[i] for i in which]
        said = self.connection.checked(prompts, self.connection.read(body, prompts))
        self.connection.known_again([self.probed.answers[i] for i in which], said, self.probed)

    def close(self) -> None:
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
        self.connection.check(prompt, answer)
        start = max(1, len(encoded.prefix))
        return Trace(
            tokens=np.array(prompt.ids[start:], dtype=np.int32),
            logp=np.array(answer.logp[start:], dtype=np.float32),
            cut=encoded.cut,
        )


def _shortened(answer: PromptAnswer, number: int) -> PromptAnswer:
    return replace(
        answer,
        logp=answer.logp[:number],
        ids=answer.ids and answer.ids[:number],
        words=answer.words and answer.words[:number],
    )


_STILL = 1e-4  # nats: numbers that move less than this are computed in float32
_CLOSE_ANSWERS = 1e-3


def recognised(probed: Probed, *, url: str, named: Mapping[str, Any]) -> tuple[float, ...]:
    """The answers that name the model, beside what `named` says: those of its first meeting, or these, where it is
    new or nothing can be kept on disk. A warning says so where an address gives other answers than before."""
    digest = hashlib.sha256(json.dumps(dict(named), sort_keys=True).encode()).hexdigest()
    try:
        place = cache_folder() / "servers" / f"{digest[:32]}.json"
    except OutputError:
        return probed.numbers
    met = _read(place)
    allowed = WOBBLE if probed.wobble > _STILL else _CLOSE_ANSWERS
    for one in met:
        if _apart(one["numbers"], probed.numbers) <= allowed:
            return tuple(one["numbers"])
    before = [one for one in met if one["url"] == url]
    if before:
        apart = _apart(before[-1]["numbers"], probed.numbers)
        warnings.warn(
            f"the model behind {url} gives other answers than on {before[-1]['time']} (up to {apart:.2g} nats): it is "
            "another model now. What the earlier one answered is not used.",
            stacklevel=2,
        )
    now = datetime.now(UTC).date().isoformat()
    met.append({"url": url, "time": now, "numbers": list(probed.numbers)})
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_text(place, json.dumps(met))
    except (OSError, OutputError):
        pass  # only for the next time: without it everything is asked anew
    return probed.numbers


def _read(place: Any) -> list[dict[str, Any]]:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return [
            {"url": str(one["url"]), "time": str(one["time"]), "numbers": [float(n) for n in one["numbers"]]}
            for one in found
        ]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _apart(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return float("inf")
    return float(np.abs(np.subtract(one, other)).max(initial=0.0))


_TOLD = 1e-3  # nats: of what moves by less, page one says no more than that
REQUESTS, SECONDS = 8, 120.0
"""Requests under way at once, and seconds for each, unless told otherwise."""
_OTHER_SERVERS = {
    "llamacpp": "this is llama.cpp's own server, which gives log-probabilities of generated tokens only: open its "
    "GGUF file itself (--model FILE.gguf)",
    "library": "this is Ollama, which gives log-probabilities of generated tokens only: open the weights or the GGUF "
    "file itself, or serve them with vLLM",
}
"""What servers call the owner of their models, and why they cannot be used."""


def open_served(model: str, settings: ModelSettings) -> ServedModel:
    """The model on a server, checked before any text is sent; ModelError where it cannot be used."""
    address = parse_address(model)
    kind = model.partition(":")[0]
    here = f"for weights that are opened here, and {kind}: names a server, which has opened its own"
    settings.refuse(() if address.here else given_for(settings, "weights"), here)
    with connect(address, settings) as client:
        return _opened(address, client, settings)


@contextmanager
def connect(address: ServerAddress, settings: ModelSettings) -> Iterator[Any]:
    """A client of the server (or vLLM here), which is closed where the context ends with an error."""
    requests, seconds = settings.requests or REQUESTS, settings.request_timeout or SECONDS
    url, here = address.url, address.here
    client = Engine(url, settings) if here else Client(url, requests=requests, seconds=seconds)
    try:
        yield client
    except BaseException:
        client.close()
        raise


def _opened(address: ServerAddress, client: Client | Engine, settings: ModelSettings) -> ServedModel:
    held = _list_models(client)
    for one in held.values():
        if why := _OTHER_SERVERS.get(str(one.get("owned_by"))):
            raise ModelError(f"{address.url}: {why}.")
    name = choose_name(address.model or settings.served_model or "", client, held)
    facts = held.get(name, {})
    tokenizer = settings.tokenizer or _own_tokenizer(name, facts)
    found, limit, vocabulary = tokenizer_of(tokenizer, settings)
    whole = Tokens(found, start=settings.start)
    limits = [n for n in (settings.max_tokens, _limit(facts) or (limit and limit - 1)) if n]
    tokens = Tokens(found, start=settings.start, max_tokens=min(limits, default=None))
    server, probed = _checked(address, client, name, whole)
    named = {"kind": address.kind, "model": name, "tokenizer": tokens.hash, "prefix": tokens.prefix.tolist()}
    return ServedModel(
        server,
        tokens,
        replace(probed, met=recognised(probed, url=address.url, named=named)),
        facts={
            "server": "vLLM in this process" if address.here else address.url,
            "kind": address.kind,
            "served_model": name,
            "tokenizer_from": tokenizer,
            "tokenizer_read_by": tokens.read_by,
            "moved": probed.wobble,
            "bit_identical": probed.identical,
            **(client.facts if isinstance(client, Engine) else {}),
            "unseen": unseen(probed, address),
            "vocabulary": vocabulary or whole.rust.get_vocab_size(with_added_tokens=True),
        },
        budget=settings.token_budget,
    )


def _list_models(client: Client | Engine) -> dict[str, Mapping[str, Any]]:
    """The models that a server says it holds, with what it says of each; empty where it does not say. ModelError where
    it answers with something else than a list of models."""
    found = client.find("/models")
    listed = found.get("data") if isinstance(found, dict) else found
    if listed is not None and not isinstance(listed, list):
        raise ModelError(
            f"{client.url} answers the question for its models with something else than a list: check the address "
            "and the kind of server."
        )
    return {
        one["id"]: one for one in listed or () if isinstance(one, dict) and isinstance(one.get("id"), str)
    }


def choose_name(wanted: str, client: Client | Engine, held: Mapping[str, Any] | None = None) -> str:
    """The name of the model; ModelError where it is not served, or none was named and there are several."""
    held, url = _list_models(client) if held is None else held, client.url
    names = ", ".join(shown(one)[:200] for one in sorted(held)[:10]) + (", …" if len(held) > 10 else "")
    if wanted and held and wanted not in held:
        raise ModelError(f"{url} serves no model {wanted!r}: it has {names}.")
    if wanted:
        return wanted
    if len(held) == 1:
        return next(iter(held))
    if held:
        raise ModelError(f"{url} serves several models, name one with --served-model: {names}.")
    raise ModelError(
        f"{url} does not say which models it serves: name one with --served-model, and check that the address "
        "and the kind of server are right."
    )


def _own_tokenizer(name: str, facts: Mapping[str, Any]) -> str:
    """The folder or hub id that the server itself says the model is from."""
    source = str(facts.get("root") or facts.get("model_id") or name)
    if Path(source).is_absolute() and not Path(source).is_dir():
        raise ModelError(
            f"the tokenizer of {shown(name)[:200]} is wanted here, to know its tokens: name a hub id or a folder with "
            f"--tokenizer (the server has {shown(source)[:200]}, which is no folder on this machine)."
        )
    return source


def _limit(facts: Mapping[str, Any]) -> int | None:
    """The longest prompt that a server takes beside the one token it writes, None where it does not say."""
    for field, more in (("max_model_len", 1), ("max_input_tokens", 0), ("max_input_length", 0)):
        if isinstance(facts.get(field), int) and more < facts[field] < 1 << 40:
            return int(facts[field]) - more
    return None


def _checked(
    address: ServerAddress, client: Client | Engine, model: str, tokens: Tokens
) -> tuple[CheckedServer, Probed]:
    """The first route that the server takes, with what it answered; ModelError where none can be used."""
    routes = ROUTES[address.kind]
    for route in routes:
        server = CheckedServer(address, client, route, model, tokens)
        try:
            server.same_tokenizer()
            return server, server.run()
        except NotTakenError:
            if route is routes[-1]:
                raise
    raise AssertionError("every kind of server has a route")


def unseen(probed: Probed, address: ServerAddress) -> str:
    """What the server could have done without being noticed, for the record and the first page of a report."""
    made = (
        f"The model answered from behind a server ({address.kind}), where this would not have been seen: other "
        "weights, text or a start token put in front of each text, numbers rescaled or moved alike, or answers changed "
        "for some texts and not for the known ones."
    )
    if address.here:
        made = "The model was opened and read by vLLM in this process, whose numbers passed the check of a server's."
    if probed.wobble > _TOLD:
        made += f" Its numbers moved by up to {probed.wobble:.1g} nats when the same text was asked again."
    else:
        how = "the same to the last bit" if probed.identical else f"the same within {_TOLD:g} nats"
        made += f" Asked again, alone and among others, a text had numbers that were {how}."
    return made
