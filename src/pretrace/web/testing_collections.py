"""The pages of a collection: upload it, see what it is, choose a test, start it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from pretrace.types import Situation
from pretrace.verdicts.advise import Advice, Advised, advise
from pretrace.web import example
from pretrace.web.archives import TAKEN
from pretrace.web.facts import Facts
from pretrace.web.forms import COMMANDS, Form, prefilled
from pretrace.web.jobs import Asked
from pretrace.web.languages import UNSPOKEN
from pretrace.web.pages import Desk, Here, Posted, files_in, go, line
from pretrace.web.uploads import Upload, facts_of, remove, rename, seen, take, texts_of, upload_of, uploads
from pretrace.web.workspace import RequestError, fresh, slug

router = APIRouter()
SEARCH = "scan"
AHEAD_OF: Mapping[str, str] = {"audit": "--plan", "scan": "--plan"} | dict.fromkeys(
    ("flag", "score", "evaluate"), "--dry-run"
)
"""How each command says what it would do, and how long that takes."""
MOST_NOTES = 4_000
_OTHERS = {
    SEARCH: "Search training data for these texts: which of them stand there, and where?",
    "score": "Scores alone: a row a text, without a verdict",
    "evaluate": "Measure scores on labelled texts: how well do they tell members from non-members?",
}


@router.get("/collections", response_class=HTMLResponse)
def form(desk: Here) -> HTMLResponse:
    """The form, and what was uploaded before."""
    found = [(one, facts_of(desk.workspace, one)) for one in uploads(desk.workspace)]
    return desk.page("collections.html", here="collections", uploads=found, taken=TAKEN)


@router.post("/collections")
def upload(desk: Here, form: Posted) -> RedirectResponse:
    """Take an upload in and look into it."""
    files = files_in(form, "file")
    if not files:
        raise RequestError(f"No file was chosen: choose {TAKEN}.", 422)
    made: list[Upload] = []
    try:
        made.extend(
            take(desk.workspace, file.filename or "", file.file, desk.limits, desk.most_kept)
            for file in files
        )
    except RequestError:
        for one in made:  # all or none: whoever mends one file sends them again
            remove(desk.workspace.room("texts") / one.id)
        raise
    return go(f"/collections/{made[0].id}" if len(made) == 1 else "/collections")


@router.post("/collections/{name}/name")
def named_anew(desk: Here, name: str, form: Posted) -> RedirectResponse:
    """Call a collection something else."""
    rename(desk.workspace, upload_of(desk.workspace, name), line(form, "name"))
    return go(f"/collections/{name}")


@router.post("/collections/{name}/delete")
def deleted(desk: Here, name: str, form: Posted) -> RedirectResponse:
    """Delete a collection that no job is about to read."""
    found = upload_of(desk.workspace, name)
    folder = str(desk.workspace.room("texts") / found.id)
    for job in desk.jobs.all():
        if not desk.jobs.state(job).over and any(folder in part for part in job.command):
            raise RequestError(f"{found.name} is read by a job that is not over: stop the job first.", 409)
    remove(desk.workspace.room("texts") / found.id)
    return go("/collections")


@router.get("/collections/{name}", response_class=HTMLResponse)
def one(desk: Here, request: Request, name: str) -> HTMLResponse:
    """What was seen in an upload, and which tests can be made with it and with what else there is."""
    found = upload_of(desk.workspace, name)
    facts = facts_of(desk.workspace, found)
    given = _given(request.query_params)
    others = [one for one in uploads(desk.workspace) if one.id != name]
    jobs = [(job, desk.jobs.state(job)) for job in desk.jobs.all() if job.texts == name]
    return desk.page(
        "collection.html",
        here="collections",
        upload=found,
        facts=facts,
        given=given,
        query=urlencode({name: value for name, value in given.items() if value}),
        others=others,
        jobs=jobs,
        advice=None if facts.problem else _advice(desk, found, facts, given),
        commands=COMMANDS,
        unspoken=UNSPOKEN,
        more=_OTHERS,
    )


@router.post("/collections/{name}/column")
def column(desk: Here, name: str, form: Posted) -> RedirectResponse:
    """Look again, at another column of text."""
    found = upload_of(desk.workspace, name)
    seen(desk.workspace, found, line(form, "text_column"), desk.limits)
    return go(f"/collections/{found.id}")


@router.get("/collections/{name}/test/{test}", response_class=HTMLResponse)
def setup(desk: Here, request: Request, name: str, test: str, again: str = "") -> HTMLResponse:
    """The essential options of a test, with what is known filled in."""
    found = upload_of(desk.workspace, name)
    facts = facts_of(desk.workspace, found)
    given = _given(request.query_params)
    row = _row(_advice(desk, found, facts, given), test)
    wanted = _form(desk, test)
    filled = (
        prefilled(wanted, row, facts, given)
        if row
        else wanted.filled(
            {
                "model": given.get("model", ""),
                "text-column": facts.text_column,
                "heldout": given.get("controls", ""),
            }
        )
    )
    earlier = desk.jobs.get(again) if again else None
    return desk.page(
        "setup.html",
        asked=earlier.asked if earlier else None,
        notes=earlier.notes if earlier else "",
        ahead=AHEAD_OF.get(wanted.command, ""),
        here="collections",
        upload=found,
        facts=facts,
        test=test,
        row=row,
        form=filled,
        title=row.choice.title if row else _OTHERS[test].partition(":")[0],
        uploads=uploads(desk.workspace),
    )


@router.post("/collections/{name}/test/{test}")
def start(desk: Here, name: str, test: str, form: Posted) -> RedirectResponse:
    """Start a test."""
    found = upload_of(desk.workspace, name)
    wanted = _form(desk, test)
    values = {field.name: [str(one) for one in form.getlist(field.name)] for field in wanted.fields}

    texts = texts_of(desk.workspace, found.id)
    options = wanted.arguments(values, lambda upload: texts_of(desk.workspace, upload), desk.models)
    if facts_of(desk.workspace, found).other_labels:
        options.append("--label-column=")
    out = f"results/{fresh(f'{wanted.command}-{slug(found.name)}')}"
    paths = (texts, f"--out={desk.workspace.folder / out}")
    ahead = AHEAD_OF.get(wanted.command, "") if form.get("ahead") else ""
    job = desk.jobs.add(
        f"{'Plan of ' * bool(ahead)}{wanted.command}: {found.name}",
        (*wanted.words, *paths, *options, *([ahead] if ahead else [])),
        out,
        texts=found.id,
        form=Asked(
            test,
            {field: tuple(one for one in given if one) for field, given in values.items() if any(given)},
            str(form.get("notes") or "").strip()[:MOST_NOTES],
        ),
    )
    if test != SEARCH:
        desk.workspace.remember(line(form, "model"))
    return go(f"/jobs/{job.id}")


@router.post("/example")
def example_run(desk: Here, form: Posted) -> RedirectResponse:
    """Test the example texts, without a question."""
    if not example.offered(desk.models):
        raise RequestError("The example takes the packaged model smollm2, which cannot be chosen here.", 403)
    suspect, known = example.ready(desk.workspace, desk.most_kept)
    desk.jobs.check_room()
    asked = {"model": (example.MODEL,), "nonmembers": (known.id,), "score": ("loss",)}
    options = desk.forms["flag"].arguments(
        asked, lambda upload: texts_of(desk.workspace, upload), desk.models
    )
    out = f"results/{fresh('flag-example')}"
    paths = (texts_of(desk.workspace, suspect.id), f"--out={desk.workspace.folder / out}")
    made = Asked("flag", asked, "The example: docstrings of Python's library.")
    job = desk.jobs.add("flag: the example", ("flag", *paths, *options), out, texts=suspect.id, form=made)
    return go(f"/jobs/{job.id}")


def _form(desk: Desk, test: str) -> Form:
    command = COMMANDS.get(test, test if test in _OTHERS else "")
    if command not in desk.forms:
        raise RequestError("There is no such test here.", 404)
    if command != SEARCH:
        return desk.forms[command]
    if not desk.corpora:
        raise RequestError(
            "Nothing can be searched on this page: whoever serves it names training data with pretrace serve --corpus.",
            403,
        )
    return desk.forms[command].offering("corpus", desk.corpora)


def _given(query: Mapping[str, str]) -> dict[str, str]:
    """What a visitor said of the case, in the address of the page."""
    names = ("model", "controls", "earlier", "rows", "options", "collections")
    return {name: query.get(name, "").strip() for name in names}


def _advice(desk: Desk, upload: Upload, facts: Facts, given: Mapping[str, str]) -> Advice:
    has: Situation = facts.situation
    if given.get("collections", "").isdecimal():
        has = replace(has, collections=min(int(given["collections"]), 10**6))
    # an order says nothing unless it was drawn
    has = replace(has, rows=facts.texts if given.get("rows") else has.rows)
    has = has if given.get("options") else replace(has, items=0)
    if given.get("controls"):
        controls = upload_of(desk.workspace, given["controls"])
        has = replace(has, unseen=facts_of(desk.workspace, controls).documents)
    has = replace(has, checkpoint=bool(given.get("earlier")))
    return advise(has, upload.name, model=given.get("model") or "MODEL", names=facts.names)


def _row(advice: Advice, test: str) -> Advised | None:
    return next((row for row in advice.rows if row.choice.name == test), None)
