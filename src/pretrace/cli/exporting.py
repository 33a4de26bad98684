"""`pretrace runs export`: a result as a database for other tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pretrace.cli.answer import Answer, lines
from pretrace.errors import OutputError
from pretrace.results.atomic import check_writable
from pretrace.results.export import DATABASE
from pretrace.settings import Option


def export(
    folder: Annotated[
        Path,
        Option(
            "A folder that a run, an audit, a flagging or another test was written to.",
            metavar="FOLDER",
            path="in",
            essential=True,
        ),
    ],
    sqlite: Annotated[
        Path,
        Option(
            "The file to write, such as run.sqlite; datasette and sqlite3 open it.",
            panel="",
            path="out",
            essential=True,
        ),
    ],
) -> Answer:
    """Write a result to one SQLite database: texts, scores, metrics, skipped texts, summary and settings; of audits,
    flaggings and other tests their own tables and checks."""
    from pretrace import runs

    if Path(os.path.realpath(sqlite)).is_relative_to(os.path.realpath(folder)):
        raise OutputError(
            f"--sqlite {sqlite} lies in {folder}, which holds a result as it was written: choose a place beside it."
        )
    check_writable(sqlite, DATABASE)
    runs.export(folder, sqlite)
    return Answer(say=lines(f"Database: {sqlite}"), own={"sqlite": str(sqlite)})
