"""Runs, and rows of evaluations, with what a test is about and nothing else."""

import json

import numpy as np

from pretrace.corpora.opening import GivenStream
from pretrace.scoring.evaluation import measure
from pretrace.scoring.parts import ScoredRows
from pretrace.types import Corpus, Curve, Estimate, Measured, Run, Text


def written(path, rows):
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(name, auc, kind="score", **parts):
    """A row with this AUC, by default 0.1 wide on both sides, in the place of its other figures too."""
    found = auc if isinstance(auc, Estimate) else Estimate(auc, auc - 0.1, auc + 0.1)
    curve = Curve((0.0, 1.0), (0.0, 1.0))
    figures = {"auc": found, "tpr": found, "accuracy": found, "threshold": 0.0, "curve": curve}
    return Measured(name=name, kind=kind, **{**figures, **parts})


def run_of(matrix, members, **parts):
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


def evaluate(run, texts, *, blind=True, **how):
    """The figures of a run, where `texts[i]` is the text of row i."""
    some = tuple(Text(name, text) for name, text in zip(run.ids, texts, strict=False))
    stream = GivenStream(Corpus(run.corpus, some)) if blind else None
    return measure(ScoredRows.of_run(run, some), stream, **how)
