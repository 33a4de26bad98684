"""Requests to a server: several at once up to a limit, repeated where that may help, refused with the cure.

The client is `openai.AsyncOpenAI`, for native routes too: it repeats what met 429 (waiting as Retry-After says),
a server's error or a broken connection, each time after a longer wait with jitter. Below it, each answer is read as a
whole: within the time limit, however slowly its bytes come, and up to a size.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pretrace.backends.serving.address import api_key, wants_key
from pretrace.errors import MissingPackageError, ModelError, shown

RETRIES = 6
"""How often a request is repeated: the waits, each twice the last up to 8 s, come to about half a minute."""
_SLOW_RETRIES = 1
"""How often a request is repeated whose answer was not there in time: a longer wait is what helps, not another try."""
MOST_BYTES = 64 * 2**20
"""Bytes of an answer, unpacked: those of 250,000 tokens in the longest of the forms."""
_SAID = 4000  # characters of what a server said that are looked at for a message
_FOR_GOOD = ("validation error", "logits_all")
"""Words in an answer 500 of llama-cpp-python that blames the request: it would be answered alike a second time."""
_MARKUP = re.compile(r"<(script|style).*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cures:
    """What a user can do, where a server asks for more time, knows no such thing, is too busy, or reads no text of such
    a length: halves of sentences that name the options of the command that asks."""

    slow: str = "allow it more (--request-timeout) or ask less at once (--requests)"
    unknown: str = "check the address, the kind of server and --served-model"
    busy: str = "go on later with the same command, or ask less at once (--requests)"
    long: str = " Read less of a text with --max-tokens."
    other: str = "check address and kind"


class NotTakenError(ModelError):
    """The server understood the request and does not take one of this form (400 or 422)."""


class _TooLongError(ValueError):
    """An answer is larger than any that is waited for."""


class Client:
    """Asks one server. At most `requests` are under way at once, each may take `seconds`; `cures` are what messages
    say can be done. `keyless`: the key of the environment is for servers of models, and this is another one.

    Raises MissingPackageError without the extra `server`.
    """

    def __init__(
        self,
        url: str,
        *,
        requests: int,
        seconds: float,
        retries: int | None = None,
        cures: Cures | None = None,
        keyless: bool = False,
    ) -> None:
        try:
            import openai
        except ImportError:
            raise MissingPackageError("openai", "a model on a server", "server") from None
        self.url, self.requests, self._cures = url, requests, cures or Cures()
        self._key = None if keyless else api_key(url)
        self._limit = asyncio.Semaphore(requests)
        self._client = openai.AsyncOpenAI(
            base_url=url,
            api_key=self._key or "none",  # servers of one's own ask for none, the client insists on one
            timeout=seconds,
            max_retries=RETRIES if retries is None else retries,
            # A redirect could carry texts and key elsewhere, so none is followed.
            http_client=_whole_answers(seconds)(
                follow_redirects=False, headers={"Accept-Encoding": "identity"}
            ),
        )
        self._loop = asyncio.new_event_loop()
        # Its own thread: whoever calls may have a loop that runs already, as a notebook has.
        self._thread = threading.Thread(target=self._loop.run_forever, name="pretrace-requests", daemon=True)
        self._thread.start()

    def find(self, path: str) -> Any | None:
        """What lies at a path as JSON; None where the server has no such path."""
        from openai import APIStatusError

        with self._explained():
            try:
                found = self._run(self._client.get(path, cast_to=object)).result()
            except APIStatusError as error:
                if error.status_code in (400, 404, 405, 501):
                    return None
                raise
        return self._json(found)

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """The server's answer as JSON; ModelError where there is none."""
        return self.found(self.start(path, body))

    @contextmanager
    def asking(self) -> Iterator[OpenRequests]:
        """Requests that are sent one after the other while answers come in; what is under way at the end is left."""
        asked = OpenRequests(self)
        try:
            yield asked
        finally:
            for one in asked.waiting:
                one.cancel()

    def close(self) -> None:
        """Let go of the connections; the client cannot be used afterwards."""
        if not self._loop.is_closed():
            self._run(self._client.close()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def plain(self, message: str) -> str:
        """What a server said, on one line, short, without markup, without the key, and nothing a terminal obeys."""
        message = message[:_SAID]
        if self._key:
            message = message.replace(self._key, "(the key)")
        return shown(" ".join(_MARKUP.sub(" ", message).split()))[:200]

    def quoted(self, body: Any) -> str:
        """What an answer in JSON said, as `plain`."""
        try:
            return self.plain(json.dumps(body))
        except (RecursionError, ValueError):
            return "nothing that can be shown"

    def found(self, done: Future[Any]) -> Any:
        """The JSON of an answer that is there; ModelError, with the cure, where it is none."""
        with self._explained():
            answer = done.result()
        return self._json(answer)

    def start(self, path: str, body: Mapping[str, Any]) -> Future[Any]:
        """Send a request as soon as there is room for one more; `found` reads its answer."""
        return self._run(self._post(path, body))

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        async with self._limit:
            return await self._client.post(path, cast_to=object, body=dict(body))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What the client raises turned into one line that says what to do."""
        import openai

        try:
            yield
        except _TooLongError as error:
            raise ModelError(
                f"{self.url} answers with more than {MOST_BYTES >> 20} MiB, more than any request here calls for: it "
                "is not the server that was named, or it is out of order."
            ) from error
        except openai.APIConnectionError as error:  # a timeout is one too
            slow = isinstance(error, openai.APITimeoutError)
            what = (
                f"did not answer in time: {self._cures.slow}"
                if slow
                else "cannot be reached: check that it runs and that the address is right"
            )
            raise ModelError(f"the server {self.url} {what}. What it has answered so far is kept.") from None
        except openai.APIStatusError as error:
            kind = NotTakenError if self._blames_request(error) else ModelError
            raise kind(self._refusal(error)) from None
        except RecursionError:
            raise ModelError(self._no_json("lists within lists, too deep to be read")) from None
        except (openai.OpenAIError, ValueError, OverflowError) as error:
            raise ModelError(self._no_json(str(error))) from None

    def _blames_request(self, error: Any) -> bool:
        said = str(error.message)
        return error.status_code in (400, 422) or (error.status_code == 500 and _is_for_good(said))

    def _refusal(self, error: Any) -> str:
        status, reason = int(error.status_code), self.plain(str(error.message))
        tried = _repeated(error.request)
        more = f", after {tried} more {'try' if tried == 1 else 'tries'}" if tried else ""
        if 300 <= status < 400:
            host = _host(error.response.headers.get("location", ""))
            return f"{self.url} redirects to {host}, and no redirect is followed: give the address itself."
        if status in (401, 403):
            return f"{self.url} wants a key it knows ({status}): {wants_key(self.url)}."
        if status == 404:
            return f"{self.url} has no such route or model (404): {self._cures.unknown}. It said: {reason}"
        if status == 429:
            return (
                f"{self.url} is too busy or the key's allowance is spent (429){more}: {self._cures.busy}. What it has "
                "answered is kept."
            )
        if status >= 500 and not self._blames_request(error):
            return f"{self.url} fails ({status}){more}: {reason} What it has answered so far is kept."
        long = any(
            word in reason.lower()
            for word in ("context length", "too long", "max_model_len", "must have less")
        )
        cure = self._cures.long if long else ""
        if "logits_all" in reason:
            cure = " Start llama-cpp-python with --logits_all true."
        return f"{self.url} refused to answer ({status}): {reason}{cure}"

    def _json(self, found: Any) -> Any:
        if isinstance(found, str):  # what the client makes of an answer that says it is no JSON
            raise ModelError(self._no_json(found))
        return found

    def _no_json(self, found: str) -> str:
        said = self.plain(found)
        return (
            f"{self.url} does not answer in JSON, so it is not the server that was named, or a page stands in front of "
            f"it: {self._cures.other}. It said: {said[:100] or 'nothing'}"
        )


def _is_for_good(said: str) -> bool:
    return any(words in said for words in _FOR_GOOD)


class OpenRequests:
    """Requests under way, and their answers as they come."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.waiting: dict[Future[Any], Any] = {}

    def send(self, name: Any, path: str, body: Mapping[str, Any]) -> None:
        """Send one request; its answer comes under this name."""
        self.waiting[self._client.start(path, body)] = name

    def answers(self) -> Iterator[tuple[Any, Any]]:
        """Name and JSON of each answer until none is awaited; more may be sent meanwhile. ModelError at the first
        request without an answer."""
        for name, done in self.done():
            yield name, self._client.found(done)

    def done(self) -> Iterator[tuple[Any, Future[Any]]]:
        """Name and future of each request that is over, of several at once those with an answer first."""
        while self.waiting:
            over = wait(self.waiting, return_when=FIRST_COMPLETED).done
            for one in sorted(over, key=lambda one: one.exception() is not None):
                yield self.waiting.pop(one), one


def _whole_answers(seconds: float) -> Any:
    """The client's own transport, whose answers are read here: as a whole within `seconds`, and up to a size.

    Its time limits alone hold for each piece of an answer, so that a byte now and then would hold a run for ever.
    """
    import openai

    class WholeAnswers(openai.DefaultAsyncHttpxClient):
        async def send(self, request: Any, **more: Any) -> Any:
            try:
                async with asyncio.timeout(seconds):
                    response = await super().send(request, **{**more, "stream": True})
                    try:
                        content = await _content(response)
                    finally:
                        await response.aclose()
            except TimeoutError:
                if _repeated(request) < _SLOW_RETRIES:
                    raise _read_timeout(request) from None  # which the client repeats
                raise openai.APITimeoutError(request=request) from None
            headers = [
                (name, value)
                for name, value in response.headers.multi_items()
                if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
            ]
            if response.status_code == 500 and _is_for_good(content.decode("utf-8", "replace")):
                headers.append(("x-should-retry", "false"))  # a header that the client obeys
            return type(response)(response.status_code, headers=headers, content=content, request=request)

    return WholeAnswers


async def _content(response: Any) -> bytes:
    found = bytearray()
    async for part in response.aiter_bytes():
        found += part
        if len(found) > MOST_BYTES:
            raise _TooLongError
    return bytes(found)


def _read_timeout(request: Any) -> Exception:
    """The exception of the library that the request is of: httpx, or what has taken its place."""
    module = sys.modules[type(request).__module__.partition(".")[0]]
    made: Exception = module.ReadTimeout("the whole answer took too long", request=request)
    return made


def _repeated(request: Any) -> int:
    return int(request.headers.get("x-stainless-retry-count", 0))


def _host(address: str) -> str:
    try:
        return shown(urlsplit(address).hostname or "another path")[:100]
    except ValueError:
        return "another path"


class _NoRedirect(HTTPRedirectHandler):
    """A redirect is an answer, and is not followed."""

    def redirect_request(self, *given: Any, **how: Any) -> None:
        """No further request."""


def check_answers(url: str, seconds: float = 5.0) -> None:
    """ModelError where nothing answers at the address of a server. No key is sent, and any answer will do."""
    try:
        build_opener(_NoRedirect).open(Request(f"{url}/models"), timeout=seconds).close()
    except HTTPError as answered:
        answered.close()
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ModelError(
            f"nothing answers at {url} ({' '.join(str(reason).split()) or type(error).__name__}): start the server, or "
            "mend the address."
        ) from None
