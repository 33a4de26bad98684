"""What stands before every page: who asks (Host, Origin, token), how much is sent, and what the browser may do.

A page of another site can make the browser of a visitor send requests here. Such a request carries another Host (DNS
rebinding) or another Origin (forgery), and is refused before anything is read. Forms carry a key besides, which only
pages of this server know.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pretrace.web.settings import ServeSettings
from pretrace.web.workspace import RequestError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
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
_OPEN = (LOGIN, "/static/report.css", "/static/page.css", "/static/page.js")
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send forms without their Origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Refusal = Callable[[str], str]
"""The page that shows a sentence."""


@dataclass(frozen=True, slots=True)
class Doors:
    """What the guard goes by: settings, the port that is really bound, the key of sessions, and the page for a
    refusal."""

    settings: ServeSettings
    port: int
    key: bytes
    refusal: Refusal

    @property
    def cookie(self) -> str:
        """The name of the session's cookie; cookies do not tell ports apart."""
        return f"pretrace_{self.port}"

    @property
    def session(self) -> str:
        """What the cookie holds after a login."""
        return hmac.new(self.key, self.settings.token.encode(), hashlib.sha256).hexdigest()

    def knows(self, token: str) -> bool:
        """Whether that is the token."""
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
        if answer is not None:
            await answer(scope, receive, sender)
            return
        await self.app(scope, _counted(receive, self.doors.settings.most_bytes), sender)

    def _answer(self, scope: Scope, headers: Headers) -> Response | None:
        """What is answered instead of a page; None where the page may be shown."""
        try:
            self._check(scope, headers)
        except RequestError as refused:
            return HTMLResponse(self.doors.refusal(str(refused)), refused.status)
        path = str(scope["path"])
        token = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and token and self.doors.settings.token and self.doors.knows(token):
            return self.doors.let_in(RedirectResponse(path, 303))  # and out of the address bar
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
        if not length.isdecimal() or int(length) > self.doors.settings.most_bytes:
            raise too_large(self.doors.settings.most_upload)


def too_large(most: int) -> RequestError:
    """The answer to a body of more than so many MB."""
    return RequestError(
        f"That is more than {most:,} MB, the most that is taken here: upload a part of it, or start pretrace serve "
        "with a larger --max-upload.",
        413,
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _counted(receive: Receive, most: int) -> Receive:
    """The same messages; RequestError once the body has more bytes, whatever its headers said."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise too_large(most // 1_000_000)
        return message

    return counted


def _with_headers(send: Send, more: Iterable[tuple[str, str]] = tuple(_HEADERS.items())) -> Send:
    """The same messages with the headers of every answer, where it has none of its own."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in more:
                headers.setdefault(name, value)
        await send(message)

    return sent
