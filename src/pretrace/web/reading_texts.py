"""The page of a single text: its tokens coloured by surprise, its scores, and its rank among known non-members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse

from pretrace.report.run import tokens
from pretrace.types import Heat
from pretrace.web import single_texts
from pretrace.web.jobs import State
from pretrace.web.pages import Desk, Here, Posted, file_in, go, line
from pretrace.web.uploads import text_in, uploads
from pretrace.web.workspace import RequestError

router = APIRouter()
_SHOWN = 12


@router.get("/text", response_class=HTMLResponse)
def form(desk: Here, known: str = "") -> HTMLResponse:
    """The form, and texts that were looked at before."""
    earlier = single_texts.looks(desk.workspace)[:_SHOWN]
    return desk.page(
        "text.html",
        here="text",
        earlier=earlier,
        uploads=uploads(desk.workspace),
        scores=single_texts.SCORES,
        known=known,
    )


@router.post("/text")
def begin(desk: Here, form: Posted) -> RedirectResponse:
    """Start to look at a text."""
    text = str(form.get("text") or "").replace("\r\n", "\n")  # browsers send every line end so
    file = file_in(form, "file")
    if file is not None:
        name = file.filename or "The file"
        text = text_in(desk.workspace, name, file.file, desk.limits)
    model = line(form, "model")
    desk.models.check("Model", model)
    asked = single_texts.TextQuestion(model, line(form, "scores"), line(form, "known"))
    look = single_texts.begin(desk.jobs, text, asked, desk.models)
    return go(f"/text/{look.id}")


@router.get("/text/{name}", response_class=HTMLResponse)
def one(desk: Here, name: str) -> HTMLResponse:
    """What was found in a text, as far as it is known now."""
    return desk.page("look.html", here="text", **_found(desk, name))


@router.get("/text/{name}/part", response_class=HTMLResponse)
def part(desk: Here, name: str) -> HTMLResponse:
    """The same without its frame, to be put in its place."""
    return desk.page("look_part.html", **_found(desk, name))


def _found(desk: Desk, name: str) -> dict[str, Any]:
    look = single_texts.look_of(desk.workspace, name)
    job, state = _job(desk, look.job)
    run, problem = single_texts.run_in(desk.workspace, f"looks/{look.id}/run", state)
    known_job, known_state = _job(desk, look.known_job)
    known, known_problem = (
        single_texts.run_in(desk.workspace, look.known_run, known_state) if look.known_run else (None, "")
    )
    section = tokens(replace(run, heat=tuple(map(_alone, run.heat)))) if run else None
    over = state.over and (not look.known or known_state.over)
    return {
        "look": look,
        "job": job,
        "state": state,
        "known_job": known_job,
        "known_state": known_state,
        "run": run,
        "heat": section.body if section else "",
        "values": [(score, float(run.column(score)[0])) for score in run.scores] if run else [],
        "places": single_texts.places(run, known) if run and known else (),
        "few": known is not None and len(known.ids) < single_texts.FEW_KNOWN,
        "problems": [one for one in (problem, known_problem) if one],
        "over": over,
    }


def _alone(heat: Heat) -> Heat:
    """The tokens without the rank of a text among others, of which there are none."""
    return replace(heat, note=heat.note.partition("; ")[2])


def _job(desk: Desk, name: str) -> tuple[object, State]:
    if not name:
        return None, State("done")
    try:
        job = desk.jobs.get(name)
    except RequestError:  # deleted by hand; what it made may still be there
        return None, State("stopped", said="It was deleted from the workspace.")
    return job, desk.jobs.state(job)
