"""Runs, and rows of evaluations, with what a test is about and nothing else."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pretrace.cli.commands import call
from pretrace.cli.options import command_of
from pretrace.types import Curve, Estimate, Measured, Run


class Answer(NamedTuple):
    """What a command line left: its exit code, what it printed and said, and what it raised."""

    exit_code: int
    stdout: str
    output: str
    exception: Exception | None


def answer_to(*words: object) -> Answer:
    """Carry out a command line in this process."""
    printed, said = io.StringIO(), io.StringIO()
    code, raised = 0, None
    with redirect_stdout(printed), redirect_stderr(said):
        try:
            code = call([str(word) for word in words])
        except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
            code, raised = 1, error
    return Answer(code, printed.getvalue(), printed.getvalue() + said.getvalue(), raised)


def call_function(function: Callable[..., Any], *words: object, name: str = "command") -> Any:
    """Carry out a command of this function."""
    made = command_of(function, name)
    how: dict[str, Any] = {"print_error": False, "exit_on_error": False, "result_action": "return_value"}
    return made([str(word) for word in words], **how)


def written(path: Path, rows: Iterable[Any]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(name: str, auc: float | Estimate, kind: str = "score", **parts: Any) -> Measured:
    """A row with this AUC, by default 0.1 wide on both sides, in the place of its other figures too."""
    found = auc if isinstance(auc, Estimate) else Estimate(auc, auc - 0.1, auc + 0.1)
    curve = Curve((0.0, 1.0), (0.0, 1.0))
    figures = {"auc": found, "tpr": found, "accuracy": found, "threshold": 0.0, "curve": curve}
    return Measured(name=name, kind=kind, **{**figures, **parts})


def run_of(matrix: npt.ArrayLike, members: Sequence[Any], **parts: Any) -> Run:
    """A run of scores [texts, scores], whose texts are called t0, t1, …"""
    values, rows = np.asarray(matrix, dtype=np.float64), len(members)
    own = {
        "corpus": "test",
        "ids": tuple(f"t{i}" for i in range(rows)),
        "groups": ("",) * rows,
        "members": tuple(None if member is None else bool(member) for member in members),
        "tokens": np.full(rows, 5, np.int32),
        "cut": np.zeros(rows, np.int32),
        "scores": tuple(f"score{k}" for k in range(values.shape[1])),
        "matrix": values,
    }
    return Run(**{**own, **parts})


EMPTY = run_of(np.zeros((0, 0)), ())
