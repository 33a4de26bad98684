"""The application and its server: one process a workspace, on one port, until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from pretrace.errors import ExpressionError, OutputError, PretraceError
from pretrace.results.atomic import atomic_bytes
from pretrace.results.serialization import to_json
from pretrace.web import reading_texts, showing, testing_collections
from pretrace.web.connections import BACKLOG, configured
from pretrace.web.forms import Form
from pretrace.web.guard import App, Doors, Guard, Tries
from pretrace.web.jobs import Jobs
from pretrace.web.pages import Desk, desk_of, refusal
from pretrace.web.settings import Limits, ServeSettings
from pretrace.web.uploads import sweep
from pretrace.web.workspace import RequestError, Workspace, read

EVERY = 0.5
"""Seconds between two looks at whose turn it is."""
_SAID = {
    404: "There is no such page here.",
    405: "That cannot be done with this page.",
    413: "A field of the form is too large: upload it as a file.",
}


def application(
    settings: ServeSettings,
    forms: Mapping[str, Form],
    *,
    port: int | None = None,
    limits: Limits | None = None,
) -> App:
    """The site of a workspace behind its guard; OutputError where the workspace cannot be used.

    `port` is the one that is really bound. `forms` are the commands that can be started, by name.
    """
    workspace, limits = Workspace.at(settings.workspace), limits or Limits()
    sweep(workspace)
    bound = settings.port if port is None else port
    doors = Doors(settings, bound, workspace.secret, refusal, limits, Tries(limits))
    desk = Desk(workspace, Jobs(workspace, settings, limits), forms, doors, limits)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=_looked_after)
    app.state.desk = desk
    for pages in (showing, reading_texts, testing_collections):
        app.include_router(pages.router)
    app.add_exception_handler(PretraceError, _refused)
    app.add_exception_handler(HTTPException, _http)
    return Guard(app, doors)


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
    status, field = (error.status, error.field) if isinstance(error, RequestError) else (422, "")
    return desk_of(request).page("problem.html", status, sentence=str(error), field=field)


async def _http(request: Request, error: Exception) -> HTMLResponse:
    assert isinstance(error, HTTPException)
    status = 413 if "maximum size" in str(error.detail) else error.status_code
    sentence = _SAID.get(status, f"{str(error.detail).rstrip('.')}: go back and try again.")
    return desk_of(request).page("problem.html", status, sentence=sentence)


def serve(
    settings: ServeSettings,
    forms: Mapping[str, Form],
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
    config = configured(application(settings, forms, port=port, limits=limits), limits)
    try:
        ready(address(settings, port))
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        (workspace.folder / "server.json").unlink(missing_ok=True)


def address(settings: ServeSettings, port: int) -> str:
    """Where the page is opened on this machine."""
    host = "localhost" if settings.host in ("0.0.0.0", "::") else settings.host.strip("[]")
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


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
    host = settings.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ExpressionError(
                f"port {settings.port} of {host} is in use: give another --port, or 0 for any that is free."
            ) from error
        raise ExpressionError(
            f"{host} port {settings.port} cannot be listened on ({error.strerror or error}): give another --host or "
            "--port."
        ) from error
    return listener
