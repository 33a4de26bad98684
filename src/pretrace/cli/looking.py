"""What was found, looked at: `pretrace runs report`, `verify` and `table`, `show` and `list`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType
from rich.padding import Padding

from pretrace.backends import known_backends, open_model
from pretrace.baselines import classifiers
from pretrace.cli.commands import Reply, plain_table, printer, prose
from pretrace.cli.telling import measured
from pretrace.corpora import Columns, known_corpora
from pretrace.corpora.formats import standard_input
from pretrace.errors import TextsError
from pretrace.registry import Registry, require
from pretrace.report.heat import heat_lines
from pretrace.report.tables import format_table, save_figures
from pretrace.results.atomic import check_writable
from pretrace.runs import load_run, render
from pretrace.scores import scores
from pretrace.scoring.detect import heat_of
from pretrace.scoring.evidence import Traces, trace
from pretrace.scoring.plan import Target
from pretrace.settings import TEXTS, Option
from pretrace.tuning.plan import methods
from pretrace.types import Quantity, Text
from pretrace.verdicts.audit.data import PROCEDURES
from pretrace.verification import verify as check

FAILED = 2
"""The exit code where something is not as it was recorded."""
_FOLDER = Option(
    "A folder that a run, an audit, a flagging or another test was written to.",
    metavar="FOLDER",
    path="in",
    essential=True,
)


_place = partial(Option, panel=TEXTS, path="in", essential=True)


def verify(
    folder: Annotated[Path, _FOLDER],
    *,
    texts: Annotated[str | None, _place("The texts in question, as they are now; given as TEXTS is.")] = None,
    controls: Annotated[
        str | None, _place("The control documents of an audit, or the known non-members of a flagging.")
    ] = None,
    reference: Annotated[
        str | None, _place("The labelled texts that detectors of a run were fitted on.")
    ] = None,
    sealed: Annotated[str | None, _place("The sealed file of `pretrace mark check`.")] = None,
    answers: Annotated[str | None, _place("The answers of `pretrace mark check`.")] = None,
    columns: Annotated[Columns, "text", "label", "id", "group"],
) -> Reply:
    """Is a result what was written? Every hash, the report against its tables, and the texts against those of the
    result. Exit code 0 when all that can be checked holds, 2 otherwise."""
    places = {"texts": texts, "controls": controls, "reference": reference}
    places |= {"sealed": sealed, "answers": answers}
    # texts that are not named are looked for where they were
    found = check(folder, {role: place for role, place in places.items() if place}, columns=columns)
    wrong = ", ".join(one.name for one in found.checks if one.state == "no")
    open_ = ", ".join(one.name for one in found.checks if one.state not in ("no", "yes"))
    rest = f"not as it was recorded: {wrong}" if not found.holds else "as it was recorded"
    statement = f"This {found.kind} is {rest}{f'; not checked: {open_}' * bool(open_ and found.holds)}."

    table = plain_table(
        *("check", "state", "words"),
        rows=[(one.name, one.state, one.words) for one in found.checks],
        show_header=False,
    )
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    return Reply(
        [table, statement],
        outcome="holds" if found.holds else "differs",
        code=0 if found.holds else FAILED,
        statement=statement,
        folder=folder,
        own={"kind": found.kind, "checks": found.checks},
    )


def show(
    text: Annotated[str, Option("The text itself, or - for standard input.", metavar="TEXT", essential=True)],
    target: Target,
) -> Reply:
    """Print a text's tokens coloured by how surprising each was to the model."""

    content = standard_input().read().decode("utf-8", "replace") if text == "-" else text
    if not content.strip():
        raise TextsError("the text is empty; pass a sentence or two, or - to read standard input.")
    backend = open_model(target.model, **asdict(target.opening))
    one = trace(backend, [content], Quantity.LOGP, store=Traces(None))[0]
    heat = heat_of(Text("text", content), one, backend, limit=None)
    tokens = [{"piece": piece, "logp": logp} for piece, logp in zip(heat.pieces, heat.logp, strict=True)]
    own = {"model": target.model, "mean_logp": heat.mean_logp, "tokens": tokens}
    return Reply([*heat_lines(heat, printer())], own=own)


def report(run: Annotated[Path, Option("A folder that a run was written to.", metavar="RUN")]) -> Reply:
    """Render RUN/report.html again from the run's tables, without a model."""

    page = render(run)
    return Reply([f"Report: {page}"], folder=run, report=page)


def list_() -> Reply:
    """List scores, corpora and what --model takes."""

    def summaries(registry: Registry[Any]) -> dict[str, str]:
        return {registry.signature(name): registry.summary(name) for name in registry}

    kinds: dict[str, Mapping[str, str]] = {
        "Scores (higher = more likely a member)": summaries(scores),
        "Corpora": summaries(known_corpora()),
        "Tuning methods (--method)": summaries(methods),
        "Procedures of an audit (--procedure)": PROCEDURES,
        "Classifiers of texts (--classifiers)": summaries(classifiers),
        "Models (--model)": known_backends(),
    }
    said: list[RenderableType] = []
    for title, rows in kinds.items():
        said.append(title)
        for name, line in rows.items():
            said += [Padding(prose(name), (0, 0, 0, 2)), Padding(prose(line), (0, 0, 0, 6))]
        said.append("")
    return Reply(said, own={"lists": kinds})


# `pretrace runs table`: a measured run for a paper.


_FIGURES = Option(
    "Folder for the ROC curves and the AUCs, each as PDF and as SVG.", panel="", path="out", essential=True
)


def table(
    run: Annotated[Path, Option("A folder that `evaluate` wrote.", metavar="RUN", path="in", essential=True)],
    latex: Annotated[bool, Option("As LaTeX, with the rules of booktabs.", panel="", essential=True)] = False,
    markdown: Annotated[bool, Option("As Markdown.", panel="", essential=True)] = False,
    figures: Annotated[Path | None, _FIGURES] = None,
) -> Reply:
    """The figures of a run for a paper: a table with 95% intervals, the best of each column in bold. With --figures
    also the curves as files."""
    require(not (latex and markdown), "a table has one form: give --latex or --markdown.")
    if figures is not None:
        check_writable(figures)
    found = load_run(run)
    text = format_table(found, "latex" if latex else "markdown")
    made = save_figures(found, figures) if figures else ()

    said = [text if latex or markdown else measured(found), *(f"Figure: {path}" for path in made)]
    return Reply(said, folder=run, own={"table": text, "figures": [str(path) for path in made]})
