"""A result with its report, written and read as one folder: a run, or the verdict of a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pretrace.errors import OutputError
from pretrace.results import run as runs
from pretrace.results import verdicts
from pretrace.results.atomic import (
    FolderKind,
    OutputFile,
    atomic_text,
    check_file,
    json_object,
    recorded_files,
)
from pretrace.results.folder import OpenFolder, Pages
from pretrace.types import Run, Verdict

Result = Run | Verdict
REPORT, APPENDIX = "report.html", "appendix.html"


MARKERS = (verdicts.VERDICTS.marker, runs.RUN.marker)
"""The JSON parts by which results are known; a folder is known by the first of them that it holds."""


def save(result: Result, folder: str | Path, **more: Any) -> dict[str, Any]:
    """Write tables, figures and report to `folder`, whole or not at all, in place of an earlier result there, and
    return the JSON part.

    `beside` adds to the folder of a run before its report is made, or, by their names, further tables to that of a
    verdict. Raises OutputError where nothing can be written, or where `folder` holds something else.
    """
    write: Callable[..., dict[str, Any]] = runs.save_run if isinstance(result, Run) else verdicts.save_verdict
    return write(result, Path(folder), pages=_pages(result), **more)


save_run = save_verdict = save
load_run = runs.load_run


def load(folder: str | Path) -> Result:
    """The run or verdict that `save` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where the folder holds none, where a file is damaged or was changed, or where
    a newer pretrace wrote it.
    """
    place = Path(folder)
    return verdicts.load_verdict(place) if _holds_verdict(place) else load_run(place)


def kind_of(folder: Path) -> FolderKind:
    """What kind of result lies in a folder, by its JSON part; that of a run where there is none."""
    if not _holds_verdict(folder):
        return runs.RUN
    test = (json_object(folder / verdicts.VERDICTS.marker) or {}).get("test")
    return replace(verdicts.kind_of_test(str(test)), test="")


def render(folder: str | Path) -> Path:
    """The report of the result in `folder`, made anew in its place, with its appendix where it was written with one;
    errors as in `load` and `save`."""
    place = Path(folder)
    made, ours = pages_of(place), recorded_files(place)
    for name in made:
        check_file(place / name, OutputFile("report", lambda path: path.name in ours))
    for name, page in made.items():
        atomic_text(place / name, page)
    return place / REPORT


def pages_of(folder: str | Path) -> dict[str, str]:
    """The report of the result in `folder` as it would be made now, and the appendix where it was written with one, by
    the names of their files; errors as in `load`."""
    result, place = load(folder), Path(folder)
    seal, known = OpenFolder(kind_of(place), place).seal, {REPORT, *recorded_files(place)}
    return {name: make(seal) for name, make in _pages(result).items() if name in known}


def scan(folder: str | Path) -> Any:
    """All rows of a run as a `pyarrow.dataset.Dataset`, which reads them as they are wanted: of a large run the whole
    table and not the sample. Of a large flagging all texts in question. OutputError where the folder holds neither."""
    from pyarrow import dataset

    place, found = Path(folder), load(folder)
    if isinstance(found, Verdict) and found.figures.get("whole"):
        names = list(found.figures["whole"]["parts"])
    else:
        run = found if isinstance(found, Run) else load_run(folder)
        names = [part["name"] for part in run.whole.parts] if run.whole else [runs.SCORES]
    return dataset.dataset([str(place / name) for name in names], format="parquet")


def load_verdict(folder: str | Path, *tests: str) -> Verdict:
    """`load`, where nothing but a verdict will do: an audit, a flagging, or another test; one of these `tests`, where
    any are named."""
    place = Path(folder)
    _holds_verdict(place)  # which refuses a file
    found = verdicts.load_verdict(place)
    if tests and found.test not in tests:
        raise OutputError(f"{place} holds the result of another test: {found.test}.")
    return found


def _holds_verdict(folder: Path) -> bool:
    if folder.is_file():
        raise OutputError(f"{folder} is a file, and a result is a folder: give the folder that --out wrote.")
    return (folder / verdicts.VERDICTS.marker).exists()


def _pages(result: Result) -> Pages:
    name = "run" if isinstance(result, Run) else "verdict"
    report, appendix = import_module(f"pretrace.report.{name}").pages(result)
    return {REPORT: report} | ({APPENDIX: appendix} if appendix else {})
