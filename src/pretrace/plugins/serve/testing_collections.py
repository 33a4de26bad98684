"""The pages of a collection: upload it, see what it is, choose a test, start it.

A test is the command that `pretrace ask` lists for the case, with what the visitor said of it; other options are for
the command line. What a visitor wrote is one word of that command, and texts are chosen among the uploads.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from pretrace.plugins.serve import uploads as room
from pretrace.plugins.serve.pages import CurrentPage, PageContext, Posted, files_in, go, line
from pretrace.plugins.serve.workspace import RequestError, fresh, slug
from pretrace.results.wording import say
from pretrace.verdicts.advise import Advice, advise, enough, situate

router = APIRouter()
GIVEN = ("model", "controls", "placebo", "power", "requested_by")
"""What a visitor says of the case on the page of a collection."""
STARTED = {
    "canaries": "", "controls-placebo": "--plan", "controls": "--plan", "flag": "--dry-run", "placebo": "--plan",
}  # fmt: skip
"""The tests that start here, and the option by which each says what it would do; seals of marks are secret and belong
into no upload."""


@dataclass(frozen=True, slots=True)
class Case:
    """A collection, what was seen in it, what a visitor says of the case, and which tests follow from that."""

    upload: room.Upload
    given: Mapping[str, str]
    advice: Advice | None

    @classmethod
    def of(cls, desk: PageContext, name: str, said: Callable[[str], str | None]) -> Case:
        """The case of a collection; `said` gives what stands in a field, or in the address."""
        upload = room.upload_of(desk.workspace, name)
        facts = upload.facts
        given = {one: (said(one) or "").strip() for one in GIVEN}
        if facts.problem:
            return cls(upload, given, None)
        model, unseen = given["model"], 0
        names = replace(facts.names, earlier=given["placebo"] or facts.names.earlier)
        if given["controls"]:
            known = room.upload_of(desk.workspace, given["controls"])
            unseen = known.facts.documents
            names = replace(names, controls=str(desk.workspace.within(known.path)))
        # of a model that may not be chosen nobody learns whether it is there
        asked = model if desk.may_choose(model) else ""
        has = situate(facts.situation, asked, unseen=unseen, checkpoint=bool(given["placebo"]))
        texts = str(desk.workspace.within(upload.path))
        return cls(upload, given, advise(has, texts, model=model or names.model, names=names))

    def command(self, desk: PageContext, test: str) -> tuple[str, ...]:
        """The words of the command of a test without its output; RequestError where it does not apply, for a model that
        is not there or may not be chosen."""
        model, placebo = self.given["model"], self.given["placebo"]
        if not model:
            raise RequestError(say("serve.refused.no_model"), 422, field="model")
        desk.find_model("Model", model)
        if placebo:
            desk.find_model("Placebo", placebo, "placebo")
        rows = self.advice.rows if self.advice else ()
        row = next((one for one in rows if one.choice.name == test and test in STARTED), None)
        if row is None or row.state != "applies":
            raise RequestError(say("serve.refused.not_applying"), 422)
        words = shlex.split(row.commands[0])[1:-2]  # without the program, and the folder it names
        if placebo and "--placebo" not in words:
            words.append(f"--placebo={placebo}")
        if self.given["power"] and "--power" not in words:
            words.append("--power")
        said = self.given["requested_by"]
        return *words, *([f"--requested-by={said}"] if said else [])

    @property
    def query(self) -> str:
        """What was said, as part of an address."""
        return urlencode({name: value for name, value in self.given.items() if value})


@router.get("/collections", response_class=HTMLResponse)
def form(desk: CurrentPage) -> HTMLResponse:
    """The form, and what was uploaded before."""
    found = room.uploads(desk.workspace)
    return desk.page("collections.html", here="collections", uploads=found, taken=room.TAKEN)


@router.post("/collections")
def upload(desk: CurrentPage, form: Posted) -> RedirectResponse:
    """Take in what was sent at once as a collection, and look into it."""
    files = [(one.filename or "", one.file) for one in files_in(form, "file")]
    if not files:
        raise RequestError(f"No file was chosen: choose {room.TAKEN}.", 422)
    made = room.take(desk.workspace, files, desk.limits, desk.most_kept)
    beside = line(form, "beside")
    if not beside:
        return go(f"/collections/{made.id}")
    room.upload_of(desk.workspace, beside)  # the collection that these are control documents of
    given = {name: said for name in GIVEN if (said := line(form, name))} | {"controls": made.id}
    return go(f"/collections/{beside}?{urlencode(given)}#tests")


@router.post("/collections/{name}/delete")
def deleted(desk: CurrentPage, name: str, form: Posted) -> RedirectResponse:
    """Delete a collection that no job is about to read."""
    found = room.upload_of(desk.workspace, name)
    folder = str(desk.workspace.room("texts") / found.id)
    for job, state in desk.jobs.states():
        if not state.over and any(folder in part for part in job.command):
            raise RequestError(f"{found.name} is read by a job that is not over: stop the job first.", 409)
    room.remove(desk.workspace.room("texts") / found.id)
    return go("/collections")


@router.get("/collections/{name}", response_class=HTMLResponse)
def one(desk: CurrentPage, request: Request, name: str) -> HTMLResponse:
    """What was seen in an upload, and which tests can be made with it and with what else there is."""
    return desk.page(
        "collection.html",
        here="collections",
        case=(case := Case.of(desk, name, request.query_params.get)),
        others=[one for one in room.uploads(desk.workspace) if one.id != name],
        taken=room.TAKEN,
        jobs=[(job, state) for job, state in desk.jobs.states() if job.texts == name],
        enough=enough,
        started=STARTED,
        model=case.given["model"] or next(iter(desk.jobs.models()), ""),
    )


@router.post("/collections/{name}/column")
def column(desk: CurrentPage, name: str, form: Posted) -> RedirectResponse:
    """Look again, at another column of text."""
    found = room.upload_of(desk.workspace, name)
    room.look_again(desk.workspace, found, line(form, "text_column"), desk.limits)
    return go(f"/collections/{found.id}")


@router.post("/collections/{name}/test/{test}")
def start(desk: CurrentPage, name: str, test: str, form: Posted) -> RedirectResponse:
    """Start a test that applies, or its plan, with what was said of the case."""
    case = Case.of(desk, name, lambda field: line(form, field))
    return _begin(desk, case, case.command(desk, test), STARTED[test] if line(form, "ahead") else "")


@router.post("/collections/{name}/search")
def search(desk: CurrentPage, name: str, form: Posted) -> RedirectResponse:
    """Search training data that the page was started with for the texts."""
    corpus, case = line(form, "corpus"), Case.of(desk, name, lambda field: line(form, field))
    if corpus not in desk.settings.corpus:
        raise RequestError(say("serve.refused.no_corpus", corpus=corpus or "Nothing"), 403)
    places = [room.texts_of(desk.workspace, one) for one in (name, case.given["controls"]) if one]
    words = "scan", places[0], *case.upload.facts.names.columns, f"--corpus={corpus}"
    return _begin(desk, case, (*words, *(f"--controls={one}" for one in places[1:])))


def _begin(desk: PageContext, case: Case, words: tuple[str, ...], ahead: str = "") -> RedirectResponse:
    """To the job of a command, or of what it looks `ahead`, which waits for its turn."""
    found, name = case.upload, words[1] if words[0] == "mark" else words[0]
    out = f"results/{fresh(f'{name}-{slug(found.name)}')}"
    job = desk.jobs.add(
        f"{'Plan of ' if ahead else ''}{name}: {found.name}",
        (*words, f"--out={desk.workspace.folder / out}", *([ahead] if ahead else [])),
        out,
        texts=found.id,
        case=case.query,
    )
    return go(f"/jobs/{job.id}")
