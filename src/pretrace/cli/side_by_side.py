"""`pretrace runs compare`: runs side by side, models by corpora on one page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table

from pretrace.cli.answer import Answer, Plain
from pretrace.errors import OutputError
from pretrace.results.atomic import check_writable
from pretrace.results.run import COMPARISONS
from pretrace.settings import Option
from pretrace.types import Difference, Estimate, Run, RunScore, SideBySide

_SHOWN = 3
"""Scores whose tables are printed; the page has all."""
_OTHERS = {"audit": "an audit", "test result": "the verdict of a test"}


def compare(
    runs: Annotated[
        tuple[Path, ...],
        Option(
            "Folders that `score` or `evaluate` wrote; two or more.",
            metavar="RUN",
            path="in",
            essential=True,
        ),
    ],
    out: Annotated[
        Path,
        Option(
            "Folder for the comparison: comparison.json, table.csv and report.html.",
            panel="",
            path="out",
            essential=True,
        ),
    ],
    score: Annotated[
        tuple[str, ...],
        Option(
            "The score to show, as the runs name it; give it more than once for several. Default: all.",
            panel="",
            essential=True,
        ),
    ] = (),
) -> Answer:
    """Put runs side by side: models by corpora, with their controls. It says which numbers do not compare, since the
    runs differ in texts, start token or other settings."""
    from pretrace.runs import REPORT, save
    from pretrace.scoring.side_by_side import side_by_side

    check_writable(out, COMPARISONS)
    found = side_by_side([(str(folder), _opened(folder, runs)) for folder in runs], score)
    save(found, out)
    report = out / REPORT

    def told(console: Console) -> None:
        say(found, console)
        console.print(Plain(f"Report: {report}"), soft_wrap=True)

    own = {"runs": found.runs, "scores": found.scores, "differences": found.differences}
    return Answer(say=told, folder=out, report=report, own=own)


def say(found: SideBySide, console: Console) -> None:
    """Print a table for each of the first scores, and the settings in which the runs differ."""
    for name in found.scores[:_SHOWN]:
        console.print(_table(found, name))
    console.print("AUC with its 95% interval, TPR at 5% FPR, and the AUCs of the controls beside it.")
    if len(found.scores) > _SHOWN:
        console.print(f"{len(found.scores) - _SHOWN} more scores in the report.")
    for one in found.differences:
        console.print(Plain(_said(one)))


def _opened(folder: Path, runs: tuple[Path, ...]) -> Run:
    from pretrace.runs import kind_of, load_run

    name = kind_of(folder).name
    if name != "run":
        raise OutputError(
            f"{folder} is {_OTHERS.get(name, f'a {name}')}: compare takes runs, folders that `score` or `evaluate` "
            "wrote."
        )
    if sum(os.path.realpath(one) == os.path.realpath(folder) for one in runs) > 1:
        raise OutputError(f"{folder} is given twice: name each run once.")
    return load_run(folder)


def _table(found: SideBySide, name: str) -> Table:
    table = Table(title=Plain(name), box=None, padding=(0, 2, 1, 0), title_justify="left")
    table.add_column("model", overflow="fold")
    for corpus in found.corpora:
        table.add_column(Plain(corpus), overflow="fold")
    for model in found.models:
        cells = (found.cell(model, corpus, name) for corpus in found.corpora)
        said = ("\n".join(_cell(one, run.blind) for run, one in cell) or "–" for cell in cells)
        table.add_row(Plain(model), *map(Plain, said))
    return table


def _cell(one: RunScore, blind: Estimate | None) -> str:
    if one.auc is None or one.tpr is None:
        median = "–" if one.median is None else f"{one.median:.4g}"
        return f"median {median}\n{one.texts:,} texts"
    lines = [
        _interval(one.auc),
        f"TPR {one.tpr.value:.1%}",
        f"blind {blind.value:.3f}" if blind else "no blind control",
    ]
    return "\n".join([*lines, f"placebo {one.placebo.value:.3f}"] if one.placebo else lines)


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _said(one: Difference) -> str:
    values = "; ".join(f"{value} ({', '.join(map(str, runs))})" for value, runs in one.values)
    return f"- {'Compare with care' if one.compares else 'Does not compare'}: {one.setting}: {values}. {one.words}"
