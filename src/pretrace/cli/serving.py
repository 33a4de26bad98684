"""`pretrace serve`: the forms of the page from the options of the commands, then the server."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pretrace.cli.streams import silenced
from pretrace.errors import MissingPackageError, shown
from pretrace.web.settings import ServeSettings

if TYPE_CHECKING:
    from pretrace.cli.options import CliOption
    from pretrace.web.forms import CommandForm, Field

_PACKAGES = (
    *("fastapi", "itsdangerous", "starlette", "uvicorn", "psutil"),
    *("python_multipart", "py3langid"),  # imported no sooner than a form or a collection is sent
)
OFFERED = ("score", "evaluate", "flag", "audit", "mark canaries", "scan")
"""The commands that can be started from the page."""
TEXTS = ("controls", "reference")
"""Options that name texts; on the page they are chosen among the uploads."""
LEFT_OUT = ("plan", "seed", "tuned", "plugin")
"""Essential options that the page has no place for: those of files on this machine, and of what is typed rarely."""
ALWAYS = ("requested_by",)
"""Options that the page asks for whether they are essential or not: a report without them has a blank."""
LEVEL = (0.001, 0.5)
"""What a level on the page may be, where the settings themselves set no bounds."""


def serve(settings: ServeSettings) -> None:
    """A page on this machine for those who do not live in a terminal: look at a text, test a collection, read results.
    Ctrl-C stops the page; tests that run go on."""
    for module in _PACKAGES:
        if find_spec(module) is None:
            raise MissingPackageError(module.replace("_", "-"), "pretrace serve", "serve")
    from pretrace.web import serving

    with silenced(True), suppress(KeyboardInterrupt):  # the way to stop it; a page that is open is no news
        serving.serve(settings, forms(), ready=lambda address: _ready(address, settings))
    print("The page is closed. Tests that were started go on; the page shows them when it is opened again.")


def _ready(address: str, settings: ServeSettings) -> None:
    print(
        shown(f"The page is open at {address} (workspace: {settings.workspace}); Ctrl-C stops it."),
        flush=True,
    )
    if not settings.any_model and not settings.model:
        print(
            "pretrace: note: no model is listed, so visitors can upload texts and read results, and start nothing: "
            "list models with --model.",
            file=sys.stderr,
        )
    windows = os.name == "nt" or sys.platform == "darwin"
    if settings.browser and (windows or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
        webbrowser.open(address)


def forms() -> dict[str, CommandForm]:
    """The commands that can be started from the page, with their essential options."""
    from pretrace.cli.commands import made, places
    from pretrace.web.forms import CommandForm

    found = {}
    for one in filter(OFFERED.__contains__, places()):
        command, words = made(one).default_command, tuple(one.split())
        fields = sorted(_fields(command.declared), key=lambda field: not field.required)
        found[words[-1]] = CommandForm(words, command.__doc__, tuple(fields))
    return found


def _fields(declared: Mapping[str, CliOption]) -> Iterator[Field]:
    for name, leaf in declared.items():
        own = leaf.option
        if (
            not own.metavar
            and own.path != "out"
            and name not in LEFT_OUT
            and (own.essential or name in ALWAYS)
        ):
            yield _field(leaf)


def _field(leaf: CliOption) -> Field:
    from pretrace.web.forms import Field

    own, default = leaf.option, leaf.default
    least, most = LEVEL if leaf.name == "level" and own.least is None else (own.least, own.most)
    plain = "" if default is MISSING or default is None or isinstance(default, bool | tuple) else str(default)
    return Field(
        name=leaf.name.replace("_", "-"),
        kind=_kind(leaf),
        help=own.help,
        default=own.written or plain,
        required=default is MISSING,
        choices=tuple(get_args(leaf.hint)) if get_origin(leaf.hint) is Literal else (),
        least=least,
        most=most,
    )


def _kind(leaf: CliOption) -> Any:
    several = get_origin(leaf.hint) is tuple
    if leaf.name in TEXTS:
        return "texts"
    if leaf.option.path == "in":
        return "models" if several else "model"
    if leaf.hint is bool:
        return "switch"
    if get_origin(leaf.hint) is Literal:
        return "choice"
    if several:
        return "lines"
    return "number" if {int, float} & {leaf.hint, *get_args(leaf.hint)} else "line"
