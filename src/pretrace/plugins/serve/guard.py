"""What every request passes before a page: does it come from a page of this server, and was the token given?

A page of another site can make the browser of a visitor send requests here. Such a request carries another Host (DNS
rebinding), which starlette refuses, or another Origin (forgery), which is refused here before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from starlette.datastructures import MutableHeaders
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pretrace.plugins.serve.settings import Limits, ServeSettings

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
ENTERED = "entered"
"""What the session of a visitor holds who gave the token."""
_OPEN = (LOGIN, "/static/report.css", "/static/page.css", "/static/page.js")
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send forms without their Origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """The application for requests of its own pages, by visitors with the token; `refusal` shows a sentence."""

    def __init__(
        self, app: ASGIApp, settings: ServeSettings, limits: Limits, refusal: Callable[[str], str]
    ) -> None:
        self.app, self.settings, self.refusal = app, settings, refusal
        self.login = RequestBodyLimitMiddleware(app, limits.login_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        await self._answer(Request(scope))(scope, receive, _with_headers(send))

    def _answer(self, request: Request) -> ASGIApp:
        """What answers a request: the application, a redirection, or a refusal."""
        if _is_foreign(request):
            said = "This request comes from another page: send it from this one."
            return HTMLResponse(self.refusal(said), 403)
        path, token = request.url.path, request.query_params.get("token", "")
        entered = not self.settings.token or ENTERED in request.session
        asks = self.settings.token and request.method == "GET" and token
        if asks and (entered or self.settings.is_token(token)):
            request.session[ENTERED] = True
            return _go(path)  # out of the address bar
        if not entered:
            return self.login if path in _OPEN else _go(LOGIN)
        return self.app


def _go(path: str) -> Response:
    """Redirect to a path of this server: one that begins with two strokes would name another."""
    return RedirectResponse(f"/{path.lstrip('/')}", 303)


def _is_foreign(request: Request) -> bool:
    """Whether a page of another site sends something."""
    if request.method in ("GET", "HEAD"):  # whose answers browsers keep from other sites
        return False
    origin, host = request.headers.get("origin"), request.headers.get("host")
    site = request.headers.get("sec-fetch-site")
    return (origin is not None and origin.partition("://")[2] != host) or site not in (None, "same-origin")


def _with_headers(send: Send, more: Iterable[tuple[str, str]] = tuple(_HEADERS.items())) -> Send:
    """The same messages with the headers of every answer, where it has none of its own."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in more:
                headers.setdefault(name, value)
        await send(message)

    return sent
