"""The application and its server: one process a workspace, on one port, until it is stopped.

A page of another site can make the browser of a visitor send requests here. Such a request carries another Host (DNS
rebinding), which starlette refuses, or another Origin (forgery), which `_guard` refuses before anything is read.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import hmac
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files as resources
from pathlib import Path
from typing import Literal

import psutil
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route

from pretrace.errors import ExpressionError, OutputError, PretraceError
from pretrace.plugins.serve import RequestError, Workspace, reading_texts, results, testing_collections
from pretrace.plugins.serve.command import ServeSettings
from pretrace.plugins.serve.jobs import AHEAD, Jobs, WebJob, running
from pretrace.plugins.serve.pages import CurrentJobs, Posted, go, jobs_of, line, page, posted, rendered
from pretrace.plugins.serve.reading_texts import Look
from pretrace.plugins.serve.uploads import TAKEN
from pretrace.results.atomic import atomic_bytes, json_object
from pretrace.results.folder import to_json
from pretrace.results.wording import say

router = APIRouter()
_LATEST = 5
_LOGIN = "/login"
_ENTERED = "entered"
"""What the session of a visitor holds who gave the token."""


@router.get("/", response_class=HTMLResponse)
def _home(jobs: CurrentJobs) -> HTMLResponse:
    """What can be done here, what is going on, and what was found last."""
    return page(
        jobs,
        "home.html",
        here="home",
        jobs=[(job, state) for job, state in jobs.states() if not state.over][:_LATEST],
        latest=results.entries(jobs.workspace)[:_LATEST],
        taken=TAKEN,
    )


@router.get("/jobs", response_class=HTMLResponse)
def _all_jobs(jobs: CurrentJobs) -> HTMLResponse:
    """All jobs."""
    return page(jobs, "jobs.html", here="jobs", jobs=jobs.states())


@router.get("/jobs/{name}", response_class=HTMLResponse)
@router.get("/jobs/{name}/{part}", response_class=HTMLResponse)
def _job(jobs: CurrentJobs, name: str, part: Literal["", "part"] = "") -> HTMLResponse:
    """One job with its progress; its `part` is put in the place of the progress of an open page."""
    found = jobs.workspace.record(WebJob, name)
    return page(
        jobs,
        "job_part.html" if part else "job.html",
        here="jobs",
        job=found,
        state=jobs.state(found),
        log=jobs.log(found),
        looked=next((one for one in jobs.workspace.records(Look) if one.job == name), None),
    )


@router.post("/jobs/{name}/{what}")
def _change(
    jobs: CurrentJobs, name: str, what: Literal["stop", "resume", "begin"], form: Posted
) -> RedirectResponse:
    """Ask a job to stop, let it go on, or start what it only planned."""
    found = jobs.workspace.record(WebJob, name)
    if what == "stop":
        jobs.stop(found)
    elif what == "resume":
        jobs.resume(found)
    elif found.plans:
        command = tuple(part for part in found.command if part not in AHEAD)
        title = found.title.removeprefix("Plan of ")
        found = jobs.add(title, command, found.out, texts=found.texts, case=found.case)
    else:
        raise RequestError("This job was no plan: it cannot be started in this way.", 409)
    return go(f"/jobs/{found.id}")


@router.get(_LOGIN, response_class=HTMLResponse)
def _login(jobs: CurrentJobs) -> HTMLResponse:
    """The form for the token."""
    return page(jobs, "login.html")


async def _enter(request: Request) -> Response:
    """Let a visitor in who gives the token."""
    jobs = jobs_of(request)
    if not jobs.settings.is_token(line(await posted(request), "token")):
        said = "That is not the token: it was set where pretrace serve was started."
        return page(jobs, "login.html", 403, problem=said)
    request.session[_ENTERED] = True
    return go("/")


@router.get("/static/{name}")
def _static(name: Literal["report.css", "page.css", "page.js"]) -> Response:
    """The style of the reports, what the pages add to it, and their script."""
    kind = "javascript" if name == "page.js" else "css"
    if name == "report.css":
        content = rendered("style.css", {})
    else:
        content = resources("pretrace.plugins.serve").joinpath("static", name).read_text("utf-8")
    return Response(content, media_type=f"text/{kind}")


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of a page: nothing from elsewhere, no script or style within it."""
_OPEN = (_LOGIN, *(f"/static/{name}" for name in ("report.css", "page.css", "page.js")))
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send forms without their Origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_EVERY = 0.5
"""Seconds between two looks at whose turn it is."""
_SAID = {
    404: "There is no such page here.",
    405: "That cannot be done with this page.",
    413: "That is larger than is taken here: upload a part of it, and a long text as a file.",
}
_HOST, _NAMES = "127.0.0.1", ("127.0.0.1", "localhost")


async def _guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Answer requests of the site's own pages, by visitors with the token; no answer may do more than it needs."""
    answer = _turned_away(request) or await call_next(request)
    for name, value in _HEADERS.items():
        answer.headers.setdefault(name, value)
    return answer


def _turned_away(request: Request) -> Response | None:
    """The refusal or redirection that answers a request; None for one that the application answers."""
    origin, host = request.headers.get("origin"), request.headers.get("host")
    foreign = request.headers.get("sec-fetch-site") not in (None, "same-origin")
    foreign |= origin is not None and origin.partition("://")[2] != host
    if foreign and request.method not in ("GET", "HEAD"):  # whose answers browsers keep from other sites
        said = "This request comes from another page: send it from this one."
        return HTMLResponse(rendered("refused.html", {"sentence": said}), 403)
    settings, path, token = jobs_of(request).settings, request.url.path, request.query_params.get("token", "")
    entered = not settings.token or _ENTERED in request.session
    if settings.token and request.method == "GET" and token and (entered or settings.is_token(token)):
        request.session[_ENTERED] = True
        return go(path)  # out of the address bar
    return None if entered or path in _OPEN else go(_LOGIN)


def application(settings: ServeSettings, *, port: int | None = None) -> FastAPI:
    """The site of a workspace; OutputError where the workspace cannot be used. `port` is the one that is really bound:
    cookies do not tell ports apart."""
    workspace = Workspace.at(settings.workspace)
    # what a server that was killed had not yet taken in
    for place in (workspace.folder / "incoming").iterdir():
        shutil.rmtree(place, ignore_errors=True)
    # A session ends with the browser, with another token, and with the secret of the workspace.
    secret = (workspace.folder / "secret").read_bytes()
    key = hmac.new(secret, settings.token.encode(), hashlib.sha256).hexdigest()
    cookie = f"pretrace_{settings.port if port is None else port}"
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=[*_NAMES, *settings.proxy_name], www_redirect=False),
        Middleware(SessionMiddleware, key, cookie, max_age=None, same_site="strict"),
        Middleware(BaseHTTPMiddleware, dispatch=_guard),
        Middleware(RequestBodyLimitMiddleware, settings.most_bytes),
    ]
    app = FastAPI(
        docs_url=None, redoc_url=None, openapi_url=None, lifespan=_looked_after, middleware=middleware
    )
    app.state.jobs = Jobs(workspace, settings)
    login = [Middleware(RequestBodyLimitMiddleware, settings.login_bytes)]
    app.router.routes.append(Route(_LOGIN, _enter, methods=["POST"], middleware=login))
    for pages in (router, reading_texts.router, results.router, testing_collections.router):
        app.include_router(pages)
    for kind in (PretraceError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _refused)
    return app


@asynccontextmanager
async def _looked_after(app: FastAPI) -> AsyncIterator[None]:
    """While the server runs, jobs take their turns, those of an earlier server as well."""
    jobs: Jobs = app.state.jobs

    async def look() -> None:
        while True:
            with suppress(OSError, PretraceError):  # a full disk, say: it may have room again
                await asyncio.to_thread(jobs.tick)
            await asyncio.sleep(_EVERY)

    task = asyncio.create_task(look())
    yield
    task.cancel()


async def _refused(request: Request, error: Exception) -> HTMLResponse:
    status, field, sentence = 422, "", str(error)
    if isinstance(error, RequestError):
        status, field = error.status, error.field
    elif isinstance(error, RequestValidationError):
        status, sentence = 404, _SAID[404]
    elif isinstance(error, HTTPException):
        status = 413 if "maximum size" in error.detail else error.status_code
        sentence = _SAID.get(status, f"{error.detail.rstrip('.')}: go back and try again.")
    return page(jobs_of(request), "problem.html", status, sentence=sentence, field=field)


def serve(settings: ServeSettings, *, ready: Callable[[str], object] = print) -> None:
    """Serve the workspace until the process is stopped; `ready` is given the address once it can be opened."""
    workspace = Workspace.at(settings.workspace)
    _claim(workspace)
    listener = _bound(settings)
    port = int(listener.getsockname()[1])
    config = _configuration(application(settings, port=port), settings)
    try:
        ready(f"http://{_HOST}:{port}/")
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        (workspace.folder / "server.json").unlink(missing_ok=True)


def _configuration(app: FastAPI, settings: ServeSettings) -> uvicorn.Config:
    """How uvicorn serves the site."""
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        limit_concurrency=settings.most_connections,
        h11_max_incomplete_event_size=settings.head_bytes,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
    )


def _claim(workspace: Workspace) -> None:
    """Write down who serves the workspace; OutputError where another process does."""
    place = workspace.folder / "server.json"
    known = json_object(place) or {}
    other = running(known.get("pid", 0), known.get("born", 0.0))
    if other and other.pid != os.getpid():
        raise OutputError(say("serve.refused.served", folder=workspace.folder, pid=other.pid))
    born = psutil.Process().create_time()
    atomic_bytes(place, to_json({"pid": os.getpid(), "born": born, "folder": str(Path.cwd())}))


def _bound(settings: ServeSettings) -> socket.socket:
    try:
        return socket.create_server((_HOST, settings.port))
    except OSError as error:
        used = error.errno == errno.EADDRINUSE
        reason = "is in use" if used else f"cannot be listened on ({error.strerror or error})"
        said = say("serve.refused.port", port=settings.port, host=_HOST, reason=reason)
        raise ExpressionError(said) from error
