"""`pretrace serve`: the page, as long as nobody stops it."""

from __future__ import annotations

import os
import sys
import webbrowser
from contextlib import suppress
from importlib.util import find_spec

from pretrace.cli import silenced
from pretrace.errors import MissingPackageError, shown
from pretrace.plugins.serve.settings import ServeSettings
from pretrace.results.wording import say

_PACKAGES = ("fastapi", "itsdangerous", "starlette", "uvicorn", "psutil", "python_multipart")


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
