"""What stands before every page: who asks (Host, Origin, token), how much is sent and how fast, and what the browser
may do.

A page of another site can make the browser of a visitor send requests here. Such a request carries another Host (DNS
rebinding) or another Origin (forgery), and is refused before anything is read. Forms carry a key besides, which only
pages of this server know. Wrong tokens make their address wait, and whoever has not given the token may send no more
than a login.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import math
import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pretrace.web.settings import Limits, ServeSettings
from pretrace.web.workspace import RequestError

Scope = MutableMapping[str, Any]
_Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[_Message]]
Send = Callable[[_Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of a page: nothing from elsewhere, no script or style within it."""
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""That of a report, which may come from elsewhere: no script at all, no form, an origin of its own."""
LOGIN = "/login"
_LARGE = 1_000_000  # bytes: what is larger is kept on the disk while it arrives
_OPEN = (LOGIN, "/static/report.css", "/static/page.css", "/static/page.js")
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send forms without their Origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_Refusal = Callable[[str], str]
"""The page that shows a sentence."""
CONNECTION = "pretrace.connection"
"""Where a scope holds the connection that the request came by, if it came by one of ours."""


class Tries:
    """Wrong tokens, by the address they came from: after the first few each makes it wait, twice as long as the one
    before. Right ones are not looked at either while an address waits."""

    _FORGOTTEN = 900.0  # seconds
    _MOST = 10_000  # addresses

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def check(self, address: str) -> None:
        """RequestError (429) while an address has to wait."""
        number, last = self._wrong.get(_network(address), (0, 0.0))
        more = number - self.limits.tries
        wait = last + min(2.0 ** min(more, 30), self.limits.longest_wait) - monotonic() if more >= 0 else 0.0
        if wait > 0:
            raise RequestError(
                f"Too many wrong tokens came from your address: try again in {math.ceil(wait)} s.", 429
            )

    def note(self, address: str, right: bool) -> None:
        """Take note of a token that was given."""
        network, now = _network(address), monotonic()
        number, last = self._wrong.pop(network, (0, now))
        if not right:
            self._wrong[network] = (number + 1 if now - last < self._FORGOTTEN else 1, now)
        while len(self._wrong) > self._MOST:
            self._wrong.popitem(last=False)


def _network(address: str) -> str:
    """An address; of the sixth version the network, all of which one visitor may have."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else address


@dataclass(frozen=True, slots=True)
class Doors:
    """What the guard goes by: settings, the port that is really bound, the key of sessions, and the page for a
    refusal."""

    settings: ServeSettings
    port: int
    key: bytes
    refusal: _Refusal
    limits: Limits = field(default_factory=Limits)
    tries: Tries = field(default_factory=lambda: Tries(Limits()))

    @property
    def cookie(self) -> str:
        """The name of the session's cookie; cookies do not tell ports apart."""
        return f"pretrace_{self.port}"

    @property
    def session(self) -> str:
        """What the cookie holds after a login."""
        return hmac.new(self.key, self.settings.token.encode(), hashlib.sha256).hexdigest()

    def knows(self, token: str, address: str) -> bool:
        """Whether that is the token; RequestError (429) where too many wrong ones came from that address."""
        self.tries.check(address)
        right = self._is(token)
        self.tries.note(address, right)
        return right

    def _is(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.settings.token.encode())

    def entered(self, headers: Headers) -> bool:
        """Whether a request may see pages: always where no token is set."""
        if not self.settings.token:
            return True
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(headers.get("cookie", ""))
        except CookieError:
            return False
        found = jar.get(self.cookie)
        return found is not None and hmac.compare_digest(found.value.encode(), self.session.encode())

    def most_body(self, headers: Headers) -> int:
        """The largest body of a request, in bytes: a login, before the token was given."""
        return self.settings.most_bytes if self.entered(headers) else self.limits.login_bytes

    def let_in(self, response: Response) -> Response:
        """The response, which makes the browser remember the login until it is closed."""
        response.set_cookie(self.cookie, self.session, httponly=True, samesite="strict", path="/")
        return response

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names this server; one bound to all addresses answers to each of them by number."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower().rstrip(".")
        except ValueError:  # a bracket that is not closed
            return False
        if self.settings.own:
            return name in ("localhost", "127.0.0.1", "::1", self.settings.host.strip("[]").lower())
        own = self.settings.host.strip("[]").lower()
        everywhere = own in ("0.0.0.0", "::")
        if everywhere and _is_address(name):
            return True
        return name in (
            own,
            "localhost",
            "127.0.0.1",
            "::1",
            socket.gethostname().lower(),
            socket.getfqdn().lower(),
        )


class Guard:
    """The application behind its doors."""

    def __init__(self, app: App, doors: Doors) -> None:
        self.app, self.doors = app, doors
        self._large = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        answer = self._answer(scope, headers)
        sender = _with_headers(send)
        if scope["method"] == "HEAD":  # as for GET, and nothing but the headers is sent
            scope, sender = {**scope, "method": "GET"}, _headers_only(sender)
        if answer is not None:
            await answer(scope, receive, sender)
            return
        limits, entered = self.doors.limits, self.doors.entered(headers)
        if entered and self.doors.settings.token and CONNECTION in scope:
            scope[CONNECTION].known = True
        most = self.doors.most_body(headers)
        seconds, rate = (limits.body_seconds, limits.body_rate) if entered else (limits.head_seconds, 0)
        try:
            async with self._place(entered and scope["method"] == "POST", headers):
                await self.app(scope, _counted(receive, most, seconds, rate), sender)
        except RequestError as refused:  # before the application had its turn
            await HTMLResponse(self.doors.refusal(str(refused)), refused.status)(scope, receive, sender)

    @asynccontextmanager
    async def _place(self, sends: bool, headers: Headers) -> AsyncIterator[None]:
        """One of the few places for a large body; RequestError (503) where none is free."""
        large = sends and int(headers.get("content-length", _LARGE)) >= _LARGE
        if large and self._large >= self.doors.limits.bodies:
            raise RequestError("Several uploads are being received: try again in a minute.", 503)
        self._large += large
        try:
            yield
        finally:
            self._large -= large

    def _answer(self, scope: Scope, headers: Headers) -> Response | None:
        """What is answered instead of a page; None where the page may be shown."""
        path = str(scope["path"])
        try:
            self._check(scope, headers)
            token = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
            if scope["method"] == "GET" and token and self.doors.settings.token:
                if self.doors.entered(headers):
                    return RedirectResponse(_within(path), 303)  # out of the address bar
                if self.doors.knows(token, address_of(scope)):
                    return self.doors.let_in(RedirectResponse(_within(path), 303))
        except RequestError as refused:
            return HTMLResponse(self.doors.refusal(str(refused)), refused.status)
        if path not in _OPEN and not self.doors.entered(headers):
            return RedirectResponse(LOGIN, 303)
        return None

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "")
        if headers.getlist("host") != [host] or not self.doors.answers_to(host):
            raise RequestError(
                f"This server does not answer to the name {host[:100]!r}: open it by the address that pretrace serve "
                "printed.",
                421,
            )
        changes = scope["method"] not in ("GET", "HEAD")
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        if changes:
            origin = headers.get("origin")
            if (origin is not None and origin.partition("://")[2] != host) or site not in (
                None,
                "same-origin",
            ):
                raise RequestError("This request comes from another page: send it from this one.", 403)
        elif site in ("cross-site", "same-site") and (
            mode != "navigate" or headers.get("sec-fetch-dest") != "document"
        ):
            raise RequestError("This request comes from another site, which may not look in here.", 403)
        length = headers.get("content-length", "0")
        most = self.doors.most_body(headers)
        if not length.isdecimal() or int(length) > most:
            raise _too_large(most)


def _too_large(most: int) -> RequestError:
    """The answer to a body of more bytes than that."""
    if most < _LARGE:
        return RequestError("That is more than a login holds: give the token first.", 413)
    return RequestError(
        f"That is more than {most // 1_000_000:,} MB, the most that is taken here: upload a part of it, or start "
        "pretrace serve with a larger --max-upload.",
        413,
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def address_of(scope: Scope) -> str:
    """Where a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _within(path: str) -> str:
    """A path of this server: one that begins with two strokes would name another."""
    return f"/{path.lstrip('/')}"


def _counted(receive: Receive, most: int, seconds: float, rate: int) -> Receive:
    """The same messages; RequestError once the body has more bytes than that, whatever its headers said, or is slower:
    it has `seconds`, and then one second more for every `rate` bytes (none where that is 0)."""
    size, began, whole = 0, monotonic(), False

    async def counted() -> _Message:
        nonlocal size, whole
        if whole:  # what is left to come is that the visitor is gone
            return await receive()
        until = began + seconds + (size / rate if rate else 0.0)
        try:
            message = await asyncio.wait_for(receive(), max(0.01, until - monotonic()))
        except TimeoutError:
            raise RequestError("What you sent did not arrive in time: send it again.", 408) from None
        if message["type"] != "http.request":
            raise RequestError("The connection was closed before all of it was sent.", 408)
        size += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if size > most:
            raise _too_large(most)
        return message

    return counted


def _headers_only(send: Send) -> Send:
    """The same messages without their bodies."""

    async def sent(message: _Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return sent


def _with_headers(send: Send, more: Iterable[tuple[str, str]] = tuple(_HEADERS.items())) -> Send:
    """The same messages with the headers of every answer, where it has none of its own."""

    async def sent(message: _Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in more:
                headers.setdefault(name, value)
        await send(message)

    return sent
