"""The application and its server: one process a workspace, on one port, until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import hmac
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from pretrace.errors import ExpressionError, OutputError, PretraceError
from pretrace.plugins.serve import reading_texts, results, showing, testing_collections
from pretrace.plugins.serve.forms import CommandForm
from pretrace.plugins.serve.guard import Guard
from pretrace.plugins.serve.jobs import Jobs
from pretrace.plugins.serve.pages import PageContext, desk_of, refusal
from pretrace.plugins.serve.settings import Limits, ServeSettings
from pretrace.plugins.serve.uploads import sweep
from pretrace.plugins.serve.workspace import RequestError, Workspace, read
from pretrace.results.atomic import atomic_bytes
from pretrace.results.serialization import to_json

EVERY = 0.5
"""Seconds between two looks at whose turn it is."""
_SAID = {
    404: "There is no such page here.",
    405: "That cannot be done with this page.",
    413: "That is larger than is taken here: upload a part of it, and a long text as a file.",
}
_HOST, _NAMES = "127.0.0.1", ("127.0.0.1", "localhost")


def application(
    settings: ServeSettings,
    forms: Mapping[str, CommandForm],
    *,
    port: int | None = None,
    limits: Limits | None = None,
) -> FastAPI:
    """The site of a workspace; OutputError where the workspace cannot be used.

    `port` is the one that is really bound: cookies do not tell ports apart. `forms` are the commands that can be
    started, by name.
    """
    workspace, limits = Workspace.at(settings.workspace), limits or Limits()
    sweep(workspace)
    desk = PageContext(workspace, Jobs(workspace, settings, limits), forms, settings, limits)
    # A session ends with the browser, with another token, and with the secret of the workspace.
    key = hmac.new(workspace.secret, settings.token.encode(), hashlib.sha256).hexdigest()
    cookie = f"pretrace_{settings.port if port is None else port}"
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=[*_NAMES, *settings.proxy_name], www_redirect=False),
        Middleware(SessionMiddleware, key, cookie, max_age=None, same_site="strict"),
        Middleware(RequestBodyLimitMiddleware, settings.most_bytes),
        Middleware(Guard, settings, limits, refusal),
    ]
    app = FastAPI(
        docs_url=None, redoc_url=None, openapi_url=None, lifespan=_looked_after, middleware=middleware
    )
    app.state.desk = desk
    for pages in (showing, reading_texts, results, testing_collections):
        app.include_router(pages.router)
    for kind in (PretraceError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _refused)
    return app


@asynccontextmanager
async def _looked_after(app: FastAPI) -> AsyncIterator[None]:
    """While the server runs, jobs take their turns, those of an earlier server as well."""
    jobs: Jobs = app.state.desk.jobs

    async def look() -> None:
        while True:
            with suppress(OSError, PretraceError):  # a full disk, say: it may have room again
                await asyncio.to_thread(jobs.tick)
            await asyncio.sleep(EVERY)

    task = asyncio.create_task(look())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _refused(request: Request, error: Exception) -> HTMLResponse:
    status, field, sentence = 422, "", str(error)
    if isinstance(error, RequestError):
        status, field = error.status, error.field
    elif isinstance(error, RequestValidationError):
        status, sentence = 404, _SAID[404]
    elif isinstance(error, HTTPException):
        detail = str(error.detail)
        status = 413 if "maximum size" in detail else error.status_code
        sentence = _SAID.get(status, f"{detail.rstrip('.')}: go back and try again.")
    return desk_of(request).page("problem.html", status, sentence=sentence, field=field)


def serve(
    settings: ServeSettings,
    forms: Mapping[str, CommandForm],
    *,
    ready: Callable[[str], object] = print,
    limits: Limits | None = None,
) -> None:
    """Serve the workspace until the process is stopped; `ready` is given the address once it can be opened.

    ExpressionError for a host or port that cannot be had, OutputError for a workspace that cannot be used.
    """
    workspace = Workspace.at(settings.workspace)
    _claim(workspace)
    listener = _bound(settings)
    port = int(listener.getsockname()[1])
    limits = limits or Limits()
    config = configuration(application(settings, forms, port=port, limits=limits), limits)
    try:
        ready(f"http://{_HOST}:{port}/")
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        (workspace.folder / "server.json").unlink(missing_ok=True)


def configuration(app: FastAPI, limits: Limits) -> uvicorn.Config:
    """How uvicorn serves the site."""
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        limit_concurrency=limits.connections,
        h11_max_incomplete_event_size=limits.head_bytes,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
    )


def _claim(workspace: Workspace) -> None:
    """Write down who serves the workspace; OutputError where another process does."""
    place = workspace.folder / "server.json"
    known = read(place)
    with suppress(psutil.Error, TypeError, ValueError):
        other = psutil.Process(int(known["pid"])) if "pid" in known else None
        if other and other.pid != os.getpid() and abs(other.create_time() - float(known["born"])) < 1:
            raise OutputError(
                f"{workspace.folder} is served by process {other.pid} already: open its page, or name another "
                "--workspace."
            )
    born = psutil.Process().create_time()
    atomic_bytes(place, to_json({"pid": os.getpid(), "born": born, "folder": str(Path.cwd())}))


def _bound(settings: ServeSettings) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, settings.port))
        listener.listen()
    except OSError as error:
        listener.close()
        used = error.errno == errno.EADDRINUSE
        reason = "is in use" if used else f"cannot be listened on ({error.strerror or error})"
        raise ExpressionError(
            f"port {settings.port} of {_HOST} {reason}: give another --port, or 0 for any that is free."
        ) from error
    return listener
