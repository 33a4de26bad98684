"""A model behind a server that speaks OpenAI's chat completions: vLLM, llama.cpp, Ollama, a provider's own.

It is asked by the client of all servers (`backends.serving.client`): an answer has a time limit as a whole and a size,
and the key goes only to hosts that may have it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pretrace.backends.serving.address import KEYS, holds_secret, split_url
from pretrace.backends.serving.client import Client, Cures
from pretrace.cache.written import Batch, Draw, written_once
from pretrace.corpora.columns import mended
from pretrace.errors import ModelError
from pretrace.types import Sampling, Written

FORMAT = 1  # part of the fingerprint: raised whenever a server would be asked in another way
_SECONDS = 120.0
_RETRIES = 4  # the client waits longer before each: about ten seconds together
_PARALLEL = 8
_PATH = "/chat/completions"
_BROKEN_OFF = ("length", "content_filter")  # why an answer ended before the model was done
_CURES = Cures(
    slow="check that it is not at work on something else, and go on later with the same command",
    unknown=f"check the model's name, and that {_PATH} lies below the address, which most often ends in /v1",
    busy="go on later with the same command",
    long="",
    other=f"give the address under which {_PATH} lies, which most often ends in /v1",
)


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
                f"an address is recorded with what was made, and this one may hold a secret: put the key in {KEYS[0]} "
                "and leave user, password and query out of the address."
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
    client = Client(address.url, requests=_PARALLEL, seconds=seconds, retries=retries, cures=_CURES)
    return ServerInstructed(client, address, cache=cache)


class ServerInstructed:
    """An `Instructed` behind a server.

    Its weights cannot be seen, so nothing here names them by their hash: whoever runs the server may change
    them under the same name, and then what is on disk is what the earlier ones wrote.
    """

    def __init__(self, client: Client, address: Address, *, cache: bool = True) -> None:
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
        ahead = iter(instructions)
        with self._client.asking() as asked:
            for text in islice(ahead, 2 * self._client.requests):
                asked.send(text, _PATH, self._request(text, how))
            for text, body in asked.answers():
                yield [text], [self._written(body)]
                for more in islice(ahead, 1):
                    asked.send(more, _PATH, self._request(more, how))

    def _request(self, instruction: str, how: Draw) -> dict[str, Any]:
        content = instruction.encode("utf-8", "replace").decode()  # JSON carries no half of a pair
        return {
            "model": self._address.model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": how.tokens,
            "temperature": how.sampling.temperature,
            "top_p": how.sampling.top_p,
            "seed": how.seed,
        }

    def _written(self, body: Any) -> Written:
        """What an answer holds; ModelError where it is of another form. A null text is an empty one."""
        try:
            choice = body["choices"][0]
            text = choice["message"]["content"]
            ended = choice.get("finish_reason") not in _BROKEN_OFF
            if not isinstance(text, str | None):
                raise TypeError(text)
        except (LookupError, TypeError, AttributeError):
            raise ModelError(
                f"{self._address.url} did not answer as chat completions do: {_CURES.other}. It said: "
                f"{self._client.quoted(body)}"
            ) from None
        return Written(mended(text or "")[0].strip(), ended)
