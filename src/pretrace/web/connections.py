"""Connections that come and do not ask: each has its time for a request, there are only so many, and what the server
says of them is bounded.

uvicorn waits for ever for the head of a request and takes any number of connections. A thousand that each send half a
login would use up the files that a process may open, and asyncio would print a page of text for every further one.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from pretrace.web.guard import CONNECTION, App, Receive, Scope, Send
from pretrace.web.settings import Limits

BACKLOG = 64
"""Connections that wait to be taken; so many may be open beyond the limit for a moment."""
_WINDOW = 60.0
_FILES_FOR_OTHERS = 4  # of the files a process may open, connections take one in so many


class Connection(H11Protocol):
    """One connection. `known` is whether its visitor gave the token; others are closed first when there are too
    many, and all whose request does not come in time."""

    limits = Limits()

    def __init__(self, *given: Any, **how: Any) -> None:
        super().__init__(*given, **how)
        self.known = False
        self.began = self.loop.time()
        self.app = self._marked(self.app)
        self._patience: asyncio.TimerHandle | None = None

    def _marked(self, app: Any) -> App:
        async def asked(scope: Scope, receive: Receive, send: Send) -> None:
            scope[CONNECTION] = self
            await app(scope, receive, send)

        return asked

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._make_room()
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait for a request, unless one is being answered; what comes after an answer is the next one, or the rest of
        a body that nobody reads."""
        if self._is_answering():
            self._wait_no_more()
        elif self._patience is None:
            self._patience = self.loop.call_later(self.limits.head_seconds, self._close)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close(self) -> None:
        if not self._is_answering():
            self.transport.abort()

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _make_room(self) -> None:
        """Where there are as many connections as are allowed, close the oldest: one without the token, if there is
        any."""
        others = [
            one for one in self.connections if isinstance(one, Connection) and not one.transport.is_closing()
        ]
        if len(others) >= _most_connections(self.limits):
            min(others, key=lambda one: (one.known, one.began)).transport.abort()


def _most_connections(limits: Limits) -> int:
    """What the limits say, or less where this process may open few files."""
    try:
        import resource
    except ImportError:  # Windows
        return limits.connections
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits.connections if files < 0 else max(1, min(limits.connections, files // _FILES_FOR_OTHERS))


class LogBudget(logging.Filter):
    """Lets so many records a minute pass, and then says how many did not."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self._began, self._passed, self._held = 0.0, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = monotonic()
        if now - self._began > _WINDOW:
            if self._held:
                record.msg = (
                    f"{record.getMessage()} ({self._held:,} messages before this one were not printed)"
                )
                record.args = ()
            self._began, self._passed, self._held = now, 0, 0
        if self._passed >= self.most:
            self._held += 1
            return False
        self._passed += 1
        return True


def configured(app: App, limits: Limits) -> Config:
    """The configuration of a server whose connections and log keep the limits."""

    class Limited(Connection):
        pass

    Limited.limits = limits
    config = Config(
        app,
        http=Limited,
        ws="none",
        loop="asyncio",
        backlog=BACKLOG,
        h11_max_incomplete_event_size=limits.head_bytes,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
    )
    budget = LogBudget(limits.log_records)
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        for old in [one for one in logger.filters if isinstance(one, LogBudget)]:
            logger.removeFilter(old)
        logger.addFilter(budget)
    return config
