"""A model behind an address that gives text alone: it continues prompts, by chat completions or by completions.

Every answer is kept as it comes, under the address and the model's name, so that a run that was killed asks nothing
twice. What a provider refuses or filters is kept and counted too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from pretrace.backends.naming import ModelSettings, ServerAddress, parse_address
from pretrace.backends.serving.backend import choose_name, connect
from pretrace.backends.serving.client import Client, NotTakenError, answered
from pretrace.cache import WRITTEN, Draw, Entries, text_key
from pretrace.corpora.reading import mended
from pretrace.errors import ModelError
from pretrace.results.wording import say
from pretrace.types import Progress, Quantity, Sampling, Written

FORMAT = 1  # part of the fingerprint: raised whenever a server would be asked in another way
INSTRUCTION = (
    "Continue the following text exactly as it goes on. Answer with the continuation alone, without the text that is "
    "given and without remarks.\n\n{beginning}"
)
"""What a chat model is asked; a model behind completions is given the beginning as it stands."""
BYTES_A_TOKEN = 3
"""Bytes of a prompt counted as a token in what is told of the cost: an upper bound for most languages."""
LONGEST_TOKEN = 256
"""Characters that no token has more of."""
_REFUSES = re.compile(
    r"\W*(i['’]?m sorry|i am sorry|sorry, |i can['’]?t|i cannot|i can not|i['’]?m unable|i am unable|i won['’]?t|"
    r"unfortunately, i)",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content.?(filter|management|policy)|safety|moderation|recitation|copyright", re.IGNORECASE
)
"""What servers say where they refuse a prompt for what it is, and not for its form."""


def cost(prompts: Sequence[str], draws: Sequence[Draw]) -> tuple[int, int]:
    """Requests, and an upper bound of tokens, for continuing so many prompts."""
    asked = len(INSTRUCTION) // BYTES_A_TOKEN
    sizes = [len(prompt.encode("utf-8", "replace")) // BYTES_A_TOKEN + 1 + asked for prompt in prompts]
    return len(sizes) * len(draws), sum(size + draw.tokens for size in sizes for draw in draws)


class Continuing:
    """A `Backend` that offers nothing but text, for at most so many requests, and tokens of prompts and answers
    together. `instruction` is what a chat model is asked, with the prompt for {beginning}; an answer to INSTRUCTION
    that begins as a refusal counts as one."""

    offers: Quantity = Quantity.NONE
    tokenizer_hash: str = "unknown"
    vocabulary: int = 0
    max_tokens: int = 1 << 30

    def __init__(
        self,
        address: ServerAddress,
        client: Client,
        *,
        most_requests: int = 2_000,
        most_tokens: int = 1_000_000,
        cache: bool = True,
        instruction: str = INSTRUCTION,
    ) -> None:
        self.address, self.client = address, client
        self.most_requests, self.most_tokens = most_requests, most_tokens
        self.chats = address.kind == "chat"
        self.prompt = instruction if self.chats else "{beginning}"
        self._refusals = _REFUSES if self.prompt == INSTRUCTION else None
        self.name = f"{address.kind}:{address.url}#{address.model}"
        served = {"kind": address.kind, "server": address.url}
        self.facts: Mapping[str, Any] = {
            **{"name": address.model, "server": address.url, "kind": address.kind},
            **{"weights": "unknown", "access": "text"},
        }
        named = {"format": FORMAT, **served, "model": address.model, "prompt": self.prompt}
        self.fingerprint = json.dumps(named)
        self._kept_as = self.fingerprint if cache else None

    def continued(
        self, prompts: Sequence[str], draws: Sequence[Draw], progress: Progress, /
    ) -> list[list[Written]]:
        """What the model writes after each prompt, one a draw; "" where it refused or was filtered. ModelError
        above the budget, where the server cannot be reached, and where it gave no text at all."""
        keys = {prompt: text_key(prompt) for prompt in prompts}
        found: dict[tuple[str, Draw], Written] = {}
        with Entries("written", self._kept_as) as store:
            for draw in draws:
                kept = store.find(keys.values(), draw.label, WRITTEN)
                found |= {(prompt, draw): kept[key] for prompt, key in keys.items() if key in kept}
            missing = [(prompt, draw) for draw in draws for prompt in keys if (prompt, draw) not in found]
            tokens = sum(cost([prompt], [draw])[1] for prompt, draw in missing)
            if len(missing) > self.most_requests or tokens > self.most_tokens:
                raise ModelError(say("servers.budget", requests=len(missing), tokens=tokens, model=self))
            progress.begin(len(keys) * len(draws))
            progress.advance(len(found), 0, 0.0, False)
            ahead = ((one, *self._request(*one)) for one in missing)
            for (prompt, draw), done in answered(self.client, lambda: next(ahead, None)):
                one, for_good = self._read(done, draw)
                found[prompt, draw] = one
                if one.text or for_good:  # an empty answer may be another one the next time
                    store.write([(keys[prompt], draw.label, one, WRITTEN)])
                progress.advance(1, draw.tokens, 0.0, True)
        if found and not any(one.text for one in found.values()):
            raise ModelError(say("servers.all_refused", name=self.name, number=len(found)))
        return [[found[prompt, draw] for draw in draws] for prompt in prompts]

    def answers(
        self, instructions: Sequence[str], /, *, tokens: int, sampling: Sampling, seed: int
    ) -> list[Written]:
        """The answer to each instruction, of at most so many tokens, without white space at its ends, and whether it
        ended before that limit; "" where it was filtered. Seed and temperature are passed on; whether the same seed
        gives the same answer is up to the server. ExpressionError for a setting out of its range; ModelError where the
        server cannot be reached, refuses, speaks another language, or gave no text to any of the instructions. An
        answer is stored as it comes."""
        if sampling.repetition_penalty != 1:
            raise ModelError(say("models.no_penalty", name=self.name, penalty=sampling.repetition_penalty))
        found = self.continued(instructions, [Draw(tokens, sampling, seed)], Progress())
        made = [Written(mended(one.text)[0].strip(), one.ended) for (one,) in found]
        if made and not any(one.text for one in made):
            raise ModelError(say("models.no_text", name=self.name, number=len(made), tokens=tokens))
        return made

    def _request(self, prompt: str, draw: Draw) -> tuple[str, dict[str, Any]]:
        plain = prompt.encode("utf-8", "replace").decode()  # JSON carries no half of a pair
        body: dict[str, Any] = {
            "model": self.address.model,
            "max_tokens": draw.tokens,
            "temperature": draw.sampling.temperature,
            "top_p": draw.sampling.top_p,
            "seed": draw.seed,
        }
        if self.chats:
            said = self.prompt.replace("{beginning}", plain)
            return "/chat/completions", {**body, "messages": [{"role": "user", "content": said}]}
        return "/completions", {**body, "prompt": plain}

    def _read(self, done: Future[Any], draw: Draw) -> tuple[Written, bool]:
        """An answer, and whether it is one for good."""
        try:
            answer = done.result()
        except NotTakenError as error:
            if _FILTERED.search(str(error)):
                return Written("", ended=False), True
            raise
        try:
            choice = answer["choices"][0]
            message = choice["message"] if self.chats else choice
            text = message.get("content" if self.chats else "text") or ""
            reason, refusal = choice.get("finish_reason"), message.get("refusal")
            if not isinstance(text, str):
                raise TypeError
        except (LookupError, TypeError, AttributeError):
            route = "chat completions" if self.chats else "completions"
            raise ModelError(say("servers.no_route", url=self.address.url, route=route)) from None
        if refusal or reason == "content_filter" or (self._refusals and self._refusals.match(text)):
            return Written("", ended=False), True
        most = LONGEST_TOKEN * draw.tokens  # a server that does not stop where it was told
        return Written(text[:most], ended=reason != "length" and len(text) <= most), False

    def _refuse(self, *_: Any) -> Any:
        """Raise ModelError: it gives text alone."""
        raise ModelError(f"{self.name} is asked for text alone, and this takes log-probabilities of a text.")

    encode = spans = pack = run = _refuse


def open_continuing(model: str, settings: ModelSettings, **how: Any) -> Continuing:
    """The model of `chat:URL` or `completions:URL`; its name stands behind a `#`, is `served_model`, or the only one
    that the server holds; `how` is that of `Continuing`. ModelError where the address is written otherwise or the name
    is not known."""
    address = parse_address(model, text=True)
    with connect(address, settings) as client:
        name = address.model or settings.served_model or choose_name("", client)
    return Continuing(replace(address, model=name), client, **how)
