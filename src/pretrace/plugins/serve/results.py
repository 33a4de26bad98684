"""The pages of results: a list, their pictures and files, and whether they are as written."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.plugins.serve import RequestError, Workspace, inside
from pretrace.plugins.serve.jobs import Jobs
from pretrace.plugins.serve.pages import CurrentJobs, Posted, go, page
from pretrace.plugins.serve.uploads import remove
from pretrace.report.verdict import draw_own
from pretrace.results import wording
from pretrace.results.atomic import FILES_KEY, MARKER, json_object
from pretrace.results.folder import file_hash, mapping
from pretrace.results.wording import sentences_of
from pretrace.types import Verdict
from pretrace.verification import verify_folder

router = APIRouter()
_REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""That of a report, which may come from elsewhere: no script at all, no form, an origin of its own."""


@dataclass(frozen=True, slots=True)
class _ResultEntry:
    """One result in the list: its folder's name, its JSON part, what it is, of which texts and model, how it ended."""

    name: str
    marker: str
    kind: str
    corpus: str
    model: str
    outcome: str
    statement: str
    at: float
    report: bool

    @property
    def words(self) -> str:
        """The outcome in words."""
        return str(sentences_of("outcomes").get(self.outcome, self.outcome))


def entries(workspace: Workspace) -> list[_ResultEntry]:
    """All results, the latest first."""
    found = [entry for place in (workspace.folder / "results").iterdir() if (entry := _entry(place))]
    return sorted(found, key=lambda one: one.at, reverse=True)


def _entry(place: Path) -> _ResultEntry | None:
    marker = next((one for one in runs.MARKERS if (place / one).is_file()), None)
    if marker is None or place.is_symlink() or place.name.startswith("."):
        return None  # what lies elsewhere, or is being written, is not shown
    return _read_entry(place, marker, (place / marker).stat().st_mtime_ns)


@lru_cache(maxsize=4096)
def _read_entry(place: Path, marker: str, changed: int) -> _ResultEntry:
    facts, kind = json_object(place / marker) or {}, runs.kind_of(place).name
    kind = str(facts.get("test", "test")) if kind == "test result" else kind
    names = ("corpus", "model", "outcome", "statement")
    corpus, model, outcome, statement = (str(facts.get(one) or "") for one in names)
    if marker == MARKER:
        target = mapping(mapping(mapping(facts.get("settings")).get("models")).get("target"))
        model = str(target.get("name") or "")
        outcome = "evaluated" if "metrics.json" in mapping(facts.get(FILES_KEY)) else "scored"
        number = mapping(facts.get("counts")).get("texts")
        statement = f"{wording.plural(number, 'text')}." if isinstance(number, int) else ""
    at, report = changed / 1e9, (place / runs.REPORT).is_file()
    return _ResultEntry(place.name, marker, kind, corpus, model, outcome, statement, at, report)


@router.get("/results", response_class=HTMLResponse)
def _listed(jobs: CurrentJobs) -> HTMLResponse:
    """All results."""
    return page(jobs, "results.html", here="results", entries=entries(jobs.workspace))


@router.get("/results/{name}", response_class=HTMLResponse)
def _result(jobs: CurrentJobs, name: str) -> HTMLResponse:
    """One result with its report, its tables, and the SHA-256 of its JSON part, to be written down elsewhere."""
    folder = _folder(jobs, name)
    entry, found = _entry(folder), None
    if entry is None or entry.name != name:
        raise RequestError("This folder holds no result of pretrace.", 404)
    with suppress(OutputError):  # the check of its hashes says what is wrong with it
        found = runs.load(folder)
    return page(
        jobs,
        "result.html",
        here="results",
        entry=entry,
        drawn=draw_own(found) if isinstance(found, Verdict) else (),
        appendix=(folder / runs.APPENDIX).is_file(),
        # what has a page of its own is not among the files
        files=[one for one in _files(folder) if one[0] not in (runs.REPORT, runs.APPENDIX)],
        mark=file_hash(folder / entry.marker),
    )


def _folder(jobs: Jobs, name: str) -> Path:
    return inside(jobs.workspace.folder / "results", name)


def _files(folder: Path) -> list[tuple[str, int]]:
    """The files of a result, with their sizes."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in found]


@router.get("/results/{name}/verified", response_class=HTMLResponse)
def _verified(jobs: CurrentJobs, name: str) -> HTMLResponse:
    """Whether a result is what was written (its files, its JSON part and its report), to be put into its page."""
    folder = _folder(jobs, name)
    try:
        wrong = "; ".join(one.words for one in verify_folder(folder).checks if one.state == "no")
        said = f"{wrong}. Make the result again." if wrong else ""
    except OutputError as error:
        said = str(error)
    return page(jobs, "verified.html", wrong=said.replace(f"{folder.parent}/", ""))


@router.get("/results/{name}/{file}")
def _report(jobs: CurrentJobs, name: str, file: Literal["report", "appendix"]) -> Response:
    """The report, or its appendix for paper, which may load nothing and run nothing."""
    place = inside(_folder(jobs, name), f"{file}.html")
    headers = {"Content-Security-Policy": _REPORT_POLICY}
    return FileResponse(place, media_type="text/html; charset=utf-8", headers=headers)


@router.get("/results/{name}/files/{path:path}")
def _download(jobs: CurrentJobs, name: str, path: str) -> Response:
    """A file of a result, to be kept and not shown."""
    place = inside(_folder(jobs, name), path)
    if not place.is_file():
        raise RequestError("There is no such file in this result.", 404)
    return FileResponse(place, media_type="application/octet-stream", filename=f"{name}-{place.name}")


@router.post("/results/{name}/delete")
def _delete(jobs: CurrentJobs, name: str, form: Posted) -> RedirectResponse:
    """Delete a result that no job is writing."""
    folder = _folder(jobs, name)
    for one, state in jobs.states():
        if one.out == f"results/{name}" and not state.over:
            raise RequestError("A job that is not over writes into this folder: stop the job first.", 409)
    remove(folder)
    return go("/results")
