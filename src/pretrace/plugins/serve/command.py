"""`pretrace serve`: where the page is served, for whom, what it may take in; and the page, until somebody stops it."""

from __future__ import annotations

import hmac
import os
import sys
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pretrace.backends.naming import KEY_HOSTS, KEYS, host_of
from pretrace.cli import silenced
from pretrace.errors import MissingPackageError, shown
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.settings import Option, check_ranges, option

TOKEN_VARIABLE = "PRETRACE_TOKEN"
LIMITS = Option("What the page takes in, keeps and runs at most, as in upload=500.", name="limits")
_PACKAGES = ("fastapi", "itsdangerous", "starlette", "uvicorn", "psutil", "python_multipart")
_SHORTEST_TOKEN = 16
"""Characters of a token: what cannot be guessed over a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How the page is served; ExpressionError for a value out of its range, and for a proxy without a token."""

    workspace: Path = option(
        Path("pretrace-workspace"),
        "Folder in which texts, jobs and results are kept; made where there is none.",
        essential=True,
    )
    port: int = option(
        8765, "The port to listen on; 0 takes any that is free.", least=0, most=65535, essential=True
    )
    token: str = option(
        "",
        "What a visitor must give before anything is shown, 16 characters or more. Better in the environment "
        f"({TOKEN_VARIABLE}), where other users of this machine do not see it.",
        essential=True,
    )
    model: tuple[str, ...] = option(
        (),
        "A model that visitors may choose: a hub id, a folder, a .gguf file, smollm2, or a server. May be given "
        "more than once. Where any is listed, and on every page that other machines reach, visitors can name no other.",
        essential=True,
    )
    corpus: tuple[str, ...] = option(
        (),
        "Training data that visitors may search for their texts: a file, a folder, a pattern or an address, as for "
        "`pretrace scan`. May be given more than once; without it nothing can be searched from the page.",
        path="in",
        essential=True,
    )
    proxy_name: tuple[str, ...] = option(
        (),
        "A name by which a proxy on this machine makes the page known to others, such as pretrace.example.org; needs a "
        "token. May be given more than once; the page itself listens on 127.0.0.1 alone.",
        essential=True,
    )
    key_host: tuple[str, ...] = option(
        (),
        f"A host, or host:port, that is given the key in {KEYS[0]} when a model is named there. May be given more than "
        "once; without it, no server gets the key from this page.",
        essential=True,
    )
    no_browser: bool = option(False, "Do not open the browser.", essential=True)
    most_upload: int = LIMITS.key(200, "The largest upload, in MB.", name="upload", least=1, most=100_000)
    most_kept: int = LIMITS.key(
        20_000,
        "The size of the workspace, in MB, from which on nothing more is taken in or started.",
        name="workspace",
        least=1,
        most=100_000_000,
    )
    job_memory: int = LIMITS.key(
        16_000,
        "The memory that a test may take, in MB, files that it only reads left out. One that takes more is ended.",
        name="job_memory",
        least=1,
        most=100_000_000,
    )
    job_hours: float = LIMITS.key(
        24.0,
        "Hours that a test may run. One that runs longer is ended; what it has read is kept.",
        name="job_hours",
        least=0.0,
    )
    # What the page takes in, keeps, starts and waits for at most beside its options, in seconds and bytes.
    most_connections: int = 200
    head_bytes: int = 16_000
    login_bytes: int = 8_000
    most_fields: int = 200
    field_bytes: int = 4_000_000
    text_characters: int = 1_000_000
    """Characters of a single text that is looked at."""
    expanded: int = 300_000_000
    """An upload when it is unpacked: all files of a zip, a packed file, the cells of a table."""
    most_entries: int = 20_000
    """Files and folders of a zip, or of a folder that is uploaded."""
    most_depth: int = 10
    """Folders inside each other there."""
    most_texts: int = 200_000
    column_characters: int = 100_000
    """Characters of the names of all columns together."""
    most_waiting: int = 20
    """Jobs that wait for their turn."""
    most_running: int = 1
    stop_seconds: float = 10
    """Time in which a job that is stopped may end by itself."""
    most_records: int = 1_000
    """Uploads, texts that were looked at, and jobs in a workspace: of each."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.token:
            object.__setattr__(self, "token", os.environ.get(TOKEN_VARIABLE, ""))
        shortest = {"shortest_token": _SHORTEST_TOKEN, "token_variable": TOKEN_VARIABLE}
        long = not self.token or len(self.token) >= _SHORTEST_TOKEN
        require(long, say("serve.refused.token", number=len(self.token), **shortest))
        require(not self.proxy_name or bool(self.token), say("serve.refused.proxy_token", **shortest))
        for one in self.proxy_name:
            good = host_of(one) == (one.lower(), None) and "*" not in one
            require(good, say("serve.refused.proxy_name", found=one[:100]))
        for one in self.key_host:
            good = host_of(one) is not None and "," not in one
            require(good, say("serve.refused.key_host", found=one[:100]))

    def is_token(self, written: str) -> bool:
        """Whether that is the token."""
        return hmac.compare_digest(written.encode("utf-8", "replace"), self.token.encode())

    @property
    def any_model(self) -> bool:
        """Whether visitors may name a model freely: on a page of this machine alone, for which no models are listed."""
        return not self.proxy_name and not self.model

    def may_choose(self, model: str) -> bool:
        """Whether visitors may choose a model."""
        return self.any_model or model in self.model

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """What a command may know of this environment: no token, and keys only for named hosts."""
        kept = {name: value for name, value in given.items() if name not in (TOKEN_VARIABLE, *KEYS)}
        keys = {name: given[name] for name in KEYS if name in given and self.key_host}
        return kept | keys | {KEY_HOSTS: ",".join(self.key_host)}

    @property
    def most_bytes(self) -> int:
        """The largest body of a request."""
        return self.most_upload * 1_000_000


def serve(settings: ServeSettings) -> None:
    """A page on this machine for people who do not use a terminal: look at a text, test a collection, read results.
    Ctrl-C stops the page; tests that run go on."""
    for module in _PACKAGES:
        if find_spec(module) is None:
            raise MissingPackageError(module.replace("_", "-"), "pretrace serve", "serve")
    from pretrace.plugins.serve import serving

    with silenced(True), suppress(KeyboardInterrupt):  # the way to stop it; a page that is open is no news
        serving.serve(settings, ready=lambda address: _ready(address, settings))
    print("The page is closed. Tests that were started go on; the page shows them when it is opened again.")


def _ready(address: str, settings: ServeSettings) -> None:
    print(
        shown(f"The page is open at {address} (workspace: {settings.workspace}); Ctrl-C stops it."),
        flush=True,
    )
    if not settings.any_model and not settings.model:
        print(say("serve.no_models"), file=sys.stderr)
    windows = os.name == "nt" or sys.platform == "darwin"
    if not settings.no_browser and (windows or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
        webbrowser.open(address)
