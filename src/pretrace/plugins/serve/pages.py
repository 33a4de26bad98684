"""What all pages share: the workspace they show, what a visitor may ask for, and the frame they are set in."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import FormData, UploadFile

from pretrace import __version__
from pretrace.backends import check_model
from pretrace.errors import MissingPackageError, ModelError
from pretrace.plugins.serve.jobs import Jobs
from pretrace.plugins.serve.settings import Limits, ServeSettings
from pretrace.plugins.serve.workspace import RequestError, Workspace
from pretrace.report.frame import fill
from pretrace.results.wording import count, duration, say

REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""That of a report, which may come from elsewhere: no script at all, no form, an origin of its own."""
LOGIN = "/login"
ENTERED = "entered"
"""What the session of a visitor holds who gave the token."""
_PACKAGE = "pretrace.plugins.serve"
_NO_MODEL = "No model can be chosen on this page: whoever serves it lists some with pretrace serve --model."


@dataclass(frozen=True, slots=True)
class PageContext:
    """What a page works with."""

    workspace: Workspace
    jobs: Jobs
    settings: ServeSettings
    limits: Limits = field(default_factory=Limits)

    def may_choose(self, model: str) -> bool:
        """Whether visitors may choose a model."""
        return self.settings.any_model or model in self.settings.model

    def find_model(self, label: str, written: str, field: str = "model") -> None:
        """RequestError, about that field of the form, for a model that may not be chosen or is not there."""
        listed = ", ".join(self.settings.model)
        if not self.may_choose(written):
            said = f"{label} is one of {listed}: no other can be chosen on this page."
            raise RequestError(said if listed else _NO_MODEL, 403, field=field)
        try:
            check_model(written)
        except (ModelError, MissingPackageError) as error:
            raise RequestError(f"{label}: {error}", 422, field=field) from error

    @property
    def most_kept(self) -> int:
        """The bytes of a workspace from which on nothing more is taken in."""
        return self.settings.most_kept * 1_000_000

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A template in the frame of the site."""
        shared = {"desk": self, "most": self.settings.most_bytes}
        values = {"here": "", "problem": "", "field": "", **shared, **values}
        return HTMLResponse(rendered(template, values), status_code=status)


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """A template of the site with its blanks filled."""
    words = {"moment": moment, "duration": duration, "bytes_in_words": bytes_in_words, "version": __version__}
    return str(fill(template, {**words, **values}, package=_PACKAGE))


def desk_of(request: Request) -> PageContext:
    """The context of the application."""
    found: PageContext = request.app.state.desk
    return found


async def posted(request: Request) -> FormData:
    """The form of a request."""
    limits = desk_of(request).limits
    return await request.form(
        max_files=limits.entries, max_fields=limits.fields, max_part_size=limits.field_bytes
    )


CurrentPage = Annotated[PageContext, Depends(desk_of)]
Posted = Annotated[FormData, Depends(posted)]


def line(form: FormData, name: str) -> str:
    """A field of one line as text, "" where it is missing; RequestError where it can be no part of a command."""
    value = form.get(name)
    written, most = value.strip() if isinstance(value, str) else "", Limits().part_characters
    if "\0" in written:
        raise RequestError(f"The field {name} holds a character that cannot be part of a command.", 422)
    if len(written) > most:  # systems take no longer parts of a command than some 100,000 bytes
        raise RequestError(
            say("serve.refused.part_characters", name=name, number=len(written), most=most), 422
        )
    return written


def files_in(form: FormData, name: str) -> list[UploadFile]:
    """The files of a form, in the order in which they were chosen."""
    return [one for one in form.getlist(name) if isinstance(one, UploadFile) and one.filename]


def go(path: str) -> RedirectResponse:
    """To another page, after something was done."""
    return RedirectResponse(path, status_code=303)


def moment(at: float) -> str:
    """A time as a person reads it."""
    return time.strftime("%-d %b %Y, %H:%M", time.localtime(at))


def bytes_in_words(size: int) -> str:
    """A size of a file in words."""
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{count(round(size / 1_000_000))} MB"
