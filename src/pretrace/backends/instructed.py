"""Models that write: continuations by weights here, and answers to instructions by these or a server.

With weights here an answer is drawn as a continuation is (see `generation`): with numbers that depend on the
instruction and the seed alone, in batches of prompts of one length, so it is the same in any batch. Unlike a
continuation it ends where the model says so, and may be shorter than what was asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pretrace.backends.adapters import Adapted
from pretrace.backends.generation import Writer
from pretrace.backends.huggingface import HuggingFace, open_huggingface
from pretrace.backends.naming import ModelSettings, parse_address, split_url
from pretrace.backends.serving.backend import REQUESTS, SECONDS
from pretrace.backends.serving.client import Client
from pretrace.backends.serving.continuing import Continuing
from pretrace.backends.tokens import readable
from pretrace.cache import Batch, Draw, written_once
from pretrace.errors import ModelError, TextsError
from pretrace.results.wording import say
from pretrace.types import Backend, Sampling, Written

FORMAT = 1  # part of the fingerprints: raised whenever other texts would be written
_SERVER = "server:"


def open_instructed(
    source: str, settings: ModelSettings | None = None, *, cache: bool = True
) -> _LocalInstructed | Continuing:
    """What follows instructions: a hub id, a folder, a `.gguf` file, `smollm2`, or `server:URL#MODEL`. A server speaks
    OpenAI's chat completions, as vLLM, llama.cpp and Ollama do; the key is taken from PRETRACE_API_KEY or
    OPENAI_API_KEY. Answers are kept on disk unless `cache` is False. Raises ModelError where there is no such model,
    MissingPackageError for a server without the extra `servers`."""
    if source.startswith(_SERVER):
        return _open_server(source, cache=cache)
    return _LocalInstructed(open_huggingface(source, settings or ModelSettings()), cache=cache)


class Completer:
    """Continues texts by a model with weights here, with its adapter in place. ModelError without weights."""

    def __init__(self, backend: Backend, *, budget: int | None = None) -> None:
        if not isinstance(backend, HuggingFace | Adapted):
            raise ModelError(say("models.no_weights", name=backend.name))
        self.backend = backend
        self.name, self.spans = backend.name, backend.spans
        self.facts: Mapping[str, Any] = backend.facts
        self.fingerprint = json.dumps({"format": FORMAT, "continued by": backend.fingerprint})
        with backend.in_place() as base:
            self.tokens, self.writer = base.tokens, Writer(base, budget=budget)

    def complete(self, prompts: Sequence[str], /, *, tokens: int, sampling: Sampling, seed: int) -> list[str]:
        """`tokens` tokens after each prompt, as text to be set right behind it, without a last part of a character.
        ExpressionError for a setting out of range, TextsError for an empty prompt without a start token, ModelError
        where all does not fit into the model or its logits are no numbers."""
        how = Draw(tokens, sampling, seed)
        asked = list(dict.fromkeys(prompts))
        rows: dict[str, list[int]] = {}
        for prompt, e in zip(asked, self.tokens.encode(asked), strict=True):
            length = e.length + e.cut
            if length == 0:
                raise TextsError(f"{self.name} has no start token: give it a prompt of at least one token.")
            if length + tokens > self.backend.max_tokens:
                raise ModelError(
                    say("models.too_long", model=self.backend, wanted=length + tokens, text=prompt[:30])
                )
            rows[prompt] = [*e.prefix.tolist(), *e.tokens.tolist()]
        made: dict[str, Written] = {}
        with self.backend.in_place() as base:
            for some, written in self.writer.texts(base, rows, how, skip=len(self.tokens.prefix)):
                made.update(zip(some, written, strict=True))
        return [made[prompt].text for prompt in prompts]


class _LocalInstructed:
    """Follows instructions by weights here, by its chat template; without one an empty line follows the instruction."""

    def __init__(self, backend: HuggingFace, *, cache: bool = True) -> None:
        self.backend = backend
        self.name = backend.name
        # An answer ends at what the model's generation settings and its tokenizer call the end.
        ends: set[int] = set()
        settings = getattr(backend.model, "generation_config", None)
        for named in (getattr(settings, "eos_token_id", None), backend.tokenizer.eos_token_id):
            ends |= set(named if isinstance(named, list | tuple) else [] if named is None else [named])
        known = sorted(int(token) for token in ends if 0 <= int(token) < backend.vocabulary)
        self.writer = Writer(backend, ends=known)
        template = getattr(backend.tokenizer, "chat_template", None)
        self._template = template is not None
        written = None if template is None else hashlib.sha256(json.dumps(template).encode()).hexdigest()
        self.facts: Mapping[str, Any] = {**backend.facts, "chat_template": written}
        keyed = {"format": FORMAT, "followed by": backend.fingerprint, "template": written}
        self.fingerprint = json.dumps({**keyed, "ends": known})
        self._kept_as = self.fingerprint if cache else None

    def answers(
        self, instructions: Sequence[str], /, *, tokens: int, sampling: Sampling, seed: int
    ) -> list[Written]:
        """The answer to each instruction, of at most so many tokens, without white space at its ends, and whether it
        ended before the limit of tokens or of what the model reads. ExpressionError for a setting out of its range,
        ModelError where an instruction alone fills the model or it gives logits that are no numbers. Only what is not
        on disk yet is written."""
        how = Draw(tokens, sampling, seed)
        rows = {instruction: self._encoded(instruction) for instruction in instructions}

        def write(known: Mapping[str, Written]) -> Iterator[Batch]:
            for texts, made in self.writer.texts(self.backend, rows, how, known=known):
                yield texts, [Written(one.text.strip(), one.ended) for one in made]

        return written_once(self._kept_as, instructions, how.label, write)

    def _encoded(self, instruction: str) -> list[int]:
        """The ids of one prompt: the template's own special tokens among them, or the start tokens in front."""
        base, prompt = self.backend, f"{instruction}\n\n"
        if self._template:
            from jinja2 import TemplateError

            asked = [{"role": "user", "content": instruction}]
            try:
                prompt = self.backend.tokenizer.apply_chat_template(
                    asked, tokenize=False, add_generation_prompt=True
                )
            except (TemplateError, ValueError, TypeError) as error:
                reason = " ".join(str(error).split())[:200]
                raise ModelError(say("models.no_instruction", name=self.name, reason=reason)) from None
        ids = base.tokens.rust.encode(readable(prompt), add_special_tokens=False).ids
        row = ids if self._template else [*base.tokens.prefix.tolist(), *ids]
        if len(row) >= base.max_tokens:
            raise ModelError(say("models.too_long", model=base, wanted=len(row) + 1, text=instruction[:30]))
        return row


def _open_server(source: str, *, cache: bool) -> Continuing:
    """A server of chat completions, `server:http://host:port/v1#model-name`, that is given instructions as they are;
    ModelError for another form. Whoever runs it may change the weights under the same name; then what is on disk is
    what the earlier ones wrote."""
    url, _, model = source.removeprefix(_SERVER).partition("#")
    if split_url(url) is None or not model:
        raise ModelError(say("models.server", source=source[:100]))
    address = parse_address(f"chat:{url}#{model}", text=True)
    client = Client(address.url, requests=REQUESTS, seconds=SECONDS)
    how: dict[str, Any] = {"most_requests": 1 << 62, "most_tokens": 1 << 62, "instruction": "{beginning}"}
    made = Continuing(address, client, cache=cache, **how)
    made.name = f"{address.model} at {address.url}"
    made.facts = {name: made.facts[name] for name in ("name", "server", "weights")}
    return made
