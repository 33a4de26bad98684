"""The other pages: home, jobs, the login, and the files of the site itself."""

from __future__ import annotations

from importlib.resources import files as resources
from typing import Literal
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from pretrace.plugins.serve import example, results
from pretrace.plugins.serve.jobs import AHEAD
from pretrace.plugins.serve.pages import ENTERED, LOGIN, CurrentPage, Posted, go, line, rendered
from pretrace.plugins.serve.reading_texts import looks
from pretrace.plugins.serve.uploads import TAKEN
from pretrace.plugins.serve.workspace import RequestError

router = APIRouter()
_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
_LATEST = 5


@router.get("/", response_class=HTMLResponse)
def home(desk: CurrentPage) -> HTMLResponse:
    """What can be done here, what is going on, and what was found last."""
    jobs = [(job, desk.jobs.state(job)) for job in desk.jobs.all()]
    return desk.page(
        "home.html",
        here="home",
        jobs=[(job, state) for job, state in jobs if not state.over][:_LATEST],
        latest=results.entries(desk.workspace)[:_LATEST],
        example=example.offered(desk),
        taken=TAKEN,
    )


@router.get("/jobs", response_class=HTMLResponse)
def jobs(desk: CurrentPage) -> HTMLResponse:
    """All jobs."""
    found = [(job, desk.jobs.state(job)) for job in desk.jobs.all()]
    return desk.page("jobs.html", here="jobs", jobs=found)


@router.get("/jobs/{name}", response_class=HTMLResponse)
@router.get("/jobs/{name}/{part}", response_class=HTMLResponse)
def job(desk: CurrentPage, name: str, part: Literal["", "part"] = "") -> HTMLResponse:
    """One job with its progress; its `part` is put in the place of the progress of an open page."""
    found = desk.jobs.get(name)
    return desk.page(
        "job_part.html" if part else "job.html",
        here="jobs",
        job=found,
        state=desk.jobs.state(found),
        log=desk.jobs.log(found),
        looked=next((one for one in looks(desk.workspace) if one.job == name), None),
    )


@router.post("/jobs/stop")
def stop_all(desk: CurrentPage, form: Posted) -> RedirectResponse:
    """Ask all jobs to stop."""
    desk.jobs.stop_all()
    return go("/jobs")


@router.post("/jobs/{name}/begin")
def begin(desk: CurrentPage, name: str, form: Posted) -> RedirectResponse:
    """Start what a job only planned."""
    planned = desk.jobs.get(name)
    if not planned.plans:
        raise RequestError("This job was no plan: it cannot be started in this way.", 409)
    command = tuple(part for part in planned.command if part not in AHEAD)
    title = planned.title.removeprefix("Plan of ")
    made = desk.jobs.add(title, command, planned.out, texts=planned.texts, form=planned.form)
    return go(f"/jobs/{made.id}")


@router.post("/jobs/{name}/{what}")
def stop_or_resume(
    desk: CurrentPage, name: str, what: Literal["stop", "resume"], form: Posted
) -> RedirectResponse:
    """Ask a job to stop, or let it go on."""
    found = desk.jobs.get(name)
    desk.jobs.stop(found) if what == "stop" else desk.jobs.resume(found)
    return go(f"/jobs/{quote(name)}")


@router.get(LOGIN, response_class=HTMLResponse)
def login(desk: CurrentPage) -> HTMLResponse:
    """The form for the token."""
    return desk.page("login.html")


@router.post(LOGIN)
def enter(desk: CurrentPage, request: Request, form: Posted) -> Response:
    """Let a visitor in who gives the token."""
    if not desk.settings.is_token(line(form, "token")):
        said = "That is not the token: it was set where pretrace serve was started."
        return desk.page("login.html", 403, problem=said)
    request.session[ENTERED] = True
    return go("/")


@router.get("/favicon.ico")
def icon() -> Response:
    """Nothing: the pages have no sign of their own, and browsers ask for one."""
    return Response(status_code=204)


@router.get("/static/report.css")
def report_style() -> Response:
    """The style of the reports."""
    return PlainTextResponse(rendered("style.css", {}), media_type=_TYPES["css"])


@router.get("/static/{name}")
def static(name: Literal["page.css", "page.js"]) -> Response:
    """What the pages add to it, and their script."""
    content = resources("pretrace.plugins.serve").joinpath("static", name).read_bytes()
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]])
