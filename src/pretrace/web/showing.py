"""The other pages: home, jobs, results, one result beside another, the login, and the files of the site itself."""

from __future__ import annotations

from importlib.resources import files as resources
from pathlib import Path
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
from pretrace.runs import APPENDIX, REPORT
from pretrace.web import charts, example, results
from pretrace.web.archives import TAKEN
from pretrace.web.guard import ENTERED, LOGIN, REPORT_POLICY
from pretrace.web.jobs import AHEAD, FilledForm
from pretrace.web.pages import Here, Posted, go, line, rendered
from pretrace.web.single_texts import looks
from pretrace.web.uploads import remove
from pretrace.web.workspace import RequestError, inside

router = APIRouter()
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
_LATEST = 5


@router.get("/", response_class=HTMLResponse)
def home(desk: Here) -> HTMLResponse:
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
def jobs(desk: Here) -> HTMLResponse:
    """All jobs."""
    found = [(job, desk.jobs.state(job)) for job in desk.jobs.all()]
    return desk.page("jobs.html", here="jobs", jobs=found)


@router.get("/jobs/{name}", response_class=HTMLResponse)
def job(desk: Here, name: str) -> HTMLResponse:
    """One job with its progress."""
    found = desk.jobs.get(name)
    looked = next((one for one in looks(desk.workspace) if one.job == name), None)
    return desk.page(
        "job.html",
        here="jobs",
        job=found,
        state=desk.jobs.state(found),
        log=desk.jobs.log(found),
        looked=looked,
    )


@router.get("/jobs/{name}/part", response_class=HTMLResponse)
def job_part(desk: Here, name: str) -> HTMLResponse:
    """The progress of a job, to be put in its place."""
    found = desk.jobs.get(name)
    looked = next((one for one in looks(desk.workspace) if one.job == name), None)
    return desk.page(
        "job_part.html", job=found, state=desk.jobs.state(found), log=desk.jobs.log(found), looked=looked
    )


@router.post("/jobs/stop")
def stop_all(desk: Here, form: Posted) -> RedirectResponse:
    """Ask all jobs to stop."""
    desk.jobs.stop_all()
    return go("/jobs")


@router.post("/jobs/{name}/stop")
def stop(desk: Here, name: str, form: Posted) -> RedirectResponse:
    """Ask a job to stop."""
    desk.jobs.stop(desk.jobs.get(name))
    return go(f"/jobs/{quote(name)}")


@router.post("/jobs/{name}/resume")
def resume(desk: Here, name: str, form: Posted) -> RedirectResponse:
    """Let a job go on."""
    desk.jobs.resume(desk.jobs.get(name))
    return go(f"/jobs/{quote(name)}")


@router.post("/jobs/{name}/begin")
def begin(desk: Here, name: str, form: Posted) -> RedirectResponse:
    """Start what a job only planned."""
    planned = desk.jobs.get(name)
    if not planned.plans:
        raise RequestError("This job was no plan: it cannot be started in this way.", 409)
    command = tuple(part for part in planned.command if part not in AHEAD)
    title = planned.title.removeprefix("Plan of ")
    asked = FilledForm(planned.test, planned.asked, planned.notes)
    made = desk.jobs.add(title, command, planned.out, texts=planned.texts, form=asked)
    return go(f"/jobs/{made.id}")


@router.get("/results", response_class=HTMLResponse)
def listed(desk: Here, kind: str = "", name: str = "", outcome: str = "") -> HTMLResponse:
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
def result(desk: Here, name: str) -> HTMLResponse:
    """One result with its report and its tables."""
    folder = results.result_folder(desk.workspace, name)
    entry = next((one for one in results.entries(desk.workspace) if one.name == name), None)
    if entry is None:
        raise RequestError("This folder holds no result of pretrace.", 404)
    found = _readable(folder)
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


def _readable(folder: Path) -> object:
    """A result; None where it cannot be read, which its mark says."""
    try:
        return runs.load(folder)
    except OutputError:
        return None


@router.get("/results/{name}/verified", response_class=HTMLResponse)
def verified(desk: Here, name: str) -> HTMLResponse:
    """Whether a result is as it was written, to be put into its page."""
    found = results.verified(results.result_folder(desk.workspace, name))
    return desk.page("verified.html", checked=found)


@router.get("/results/{name}/report")
def report(desk: Here, name: str) -> Response:
    """The report, which may load nothing and run nothing."""
    return _page(desk, name, REPORT)


@router.get("/results/{name}/appendix")
def appendix(desk: Here, name: str) -> Response:
    """The appendix of the report, for paper."""
    return _page(desk, name, APPENDIX)


def _page(desk: Here, name: str, file: str) -> Response:
    place = inside(results.result_folder(desk.workspace, name), file)
    headers = {"Content-Security-Policy": REPORT_POLICY}
    return FileResponse(place, media_type="text/html; charset=utf-8", headers=headers)


@router.get("/results/{name}/files/{path:path}")
def download(desk: Here, name: str, path: str) -> Response:
    """A file of a result, to be kept and not shown."""
    place = inside(results.result_folder(desk.workspace, name), path)
    if not place.is_file():
        raise RequestError("There is no such file in this result.", 404)
    return FileResponse(place, media_type="application/octet-stream", filename=f"{name}-{place.name}")


@router.get("/results/{name}/all.zip")
def everything(desk: Here, name: str) -> Response:
    """All files of a result in one archive."""
    folder = results.result_folder(desk.workspace, name)
    named = f"attachment; filename*=UTF-8''{quote(name, safe='')}.zip"
    return StreamingResponse(
        results.packed(folder), media_type="application/zip", headers={"Content-Disposition": named}
    )


@router.post("/results/{name}/delete")
def delete(desk: Here, name: str, form: Posted) -> RedirectResponse:
    """Delete a result that no job is writing."""
    folder = results.result_folder(desk.workspace, name)
    for one in desk.jobs.all():
        if one.out == f"results/{name}" and not desk.jobs.state(one).over:
            raise RequestError("A job that is not over writes into this folder: stop the job first.", 409)
    remove(folder)
    return go("/results")


@router.get("/compare", response_class=HTMLResponse)
def compare(desk: Here, one: str = "", other: str = "") -> HTMLResponse:
    """The figures and the reports of two results side by side."""
    everything = results.entries(desk.workspace)
    sides: list[tuple[results.ResultEntry, dict[str, str], str]] = []
    loaded = []
    for name in filter(None, (one, other)):
        folder = results.result_folder(desk.workspace, name)
        entry = next((found for found in everything if found.name == name), None)
        if entry is None:
            raise RequestError("This folder holds no result of pretrace.", 404)
        try:
            found = runs.load(folder)
        except OutputError as error:
            sides.append((entry, {}, str(error)))
        else:
            sides.append((entry, results.figures(found), ""))
            loaded.append((entry.corpus or entry.name, found))
    rows = list(dict.fromkeys(label for _, figures, _ in sides for label in figures))
    return desk.page(
        "compare.html",
        here="results",
        entries=everything,
        sides=sides if len(sides) == 2 else [],
        rows=rows,
        charts=charts.side_by_side(loaded) if len(loaded) == 2 else (),
        chosen=(one, other),
    )


@router.get(LOGIN, response_class=HTMLResponse)
def login(desk: Here) -> HTMLResponse:
    """The form for the token."""
    return desk.page("login.html")


@router.post(LOGIN)
def enter(desk: Here, request: Request, form: Posted) -> Response:
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
    return PlainTextResponse(rendered("style.css", {}), media_type=_STYLE)


@router.get("/static/page.css")
def page_style() -> Response:
    """What the pages add to it."""
    return Response(resources("pretrace.web").joinpath("static/page.css").read_bytes(), media_type=_STYLE)


@router.get("/static/page.js")
def script() -> Response:
    """The script of the pages."""
    return Response(resources("pretrace.web").joinpath("static/page.js").read_bytes(), media_type=_SCRIPT)
