"""What all pages share: the workspace they show, what a visitor may ask for, and the frame they are set in."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import FormData, UploadFile

from pretrace import __version__
from pretrace.backends import check_model
from pretrace.errors import MissingPackageError, ModelError
from pretrace.plugins.serve import RequestError
from pretrace.plugins.serve.command import ServeSettings
from pretrace.plugins.serve.jobs import Jobs
from pretrace.report.frame import fill
from pretrace.results.wording import count, duration, say

_PACKAGE = "pretrace.plugins.serve"
_MOST_CHARACTERS = 10_000
"""Characters of one option of a test."""
_NO_MODEL = "No model can be chosen on this page: whoever serves it lists some with pretrace serve --model."


def jobs_of(request: Request) -> Jobs:
    """The jobs of the application, with their workspace and settings."""
    found: Jobs = request.app.state.jobs
    return found


async def posted(request: Request) -> FormData:
    """The form of a request."""
    settings = jobs_of(request).settings
    return await request.form(
        max_files=settings.most_entries,
        max_fields=settings.most_fields,
        max_part_size=settings.field_bytes,
    )


CurrentJobs = Annotated[Jobs, Depends(jobs_of)]
Posted = Annotated[FormData, Depends(posted)]


def page(site: Jobs, template: str, /, status: int = 200, **values: Any) -> HTMLResponse:
    """A template in the frame of the site."""
    shared = {"site": site, "most": site.settings.most_bytes, "here": "", "problem": "", "field": ""}
    return HTMLResponse(rendered(template, {**shared, **values}), status_code=status)


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """A template of the site with its blanks filled."""
    words = {"moment": _moment, "duration": duration, "bytes_in_words": _bytes_in_words}
    return str(fill(template, {"version": __version__, **words, **values}, package=_PACKAGE))


def find_model(settings: ServeSettings, label: str, written: str, field: str = "model") -> None:
    """RequestError, about that field of the form, for a model that may not be chosen or is not there."""
    if not settings.may_choose(written):
        listed = ", ".join(settings.model)
        said = f"{label} is one of {listed}: no other can be chosen on this page."
        raise RequestError(said if listed else _NO_MODEL, 403, field=field)
    try:
        check_model(written)
    except (ModelError, MissingPackageError) as error:
        raise RequestError(f"{label}: {error}", 422, field=field) from error


def line(form: FormData, name: str) -> str:
    """A field of one line as text, "" where it is missing; RequestError where it can be no part of a command."""
    value = form.get(name)
    written = value.strip() if isinstance(value, str) else ""
    if "\0" in written:
        raise RequestError(f"The field {name} holds a character that cannot be part of a command.", 422)
    if len(written) > _MOST_CHARACTERS:  # systems take no longer parts of a command than some 100,000 bytes
        numbers = {"number": len(written), "most": _MOST_CHARACTERS}
        raise RequestError(say("serve.refused.part_characters", name=name, **numbers), 422)
    return written


def files_in(form: FormData, name: str) -> list[UploadFile]:
    """The files of a form, in the order in which they were chosen."""
    return [one for one in form.getlist(name) if isinstance(one, UploadFile) and one.filename]


def go(path: str) -> RedirectResponse:
    """To another page of this server: a path that begins with two strokes would name another one."""
    return RedirectResponse(f"/{path.lstrip('/')}", status_code=303)


def _moment(at: float) -> str:
    """A time as a person reads it."""
    return time.strftime("%-d %b %Y, %H:%M", time.localtime(at))


def _bytes_in_words(size: int) -> str:
    """A size of a file in words."""
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{count(round(size / 1_000_000))} MB"
