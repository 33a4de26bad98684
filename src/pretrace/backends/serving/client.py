"""Requests to a server: several at once up to a limit, repeated where that may help, refused with the cure.

The client is `openai.AsyncOpenAI`, for native routes too: it repeats what met 429 (waiting as Retry-After says),
a server's error or a broken connection, each time after a longer wait with jitter.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from pretrace.backends.serving.address import KEYS, api_key
from pretrace.errors import MissingPackageError, ModelError

RETRIES = 6
"""How often a request is repeated: the waits, each twice the last up to 8 s, come to about half a minute."""
_FOR_GOOD = ("validation error", "logits_all")
"""Words in an answer 500 of llama-cpp-python that blames the request: it would be answered alike a second time."""
_MARKUP = re.compile(r"<(script|style).*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class NotTakenError(ModelError):
    """The server understood the request and does not take one of this form (400 or 422)."""


class Client:
    """Asks one server. At most `requests` are under way at once, each may take `seconds`.

    Raises MissingPackageError without the extra `server`.
    """

    def __init__(self, url: str, *, requests: int, seconds: float, retries: int | None = None) -> None:
        try:
            import openai
        except ImportError:
            raise MissingPackageError("openai", "a model on a server", "server") from None
        self.url = url
        self._key = api_key()
        self._limit = asyncio.Semaphore(requests)
        self._client = openai.AsyncOpenAI(
            base_url=url,
            api_key=self._key or "none",  # servers of one's own ask for none, the client insists on one
            timeout=seconds,
            max_retries=RETRIES if retries is None else retries,
            # A redirect could carry texts and key elsewhere, so none is followed.
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False, event_hooks={"response": [_not_repeated]}
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
        return next(self.ask_all([(path, body)]))[1]

    def ask_all(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[int, Any]]:
        """Each answer as soon as it is there, with the number of its request; ModelError at the first without one."""
        waiting: dict[Future[Any], int] = {
            self._run(self._post(path, body)): i for i, (path, body) in enumerate(requests)
        }
        try:
            for done in as_completed(waiting):
                with self._explained():
                    answer = done.result()
                yield waiting[done], self._json(answer)
        finally:
            for one in waiting:
                one.cancel()

    def close(self) -> None:
        """Let go of the connections; the client cannot be used afterwards."""
        if not self._loop.is_closed():
            self._run(self._client.close()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def plain(self, message: str) -> str:
        """What a server said, on one line, short, without markup, and without the key."""
        if self._key:
            message = message.replace(self._key, "(the key)")
        return " ".join(_MARKUP.sub(" ", message).split())[:200]

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
        except openai.APIConnectionError as error:  # a timeout is one too
            slow = isinstance(error, openai.APITimeoutError)
            what = (
                "did not answer in time: allow it more (--request-timeout) or ask less at once (--requests)"
                if slow
                else "cannot be reached: check that it runs and that the address is right"
            )
            raise ModelError(f"the server {self.url} {what}. What it has answered so far is kept.") from None
        except openai.APIStatusError as error:
            kind = NotTakenError if self._blames_request(error) else ModelError
            raise kind(self._refusal(error)) from None
        except (openai.OpenAIError, ValueError) as error:
            raise ModelError(self._no_json(str(error))) from None

    def _blames_request(self, error: Any) -> bool:
        """Whether the request is what is wrong, and not the server."""
        said = str(error.message)
        return error.status_code in (400, 422) or (error.status_code == 500 and _is_for_good(said))

    def _refusal(self, error: Any) -> str:
        status, reason = int(error.status_code), self.plain(str(error.message))
        if 300 <= status < 400:
            host = urlsplit(error.response.headers.get("location", "")).hostname or "another path"
            return f"{self.url} redirects to {host}, and no redirect is followed: give the address itself."
        if status in (401, 403):
            return f"{self.url} wants a key it knows ({status}): set {KEYS[0]} (or {KEYS[1]}) to one."
        if status == 404:
            return (
                f"{self.url} has no such route or model (404): check the address, the kind of server and "
                f"--served-model. It said: {reason}"
            )
        if status == 429:
            return (
                f"{self.url} is too busy or the key's allowance is spent (429), after {RETRIES} more tries: go on "
                "later with the same command, or ask less at once (--requests). What it has answered is kept."
            )
        if status >= 500 and not self._blames_request(error):
            return (
                f"{self.url} fails ({status}), after {RETRIES} more tries: {reason} "
                "What it has answered so far is kept."
            )
        long = any(
            word in reason.lower()
            for word in ("context length", "too long", "max_model_len", "must have less")
        )
        cure = " Read less of a text with --max-tokens." if long else ""
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
            f"it: check address and kind. It said: {said[:100] or 'nothing'}"
        )


def _is_for_good(said: str) -> bool:
    return any(words in said for words in _FOR_GOOD)


async def _not_repeated(response: Any) -> None:
    """Tell the client not to repeat a request that the server blames, although it answers 500."""
    if response.status_code == 500:
        await response.aread()
        if _is_for_good(response.text):
            response.headers["x-should-retry"] = "false"  # a header that the client obeys
