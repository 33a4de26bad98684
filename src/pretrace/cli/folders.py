"""What is done with result folders: `pretrace runs verify` and `table`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

from pretrace.cli.answer import Reply, plain_table
from pretrace.cli.printing import measured
from pretrace.corpora import Columns
from pretrace.registry import require
from pretrace.report.tables import format_table, save_figures
from pretrace.results.atomic import check_writable
from pretrace.runs import load_run
from pretrace.settings import TEXTS, Option
from pretrace.verdicts.settings import input_option
from pretrace.verification import verify as check

FAILED = 2
"""The exit code where something is not as it was recorded."""
_FOLDER = Option(
    "A folder that a run, an audit, a flagging or another test was written to.",
    metavar="FOLDER",
    path="in",
    essential=True,
)


def _place(help: str) -> str | None:
    given: str | None = input_option(None, help, TEXTS)
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class _VerifyInputs:
    """Where the texts are now; those that are not named are looked for where they were."""

    texts: str | None = _place("The texts in question, as they are now; given as TEXTS is.")
    controls: str | None = _place(
        "The control documents of an audit, or the known non-members of a flagging."
    )
    reference: str | None = _place("The labelled texts that detectors of a run were fitted on.")
    sealed: str | None = _place("The sealed file of `pretrace mark check`.")
    answers: str | None = _place("The answers of `pretrace mark check`.")
    columns: Annotated[Columns, "text", "label", "id", "group"] = field(default_factory=Columns)

    @property
    def named(self) -> dict[str, str]:
        """The places that were named, by the role of the texts."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "columns"}
        return {role: place for role, place in found.items() if place}


def verify(folder: Annotated[Path, _FOLDER], inputs: _VerifyInputs) -> Reply:
    """Is a result what was written? Every hash, the report against its tables, and the texts against those of the
    result. Exit code 0 when all that can be checked holds, 2 otherwise."""
    found = check(folder, inputs.named, columns=inputs.columns)
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
