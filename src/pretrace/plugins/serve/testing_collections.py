"""The pages of a collection: upload it, see what it is, choose a test, start it.

A test is the command that `pretrace ask` lists for the case, with what the visitor said of it; other options are for
the command line. What a visitor wrote is one word of that command, and texts are chosen among the uploads.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from pretrace.plugins.serve import RequestError, fresh, slug
from pretrace.plugins.serve.jobs import Jobs
from pretrace.plugins.serve.pages import CurrentJobs, Posted, files_in, find_model, go, line, page
from pretrace.plugins.serve.uploads import TAKEN, Upload, look_again, remove, take, texts_of
from pretrace.results.wording import say
from pretrace.verdicts.advise import Advice, advise, enough, situate

router = APIRouter()
_GIVEN = ("model", "controls", "placebo", "power", "requested_by")
"""What a visitor says of the case on the page of a collection."""
_STARTED = {
    "canaries": "", "controls-placebo": "--plan", "controls": "--plan", "flag": "--dry-run", "placebo": "--plan",
}  # fmt: skip
"""The tests that start here, and the option by which each says what it would do; seals of marks are secret and belong
into no upload."""


def _given_in(said: Callable[[str], str | None]) -> dict[str, str]:
    """What a visitor says of the case; `said` gives what stands in a field, or in the address."""
    return {one: (said(one) or "").strip() for one in _GIVEN}


def _advise(jobs: Jobs, upload: Upload, given: Mapping[str, str]) -> Advice | None:
    """Which tests follow from what was seen in a collection and what a visitor says of the case."""
    facts = upload.facts
    if facts.problem:
        return None
    model, unseen = given["model"], 0
    names = replace(facts.names, earlier=given["placebo"] or facts.names.earlier)
    if given["controls"]:
        known = jobs.workspace.record(Upload, given["controls"])
        unseen = known.facts.documents
        names = replace(names, controls=str(jobs.workspace.within(known.path)))
    # of a model that may not be chosen nobody learns whether it is there
    asked = model if jobs.settings.may_choose(model) else ""
    has = situate(facts.situation, asked, unseen=unseen, checkpoint=bool(given["placebo"]))
    texts = str(jobs.workspace.within(upload.path))
    return advise(has, texts, model=model or names.model, names=names)


def _command_of(jobs: Jobs, upload: Upload, given: Mapping[str, str], test: str) -> tuple[str, ...]:
    """The words of the command of a test without its output; RequestError where it does not apply, for a model that is
    not there or may not be chosen."""
    advice, model, placebo = _advise(jobs, upload, given), given["model"], given["placebo"]
    if not model:
        raise RequestError(say("serve.refused.no_model"), 422, field="model")
    find_model(jobs.settings, "Model", model)
    if placebo:
        find_model(jobs.settings, "Placebo", placebo, "placebo")
    rows = advice.rows if advice else ()
    row = next((one for one in rows if one.choice.name == test and test in _STARTED), None)
    if row is None or row.state != "applies":
        raise RequestError(say("serve.refused.not_applying"), 422)
    words = shlex.split(row.commands[0])[1:-2]  # without the program, and the folder it names
    if placebo and "--placebo" not in words:
        words.append(f"--placebo={placebo}")
    if given["power"] and "--power" not in words:
        words.append("--power")
    said = given["requested_by"]
    return *words, *([f"--requested-by={said}"] if said else [])


@router.get("/collections", response_class=HTMLResponse)
def _form(jobs: CurrentJobs) -> HTMLResponse:
    """The form, and what was uploaded before."""
    found = jobs.workspace.records(Upload)
    return page(jobs, "collections.html", here="collections", uploads=found, taken=TAKEN)


@router.post("/collections")
def _upload(jobs: CurrentJobs, form: Posted) -> RedirectResponse:
    """Take in what was sent at once as a collection, and look into it."""
    files = [(one.filename or "", one.file) for one in files_in(form, "file")]
    if not files:
        raise RequestError(f"No file was chosen: choose {TAKEN}.", 422)
    made = take(jobs.workspace, files, jobs.settings)
    beside = line(form, "beside")
    if not beside:
        return go(f"/collections/{made.id}")
    jobs.workspace.record(Upload, beside)  # the collection that these are control documents of
    given = {name: said for name in _GIVEN if (said := line(form, name))} | {"controls": made.id}
    return go(f"/collections/{beside}?{urlencode(given)}#tests")


@router.post("/collections/{name}/delete")
def _deleted(jobs: CurrentJobs, name: str, form: Posted) -> RedirectResponse:
    """Delete a collection that no job is about to read."""
    found = jobs.workspace.record(Upload, name)
    folder = str(jobs.workspace.folder / "texts" / found.id)
    for job, state in jobs.states():
        if not state.over and any(folder in part for part in job.command):
            raise RequestError(f"{found.name} is read by a job that is not over: stop the job first.", 409)
    remove(jobs.workspace.folder / "texts" / found.id)
    return go("/collections")


@router.get("/collections/{name}", response_class=HTMLResponse)
def _one(jobs: CurrentJobs, request: Request, name: str) -> HTMLResponse:
    """What was seen in an upload, and which tests can be made with it and with what else there is."""
    found = jobs.workspace.record(Upload, name)
    given = _given_in(request.query_params.get)
    return page(
        jobs,
        "collection.html",
        here="collections",
        upload=found,
        given=given,
        advice=_advise(jobs, found, given),
        others=[one for one in jobs.workspace.records(Upload) if one.id != name],
        taken=TAKEN,
        jobs=[(job, state) for job, state in jobs.states() if job.texts == name],
        enough=enough,
        started=_STARTED,
        model=given["model"] or next(iter(jobs.models()), ""),
    )


@router.post("/collections/{name}/column")
def _column(jobs: CurrentJobs, name: str, form: Posted) -> RedirectResponse:
    """Look again, at another column of text."""
    found = jobs.workspace.record(Upload, name)
    look_again(jobs.workspace, found, line(form, "text_column"), jobs.settings)
    return go(f"/collections/{found.id}")


@router.post("/collections/{name}/test/{test}")
def _start(jobs: CurrentJobs, name: str, test: str, form: Posted) -> RedirectResponse:
    """Start a test that applies, or its plan, with what was said of the case."""
    found = jobs.workspace.record(Upload, name)
    given = _given_in(lambda field: line(form, field))
    words = _command_of(jobs, found, given, test)
    return _begin(jobs, found, given, words, _STARTED[test] if line(form, "ahead") else "")


@router.post("/collections/{name}/search")
def _search(jobs: CurrentJobs, name: str, form: Posted) -> RedirectResponse:
    """Search training data that the page was started with for the texts."""
    corpus, found = line(form, "corpus"), jobs.workspace.record(Upload, name)
    given = _given_in(lambda field: line(form, field))
    if corpus not in jobs.settings.corpus:
        raise RequestError(say("serve.refused.no_corpus", corpus=corpus or "Nothing"), 403)
    places = [texts_of(jobs.workspace, one) for one in (name, given["controls"]) if one]
    words = "scan", places[0], *found.facts.names.columns, f"--corpus={corpus}"
    return _begin(jobs, found, given, (*words, *(f"--controls={one}" for one in places[1:])))


def _begin(
    jobs: Jobs, found: Upload, given: Mapping[str, str], words: tuple[str, ...], ahead: str = ""
) -> RedirectResponse:
    """To the job of a command, or of what it looks `ahead`, which waits for its turn."""
    name = words[1] if words[0] == "mark" else words[0]
    out = f"results/{fresh(f'{name}-{slug(found.name)}')}"
    job = jobs.add(
        f"{'Plan of ' if ahead else ''}{name}: {found.name}",
        (*words, f"--out={jobs.workspace.folder / out}", *([ahead] if ahead else [])),
        out,
        texts=found.id,
        case=urlencode({name: value for name, value in given.items() if value}),
    )
    return go(f"/jobs/{job.id}")
