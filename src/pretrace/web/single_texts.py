"""One text that a visitor looks at: scored by a job, and ranked among known non-members that another job scored."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pretrace.errors import OutputError
from pretrace.report import wording
from pretrace.results.atomic import atomic_text
from pretrace.runs import load_run
from pretrace.types import Doubles, Run
from pretrace.web.charts import Chart, ChartMark, ChartRow, thinned
from pretrace.web.forms import ModelChoice
from pretrace.web.jobs import Jobs, State
from pretrace.web.uploads import facts_of, texts_of, upload_of
from pretrace.web.workspace import RequestError, Workspace, fresh, inside, record_in, save, slug

SCORES = "loss,zlib,min_k,min_k_plus_plus"
FEW_KNOWN = 20
"""Known non-members below which a rank says next to nothing."""
_TITLE = 60


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """What is asked of a text: a model, scores (the usual ones where empty), and an upload of known non-members."""

    model: str
    scores: str = ""
    known: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """One text: which model and scores were asked for, the job that scores it, and the known non-members with theirs:
    the upload, the job, and the folder of the run (relative to the workspace); empty where none were named."""

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
    known_run: str = ""


@dataclass(frozen=True, slots=True)
class RankAmongKnown:
    """Where a text stands in one score among known non-members: its value, how many of `known` are at least as high,
    and all of them on one axis."""

    score: str
    value: float
    known: int
    above: int
    chart: Chart

    @property
    def share(self) -> float:
        """The share of the known non-members that lie below the text."""
        return (self.known - self.above) / self.known

    @property
    def p(self) -> float:
        """How often an unseen text of the same kind would stand so high."""
        return (self.above + 1) / (self.known + 1)


def begin(jobs: Jobs, text: str, asked: TextQuestion, models: ModelChoice) -> Look:
    """A look at a text, whose jobs wait for their turn; RequestError for an empty text, and for a model that is not
    there."""
    model, scores, known = asked.model, asked.scores or SCORES, asked.known
    workspace, most = jobs.workspace, jobs.limits.text_characters
    if not text.strip():
        raise RequestError("There is no text: paste one, or choose a file that holds one.", 422)
    if len(text) > most:
        raise RequestError(
            f"The text has {len(text):,} characters, and {most:,} is the most here: a collection of texts "
            "belongs to the page Collections.",
            413,
        )
    if not model.strip():
        raise RequestError(
            "No model is named: give smollm2, a hub id, a folder, a .gguf file or a server.",
            422,
            field="model",
        )
    title = " ".join(text.split())[:_TITLE]
    made = fresh("text")
    folder = workspace.room("looks") / made
    known_upload = upload_of(workspace, known) if known else None
    if known_upload:
        texts_of(workspace, known)  # that they can be used
    jobs.check_room(2 if known_upload else 1)
    workspace.check_room("looks", jobs.limits.kept)
    workspace.check_room("jobs", jobs.limits.kept - bool(known))
    models.find("Model", model)
    folder.mkdir()
    atomic_text(folder / "text.jsonl", json.dumps({"id": "the text", "text": text}) + "\n")
    options = (f"--model={model}", f"--scores={scores}")
    out = f"looks/{made}/run"
    paths = (str(folder / "text.jsonl"), f"--out={workspace.folder / out}")
    job = jobs.add(f"Look at “{title}”", ("score", *paths, *options), out)
    known_job = known_run = ""
    if known_upload:
        known_job, known_run = _known(jobs, known_upload.id, known_upload.name, options)
    name = known_upload.name if known_upload else ""
    look = Look(made, title, len(text), model, scores, time.time(), job.id, known, name, known_job, known_run)
    save(folder / "look.json", look)
    workspace.remember(model)
    return look


def _known(jobs: Jobs, upload: str, name: str, options: tuple[str, ...]) -> tuple[str, str]:
    """The job that scores known non-members, and its run; an earlier one with the same options is taken again."""
    workspace = jobs.workspace
    digest = hashlib.sha256("\0".join((upload, *options)).encode()).hexdigest()[:12]
    out = f"results/known-{slug(name)}-{digest}"
    for one in jobs.all():
        if one.out == out and jobs.state(one).name not in ("failed", "unanswered"):
            if jobs.state(one).name == "stopped":
                jobs.resume(one)
            return one.id, out
    found = upload_of(workspace, upload)
    columns = facts_of(workspace, found).column_options
    command = ("score", texts_of(workspace, upload), f"--out={workspace.folder / out}", *columns, *options)
    return jobs.add(f"Known non-members: {name}", command, out, texts=upload).id, out


def looks(workspace: Workspace) -> list[Look]:
    """All texts that were looked at, the latest first."""
    places = sorted(workspace.room("looks").glob("*/look.json"), reverse=True)
    return [found for place in places if (found := record_in(Look, place))]


def look_of(workspace: Workspace, name: str) -> Look:
    """The look of that id; RequestError (404) where there is none."""
    found = record_in(Look, inside(workspace.room("looks"), name) / "look.json")
    if found is None:
        raise RequestError("There is no such text here: it may have been deleted from the workspace.", 404)
    return found


def run_in(workspace: Workspace, relative: str, state: State) -> tuple[Run | None, str]:
    """The run of a job that is over, and what is wrong with it; None while there is none."""
    place: Path = workspace.within(relative)
    if not state.result:
        return None, ""
    try:
        return load_run(place), ""
    except OutputError as error:
        return None, str(error)


def places(run: Run, known: Run) -> tuple[RankAmongKnown, ...]:
    """Where the one text of a run stands among the texts of another, score by score."""
    found = []
    for score in run.scores:
        value = float(run.column(score)[0])
        if score not in known.scores or np.isnan(value):
            continue
        others = known.column(score)
        scored = np.flatnonzero(~np.isnan(others))
        if len(scored):
            found.append(_placed(score, value, others[scored], [known.ids[i] for i in scored]))
    return tuple(found)


def _placed(score: str, value: float, others: Doubles, names: Sequence[str]) -> RankAmongKnown:
    own = ChartMark(value, f"the text: {wording.significant(value)}", "own")
    row = ChartRow("known non-members, and the text", (*thinned(others, names), own))
    above = int((others >= value).sum())
    return RankAmongKnown(
        score, value, len(others), above, Chart.of(f"Where the text stands in {score}", (row,))
    )
