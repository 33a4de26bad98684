"""The other pages: home, jobs, results, one result beside another, the login, and the files of the site itself."""

from __future__ import annotations

from importlib.resources import files as resources
from typing import Literal
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.runs import APPENDIX
from pretrace.web import charts, example, results
from pretrace.web.archives import TAKEN
from pretrace.web.guard import ENTERED, LOGIN, REPORT_POLICY
from pretrace.web.jobs import AHEAD
from pretrace.web.pages import CurrentPage, PageContext, Posted, go, line, rendered
from pretrace.web.reading_texts import looks
from pretrace.web.uploads import remove
from pretrace.web.workspace import RequestError, inside

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
        example=example.offered(desk.models),
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


@router.get("/results", response_class=HTMLResponse)
def listed(desk: CurrentPage, kind: str = "", name: str = "", outcome: str = "") -> HTMLResponse:
    """All results, or those that the filters let through."""
    everything = results.entries(desk.workspace)
    return desk.page(
        "results.html",
        here="results",
        entries=results.chosen(everything, kind, name, outcome),
        all=len(everything),
        kinds=sorted({one.kind for one in everything}),
        outcomes={one.outcome: one.words for one in everything},
        filters={"kind": kind, "name": name, "outcome": outcome},
    )


@router.get("/results/{name}", response_class=HTMLResponse)
def result(desk: CurrentPage, name: str) -> HTMLResponse:
    """One result with its report and its tables."""
    folder = results.result_folder(desk.workspace, name)
    entry, found, _ = _loaded(desk, name)
    told = results.figures(found)
    return desk.page(
        "result.html",
        here="results",
        entry=entry,
        chart=charts.of_documents(found),
        figures={label: value for label, value in told.items() if label not in ("Outcome", "Statement")},
        appendix=(folder / APPENDIX).is_file(),
        files=results.files(folder),
        mark=results.marker_hash(folder),
    )


def _loaded(desk: PageContext, name: str) -> tuple[results.ResultEntry, object, str]:
    """A result with its entry in the list; None, and why, where it cannot be read."""
    folder = results.result_folder(desk.workspace, name)
    entry = next((one for one in results.entries(desk.workspace) if one.name == name), None)
    if entry is None:
        raise RequestError("This folder holds no result of pretrace.", 404)
    try:
        return entry, runs.load(folder), ""
    except OutputError as error:
        return entry, None, str(error)


@router.get("/results/{name}/verified", response_class=HTMLResponse)
def verified(desk: CurrentPage, name: str) -> HTMLResponse:
    """Whether a result is as it was written, to be put into its page."""
    found = results.verified(results.result_folder(desk.workspace, name))
    return desk.page("verified.html", checked=found)


@router.get("/results/{name}/all.zip")
def everything(desk: CurrentPage, name: str) -> Response:
    """All files of a result in one archive."""
    folder = results.result_folder(desk.workspace, name)
    named = f"attachment; filename*=UTF-8''{quote(name, safe='')}.zip"
    return StreamingResponse(
        results.packed(folder), media_type="application/zip", headers={"Content-Disposition": named}
    )


@router.get("/results/{name}/{page}")
def report(desk: CurrentPage, name: str, page: Literal["report", "appendix"]) -> Response:
    """The report, or its appendix for paper, which may load nothing and run nothing."""
    place = inside(results.result_folder(desk.workspace, name), f"{page}.html")
    headers = {"Content-Security-Policy": REPORT_POLICY}
    return FileResponse(place, media_type="text/html; charset=utf-8", headers=headers)


@router.get("/results/{name}/files/{path:path}")
def download(desk: CurrentPage, name: str, path: str) -> Response:
    """A file of a result, to be kept and not shown."""
    place = inside(results.result_folder(desk.workspace, name), path)
    if not place.is_file():
        raise RequestError("There is no such file in this result.", 404)
    return FileResponse(place, media_type="application/octet-stream", filename=f"{name}-{place.name}")


@router.post("/results/{name}/delete")
def delete(desk: CurrentPage, name: str, form: Posted) -> RedirectResponse:
    """Delete a result that no job is writing."""
    folder = results.result_folder(desk.workspace, name)
    for one in desk.jobs.all():
        if one.out == f"results/{name}" and not desk.jobs.state(one).over:
            raise RequestError("A job that is not over writes into this folder: stop the job first.", 409)
    remove(folder)
    return go("/results")


@router.get("/compare", response_class=HTMLResponse)
def compare(desk: CurrentPage, one: str = "", other: str = "") -> HTMLResponse:
    """The figures and the reports of two results side by side."""
    found = [_loaded(desk, name) for name in (one, other) if name]
    sides = [(entry, results.figures(result), why) for entry, result, why in found]
    loaded = [(entry.corpus or entry.name, result) for entry, result, why in found if not why]
    rows = list(dict.fromkeys(label for _, figures, _ in sides for label in figures))
    return desk.page(
        "compare.html",
        here="results",
        entries=results.entries(desk.workspace),
        sides=sides if len(sides) == 2 else [],
        rows=rows,
        charts=charts.side_by_side(loaded) if len(loaded) == 2 else (),
        chosen=(one, other),
    )


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
    content = resources("pretrace.web").joinpath("static", name).read_bytes()
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]])
