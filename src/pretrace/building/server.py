"""A model behind a server that speaks OpenAI's chat completions: vLLM, llama.cpp, Ollama, a provider's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, NamedTuple

from pretrace.backends.serving.address import api_key, holds_secret, split_url
from pretrace.cache.generated import Batch, Draw, written_once
from pretrace.corpora.columns import mended
from pretrace.errors import MissingPackageError, ModelError
from pretrace.types import Sampling, Written

FORMAT = 1  # part of the fingerprint: raised whenever a server would be asked in another way
KEY = "OPENAI_API_KEY"  # the name messages give; PRETRACE_API_KEY comes first where it is set
_SECONDS = 120.0
_RETRIES = 4  # the client waits longer before each: about ten seconds together
_PARALLEL = 8


_ODD = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
"""What the client raises for an answer of another shape than it should have."""


class Address(NamedTuple):
    """Where a server is, and which of its models is meant."""

    url: str
    model: str

    @classmethod
    def of(cls, source: str) -> Address:
        """The address in `server:http://host:port/v1#model-name`; ModelError where it is written otherwise."""
        url, _, model = source.removeprefix("server:").partition("#")
        parts = split_url(url)
        if parts is None or not model:
            raise ModelError(
                f"a server is written server:http://host:port/v1#model-name, with the name the server knows the model "
                f"by; found {source[:100]!r}."
            )
        if holds_secret(parts):
            raise ModelError(
                f"an address is recorded with what was made, and this one may hold a secret: put the key in {KEY} and "
                "leave user, password and query out of the address."
            )
        return cls(url.rstrip("/"), model)


def open_server(
    source: str, *, cache: bool = True, seconds: float = _SECONDS, retries: int = _RETRIES
) -> ServerInstructed:
    """The model of `server:http://host:port/v1#model-name`; nothing is asked yet.

    ModelError for an address that is written otherwise, MissingPackageError without the extra `server`. What a
    server does not answer within `seconds` is asked again, `retries` times, and so is what it is too busy for.
    """
    address = Address.of(source)
    try:
        from openai import OpenAI
    except ImportError:
        raise MissingPackageError("openai", "a model on a server", "server") from None
    key = api_key(address.url) or "none"  # servers of one's own ask for none, the client insists on one
    client = OpenAI(base_url=address.url, api_key=key, timeout=seconds, max_retries=retries)
    return ServerInstructed(client, address, cache=cache)


class ServerInstructed:
    """An `Instructed` behind a server. `client` is an `openai.OpenAI`.

    Its weights cannot be seen, so nothing here names them by their hash: whoever runs the server may change
    them under the same name, and then what is on disk is what the earlier ones wrote.
    """

    def __init__(self, client: Any, address: Address, *, cache: bool = True) -> None:
        self._client = client
        self._address = address
        self.name = f"{address.model} at {address.url}"
        self.facts: Mapping[str, Any] = {"name": address.model, "server": address.url, "weights": "unknown"}
        self.fingerprint = json.dumps({"format": FORMAT, "server": address.url, "model": address.model})
        self._kept_as = self.fingerprint if cache else None

    def answers(
        self, instructions: Sequence[str], /, *, tokens: int, sampling: Sampling, seed: int
    ) -> list[Written]:
        """The answer to each instruction, of at most so many tokens, without white space at its ends, and whether it
        ended before that limit.

        Seed and temperature are passed on; whether the same seed gives the same answer is up to the server.
        ExpressionError for a setting out of its range; ModelError where the server cannot be reached, refuses,
        speaks another language, or gave no text to any of the instructions. An answer is stored as it comes.
        """
        how = Draw(tokens, sampling, seed)
        if sampling.repetition_penalty != 1:
            raise ModelError(
                f"{self.name} is asked by chat completions, which know no repetition penalty, and "
                f"{sampling.repetition_penalty:g} was wanted: leave it at 1."
            )

        def write(known: Mapping[str, Written]) -> Iterator[Batch]:
            yield from self._asked([text for text in dict.fromkeys(instructions) if text not in known], how)

        found = written_once(self._kept_as, instructions, how.label, write)
        if found and not any(one.text for one in found):
            raise ModelError(
                f"{self.name} gave no text to any of {len(found)} instructions: check the model's name, and allow it "
                f"more than {tokens} tokens if it thinks before it answers."
            )
        return found

    def _asked(self, instructions: Sequence[str], how: Draw) -> Iterator[Batch]:
        """Each answer as soon as it is there, several being waited for at a time."""
        with ThreadPoolExecutor(_PARALLEL) as pool:
            waiting: dict[Future[Written], str] = {
                pool.submit(self._answer, text, how): text for text in instructions
            }
            try:
                for done in as_completed(waiting):
                    yield [waiting[done]], [done.result()]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _answer(self, instruction: str, how: Draw) -> Written:
        from openai.types.chat import ChatCompletion

        content = instruction.encode("utf-8", "replace").decode()  # JSON carries no half of a pair
        with self._explained():
            made = self._client.chat.completions.create(
                model=self._address.model,
                messages=[{"role": "user", "content": content}],
                max_tokens=how.tokens,
                temperature=how.sampling.temperature,
                top_p=how.sampling.top_p,
                seed=how.seed,
            )
        # The client checks no types: any part may be of another shape than its own.
        choices = getattr(made, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        text = getattr(message, "content", None)
        if not isinstance(made, ChatCompletion) or message is None or not isinstance(text, str | None):
            raise ModelError(
                f"{self._address.url} did not answer as chat completions do: give the address under which "
                "/chat/completions lies, which most often ends in /v1."
            )
        ended = getattr(choice, "finish_reason", None) not in (
            "length",
            "content_filter",
        )  # either breaks it off
        return Written(mended(text or "")[0].strip(), ended)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What the client raises turned into one line that says what to do."""
        import openai

        try:
            yield
        except openai.APIConnectionError as error:  # a timeout is one too
            slow = isinstance(error, openai.APITimeoutError)
            what = "did not answer in time" if slow else "cannot be reached"
            raise ModelError(
                f"the server {self._address.url} {what}: check that it runs and that the address is right. What it "
                "has answered so far is kept."
            ) from None
        except openai.APIStatusError as error:
            raise ModelError(self._refusal(error.status_code, str(error.message))) from None
        except (openai.OpenAIError, *_ODD) as error:
            reason = " ".join(str(error).split())[:200]
            raise ModelError(f"{self._address.url} did not answer as chat completions do: {reason}") from None

    def _refusal(self, status: int, message: str) -> str:
        url, model = self._address
        reason = " ".join(message.split())[:200]
        if status in (401, 403):
            return f"{url} wants a key it knows ({status}): set {KEY} to one that may use {model}."
        if status == 404:
            return (
                f"{url} knows no model {model}, or no chat completions (404): check both. It said: {reason}"
            )
        if status == 429:
            return (
                f"{url} is too busy or the key's allowance is spent (429): try again later. It said: {reason}"
            )
        return f"{url} refused to answer ({status}): {reason}"
