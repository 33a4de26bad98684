"""Requests to a server: several at once up to a limit, repeated where that may help, refused with the cure.

What met 429 (waiting as Retry-After says), a server's error or a broken connection is repeated, each time after a
longer wait with jitter. Each answer is read as a whole: within the time limit, however slowly its bytes come, and up to
a size.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from pretrace.backends.libraries import asyncio
from pretrace.backends.naming import KEY_HOSTS, KEYS, host_of, split_url
from pretrace.errors import MissingPackageError, ModelError, shown
from pretrace.results.wording import say

RETRIES = 6
"""How often a request is repeated: the waits, each twice the last up to 8 s, come to about half a minute."""
FIRST_WAIT = 0.5
"""Seconds before a request is repeated for the first time."""
_SLOW_RETRIES = 1
"""How often a request is repeated whose answer was not there in time: a longer wait is what helps, not another try."""
MOST_BYTES = 64 * 2**20
"""Bytes of an answer, unpacked: those of 250,000 tokens in the longest of the forms."""
_SAID = 4000  # characters of what a server said that are looked at for a message
_FOR_GOOD = ("validation error", "logits_all")
"""Words in an answer 500 of llama-cpp-python that blames the request: it would be answered alike a second time."""
_MARKUP = re.compile(r"<(script|style).*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TOO_LONG = ("context length", "too long", "max_model_len", "must have less")
_KEPT = "What it has answered so far is kept."
_ARGUMENTS = " (request_timeout and requests among the arguments of a model)"
_UNKNOWN = "check the address, which most often ends in /v1, the kind of server and the name (served_model)"
_SHORTER = " Give it less to read at once (max_tokens among the arguments of a model)."


def _api_key(url: str) -> str:
    """The environment's key for a server; "" for a host (or host:port) that PRETRACE_KEY_HOSTS does not name."""
    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), "")
    return key if _may_have_key(url) else ""


def _wants_key(url: str) -> str:
    """What to do where the server at an address wants a key, in half a sentence."""
    own = f"set {KEYS[0]} (or {KEYS[1]}) to one"
    return own if _may_have_key(url) else say("servers.no_key", hosts=KEY_HOSTS)


def _may_have_key(url: str) -> bool:
    hosts, parts = os.environ.get(KEY_HOSTS), split_url(url)
    if hosts is None:
        return True
    if parts is None:
        return False
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return any(host_of(one) in ((parts.hostname, None), (parts.hostname, port)) for one in hosts.split(","))


class NotTakenError(ModelError):
    """The server understood the request and does not take one of this form (400 or 422)."""


class Client:
    """Asks one server, at most `requests` at once, each for `seconds`. `keyless`: no server of models, which gets no
    key. MissingPackageError without the extra `servers`."""

    def __init__(self, url: str, *, requests: int, seconds: float, keyless: bool = False) -> None:
        httpx = _import_httpx()
        self.url, self.requests = url, requests
        self._seconds = seconds
        self._key = "" if keyless else _api_key(url)
        self._limit = asyncio.Semaphore(requests)
        # A redirect could carry texts and key elsewhere, so none is followed.
        self._http = httpx.AsyncClient(timeout=seconds, limits=httpx.Limits(max_connections=requests))
        self._loop = asyncio.new_event_loop()
        # Its own thread: whoever calls may have a loop that runs already, as a notebook has.
        self._thread = threading.Thread(target=self._loop.run_forever, name="pretrace-requests", daemon=True)
        self._thread.start()

    def plain(self, message: str) -> str:
        """What was said, on one line, short, without markup, without the key, and nothing a terminal obeys."""
        message = message[:_SAID]
        if self._key:
            message = message.replace(self._key, "(the key)")
        return shown(" ".join(_MARKUP.sub(" ", message).split()))[:200]

    def quoted(self, body: Any) -> str:
        """What an answer in JSON said, as `plain`."""
        try:
            return self.plain(json.dumps(body, default=str))
        except (RecursionError, ValueError):
            return "nothing that can be shown"

    def find(self, path: str) -> Any | None:
        """What lies at a path as JSON; None where the server has no such path."""
        return self._run(self._send("GET", path, missing=(400, 404, 405, 501))).result()

    def start(self, path: str, body: Mapping[str, Any]) -> Future[Any]:
        """Send a request as soon as there is room for one more; its result is the answer as JSON or a ModelError."""
        return self._run(self._send("POST", path, body))

    def close(self) -> None:
        if not self._loop.is_closed():
            self._run(self._http.aclose()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, missing: tuple[int, ...] = ()
    ) -> Any:
        """The JSON of the answer, None for a status that says the path is `missing`; ModelError, with the cure, where
        there is none after all tries."""
        httpx, tried = _import_httpx(), 0
        slow = f"the server {self.url} did not answer in time: allow it more, or ask less at once{_ARGUMENTS}. {_KEPT}"
        gone = f"the server {self.url} cannot be reached: check that it runs and that the address is right. {_KEPT}"
        odd = f"{self.url} does not answer in JSON, so it is not the server that was named, or a page stands in front "
        odd += "of it: check the address, which most often ends in /v1. It said: "
        async with self._limit:
            while True:
                after = said = ""
                try:
                    async with asyncio.timeout(self._seconds):
                        status, headers, said = await self._exchange(method, path, body)
                    if status < 300 or status in missing:
                        return json.loads(said) if status < 300 else None
                    trouble, tries = self._refusal(status, headers, said, tried)
                    after = headers.get("retry-after", "")
                except (TimeoutError, httpx.TimeoutException):
                    trouble, tries = ModelError(slow), min(RETRIES, _SLOW_RETRIES)
                except httpx.HTTPError:
                    trouble, tries = ModelError(gone), RETRIES
                except (httpx.InvalidURL, ValueError, RecursionError) as error:
                    deep = isinstance(error, RecursionError)
                    found = "lists within lists, too deep to be read" if deep else said or str(error)
                    trouble, tries = ModelError(odd + (self.plain(found)[:100] or "nothing")), 0
                if tried >= tries:
                    raise trouble
                # What Retry-After says, up to a minute, else twice the last wait, with jitter.
                wanted = float(after) if re.fullmatch(r"\d+(\.\d+)?", after) else 0.0
                usual = min(FIRST_WAIT * 2**tried, 8.0) * random.uniform(0.75, 1)
                await asyncio.sleep(wanted if 0 < wanted <= 60 else usual)
                tried += 1

    async def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[int, Mapping[str, str], str]:
        """Status, headers and text of one answer; ModelError where it is too long."""
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = None if body is None else json.dumps(body).encode()
        found = bytearray()
        async with self._http.stream(method, self.url + path, content=content, headers=headers) as response:
            async for part in response.aiter_bytes():
                found += part
                if len(found) > MOST_BYTES:
                    raise ModelError(say("servers.too_long", url=self.url, size=MOST_BYTES >> 20))
        return response.status_code, response.headers, found.decode("utf-8", "replace")

    def _refusal(
        self, status: int, headers: Mapping[str, str], said: str, tried: int
    ) -> tuple[ModelError, int]:
        """What to say of an answer that is a refusal, and how often the same request may be tried again."""
        reason = self.plain(said)
        blames = status in (400, 422) or (status == 500 and any(words in said for words in _FOR_GOOD))
        passing = status in (408, 409, 429) or status >= 500
        more = f", after {tried} more {'try' if tried == 1 else 'tries'}" if tried else ""
        if 300 <= status < 400:
            what = "redirects elsewhere, and no redirect is followed: give the address itself."
        elif status in (401, 403):
            what = f"wants a key it knows ({status}): {_wants_key(self.url)}."
        elif status == 404:
            what = f"has no such route or model (404): {_UNKNOWN}. It said: {reason}"
        elif status == 429:
            what = f"is too busy or the key's allowance is spent (429){more}: go on later. {_KEPT}"
        elif status >= 500 and not blames:
            what = f"fails ({status}){more}: {reason} {_KEPT}"
        else:
            cure = _SHORTER if any(word in reason.lower() for word in _TOO_LONG) else ""
            if "logits_all" in reason:
                cure = " Start llama-cpp-python with --logits_all true."
            what = f"refused to answer ({status}): {reason}{cure}"
        may_help = passing and headers.get("x-should-retry") != "false" and not blames
        error = (NotTakenError if blames else ModelError)(f"{self.url} {what}")
        return error, RETRIES if may_help else 0


def _import_httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise MissingPackageError("httpx", "a model on a server", "servers") from None
    return httpx


def answered(
    client: Client, more: Callable[[], tuple[Any, str, Mapping[str, Any]] | None]
) -> Iterator[tuple[Any, Future[Any]]]:
    """Name and future of each request that is over, those with an answer first. `more` gives name, path and body of the
    next one, None for now none: the server is never idle. What is under way at the end is left."""
    waiting: dict[Future[Any], Any] = {}

    def send() -> None:
        while len(waiting) < 2 * client.requests and (one := more()):
            name, path, body = one
            waiting[client.start(path, body)] = name

    try:
        send()
        while waiting:
            over = wait(waiting, return_when=FIRST_COMPLETED).done
            for done in sorted(over, key=lambda one: one.exception() is not None):
                yield waiting.pop(done), done
                send()
    finally:
        for left in waiting:
            left.cancel()


def check_answers(url: str, seconds: float = 5.0) -> None:
    """ModelError where nothing answers at the address of a server. No key is sent, and any answer will do."""
    httpx = _import_httpx()
    try:
        with httpx.stream("GET", f"{url}/models", timeout=seconds):
            pass
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(say("servers.silent", url=url, reason=reason)) from None
