"""The page of a single text, which a job scores: coloured tokens, scores, and its rank among known non-members."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse

from pretrace.errors import OutputError
from pretrace.plugins.serve import RequestError, fresh, save, slug
from pretrace.plugins.serve.jobs import Jobs, State, WebJob
from pretrace.plugins.serve.pages import CurrentJobs, Posted, files_in, find_model, go, line, page
from pretrace.plugins.serve.uploads import Upload, text_in, texts_of
from pretrace.report.figures import distribution, to_svg
from pretrace.report.run import tokens
from pretrace.results.atomic import atomic_text
from pretrace.results.wording import say
from pretrace.runs import load_run
from pretrace.settings import join_keys
from pretrace.types import Run

router = APIRouter()
_SHOWN = 12
_SCORES = "loss,zlib,min_k,min_k_plus_plus"
_FEW_KNOWN = 20
"""Known non-members below which a rank says next to nothing."""
_TITLE = 60


@dataclass(frozen=True, slots=True)
class Look:
    """One text, its model, scores and job; and the upload and job of known non-members, "" without any."""

    id: str
    title: str
    characters: int
    model: str
    scores: str
    at: float
    job: str
    known: str = ""
    known_name: str = ""
    known_job: str = ""


@router.get("/text", response_class=HTMLResponse)
def _form(jobs: CurrentJobs, known: str = "") -> HTMLResponse:
    """The form, and texts that were looked at before."""
    earlier, offered = jobs.workspace.records(Look)[:_SHOWN], jobs.workspace.records(Upload)
    return page(jobs, "text.html", here="text", earlier=earlier, uploads=offered, scores=_SCORES, known=known)


@router.post("/text")
def _begin(jobs: CurrentJobs, form: Posted) -> RedirectResponse:
    """Start to look at a text: its jobs wait for their turn."""
    text = str(form.get("text") or "").replace("\r\n", "\n")  # browsers send every line end so
    for file in files_in(form, "file")[:1]:
        text = text_in(jobs.workspace, file.filename or "The file", file.file, jobs.settings.expanded)
    model, scores, known = line(form, "model"), line(form, "scores") or _SCORES, line(form, "known")
    workspace, settings = jobs.workspace, jobs.settings
    if not text.strip():
        raise RequestError("There is no text: paste one, or choose a file that holds one.", 422)
    if len(text) > settings.text_characters:
        said = say("serve.refused.text_characters", number=len(text), most=settings.text_characters)
        raise RequestError(said, 413)
    if not model:
        raise RequestError(say("serve.refused.no_model"), 422, field="model")
    upload = workspace.record(Upload, known) if known else None
    if upload:
        texts_of(workspace, known)  # that they can be used
    jobs.check_room(2 if upload else 1)
    workspace.check_room("looks", settings.most_records)
    workspace.check_room("jobs", settings.most_records - bool(upload))
    find_model(settings, "Model", model)
    made, title = fresh("text"), " ".join(text.split())[:_TITLE]
    folder, out = workspace.folder / "looks" / made, f"looks/{made}/run"
    folder.mkdir()
    atomic_text(folder / "text.jsonl", json.dumps({"id": "the text", "text": text}) + "\n")
    options = (f"--model={model}", f"--scores={scores}")
    command = ("score", str(folder / "text.jsonl"), f"--out={workspace.folder / out}", *options)
    job = jobs.add(f"Look at “{title}”", command, out)
    beside = (upload.id, upload.name, _known(jobs, upload, options).id) if upload else ()
    save(folder / "look.json", Look(made, title, len(text), model, scores, time.time(), job.id, *beside))
    return go(f"/text/{made}")


def _known(jobs: Jobs, upload: Upload, options: tuple[str, ...]) -> WebJob:
    """The job that scores known non-members; an earlier one with the same options is taken again."""
    workspace = jobs.workspace
    digest = hashlib.sha256("\0".join((upload.id, *options)).encode()).hexdigest()[:12]
    out = f"results/known-{slug(upload.name)}-{digest}"
    for one, state in jobs.states():
        if one.out == out and state.name not in ("failed", "unanswered"):
            if state.name == "stopped":
                jobs.resume(one)
            return one
    facts, texts = upload.facts, texts_of(workspace, upload.id)
    named = {"text": facts.text_column} if facts.text_column else {}
    named |= {"label": ""} if facts.other_labels else {}
    columns = [f"--columns={join_keys(named)}"] if named else []
    command = ("score", texts, f"--out={workspace.folder / out}", *columns, *options)
    return jobs.add(f"Known non-members: {upload.name}", command, out, texts=upload.id)


@router.get("/text/{name}", response_class=HTMLResponse)
@router.get("/text/{name}/{part}", response_class=HTMLResponse)
def _one(jobs: CurrentJobs, name: str, part: Literal["", "part"] = "") -> HTMLResponse:
    """What was found in a text, as far as it is known now; its `part` has no frame and is put in its place."""
    look = jobs.workspace.record(Look, name)
    job, state, run, problem = _scored(jobs, look.job)
    known_job, known_state, known, known_problem = _scored(jobs, look.known_job)
    # without the rank of a text among others, of which there are none
    heat = [replace(one, note=one.note.partition("; ")[2]) for one in run.heat] if run else []
    section = tokens(replace(run, heat=tuple(heat))) if run else None
    return page(
        jobs,
        "look_part.html" if part else "look.html",
        here="" if part else "text",
        look=look,
        jobs=(("The text", job, state), ("The known non-members", known_job, known_state)),
        state=state,
        run=run,
        heat=section.body if section else "",
        values=[(score, float(run.column(score)[0])) for score in run.scores] if run else [],
        places=_places(run, known) if run and known else (),
        few=known is not None and len(known.ids) < _FEW_KNOWN,
        problems=[one for one in (problem, known_problem) if one],
        over=state.over and known_state.over,
    )


def _scored(jobs: Jobs, name: str) -> tuple[WebJob | None, State, Run | None, str]:
    """A job, how it is doing, its run where it is over, and what is wrong with that."""
    if not name:
        return None, State("done"), None, ""
    try:
        job = jobs.workspace.record(WebJob, name)
        state = jobs.state(job)
        return job, state, load_run(jobs.workspace.within(job.out)) if state.result else None, ""
    except RequestError:
        return None, State("stopped", said="It was deleted from the workspace."), None, ""
    except OutputError as error:
        return job, state, None, str(error)


def _places(run: Run, known: Run) -> list[dict[str, Any]]:
    """The value of the text in each score among the known non-members: how many are as high, the share below."""
    found: list[dict[str, Any]] = []
    for score in run.scores:
        value = float(run.column(score)[0])
        others = known.column(score) if score in known.scores else np.zeros(0)
        others = others[~np.isnan(others)]
        if np.isnan(value) or not len(others):
            continue
        above = int((others >= value).sum())
        drawn = to_svg(
            distribution({"nonmember": others}, own=value),
            name=f"place-{len(found)}",
            label=f"Where the text stands in {score}: at {value:.4g}, among {others.min():.4g} to {others.max():.4g}",
        )
        found.append(
            {"score": score, "value": value, "known": len(others), "above": above}
            | {"share": (len(others) - above) / len(others), "drawn": drawn}
        )
    return found
